#include "measure.h"

#include "data.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* Where the number of calls isn't given: long enough for a steady average, and short enough for the
 * default sizes to take half a minute. */
static const double MEASURE_US = 200e3;
enum { LEAST_ITERATIONS = 5, MOST_ITERATIONS = 20000 };

/* Calls whose own times are kept: enough for a p99, however many calls there are. */
enum { MOST_SAMPLES = MOST_ITERATIONS };
static double samples_us[MOST_SAMPLES];

/* What recv holds before a checked call: no result of any dtype repeats it all through. */
enum { STALE_BYTE = 0xA5 };

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* User and system time of all threads of this process. */
static double cpu_us(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

typedef struct {
  ring_group_t *group;
  void *send;
  void *recv;
  size_t count;
  ring_dtype_t dtype;
  ring_op_t op;
} call_t;

/* Times of calls that all ranks start together; each is the slowest rank's. */
typedef struct {
  double total_us;
  double median_us;
  double p99_us;
} times_t;

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* CPU time is that of all ranks' calls together. */
static ring_status_t time_calls(const call_t *call, int iterations, times_t *times, double *total_cpu_us) {
  ring_status_t status = ring_barrier(call->group);
  double cpu = cpu_us(), start = now_us(), called = start;
  for (int i = 0; i < iterations && status == RING_STATUS_OK; i++) {
    status = ring_all_reduce(call->group, call->send, call->recv, call->count, call->dtype, call->op);
    double done = now_us();
    if (i < MOST_SAMPLES) samples_us[i] = done - called;
    called = done;
  }
  *total_cpu_us = cpu_us() - cpu;
  *times = (times_t){.total_us = called - start};
  if (status != RING_STATUS_OK) return status;
  size_t samples = iterations < MOST_SAMPLES ? (size_t)iterations : MOST_SAMPLES;
  if (samples > 0) {
    qsort(samples_us, samples, sizeof *samples_us, by_value);
    times->median_us = samples_us[samples / 2];
    times->p99_us = samples_us[samples * 99 / 100];
  }
  status = ring_all_reduce(call->group, times, times, sizeof *times / sizeof(double), RING_DTYPE_FLOAT64, RING_OP_MAX);
  if (status != RING_STATUS_OK) return status;
  return ring_all_reduce(call->group, total_cpu_us, total_cpu_us, 1, RING_DTYPE_FLOAT64, RING_OP_SUM);
}

/* Wrong elements after a call with known data, on all ranks together. */
static ring_status_t check(const call_t *call, uint64_t *wrong) {
  int rank = ring_group_rank(call->group), size = ring_group_size(call->group);
  if (call->recv != call->send) memset(call->recv, STALE_BYTE, call->count * ring_dtype_size(call->dtype));
  fill(call->send, call->count, call->dtype, call->op, rank, size);
  ring_status_t status = ring_all_reduce(call->group, call->send, call->recv, call->count, call->dtype, call->op);
  if (status != RING_STATUS_OK) return status;
  *wrong = count_wrong(call->recv, call->count, call->dtype, call->op, size);
  return ring_all_reduce(call->group, wrong, wrong, 1, RING_DTYPE_UINT64, RING_OP_SUM);
}

ring_status_t measure(ring_group_t *group, const options_t *options, void *send, void *recv, size_t count,
                      result_t *result) {
  call_t call = {group, send, recv, count, options->dtype, options->op};
  size_t bytes = count * ring_dtype_size(options->dtype);
  /* In place the data change from call to call, and would end in infinities. */
  memset(send, 0, bytes);

  times_t times;
  double total_cpu_us;
  ring_status_t status = time_calls(&call, options->warmup, &times, &total_cpu_us);
  int iterations = options->iterations;
  if (status == RING_STATUS_OK && iterations == 0) {
    /* The first call on new memory is slow, and there may have been no warm-up. */
    const int probes = 2;
    status = time_calls(&call, probes, &times, &total_cpu_us);
    double wanted = MEASURE_US * probes / times.total_us;
    iterations = wanted < LEAST_ITERATIONS ? LEAST_ITERATIONS
                 : wanted > MOST_ITERATIONS ? MOST_ITERATIONS
                                            : (int)wanted;
  }
  if (status == RING_STATUS_OK) status = time_calls(&call, iterations, &times, &total_cpu_us);
  uint64_t wrong = 0;
  if (status == RING_STATUS_OK && options->check) status = check(&call, &wrong);
  if (status != RING_STATUS_OK) return status;

  int size = ring_group_size(group);
  result->measured = true;
  result->iterations = iterations;
  result->time_us = times.total_us / iterations;
  result->median_us = times.median_us;
  result->p99_us = times.p99_us;
  result->cpu_us = total_cpu_us / iterations;
  result->algbw = (double)bytes / (result->time_us * 1e3);
  result->busbw = result->algbw * 2 * (size - 1) / size;
  result->wrong = wrong;
  return RING_STATUS_OK;
}
