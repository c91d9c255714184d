/* The data are what they are said to be, and the check sees an element that isn't. */
#include "check.h"
#include "data.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 2 * PERIOD + 17, RANKS = 4, ELEMENT_BYTES = 8 };

/* The data of a ring of one are their own reduction. */
static void wrong_elements_are_counted(ring_dtype_t dtype, ring_op_t op) {
  uint8_t array[COUNT * ELEMENT_BYTES];
  size_t bytes = ring_dtype_size(dtype);
  fill(array, COUNT, dtype, op, 0, 1);
  CHECK(count_wrong(array, COUNT, dtype, op, 1) == 0);
  const size_t places[] = {0, 1, PERIOD - 1, PERIOD, COUNT - 1};
  size_t broken = 0;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    for (size_t byte = 0; byte < bytes; byte++) array[places[i] * bytes + byte] ^= 0x10;
    CHECK(count_wrong(array, COUNT, dtype, op, 1) == ++broken);
  }
}

static void ranks_differ(ring_dtype_t dtype, ring_op_t op) {
  uint8_t first[COUNT * ELEMENT_BYTES], second[COUNT * ELEMENT_BYTES];
  size_t bytes = COUNT * ring_dtype_size(dtype);
  for (int rank = 1; rank < RANKS; rank++) {
    fill(first, COUNT, dtype, op, 0, RANKS);
    fill(second, COUNT, dtype, op, rank, RANKS);
    CHECK(memcmp(first, second, bytes) != 0);
    CHECK(count_wrong(second, COUNT, dtype, op, RANKS) > 0);
  }
}

/* A rank's values are known at any element, and are no other rank's. */
static void values_are_a_ranks(ring_dtype_t dtype, ring_op_t op) {
  uint8_t array[COUNT * ELEMENT_BYTES];
  const size_t firsts[] = {0, 1, PERIOD - 1, PERIOD, COUNT - 1};
  size_t bytes = ring_dtype_size(dtype);
  values_t values = {dtype, op, RANKS};
  for (int rank = 0; rank < RANKS; rank++) {
    fill(array, COUNT, dtype, op, rank, RANKS);
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
      size_t first = firsts[i], count = COUNT - first;
      CHECK(count_wrong_of(&values, rank, first, array + first * bytes, count) == 0);
      if (count == 1) continue;
      CHECK(count_wrong_of(&values, rank, first + 1, array + first * bytes, count) > 0);
      CHECK(count_wrong_of(&values, (rank + 1) % RANKS, first, array + first * bytes, count) > 0);
      CHECK(count_wrong_of(&values, ALL_RANKS, first, array + first * bytes, count) > 0);
    }
  }
}

/* The reduction of two ranks, computed from what they hold. */
static void reductions_are_right(void) {
  enum { TWO = 2 };
  uint8_t u8[TWO][COUNT];
  int8_t smallest[COUNT];
  float f32[TWO][COUNT], sum[COUNT], product[COUNT], mean[COUNT];
  for (int rank = 0; rank < TWO; rank++) fill(u8[rank], COUNT, RING_DTYPE_INT8, RING_OP_MIN, rank, TWO);
  for (int i = 0; i < COUNT; i++) {
    int8_t a = (int8_t)u8[0][i], b = (int8_t)u8[1][i];
    smallest[i] = a < b ? a : b;
  }
  CHECK(count_wrong(smallest, COUNT, RING_DTYPE_INT8, RING_OP_MIN, TWO) == 0);
  for (int rank = 0; rank < TWO; rank++) fill(u8[rank], COUNT, RING_DTYPE_UINT8, RING_OP_SUM, rank, TWO);
  for (int i = 0; i < COUNT; i++) u8[0][i] = (uint8_t)(u8[0][i] + u8[1][i]);
  CHECK(count_wrong(u8[0], COUNT, RING_DTYPE_UINT8, RING_OP_SUM, TWO) == 0);
  for (int rank = 0; rank < TWO; rank++) fill(f32[rank], COUNT, RING_DTYPE_FLOAT32, RING_OP_SUM, rank, TWO);
  for (int i = 0; i < COUNT; i++) {
    sum[i] = f32[0][i] + f32[1][i];
    mean[i] = sum[i] / TWO;
  }
  CHECK(count_wrong(sum, COUNT, RING_DTYPE_FLOAT32, RING_OP_SUM, TWO) == 0);
  CHECK(count_wrong(mean, COUNT, RING_DTYPE_FLOAT32, RING_OP_MEAN, TWO) == 0);
  for (int rank = 0; rank < TWO; rank++) fill(f32[rank], COUNT, RING_DTYPE_FLOAT32, RING_OP_PROD, rank, TWO);
  for (int i = 0; i < COUNT; i++) product[i] = f32[0][i] * f32[1][i];
  CHECK(count_wrong(product, COUNT, RING_DTYPE_FLOAT32, RING_OP_PROD, TWO) == 0);
}

int main(void) {
  for (ring_dtype_t dtype = RING_DTYPE_BOOL; dtype <= RING_DTYPE_COMPLEX64; dtype++) {
    for (ring_op_t op = RING_OP_SUM; op <= RING_OP_BXOR; op++) {
      wrong_elements_are_counted(dtype, op);
      ranks_differ(dtype, op);
      values_are_a_ranks(dtype, op);
    }
  }
  reductions_are_right();
  return 0;
}
