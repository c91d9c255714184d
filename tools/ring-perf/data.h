/* Arrays whose reduction is known exactly, whatever the order in which it is computed. */
#ifndef DATA_H
#define DATA_H

#include <ring.h>

/* Elements after which the data repeat. A prime, so that no segment of the array starts where the
 * data do. */
enum { PERIOD = 1021 };

/* Fills an array with this rank's values. */
void fill(void *array, size_t count, ring_dtype_t dtype, ring_op_t op, int rank, int size);

/* What arrays are filled with. */
typedef struct values {
  ring_dtype_t dtype;
  ring_op_t op;
  int size;
} values_t;

/* In place of a rank: the reduction of all ranks' values. */
enum { ALL_RANKS = -1 };

/* How many elements of an array aren't those of a rank's values, or of the reduction, from element `first` on. */
size_t count_wrong_of(const values_t *values, int rank, size_t first, const void *array, size_t count);

/* How many elements of an array aren't the reduction of all ranks' values. */
size_t count_wrong(const void *array, size_t count, ring_dtype_t dtype, ring_op_t op, int size);

#endif
