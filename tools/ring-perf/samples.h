/* Times, and numbers in their order. A header alone: benchmarks of other libraries compile timing.c by itself. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <stddef.h>
#include <stdlib.h>
#include <time.h>

static inline double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static inline int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static inline void sort_samples(double *samples, size_t count) { qsort(samples, count, sizeof *samples, by_value); }

#endif
