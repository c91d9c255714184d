#include "reference.h"

#include <math.h>
#include <string.h>

/* ---- 16-bit floating-point values ---- */

static float bits_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

static uint32_t float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

static float from_half(uint16_t half) {
  int sign = half >> 15, exponent = half >> 10 & 31, fraction = half & 1023;
  double value;
  if (exponent == 31) {
    value = fraction ? NAN : INFINITY;
  } else if (exponent == 0) {
    value = ldexp(fraction, -24);
  } else {
    value = ldexp(1024 + fraction, exponent - 25);
  }
  return (float)(sign ? -value : value);
}

/* To the nearest, ties to even, by trying the two neighbours: slow and plain. */
static uint16_t to_half(float value) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  double size = fabs((double)value);
  if (isnan(value)) return sign | 0x7e00;
  if (size >= 65520.0) return sign | 0x7c00; /* half-way to the value after the largest */
  int exponent;
  frexp(size, &exponent);
  double unit = ldexp(1.0, (exponent < -13 ? -13 : exponent) - 11);
  double units = nearbyint(size / unit);
  double rounded = units * unit;
  if (rounded < ldexp(1, -14)) return sign | (uint16_t)(rounded / ldexp(1, -24));
  frexp(rounded, &exponent);
  return sign | (uint16_t)(((exponent + 14) << 10) + (int)(ldexp(rounded, 11 - exponent) - 1024));
}

static float from_bfloat(uint16_t value) { return bits_float((uint32_t)value << 16); }

static uint16_t to_bfloat(float value) {
  uint32_t bits = float_bits(value);
  if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40);
  uint32_t rest = bits & 0xffff, kept = bits >> 16;
  if (rest > 0x8000 || (rest == 0x8000 && (kept & 1))) kept++;
  return (uint16_t)kept;
}

uint16_t to_narrow(ring_dtype_t dtype, float value) {
  return dtype == RING_DTYPE_FLOAT16 ? to_half(value) : to_bfloat(value);
}

/* ---- inputs ---- */

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

static double ordinary(uint64_t random) { return ((double)(random >> 40) / (1 << 20) - 8.0); }

static float special(uint64_t random) {
  const float values[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-40f, -3e-41f, 6e-8f, 3e38f, 65504.0f};
  return values[random % 10];
}

/* Where ranks' values cancel and leave small ones, the order of additions shows even in float32's sums of 16-bit
 * values, if float32's ULP of the large ones is within the small ones' bits. */
static float cancelling(uint64_t random, float large, float small) {
  if (random >> 20 & 1) return (float)ordinary(random) * small;
  return random >> 21 & 1 ? large : -large;
}

void input_element(ring_dtype_t dtype, int rank, size_t index, void *out) {
  uint64_t random = mix((uint64_t)index * 64 + (uint64_t)rank + 1);
  bool is_special = random % 23 == 0;
  float value = is_special ? special(random >> 8) : (float)ordinary(random);
  float other = random % 29 == 0 ? special(random >> 16) : (float)ordinary(mix(random));
  double wide = is_special ? (double)special(random >> 8) : ordinary(random) * 1.000000000001;
  /* Parts that are often equal, so that the second decides. */
  float parts[2] = {is_special ? value : (float)(random >> 60), other};
  uint16_t narrow;
  uint8_t flag = (uint8_t)(random >> 33 & 3 ? random >> 40 : 0);
  switch (dtype) {
    case RING_DTYPE_BOOL: memcpy(out, &flag, 1); break;
    case RING_DTYPE_FLOAT16:
    case RING_DTYPE_BFLOAT16:
      if (!is_special && index % 5 == 4) {
        const bool half = dtype == RING_DTYPE_FLOAT16;
        value = half ? cancelling(random, 49152.0f, 1.0f / 16) : cancelling(random, 12582912.0f, 1);
      }
      narrow = dtype == RING_DTYPE_FLOAT16 ? to_half(value) : to_bfloat(value);
      memcpy(out, &narrow, 2);
      break;
    case RING_DTYPE_FLOAT32: memcpy(out, &value, 4); break;
    case RING_DTYPE_FLOAT64: memcpy(out, &wide, 8); break;
    case RING_DTYPE_COMPLEX64: memcpy(out, parts, 8); break;
    default: memcpy(out, &random, ring_dtype_size(dtype));
  }
}

