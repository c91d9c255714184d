/* A pointer to a function tells nothing, so the function is asked: it is the library's op if it gives the
 * library's results on values of every kind. Whether a NaN that one rank holds survives max and min is left
 * open: MLX's functions keep it or lose it by its place in the ring, which no program can want, and the
 * library's keep it, as they do for the named types. All else is compared bit by bit, and a function that differs
 * anywhere is run as it is. Ranks whose functions turn out to be different things make calls that don't match. */
#include "recognise.h"

#include "narrow.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

/* Elements that a function is given at a time. */
enum { BATCH = 256 };

/* The first values are plain ones: a function that isn't meant for numbers of this type, and might divide by
 * them, sees no others. */
enum { PLAIN = 16 };

typedef enum order { LESS, EQUAL, GREATER, UNORDERED } order_t;

/* An op of the library on a type, and how a function has done as that op so far. */
typedef struct candidate {
  ring_dtype_t dtype;
  ring_op_t op;
  /* Still possible: that it keeps a NaN of either side; that it takes the received value where that compares
   * as better, and its own otherwise, which is MLX's way. Of sums keeps_nan alone counts. */
  bool keeps_nan, compares;
} candidate_t;

/* Two operands of one element and what the function made of them, as the bytes that they are. */
typedef struct trial {
  const unsigned char *own, *received, *result;
  size_t bytes;
} trial_t;

static uint16_t narrow_at(const unsigned char *bytes) {
  uint16_t bits;
  memcpy(&bits, bytes, sizeof bits);
  return bits;
}

typedef struct complex64 {
  float re, im;
} complex64_t;

