#include "narrow.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Drops the low bits of a magnitude; a carry goes into the exponent, as it must. */
static uint32_t rounded(uint32_t bits, int dropped) {
  uint32_t half = UINT32_C(1) << (dropped - 1), is_odd = bits >> dropped & 1;
  return (bits + half - 1 + is_odd) >> dropped;
}

/* Of float16: bits of the mantissa that float has more, and the bias that its exponent has more. */
enum { F16_DROPPED = 13, F16_BIAS = 112 };

static float from_float16(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  if (magnitude < 0x400) return float_of(sign | bits_of((float)magnitude * 0x1p-24f));
  uint32_t bias = magnitude < 0x7c00 ? F16_BIAS : 2 * F16_BIAS;
  return float_of(sign | ((magnitude << F16_DROPPED) + (bias << 23)));
}

static uint16_t to_float16(float value) {
  uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  uint32_t narrow;
  if (isnan(value)) narrow = 0x7e00;
  else if (magnitude >= bits_of(65520)) narrow = 0x7c00;
  else if (magnitude >= bits_of(0x1p-14f)) narrow = rounded(magnitude - ((uint32_t)F16_BIAS << 23), F16_DROPPED);
  /* The last bit of a float from 0.5 to 1 is the least number's: the addition rounds. */
  else narrow = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
  return (uint16_t)(sign | narrow);
}

float widened(ring_dtype_t dtype, uint16_t bits) {
  return dtype == RING_DTYPE_FLOAT16 ? from_float16(bits) : float_of((uint32_t)bits << 16);
}

uint16_t narrowed(ring_dtype_t dtype, float value) {
  if (dtype == RING_DTYPE_FLOAT16) return to_float16(value);
  return isnan(value) ? 0x7fc0 : (uint16_t)rounded(bits_of(value), 16);
}
