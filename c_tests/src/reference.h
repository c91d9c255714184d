/* What is right, computed one element at a time from the documented order and rules. */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <ring.h>
#include <stdbool.h>

/* A value as the nearest float16 or bfloat16, ties to even. */
uint16_t to_narrow(ring_dtype_t dtype, float value);

/* The element `index` of a rank's input: ordinary values, and for floating-point types now and then
 * a NaN, an infinity, a zero of either sign or a subnormal. */
void input_element(ring_dtype_t dtype, int rank, size_t index, void *out);

/* A rank's whole input. */
void fill_input(ring_dtype_t dtype, int rank, size_t count, void *out);

/* Whether the pair of type and operation is defined. */
bool is_supported(ring_dtype_t dtype, ring_op_t op);

/* Whether what is expected from now on has the sums and means of 16-bit floats kept in float32 along a chain, as in
 * groups with RING_FLAG_WIDE_ACCUMULATION; at first it hasn't. */
void keep_sums_wide(bool on);

/* The right result of an all-reduce of `size` ranks' inputs. */
void expect_all_reduce(ring_dtype_t dtype, ring_op_t op, int size, size_t count, void *out);

/* `count` elements of the ranks' inputs from `start` on, reduced in a chain that starts as the values of rank
 * `first` and takes in those of the next rank to the right (1) or to the left (-1) at each step. */
void expect_chain(ring_dtype_t dtype, ring_op_t op, int size, int first, int direction, size_t start, size_t count,
                  void *out);

/* Index of the first element whose bits differ (any NaN equals any other), or count. */
size_t first_difference(ring_dtype_t dtype, size_t count, const void *got, const void *right);

#endif