void fill_input(ring_dtype_t dtype, int rank, size_t count, void *out) {
  size_t size = ring_dtype_size(dtype);
  for (size_t i = 0; i < count; i++) input_element(dtype, rank, i, (char *)out + i * size);
}

/* ---- one step: own = own op received ---- */

bool is_supported(ring_dtype_t dtype, ring_op_t op) {
  bool floating = (dtype >= RING_DTYPE_FLOAT16);
  if (op == RING_OP_MEAN) return floating;
  return op < RING_OP_BAND || !floating;
}

#define MAXIMUM(a, b) (isnan(a) ? (a) : isnan(b) ? (b) : (a) == (b) ? (signbit(a) ? (b) : (a)) : (a) > (b) ? (a) : (b))
#define MINIMUM(a, b) (isnan(a) ? (a) : isnan(b) ? (b) : (a) == (b) ? (signbit(a) ? (a) : (b)) : (a) < (b) ? (a) : (b))

#define FLOAT_STEP(name, type)                                 \
  static type name(ring_op_t op, type own, type received) {    \
    switch (op) {                                              \
      case RING_OP_MAX: return MAXIMUM(own, received);         \
      case RING_OP_MIN: return MINIMUM(own, received);         \
      case RING_OP_PROD: return own * received;                \
      default: return own + received;                          \
    }                                                          \
  }
FLOAT_STEP(float_step, float)
FLOAT_STEP(double_step, double)

/* Signed types of fewer bits than int would overflow in their products: unsigned 64-bit wraps. */
#define INTEGER_STEP(name, type)                                                      \
  static type name(ring_op_t op, type own, type received) {                           \
    uint64_t a = (uint64_t)own, b = (uint64_t)received;                               \
    switch (op) {                                                                     \
      case RING_OP_MAX: return own > received ? own : received;                       \
      case RING_OP_MIN: return own < received ? own : received;                       \
      case RING_OP_PROD: return (type)(a * b);                                        \
      case RING_OP_BAND: return (type)(a & b);                                        \
      case RING_OP_BOR: return (type)(a | b);                                         \
      case RING_OP_BXOR: return (type)(a ^ b);                                        \
      default: return (type)(a + b);                                                  \
    }                                                                                 \
  }
INTEGER_STEP(u8_step, uint8_t)
INTEGER_STEP(u16_step, uint16_t)
INTEGER_STEP(u32_step, uint32_t)
INTEGER_STEP(u64_step, uint64_t)
INTEGER_STEP(i8_step, int8_t)
INTEGER_STEP(i16_step, int16_t)
INTEGER_STEP(i32_step, int32_t)
INTEGER_STEP(i64_step, int64_t)

static uint8_t bool_step(ring_op_t op, uint8_t own, uint8_t received) {
  bool a = own != 0, b = received != 0;
  switch (op) {
    case RING_OP_MIN:
    case RING_OP_PROD:
    case RING_OP_BAND: return a && b;
    case RING_OP_BXOR: return a != b;
    default: return a || b;
  }
}

static void complex_step(ring_op_t op, float *own, const float *received) {
  float re = own[0], im = own[1], x = received[0], y = received[1];
  bool smaller = re < x || (re == x && im < y), larger = x < re || (re == x && y < im);
  switch (op) {
    case RING_OP_MAX:
    case RING_OP_MIN:
      if (isnan(re) || isnan(im)) return;
      if (isnan(x) || isnan(y) || (op == RING_OP_MAX ? smaller : larger)) memcpy(own, received, 8);
      return;
    case RING_OP_PROD:
      own[0] = re * x - im * y;
      own[1] = re * y + im * x;
      return;
    default:
      own[0] = re + x;
      own[1] = im + y;
  }
}

