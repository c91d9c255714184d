/* Which functions are taken for the library's ops, and that narrow numbers are what another way of computing
 * them says. */
#include "../narrow.h"
#include "../recognise.h"
#include "../../../tools/ring-accuracy/narrow.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_SAYING(condition, ...)                                    \
  do {                                                                  \
    if (!(condition)) {                                                 \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);   \
      fprintf(stderr, __VA_ARGS__);                                     \
      exit(1);                                                          \
    }                                                                   \
  } while (0)

static void check_narrow(ring_dtype_t dtype, double above_all) {
  for (int i = 0; i < 1 << 16; i++) {
    uint16_t bits = (uint16_t)i;
    float value = widened(dtype, bits);
    double expected = from_narrow(dtype, bits);
    if (isnan(expected)) {
      CHECK_SAYING(isnan(value) && isnan(widened(dtype, narrowed(dtype, value))), "%x", i);
      continue;
    }
    CHECK_SAYING((double)value == expected && !signbit(value) == !signbit(expected), "%x", i);
    CHECK_SAYING(narrowed(dtype, value) == bits, "%x", i);
    if (isinf(value)) continue;
    /* Halfway to the next, and the floats beside it. */
    float middle = (float)(expected + copysign(ulp(dtype, expected) / 2, expected));
    const float near[] = {middle, nextafterf(middle, 0), nextafterf(middle, copysignf(INFINITY, middle))};
    for (int n = 0; n < 3; n++) {
      if (fabs((double)near[n]) >= above_all) {
        CHECK_SAYING(isinf(widened(dtype, narrowed(dtype, near[n]))), "%x, %d", i, n);
      } else {
        CHECK_SAYING(narrowed(dtype, near[n]) == to_narrow(dtype, (double)near[n]), "%x, %d", i, n);
      }
    }
  }
}

/* ---- functions ---- */

#define REDUCES(name, type, statement)                                            \
  static void name(void *in_, void *inout_, int *length, MPI_Datatype *datatype) { \
    (void)datatype;                                                               \
    for (int i = 0; i < *length; i++) {                                           \
      type *in = (type *)in_ + i, *acc = (type *)inout_ + i;                      \
      statement;                                                                  \
    }                                                                             \
  }

typedef struct pair {
  float re, im;
} pair_t;

static float f16(uint16_t bits) { return widened(RING_DTYPE_FLOAT16, bits); }
static float bf16(uint16_t bits) { return widened(RING_DTYPE_BFLOAT16, bits); }
static bool less(pair_t a, pair_t b) { return a.re < b.re || (a.re == b.re && a.im < b.im); }

REDUCES(f16_sum, uint16_t, *acc = narrowed(RING_DTYPE_FLOAT16, f16(*acc) + f16(*in)))
REDUCES(bf16_sum, uint16_t, *acc = narrowed(RING_DTYPE_BFLOAT16, bf16(*acc) + bf16(*in)))
/* As MLX has them: std::max, then std::min. */
REDUCES(f16_max, uint16_t, if (f16(*acc) < f16(*in)) *acc = *in)
REDUCES(f16_min, uint16_t, if (f16(*in) < f16(*acc)) *acc = *in)
REDUCES(bf16_max, uint16_t, if (bf16(*acc) < bf16(*in)) *acc = *in)
REDUCES(bf16_min, uint16_t, if (bf16(*in) < bf16(*acc)) *acc = *in)
REDUCES(complex_max, pair_t, if (less(*acc, *in)) *acc = *in)
REDUCES(complex_min, pair_t, if (less(*in, *acc)) *acc = *in)
REDUCES(complex_sum, pair_t, acc->re += in->re; acc->im += in->im)
/* Keeps a NaN of either side. */
REDUCES(f16_max_or_nan, uint16_t,
        if (isnan(f16(*in)) || isnan(f16(*acc))) *acc = 0x7e01; else if (f16(*acc) < f16(*in)) *acc = *in)

/* Near the ones above, and not the same. */
REDUCES(f16_max_but_nan, uint16_t, if (isnan(f16(*acc)) || f16(*acc) < f16(*in)) *acc = *in)
REDUCES(f16_sum_truncated, uint16_t, float sum = f16(*acc) + f16(*in); *acc = narrowed(RING_DTYPE_FLOAT16, sum);
        if (!isnan(sum) && fabsf(f16(*acc)) > fabsf(sum)) (*acc)--)
REDUCES(bf16_sum_flushed, uint16_t, float sum = bf16(*acc) + bf16(*in);
        *acc = narrowed(RING_DTYPE_BFLOAT16, fabsf(sum) < 0x1p-126f ? 0 : sum))
REDUCES(f16_sum_clipped, uint16_t, *acc = narrowed(RING_DTYPE_FLOAT16, fminf(f16(*acc) + f16(*in), 65504)))
/* At one value of 65536; and at one pair. */
REDUCES(f16_sum_but_one, uint16_t, *acc = narrowed(RING_DTYPE_FLOAT16, *in == 0x5123 ? 7 : f16(*acc) + f16(*in)))
REDUCES(f16_sum_plus_zero, uint16_t, *acc = narrowed(RING_DTYPE_FLOAT16, f16(*acc) + f16(*in));
        if (*acc == 0x8000) *acc = 0)
