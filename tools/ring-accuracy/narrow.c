#include "narrow.h"

#include <math.h>

/* Bits of the mantissa that are stored, and the exponent of the least normal number. */
static int mantissa_bits(ring_dtype_t dtype) { return dtype == RING_DTYPE_FLOAT16 ? 10 : 7; }
static int least_exponent(ring_dtype_t dtype) { return dtype == RING_DTYPE_FLOAT16 ? -14 : -126; }

double ulp(ring_dtype_t dtype, double value) {
  int exponent = least_exponent(dtype);
  if (value != 0 && ilogb(value) > exponent) exponent = ilogb(value);
  return ldexp(1, exponent - mantissa_bits(dtype));
}

uint16_t to_narrow(ring_dtype_t dtype, double value) {
  double step = ulp(dtype, value);
  /* Steps from 0, in the mode of rounding that programs start with; what rounds up to the next power of two
   * carries into the exponent. */
  uint32_t steps = (uint32_t)nearbyint(fabs(value) / step);
  int above_least = ilogb(step) + mantissa_bits(dtype) - least_exponent(dtype);
  uint32_t bits = steps + ((uint32_t)above_least << mantissa_bits(dtype));
  return (uint16_t)(bits | (signbit(value) ? 0x8000u : 0));
}

double from_narrow(ring_dtype_t dtype, uint16_t bits) {
  int mantissa = mantissa_bits(dtype);
  uint32_t magnitude = bits & 0x7fffu, one = UINT32_C(1) << mantissa;
  uint32_t exponent = magnitude >> mantissa, fraction = magnitude & (one - 1);
  uint32_t highest = 0x7fffu >> mantissa;
  double value;
  if (exponent == highest) value = fraction ? NAN : INFINITY;
  else if (exponent == 0) value = ldexp(fraction, least_exponent(dtype) - mantissa);
  else value = ldexp(fraction + one, least_exponent(dtype) - mantissa + (int)exponent - 1);
  return bits & 0x8000u ? -value : value;
}
