/* Timing and checking one size. */
#ifndef MEASURE_H
#define MEASURE_H

#include "options.h"

#include <ring.h>

/* The same on every rank. */
typedef struct result {
  bool measured;
  int iterations;
  double time_us;    /* of one call: the average, on the slowest rank */
  double median_us;  /* of one call, on the slowest rank */
  double p99_us;
  double cpu_us;     /* of one call: user and system time, on all ranks together */
  double algbw;      /* GB/s */
  double busbw;      /* GB/s */
  uint64_t wrong;    /* elements, on all ranks together */
} result_t;

/* Measures all-reduces of `count` elements: from send to recv, or within recv where send == recv. */
ring_status_t measure(ring_group_t *group, const options_t *options, void *send, void *recv, size_t count,
                      result_t *result);

#endif
