/* The 16-bit types against what is known of them by hand, and each value there and back. */
#include "narrow.h"

#include <math.h>
#include <stdio.h>

static int failures;

static void expect(const char *what, double found, double wanted) {
  if (found == wanted) return;
  printf("%s is %.17g, not %.17g\n", what, found, wanted);
  failures++;
}

static void there_and_back(ring_dtype_t dtype, unsigned infinity) {
  for (unsigned bits = 0; bits < infinity; bits++) {
    double value = from_narrow(dtype, (uint16_t)bits), next = from_narrow(dtype, (uint16_t)(bits + 1));
    expect("a value's bits", to_narrow(dtype, value), bits);
    expect("a negative value's bits", to_narrow(dtype, -value), bits | 0x8000u);
    if (bits + 1 == infinity) break;
    expect("a ULP", ulp(dtype, value), next - value);
    /* Halfway, the even one of the two. */
    expect("a tie", to_narrow(dtype, value + (next - value) / 2), bits + (bits & 1));
    expect("less than a tie", to_narrow(dtype, value + (next - value) * 0.4999), bits);
    expect("more than a tie", to_narrow(dtype, value + (next - value) * 0.5001), bits + 1);
  }
}

int main(void) {
  there_and_back(RING_DTYPE_FLOAT16, 0x7c00);
  there_and_back(RING_DTYPE_BFLOAT16, 0x7f80);
  expect("1", from_narrow(RING_DTYPE_FLOAT16, 0x3c00), 1);
  expect("1", from_narrow(RING_DTYPE_BFLOAT16, 0x3f80), 1);
  expect("float16's greatest", from_narrow(RING_DTYPE_FLOAT16, 0x7bff), 65504);
  expect("float16's least", from_narrow(RING_DTYPE_FLOAT16, 1), ldexp(1, -24));
  expect("bfloat16's least", from_narrow(RING_DTYPE_BFLOAT16, 1), ldexp(1, -133));
  expect("infinity", from_narrow(RING_DTYPE_FLOAT16, 0xfc00), -INFINITY);
  expect("infinity", from_narrow(RING_DTYPE_BFLOAT16, 0x7f80), INFINITY);
  if (!isnan(from_narrow(RING_DTYPE_FLOAT16, 0x7c01))) expect("a NaN", 0, NAN);
  return failures != 0;
}