#define INTEGER_CASE(constant, type, name)                     \
  case constant: {                                             \
    type a, b;                                                 \
    memcpy(&a, own, sizeof a);                                 \
    memcpy(&b, received, sizeof b);                            \
    a = name(op, a, b);                                        \
    memcpy(own, &a, sizeof a);                                 \
    break;                                                     \
  }

static void step(ring_dtype_t dtype, ring_op_t op, void *own, const void *received) {
  switch (dtype) {
    INTEGER_CASE(RING_DTYPE_BOOL, uint8_t, bool_step)
    INTEGER_CASE(RING_DTYPE_UINT8, uint8_t, u8_step)
    INTEGER_CASE(RING_DTYPE_UINT16, uint16_t, u16_step)
    INTEGER_CASE(RING_DTYPE_UINT32, uint32_t, u32_step)
    INTEGER_CASE(RING_DTYPE_UINT64, uint64_t, u64_step)
    INTEGER_CASE(RING_DTYPE_INT8, int8_t, i8_step)
    INTEGER_CASE(RING_DTYPE_INT16, int16_t, i16_step)
    INTEGER_CASE(RING_DTYPE_INT32, int32_t, i32_step)
    INTEGER_CASE(RING_DTYPE_INT64, int64_t, i64_step)
    INTEGER_CASE(RING_DTYPE_FLOAT32, float, float_step)
    INTEGER_CASE(RING_DTYPE_FLOAT64, double, double_step)
    case RING_DTYPE_FLOAT16: {
      uint16_t a, b;
      memcpy(&a, own, 2);
      memcpy(&b, received, 2);
      a = to_half(float_step(op, from_half(a), from_half(b)));
      memcpy(own, &a, 2);
      break;
    }
    case RING_DTYPE_BFLOAT16: {
      uint16_t a, b;
      memcpy(&a, own, 2);
      memcpy(&b, received, 2);
      a = to_bfloat(float_step(op, from_bfloat(a), from_bfloat(b)));
      memcpy(own, &a, 2);
      break;
    }
    default: {
      float a[2], b[2];
      memcpy(a, own, 8);
      memcpy(b, received, 8);
      complex_step(op, a, b);
      memcpy(own, a, 8);
    }
  }
}

static void divide(ring_dtype_t dtype, int size, void *value) {
  uint16_t half;
  float parts[2];
  double wide;
  switch (dtype) {
    case RING_DTYPE_FLOAT16:
    case RING_DTYPE_BFLOAT16:
      memcpy(&half, value, 2);
      half = dtype == RING_DTYPE_FLOAT16 ? to_half(from_half(half) / (float)size)
                                         : to_bfloat(from_bfloat(half) / (float)size);
      memcpy(value, &half, 2);
      break;
    case RING_DTYPE_FLOAT64:
      memcpy(&wide, value, 8);
      wide /= size;
      memcpy(value, &wide, 8);
      break;
    default:
      memcpy(parts, value, ring_dtype_size(dtype));
      parts[0] /= (float)size;
      if (dtype == RING_DTYPE_COMPLEX64) parts[1] /= (float)size;
      memcpy(value, parts, ring_dtype_size(dtype));
  }
}

/* ---- the order ---- */

static size_t cut(size_t index, size_t length, size_t parts) {
  return (size_t)((unsigned __int128)index * length / parts);
}

static int rank_in_chain(int size, int first, int direction, int turn) {
  return ((first + direction * turn) % size + size) % size;
}

static bool sums_are_wide;

void keep_sums_wide(bool on) { sums_are_wide = on; }

static bool has_wide_sums(ring_dtype_t dtype, ring_op_t op) {
  return sums_are_wide && (dtype == RING_DTYPE_FLOAT16 || dtype == RING_DTYPE_BFLOAT16) &&
         (op == RING_OP_SUM || op == RING_OP_MEAN);
}

