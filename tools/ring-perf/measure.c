#include "measure.h"

#include "collective.h"

#include <string.h>

/* What recv holds before a checked call: no result of any dtype repeats it all through. */
enum { STALE_BYTE = 0xA5 };

/* ---- the timed subject ---- */

static int run_call(void *data) {
  const call_t *call = data;
  return call->collective->run(call);
}

static int run_barrier(void *data) { return ring_barrier(((const call_t *)data)->group); }

static int combine(const call_t *call, double *values, int count, ring_op_t op) {
  return ring_all_reduce(call->group, values, values, (size_t)count, RING_DTYPE_FLOAT64, op);
}

static int largest(void *data, double *values, int count) { return combine(data, values, count, RING_OP_MAX); }

static int sum(void *data, double *values, int count) { return combine(data, values, count, RING_OP_SUM); }

/* Wrong elements after a call with known data, on all ranks together. `recv` is where the results' memory
 * begins, of which in place a part is sent. */
static ring_status_t check(const call_t *call, void *recv, uint64_t *wrong) {
  memset(recv, STALE_BYTE, call->total * ring_dtype_size(call->dtype));
  fill_send(call);
  ring_status_t status = call->collective->run(call);
  if (status != RING_STATUS_OK) return status;
  *wrong = count_wrong_arrivals(call);
  return ring_all_reduce(call->group, wrong, wrong, 1, RING_DTYPE_UINT64, RING_OP_SUM);
}

ring_status_t measure(ring_group_t *group, const options_t *options, void *send, void *recv, size_t total,
                      result_t *result) {
  const collective_t *collective = options->collective;
  int size = ring_group_size(group);
  call_t call = {
      .collective = collective,
      .group = group,
      .rank = ring_group_rank(group),
      .size = size,
      .total = total,
      .dtype = options->dtype,
      .op = options->op,
      .split = collective->varies ? options->split : SPLIT_EVEN,
  };
  size_t bytes = total * ring_dtype_size(options->dtype);
  /* In place the data change from call to call, and would end in infinities. */
  memset(send, 0, bytes);

  uint64_t wrong = 0;
  ring_status_t status = RING_STATUS_OUT_OF_MEMORY;
  if (begin_call(&call, send, recv)) {
    subject_t subject = {&call, run_call, run_barrier, largest, sum};
    status = time_calls(&subject, options->warmup, options->iterations, &result->timing);
    if (status == RING_STATUS_OK && options->check) status = check(&call, recv, &wrong);
  }
  end_call(&call);
  if (status != RING_STATUS_OK) return status;

  result->measured = true;
  result->algbw = (double)bytes / (result->timing.time_us * 1e3);
  result->busbw = result->algbw * collective->links(size);
  result->wrong = wrong;
  return RING_STATUS_OK;
}
