/* Timing and checking one size. */
#ifndef MEASURE_H
#define MEASURE_H

#include "options.h"
#include "timing.h"

#include <ring.h>

/* The same on every rank. */
typedef struct result {
  bool measured;
  timing_t timing;
  double algbw;      /* GB/s */
  double busbw;      /* GB/s */
  uint64_t wrong;    /* elements, on all ranks together */
} result_t;

/* Measures calls of `total` elements on memory for as many: from send to recv, or in place where send == recv. */
ring_status_t measure(ring_group_t *group, const options_t *options, void *send, void *recv, size_t total,
                      result_t *result);

#endif
