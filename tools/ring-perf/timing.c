#include "timing.h"

#include "samples.h"

#include <stddef.h>
#include <sys/resource.h>

/* Where the number of calls isn't given: long enough for a steady average, and short enough for the
 * default sizes to take half a minute. */
static const double MEASURE_US = 200e3;
enum { LEAST_ITERATIONS = 5, MOST_ITERATIONS = 20000 };

/* Calls whose own times are kept: enough for a p99, however many calls there are. */
enum { MOST_SAMPLES = MOST_ITERATIONS };
static double samples_us[MOST_SAMPLES];

/* User and system time of all threads of this process. */
static double cpu_us(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Times of calls that all ranks start together; each is the slowest rank's. CPU time is that of all ranks'
 * calls together. */
typedef struct {
  double total_us;
  double median_us;
  double p99_us;
  double cpu_us;
} times_t;

static int run(const subject_t *subject, int iterations, times_t *times) {
  int status = subject->barrier(subject->data);
  double cpu = cpu_us(), start = now_us(), called = start;
  for (int i = 0; i < iterations && status == 0; i++) {
    status = subject->call(subject->data);
    double done = now_us();
    if (i < MOST_SAMPLES) samples_us[i] = done - called;
    called = done;
  }
  *times = (times_t){.total_us = called - start, .cpu_us = cpu_us() - cpu};
  if (status != 0) return status;
  size_t samples = iterations < MOST_SAMPLES ? (size_t)iterations : MOST_SAMPLES;
  if (samples > 0) {
    sort_samples(samples_us, samples);
    times->median_us = samples_us[samples / 2];
    times->p99_us = samples_us[samples * 99 / 100];
  }
  double largest[] = {times->total_us, times->median_us, times->p99_us};
  status = subject->largest(subject->data, largest, sizeof largest / sizeof *largest);
  if (status != 0) return status;
  times->total_us = largest[0];
  times->median_us = largest[1];
  times->p99_us = largest[2];
  return subject->sum(subject->data, &times->cpu_us, 1);
}

int time_calls(const subject_t *subject, int warmup, int iterations, timing_t *timing) {
  times_t times;
  int status = run(subject, warmup, &times);
  if (status == 0 && iterations == 0) {
    /* The first call on new memory is slow, and there may have been no warm-up. */
    const int probes = 2;
    status = run(subject, probes, &times);
    double wanted = MEASURE_US * probes / times.total_us;
    iterations = wanted < LEAST_ITERATIONS ? LEAST_ITERATIONS
                 : wanted > MOST_ITERATIONS ? MOST_ITERATIONS
                                            : (int)wanted;
  }
  if (status == 0) status = run(subject, iterations, &times);
  if (status != 0) return status;
  *timing = (timing_t){
      .iterations = iterations,
      .time_us = times.total_us / iterations,
      .median_us = times.median_us,
      .p99_us = times.p99_us,
      .cpu_us = times.cpu_us / iterations,
  };
  return 0;
}