static complex64_t complex_at(const unsigned char *bytes) {
  complex64_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

static bool same_float(float a, float b) { return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0; }

static bool is_nan(ring_dtype_t dtype, const unsigned char *bytes) {
  if (dtype != RING_DTYPE_COMPLEX64) return isnan(widened(dtype, narrow_at(bytes)));
  complex64_t value = complex_at(bytes);
  return isnan(value.re) || isnan(value.im);
}

static order_t order_of_floats(float a, float b) {
  return a < b ? LESS : a > b ? GREATER : a == b ? EQUAL : UNORDERED;
}

static order_t order(ring_dtype_t dtype, const unsigned char *a, const unsigned char *b) {
  if (dtype != RING_DTYPE_COMPLEX64) {
    return order_of_floats(widened(dtype, narrow_at(a)), widened(dtype, narrow_at(b)));
  }
  complex64_t one = complex_at(a), other = complex_at(b);
  order_t by_re = order_of_floats(one.re, other.re);
  return by_re == EQUAL ? order_of_floats(one.im, other.im) : by_re;
}

static bool is_sum(ring_dtype_t dtype, const trial_t *trial) {
  if (dtype != RING_DTYPE_COMPLEX64) {
    float sum = widened(dtype, narrow_at(trial->own)) + widened(dtype, narrow_at(trial->received));
    uint16_t result = narrow_at(trial->result);
    return isnan(sum) ? isnan(widened(dtype, result)) : result == narrowed(dtype, sum);
  }
  complex64_t own = complex_at(trial->own), received = complex_at(trial->received);
  complex64_t result = complex_at(trial->result);
  return same_float(result.re, own.re + received.re) && same_float(result.im, own.im + received.im);
}

static bool is_operand(const trial_t *trial, const unsigned char *operand) {
  return memcmp(trial->result, operand, trial->bytes) == 0;
}

static void judge_extreme(candidate_t *candidate, const trial_t *trial) {
  ring_dtype_t dtype = candidate->dtype;
  order_t own_is = order(dtype, trial->own, trial->received);
  bool received_wins = own_is == (candidate->op == RING_OP_MAX ? LESS : GREATER);
  const unsigned char *winner = received_wins ? trial->received : trial->own;
  if (!is_operand(trial, winner)) candidate->compares = false;
  if (is_nan(dtype, trial->own) || is_nan(dtype, trial->received)) {
    if (!is_nan(dtype, trial->result)) candidate->keeps_nan = false;
  } else if (own_is == EQUAL) {
    /* Zeros of both signs: the library's float16 knows which is larger, and MLX's doesn't. */
    if (!is_operand(trial, trial->own) && !is_operand(trial, trial->received)) candidate->keeps_nan = false;
  } else if (!is_operand(trial, winner)) {
    candidate->keeps_nan = false;
  }
}

static void judge(candidate_t *candidate, const trial_t *trial) {
  if (candidate->op != RING_OP_SUM) judge_extreme(candidate, trial);
  else if (!is_sum(candidate->dtype, trial)) candidate->keeps_nan = false;
}

/* Zeros, ones, the ends of the ranges of float16 and bfloat16, subnormals, infinities, and NaNs of both, each
 * with both signs; what is special in one type is an ordinary number in the other. */
static const uint16_t narrow_special[] = {0x0000, 0x0001, 0x0200, 0x03ff, 0x0400, 0x0401, 0x3c00, 0x3c01, 0x4000,
                                          0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x007f, 0x0080, 0x0081, 0x3f80, 0x3f81,
                                          0x7f7f, 0x7f80, 0x7f81, 0x7fc0};
enum { NARROW_SPECIAL = 2 * sizeof narrow_special / sizeof *narrow_special };

/* Every value once as own and once as received. */
enum { NARROW_ALL = 1 << 16 };

static uint16_t special_narrow(int i) { return (uint16_t)(narrow_special[i / 2] | (i % 2 ? 0x8000 : 0)); }

/* The trial's operands; false when there are no more. */
static bool narrow_operands(int i, unsigned char *own, unsigned char *received) {
  /* 1 to 2.9 and 1 to 2.98: ordinary numbers of float16 first, of bfloat16 after. */
  static const uint16_t plain[2] = {0x3c00, 0x3f80};
  uint16_t a, b;
  if (i < PLAIN) {
    a = (uint16_t)(plain[i / (PLAIN / 2)] + 17 * (i % (PLAIN / 2)));
    b = (uint16_t)(plain[i / (PLAIN / 2)] + 5 * (PLAIN - i));
  } else if ((i -= PLAIN) < NARROW_SPECIAL * NARROW_SPECIAL) {
    a = special_narrow(i / NARROW_SPECIAL);
    b = special_narrow(i % NARROW_SPECIAL);
  } else if ((i -= NARROW_SPECIAL * NARROW_SPECIAL) < NARROW_ALL) {
    /* An odd factor takes each value once. Sums of numbers far apart say little: every other pair differs in
     * its sign and last nine bits alone. */
    a = (uint16_t)i;
    b = (uint16_t)((unsigned)i * 40503 + 12345);
    if (i % 2) b = (uint16_t)(a ^ (b & 0x81ff));
  } else {
    return false;
  }
  memcpy(own, &a, sizeof a);
  memcpy(received, &b, sizeof b);
  return true;
}

static const float complex_special[] = {0, 1, 1.5f, 3, 0x1p-149f, 0x1p-126f, 16777216, 0x1.fffffep127f, INFINITY, NAN};
enum { PARTS = 2 * sizeof complex_special / sizeof *complex_special };

static float special_part(int i) { return i % 2 ? -complex_special[i / 2] : complex_special[i / 2]; }

static bool complex_operands(int i, unsigned char *own, unsigned char *received) {
  complex64_t a, b;
  if (i < PLAIN) {
    a = (complex64_t){(float)(1 + i % 4), (float)(1 + i % 3)};
    b = (complex64_t){(float)(1 + i / 4), (float)(2 + i % 5)};
  } else if ((i -= PLAIN) < PARTS * PARTS * PARTS * PARTS) {
    a = (complex64_t){special_part(i % PARTS), special_part(i / PARTS % PARTS)};
    i /= PARTS * PARTS;
    b = (complex64_t){special_part(i % PARTS), special_part(i / PARTS)};
  } else {
    return false;
  }
  memcpy(own, &a, sizeof a);
  memcpy(received, &b, sizeof b);
  return true;
}

/* Takes the candidates through all trials, until none is left. */
static void try_all(MPI_User_function *function, struct datatype *type, candidate_t *candidates, int count) {
  bool narrow = type->bytes == sizeof(uint16_t);
  _Alignas(16) unsigned char own[BATCH * sizeof(complex64_t)], received[sizeof own], result[sizeof own];
  int first = 0, length;
  bool any = true;
  do {
    int most = first < PLAIN ? PLAIN : BATCH;
    for (length = 0; length < most; length++) {
      unsigned char *a = own + (size_t)length * type->bytes, *b = received + (size_t)length * type->bytes;
      if (!(narrow ? narrow_operands : complex_operands)(first + length, a, b)) break;
    }
    first += length;
    memcpy(result, own, sizeof own);
    MPI_Datatype handle = type;
    int function_length = length;
    function(received, result, &function_length, &handle);
    any = false;
    for (int c = 0; c < count; c++) {
      candidate_t *candidate = &candidates[c];
      for (int i = 0; i < length && (candidate->keeps_nan || candidate->compares); i++) {
        size_t at = (size_t)i * type->bytes;
        judge(candidate, &(trial_t){own + at, received + at, result + at, type->bytes});
      }
      any = any || candidate->keeps_nan || candidate->compares;
    }
  } while (any && length > 0);
}

meaning_t recognise(MPI_User_function *function, struct datatype *type) {
  static const ring_op_t ops[] = {RING_OP_SUM, RING_OP_MAX, RING_OP_MIN};
  ring_dtype_t dtypes[2];
  int dtype_count = 0;
  if (type->dtype == OPAQUE && type->bytes == sizeof(uint16_t)) {
    dtypes[dtype_count++] = RING_DTYPE_FLOAT16;
    dtypes[dtype_count++] = RING_DTYPE_BFLOAT16;
  } else if (type->dtype == RING_DTYPE_COMPLEX64) {
    dtypes[dtype_count++] = RING_DTYPE_COMPLEX64;
  }
  candidate_t candidates[6];
  int count = 0;
  for (int d = 0; d < dtype_count; d++) {
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
      candidates[count++] = (candidate_t){dtypes[d], ops[i], true, ops[i] != RING_OP_SUM};
    }
  }
  /* A mode of rounding, or of flushing subnormals, that one rank is in doesn't change what its function is. */
  fenv_t mode;
  fegetenv(&mode);
  fesetenv(FE_DFL_ENV);
  if (count > 0) try_all(function, type, candidates, count);
  fesetenv(&mode);

  meaning_t meaning = {.known = false};
  int fitting = 0;
  for (int c = 0; c < count; c++) {
    if (!candidates[c].keeps_nan && !candidates[c].compares) continue;
    meaning = (meaning_t){true, candidates[c].dtype, candidates[c].op};
    fitting++;
  }
  return fitting == 1 ? meaning : (meaning_t){.known = false};
}
