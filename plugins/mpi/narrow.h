/* float16 and bfloat16 by their bits, as the library computes with them: in float, rounded once. */
#ifndef RING_MPI_NARROW_H
#define RING_MPI_NARROW_H

#include <ring.h>
#include <stdint.h>

float widened(ring_dtype_t dtype, uint16_t bits);

/* To nearest, ties to even; of a NaN some NaN. */
uint16_t narrowed(ring_dtype_t dtype, float value);

#endif