static float wide_input(ring_dtype_t dtype, int rank, size_t index) {
  uint16_t bits;
  input_element(dtype, rank, index, &bits);
  return dtype == RING_DTYPE_FLOAT16 ? from_half(bits) : from_bfloat(bits);
}

/* An element of a chain whose partial sums are float32, rounded at its end. */
static uint16_t wide_chain(ring_dtype_t dtype, ring_op_t op, int size, int first, int direction, size_t index) {
  float sum = wide_input(dtype, first, index);
  for (int turn = 1; turn < size; turn++) {
    sum = wide_input(dtype, rank_in_chain(size, first, direction, turn), index) + sum;
  }
  if (op == RING_OP_MEAN) sum /= (float)size;
  return dtype == RING_DTYPE_FLOAT16 ? to_half(sum) : to_bfloat(sum);
}

void expect_chain(ring_dtype_t dtype, ring_op_t op, int size, int first, int direction, size_t start, size_t count,
                  void *out) {
  size_t element = ring_dtype_size(dtype);
  if (has_wide_sums(dtype, op)) {
    for (size_t i = 0; i < count; i++) {
      uint16_t value = wide_chain(dtype, op, size, first, direction, start + i);
      memcpy((char *)out + i * element, &value, element);
    }
    return;
  }
  for (size_t i = 0; i < count; i++) {
    unsigned char value[8], own[8];
    input_element(dtype, first, start + i, value);
    if (size == 1 && dtype == RING_DTYPE_BOOL) value[0] = value[0] != 0;
    for (int turn = 1; turn < size; turn++) {
      input_element(dtype, rank_in_chain(size, first, direction, turn), start + i, own);
      step(dtype, op, own, value);
      memcpy(value, own, element);
    }
    if (op == RING_OP_MEAN && size > 1) divide(dtype, size, value);
    memcpy((char *)out + i * element, value, element);
  }
}

static void reduce_part(ring_dtype_t dtype, ring_op_t op, int size, size_t start, size_t length, int direction,
                        char *out) {
  size_t element = ring_dtype_size(dtype);
  for (int segment = 0; segment < size; segment++) {
    size_t first = start + cut((size_t)segment, length, (size_t)size);
    size_t end = start + cut((size_t)segment + 1, length, (size_t)size);
    expect_chain(dtype, op, size, segment, direction, first, end - first, out + first * element);
  }
}

void expect_all_reduce(ring_dtype_t dtype, ring_op_t op, int size, size_t count, void *out) {
  size_t right = count * ring_dtype_size(dtype) < 65536 ? count : count / 2;
  reduce_part(dtype, op, size, 0, right, 1, out);
  reduce_part(dtype, op, size, right, count - right, -1, out);
}

static bool is_nan(ring_dtype_t dtype, const unsigned char *value) {
  uint16_t half;
  float single;
  double wide;
  switch (dtype) {
    case RING_DTYPE_FLOAT16: memcpy(&half, value, 2); return isnan(from_half(half));
    case RING_DTYPE_BFLOAT16: memcpy(&half, value, 2); return isnan(from_bfloat(half));
    case RING_DTYPE_FLOAT32: memcpy(&single, value, 4); return isnan(single);
    case RING_DTYPE_FLOAT64: memcpy(&wide, value, 8); return isnan(wide);
    default: return false;
  }
}

size_t first_difference(ring_dtype_t dtype, size_t count, const void *got, const void *right) {
  size_t element = ring_dtype_size(dtype);
  const unsigned char *a = got, *b = right;
  if (dtype == RING_DTYPE_COMPLEX64) return first_difference(RING_DTYPE_FLOAT32, 2 * count, got, right) / 2;
  for (size_t i = 0; i < count; i++, a += element, b += element) {
    if (memcmp(a, b, element) != 0 && !(is_nan(dtype, a) && is_nan(dtype, b))) return i;
  }
  return count;
}
