/* Inputs whose right result is known without computing the reduction step by step. */
#ifndef VALUES_H
#define VALUES_H

#include <ring.h>
#include <stddef.h>

/* Fills a rank's input: small whole numbers that differ by rank and element. */
void fill(void *buffer, size_t count, ring_dtype_t dtype, ring_op_t op, int rank);

/* How many elements of an all-reduce's result over `size` ranks are wrong. */
size_t count_wrong(const void *buffer, size_t count, ring_dtype_t dtype, ring_op_t op, int size);

#endif
