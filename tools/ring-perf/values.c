#include "values.h"

#include <stdint.h>
#include <string.h>

/* Elements repeat with this period, so that a right result is computed once an element of it. It is
 * odd, so that no power of two hides an element in another's place. */
enum { PERIOD = 251 };

/* An input's whole number. All sums, and products of up to 8 ranks, are exact in every type. */
static int value(ring_op_t op, int rank, size_t index) {
  int mixed = (int)((index + 1) * 7 + (size_t)rank * 13);
  switch (op) {
    case RING_OP_PROD: return mixed % 5 == 0 && rank < 4 ? 2 : 1;
    case RING_OP_SUM:
    case RING_OP_MEAN: return mixed % 4 + 1;
    default: return mixed % 100 + 1;
  }
}

/* The reduction of whole numbers. */
static int64_t reduce(ring_op_t op, int64_t a, int64_t b) {
  switch (op) {
    case RING_OP_MAX: return a > b ? a : b;
    case RING_OP_MIN: return a < b ? a : b;
    case RING_OP_PROD: return a * b;
    case RING_OP_BAND: return a & b;
    case RING_OP_BOR: return a | b;
    case RING_OP_BXOR: return a ^ b;
    default: return a + b;
  }
}

static uint16_t to_bfloat(float number) {
  uint32_t bits;
  memcpy(&bits, &number, 4);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* For the normal numbers that occur here. */
static uint16_t to_half(float number) {
  uint32_t bits;
  memcpy(&bits, &number, 4);
  if (number == 0) return 0;
  bits -= 112u << 23;
  return (uint16_t)((bits + 0xfff + (bits >> 13 & 1)) >> 13);
}

static void store(void *out, ring_dtype_t dtype, double number) {
  float single = (float)number, parts[2] = {(float)number, 0};
  uint16_t half = to_half(single), bfloat = to_bfloat(single);
  int64_t whole = (int64_t)number; /* little- and big-endian alike: stored by the type's size */
  switch (dtype) {
    case RING_DTYPE_BOOL: *(uint8_t *)out = whole != 0; break;
    case RING_DTYPE_UINT8: *(uint8_t *)out = (uint8_t)whole; break;
    case RING_DTYPE_INT8: *(int8_t *)out = (int8_t)whole; break;
    case RING_DTYPE_UINT16:
    case RING_DTYPE_INT16: memcpy(out, &(int16_t){(int16_t)whole}, 2); break;
    case RING_DTYPE_UINT32:
    case RING_DTYPE_INT32: memcpy(out, &(int32_t){(int32_t)whole}, 4); break;
    case RING_DTYPE_UINT64:
    case RING_DTYPE_INT64: memcpy(out, &whole, 8); break;
    case RING_DTYPE_FLOAT16: memcpy(out, &half, 2); break;
    case RING_DTYPE_BFLOAT16: memcpy(out, &bfloat, 2); break;
    case RING_DTYPE_FLOAT32: memcpy(out, &single, 4); break;
    case RING_DTYPE_FLOAT64: memcpy(out, &number, 8); break;
    default: memcpy(out, parts, 8);
  }
}

/* A bool input: true in some places of every rank and in all of some elements. */
static int input(ring_dtype_t dtype, ring_op_t op, int rank, size_t index) {
  int number = value(op, rank, index);
  return dtype == RING_DTYPE_BOOL ? number % 2 : number;
}

static double result(ring_dtype_t dtype, ring_op_t op, int size, size_t index) {
  int64_t all = input(dtype, op, 0, index);
  for (int rank = 1; rank < size; rank++) all = reduce(op, all, input(dtype, op, rank, index));
  if (dtype == RING_DTYPE_BOOL && op == RING_OP_BXOR) all %= 2;
  if (op != RING_OP_MEAN) return (double)all;
  return dtype == RING_DTYPE_FLOAT64 ? (double)all / size : (double)((float)all / (float)size);
}

void fill(void *buffer, size_t count, ring_dtype_t dtype, ring_op_t op, int rank) {
  size_t element = ring_dtype_size(dtype);
  for (size_t i = 0; i < count; i++) {
    store((char *)buffer + i * element, dtype, input(dtype, op, rank, i % PERIOD));
  }
}

size_t count_wrong(const void *buffer, size_t count, ring_dtype_t dtype, ring_op_t op, int size) {
  size_t element = ring_dtype_size(dtype), wrong = 0;
  unsigned char right[PERIOD][8];
  for (size_t i = 0; i < PERIOD; i++) store(right[i], dtype, result(dtype, op, size, i));
  for (size_t i = 0; i < count; i++) {
    wrong += memcmp((const char *)buffer + i * element, right[i % PERIOD], element) != 0;
  }
  return wrong;
}
