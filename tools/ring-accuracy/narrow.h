/* float16 and bfloat16 by their bits. */
#ifndef NARROW_H
#define NARROW_H

#include <ring.h>
#include <stdint.h>

/* The nearest one, ties to even; not of infinities and NaNs. */
uint16_t to_narrow(ring_dtype_t dtype, double value);

double from_narrow(ring_dtype_t dtype, uint16_t bits);

/* The distance of neighbours in the type at this size. */
double ulp(ring_dtype_t dtype, double value);

#endif