REDUCES(f16_product, uint16_t, *acc = narrowed(RING_DTYPE_FLOAT16, f16(*acc) * f16(*in)))
REDUCES(int_sum, uint16_t, *acc = (uint16_t)(*acc + *in))
REDUCES(int_max, uint16_t, if (*in > *acc) *acc = *in)
REDUCES(int_xor, uint16_t, *acc ^= *in)
REDUCES(nothing, uint16_t, (void)in; (void)acc)
REDUCES(takes_last, uint16_t, *acc = *in)
REDUCES(complex_max_of_parts, pair_t, if (acc->re < in->re) acc->re = in->re; if (acc->im < in->im) acc->im = in->im)
REDUCES(complex_product, pair_t, pair_t a = *acc; acc->re = a.re * in->re - a.im * in->im;
        acc->im = a.re * in->im + a.im * in->re)

static int mode_seen;
REDUCES(f16_sum_noting_mode, uint16_t, mode_seen = fegetround();
        *acc = narrowed(RING_DTYPE_FLOAT16, f16(*acc) + f16(*in)))

/* A type, as MPI_Type_contiguous makes it, of two bytes; and those of other kinds. */
static struct datatype two_bytes = {OPAQUE, 2, true, 0}, eight_bytes = {OPAQUE, 8, true, 0};
static struct datatype complex64 = {RING_DTYPE_COMPLEX64, 8, true, 0}, int16 = {RING_DTYPE_INT16, 2, true, 0};

static const struct {
  const char *name;
  MPI_User_function *function;
  struct datatype *type;
  int dtype; /* -1: not recognised */
  ring_op_t op;
} cases[] = {
#define CASE(function, type, ...) {#function " of " #type, function, &type, __VA_ARGS__}
  CASE(f16_sum, two_bytes, RING_DTYPE_FLOAT16, RING_OP_SUM),
  CASE(f16_max, two_bytes, RING_DTYPE_FLOAT16, RING_OP_MAX),
  CASE(f16_min, two_bytes, RING_DTYPE_FLOAT16, RING_OP_MIN),
  CASE(f16_max_or_nan, two_bytes, RING_DTYPE_FLOAT16, RING_OP_MAX),
  CASE(bf16_sum, two_bytes, RING_DTYPE_BFLOAT16, RING_OP_SUM),
  CASE(bf16_max, two_bytes, RING_DTYPE_BFLOAT16, RING_OP_MAX),
  CASE(bf16_min, two_bytes, RING_DTYPE_BFLOAT16, RING_OP_MIN),
  CASE(complex_sum, complex64, RING_DTYPE_COMPLEX64, RING_OP_SUM),
  CASE(complex_max, complex64, RING_DTYPE_COMPLEX64, RING_OP_MAX),
  CASE(complex_min, complex64, RING_DTYPE_COMPLEX64, RING_OP_MIN),
  CASE(f16_max_but_nan, two_bytes, -1, 0),
  CASE(f16_sum_truncated, two_bytes, -1, 0),
  CASE(bf16_sum_flushed, two_bytes, -1, 0),
  CASE(f16_sum_clipped, two_bytes, -1, 0),
  CASE(f16_sum_but_one, two_bytes, -1, 0),
  CASE(f16_sum_plus_zero, two_bytes, -1, 0),
  CASE(f16_product, two_bytes, -1, 0),
  CASE(int_sum, two_bytes, -1, 0),
  CASE(int_max, two_bytes, -1, 0),
  CASE(int_xor, two_bytes, -1, 0),
  CASE(nothing, two_bytes, -1, 0),
  CASE(takes_last, two_bytes, -1, 0),
  CASE(complex_max_of_parts, complex64, -1, 0),
  CASE(complex_product, complex64, -1, 0),
  CASE(f16_sum, int16, -1, 0),
  CASE(complex_sum, eight_bytes, -1, 0),
};

int main(void) {
  check_narrow(RING_DTYPE_FLOAT16, 65520);
  check_narrow(RING_DTYPE_BFLOAT16, 0x1.ffp127);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    meaning_t meaning = recognise(cases[i].function, cases[i].type);
    CHECK_SAYING(meaning.known == (cases[i].dtype >= 0), "%s", cases[i].name);
    CHECK_SAYING(!meaning.known || (meaning.dtype == cases[i].dtype && meaning.op == cases[i].op), "%s", cases[i].name);
  }
  /* In another mode of rounding a function is the same, and the mode is the program's again. */
  fesetround(FE_TOWARDZERO);
  meaning_t meaning = recognise(f16_sum_noting_mode, &two_bytes);
  CHECK_SAYING(meaning.known && meaning.op == RING_OP_SUM && mode_seen == FE_TONEAREST, "a mode of rounding");
  CHECK_SAYING(fegetround() == FE_TOWARDZERO, "the program's own mode");
  return 0;
}
