#include "measure.h"

#include "data.h"

#include <string.h>
#include <time.h>

/* Where the number of calls isn't given: long enough for a steady average, and short enough for the
 * default sizes to take half a minute. */
static const double MEASURE_US = 200e3;
enum { LEAST_ITERATIONS = 5, MOST_ITERATIONS = 20000 };

/* What recv holds before a checked call: no result of any dtype repeats it all through. */
enum { STALE_BYTE = 0xA5 };

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

typedef struct {
  ring_group_t *group;
  void *send;
  void *recv;
  size_t count;
  ring_dtype_t dtype;
  ring_op_t op;
} call_t;

/* Time of `iterations` calls that all ranks start together, on the slowest rank. */
static ring_status_t time_calls(const call_t *call, int iterations, double *total_us) {
  ring_status_t status = ring_barrier(call->group);
  double start = now_us();
  for (int i = 0; i < iterations && status == RING_STATUS_OK; i++) {
    status = ring_all_reduce(call->group, call->send, call->recv, call->count, call->dtype, call->op);
  }
  *total_us = now_us() - start;
  if (status != RING_STATUS_OK) return status;
  return ring_all_reduce(call->group, total_us, total_us, 1, RING_DTYPE_FLOAT64, RING_OP_MAX);
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

  double total_us;
  ring_status_t status = time_calls(&call, options->warmup, &total_us);
  int iterations = options->iterations;
  if (status == RING_STATUS_OK && iterations == 0) {
    /* The first call on new memory is slow, and there may have been no warm-up. */
    const int probes = 2;
    status = time_calls(&call, probes, &total_us);
    double wanted = MEASURE_US * probes / total_us;
    iterations = wanted < LEAST_ITERATIONS ? LEAST_ITERATIONS
                 : wanted > MOST_ITERATIONS ? MOST_ITERATIONS
                                            : (int)wanted;
  }
  if (status == RING_STATUS_OK) status = time_calls(&call, iterations, &total_us);
  uint64_t wrong = 0;
  if (status == RING_STATUS_OK && options->check) status = check(&call, &wrong);
  if (status != RING_STATUS_OK) return status;

  int size = ring_group_size(group);
  result->measured = true;
  result->iterations = iterations;
  result->time_us = total_us / iterations;
  result->algbw = (double)bytes / (result->time_us * 1e3);
  result->busbw = result->algbw * 2 * (size - 1) / size;
  result->wrong = wrong;
  return RING_STATUS_OK;
}
