#include "data.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { MAX_ELEMENT_BYTES = 8 };

/* Floating-point sums and products are exact while they stay integers that bfloat16 holds, which is
 * up to 256: in each element at most this many ranks hold another value than the neutral one. */
enum { CONTRIBUTORS = 8, LARGEST_TERM = 16 };

typedef struct { double re, im; } number_t;

/* Well-mixed bits that differ by rank and element (the finaliser of SplitMix64). */
static uint64_t hash(int rank, size_t element) {
  uint64_t x = ((uint64_t)rank << 32 | (uint64_t)element) + UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

static bool is_signed(ring_dtype_t dtype) {
  return dtype >= RING_DTYPE_INT8 && dtype <= RING_DTYPE_INT64;
}

static bool is_integer(ring_dtype_t dtype) { return dtype <= RING_DTYPE_INT64; }

/* ---- bool and integers: they wrap, so that any values do ---- */

/* A value as 64 bits: sign-extended or zero-extended from the type's own width. */
static uint64_t extend(ring_dtype_t dtype, uint64_t bits) {
  int spare = 64 - 8 * (int)ring_dtype_size(dtype);
  bits <<= spare;
  return is_signed(dtype) ? (uint64_t)((int64_t)bits >> spare) : bits >> spare;
}

static uint64_t integer_value(ring_dtype_t dtype, ring_op_t op, int rank, size_t element) {
  uint64_t bits = hash(rank, element);
  if (dtype == RING_DTYPE_BOOL) {
    /* Rare enough in the direction that decides for both results to come up. */
    bool rare = bits % CONTRIBUTORS == 0;
    return op == RING_OP_MIN || op == RING_OP_PROD || op == RING_OP_BAND ? !rare : rare;
  }
  /* Products of even numbers soon have no bits left. */
  return extend(dtype, op == RING_OP_PROD ? bits | 1 : bits);
}

static uint64_t integer_step(ring_dtype_t dtype, ring_op_t op, uint64_t a, uint64_t b) {
  bool less = is_signed(dtype) ? (int64_t)a < (int64_t)b : a < b;
  if (dtype == RING_DTYPE_BOOL) {
    if (op == RING_OP_SUM || op == RING_OP_MAX) return a | b;
    if (op == RING_OP_PROD || op == RING_OP_MIN) return a & b;
  }
  switch (op) {
    case RING_OP_MAX: return less ? b : a;
    case RING_OP_MIN: return less ? a : b;
    case RING_OP_PROD: return extend(dtype, a * b);
    case RING_OP_BAND: return a & b;
    case RING_OP_BOR: return a | b;
    case RING_OP_BXOR: return a ^ b;
    default: return extend(dtype, a + b);
  }
}

static void store_bits(uint8_t *at, size_t bytes, uint64_t bits) {
  uint8_t u8 = (uint8_t)bits;
  uint16_t u16 = (uint16_t)bits;
  uint32_t u32 = (uint32_t)bits;
  switch (bytes) {
    case 1: memcpy(at, &u8, 1); break;
    case 2: memcpy(at, &u16, 2); break;
    case 4: memcpy(at, &u32, 4); break;
    default: memcpy(at, &bits, 8); break;
  }
}

/* ---- floating point and complex: small integers ---- */

static number_t number_value(ring_dtype_t dtype, ring_op_t op, int rank, int size, size_t element) {
  uint64_t bits = hash(rank, element);
  bool is_complex = dtype == RING_DTYPE_COMPLEX64;
  bool contributes = ((size_t)rank + element) % (size_t)size < CONTRIBUTORS;
  if (op == RING_OP_PROD) {
    double factor = (contributes && (bits & 1) ? 2 : 1) * (is_complex || bits & 2 ? 1 : -1);
    /* One rank's value is complex, the others' are positive: a product of more would have zeros whose
     * sign depends on the order. */
    bool turns = is_complex && (size_t)rank == element % (size_t)size;
    return turns ? (number_t){bits & 4 ? 1 : -2, bits & 8 ? 3 : -1} : (number_t){factor, 0};
  }
  if (!contributes && (op == RING_OP_SUM || op == RING_OP_MEAN)) return (number_t){0, 0};
  double re = (double)(bits & 31) - (LARGEST_TERM - 1), im = (double)(bits >> 8 & 31) - (LARGEST_TERM - 1);
  return (number_t){re, is_complex ? im : 0};
}

static number_t number_step(ring_op_t op, number_t a, number_t b) {
  bool less = a.re < b.re || (a.re == b.re && a.im < b.im);
  switch (op) {
    case RING_OP_MAX: return less ? b : a;
    case RING_OP_MIN: return less ? a : b;
    case RING_OP_PROD: return (number_t){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    default: return (number_t){a.re + b.re, a.im + b.im};
  }
}

/* A mean is one division: of float64 in float64, of the others in float32. */
static number_t mean(ring_dtype_t dtype, number_t sum, int size) {
  if (dtype == RING_DTYPE_FLOAT64) return (number_t){sum.re / size, 0};
  return (number_t){(float)sum.re / (float)size, (float)sum.im / (float)size};
}

static uint32_t float_bits(double value) {
  float single = (float)value;
  uint32_t bits;
  memcpy(&bits, &single, sizeof bits);
  return bits;
}

/* Drops the lowest bits, rounding to nearest even. */
static uint32_t round_off(uint32_t bits, int dropped) {
  uint32_t odd = bits >> dropped & 1, below_half = (UINT32_C(1) << (dropped - 1)) - 1;
  return (bits + below_half + odd) >> dropped;
}

/* Of zero and of what binary16 holds as a normal number; other values don't come up here. */
static uint16_t to_float16(double value) {
  enum { DROPPED = 23 - 10 };
  const uint32_t bias_difference = (uint32_t)(127 - 15) << 10;
  uint32_t bits = float_bits(value), sign = bits >> 31 << 15, magnitude = bits & INT32_MAX;
  return (uint16_t)(magnitude ? sign | (round_off(magnitude, DROPPED) - bias_difference) : sign);
}

static void store_number(uint8_t *at, ring_dtype_t dtype, number_t value) {
  float re = (float)value.re, im = (float)value.im;
  switch (dtype) {
    case RING_DTYPE_FLOAT16: store_bits(at, 2, to_float16(value.re)); break;
    case RING_DTYPE_BFLOAT16: store_bits(at, 2, round_off(float_bits(value.re), 16)); break;
    case RING_DTYPE_FLOAT64: memcpy(at, &value.re, 8); break;
    case RING_DTYPE_COMPLEX64: memcpy(at + 4, &im, 4); memcpy(at, &re, 4); break;
    default: memcpy(at, &re, 4); break;
  }
}

/* ---- one period of each, repeated ---- */

/* The reduction, in rank order, of the values of `ranks` ranks from `first` on, of `size` in all. */
static void make_period(uint8_t *period, ring_dtype_t dtype, ring_op_t op, int first, int ranks, int size) {
  size_t bytes = ring_dtype_size(dtype);
  for (size_t i = 0; i < PERIOD; i++) {
    if (is_integer(dtype)) {
      uint64_t bits = integer_value(dtype, op, first, i);
      for (int rank = first + 1; rank < first + ranks; rank++) {
        bits = integer_step(dtype, op, bits, integer_value(dtype, op, rank, i));
      }
      store_bits(period + i * bytes, bytes, bits);
    } else {
      number_t value = number_value(dtype, op, first, size, i);
      for (int rank = first + 1; rank < first + ranks; rank++) {
        value = number_step(op, value, number_value(dtype, op, rank, size, i));
      }
      if (op == RING_OP_MEAN && ranks == size) value = mean(dtype, value, size);
      store_number(period + i * bytes, dtype, value);
    }
  }
}

void fill(void *array, size_t count, ring_dtype_t dtype, ring_op_t op, int rank, int size) {
  uint8_t period[PERIOD * MAX_ELEMENT_BYTES];
  size_t bytes = ring_dtype_size(dtype);
  make_period(period, dtype, op, rank, 1, size);
  for (size_t at = 0; at < count; at += PERIOD) {
    size_t elements = count - at < PERIOD ? count - at : PERIOD;
    memcpy((uint8_t *)array + at * bytes, period, elements * bytes);
  }
}

size_t count_wrong_of(const values_t *values, int rank, size_t first, const void *array, size_t count) {
  uint8_t period[PERIOD * MAX_ELEMENT_BYTES];
  size_t bytes = ring_dtype_size(values->dtype), wrong = 0;
  int ranks = rank == ALL_RANKS ? values->size : 1;
  make_period(period, values->dtype, values->op, rank == ALL_RANKS ? 0 : rank, ranks, values->size);
  for (size_t at = 0; at < count;) {
    size_t phase = (first + at) % PERIOD, elements = PERIOD - phase;
    if (elements > count - at) elements = count - at;
    const uint8_t *got = (const uint8_t *)array + at * bytes, *wanted = period + phase * bytes;
    at += elements;
    if (memcmp(got, wanted, elements * bytes) == 0) continue;
    for (size_t i = 0; i < elements; i++) wrong += memcmp(got + i * bytes, wanted + i * bytes, bytes) != 0;
  }
  return wrong;
}

size_t count_wrong(const void *array, size_t count, ring_dtype_t dtype, ring_op_t op, int size) {
  values_t values = {dtype, op, size};
  return count_wrong_of(&values, ALL_RANKS, 0, array, count);
}
