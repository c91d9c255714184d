/* How calls are timed, whichever library makes them: a benchmark beside another library has the same rule. */
#ifndef TIMING_H
#define TIMING_H

#include <stdbool.h>

/* What is timed, by all ranks alike. Functions return 0, or what ends the measurement. */
typedef struct subject {
  void *data;
  int (*call)(void *data);
  int (*barrier)(void *data);
  /* Each value becomes the largest, or the sum, of all ranks'. */
  int (*largest)(void *data, double *values, int count);
  int (*sum)(void *data, double *values, int count);
} subject_t;

/* The same on every rank. */
typedef struct timing {
  int iterations;
  double time_us;    /* of one call: the average, on the slowest rank */
  double median_us;  /* of one call, on the slowest rank */
  double p99_us;
  double cpu_us;     /* of one call: user and system time, on all ranks together */
} timing_t;

/* Times calls that follow each other after a barrier; with `iterations` 0 as many as make a measurement
 * long enough. */
int time_calls(const subject_t *subject, int warmup, int iterations, timing_t *timing);

#endif
