/* One rank makes another call than the rest: nobody gets numbers, nobody stores what differs.
 * Argument: ranks. */
#include <string.h>

#include "harness.h"

enum { SHORT = 1000, LONG = 1 << 20, CONNECTIONS = 2 };

static const int DTYPE = RING_DTYPE_FLOAT32, SUM = RING_OP_SUM;

/* What buffers hold. Sums of COMMON stay far below ODD, so that a sum tells whose data is in it. */
#define COMMON 1.0f
#define ODD 1e6f
#define UNTOUCHED -5.0f

typedef ring_status_t call_fn(ring_group_t *group, const float *in, float *out);

static ring_status_t common_call(ring_group_t *group, const float *in, float *out) {
  return ring_all_reduce(group, in, out, SHORT, DTYPE, SUM);
}
static ring_status_t tiny_call(ring_group_t *group, const float *in, float *out) {
  return ring_all_reduce(group, in, out, 8, DTYPE, SUM);
}
static ring_status_t one_more(ring_group_t *group, const float *in, float *out) {
  return ring_all_reduce(group, in, out, SHORT + 1, DTYPE, SUM);
}
static ring_status_t many_more(ring_group_t *group, const float *in, float *out) {
  return ring_all_reduce(group, in, out, LONG, DTYPE, SUM);
}
static ring_status_t none(ring_group_t *group, const float *in, float *out) {
  return ring_all_reduce(group, in, out, 0, DTYPE, SUM);
}
static ring_status_t other_dtype(ring_group_t *group, const float *in, float *out) {
  return ring_all_reduce(group, in, out, SHORT, RING_DTYPE_INT32, SUM);
}
static ring_status_t other_op(ring_group_t *group, const float *in, float *out) {
  return ring_all_reduce(group, in, out, SHORT, DTYPE, RING_OP_MAX);
}
static ring_status_t many_other_op(ring_group_t *group, const float *in, float *out) {
  return ring_all_reduce(group, in, out, LONG, DTYPE, RING_OP_MAX);
}
static ring_status_t other_kind(ring_group_t *group, const float *in, float *out) {
  return ring_all_gather(group, in, out, 8, RING_DTYPE_INT32);
}
static ring_status_t barrier(ring_group_t *group, const float *in, float *out) {
  (void)in;
  (void)out;
  return ring_barrier(group);
}
/* A refused call takes a number: the next one is a call ahead. */
static ring_status_t ahead(ring_group_t *group, const float *in, float *out) {
  EXPECT(RING_STATUS_INVALID_ARGUMENT, common_call(group, NULL, out));
  return common_call(group, in, out);
}
static ring_status_t ahead_unsupported(ring_group_t *group, const float *in, float *out) {
  EXPECT(RING_STATUS_UNSUPPORTED, ring_all_reduce(group, in, out, SHORT, DTYPE, RING_OP_BXOR));
  return common_call(group, in, out);
}

struct difference {
  const char *name;
  call_fn *common, *odd;
  const char *shown[3]; /* in the text of every rank */
};

static const struct difference DIFFERENCES[] = {
    {"count", common_call, one_more, {"all_reduce(float32, sum, 1000)", "all_reduce(float32, sum, 1001)"}},
    {"large count", common_call, many_more, {"all_reduce(float32, sum, 1000)", "all_reduce(float32, sum, 1048576)"}},
    {"8 and 2^20", tiny_call, many_more, {"all_reduce(float32, sum, 8)", "all_reduce(float32, sum, 1048576)"}},
    {"2^20 and 8", many_more, tiny_call, {"all_reduce(float32, sum, 8)", "all_reduce(float32, sum, 1048576)"}},
    {"dtype", common_call, other_dtype, {"all_reduce(float32, sum, 1000)", "all_reduce(int32, sum, 1000)"}},
    {"op", common_call, other_op, {"all_reduce(float32, sum, 1000)", "all_reduce(float32, max, 1000)"}},
    {"op of 2^20", many_more, many_other_op,
     {"all_reduce(float32, sum, 1048576)", "all_reduce(float32, max, 1048576)"}},
    {"kind", common_call, other_kind, {"all_reduce(float32, sum, 1000)", "all_gather(int32, 8)"}},
    {"barrier", common_call, barrier, {"all_reduce(float32, sum, 1000)", "barrier()"}},
    {"barrier of the rest", barrier, common_call, {"all_reduce(float32, sum, 1000)", "barrier()"}},
    {"zero", common_call, none, {"all_reduce(float32, sum, 1000)", "all_reduce(float32, sum, 0)"}},
    {"zero of the rest", none, common_call, {"all_reduce(float32, sum, 1000)", "all_reduce(float32, sum, 0)"}},
    {"ahead", common_call, ahead, {"all_reduce(float32, sum, 1000)", "as call 3", "RING_STATUS_INVALID_ARGUMENT"}},
    {"ahead, unsupported", common_call, ahead_unsupported,
     {"all_reduce(float32, sum, 1000)", "as call 3", "RING_STATUS_UNSUPPORTED"}},
};

struct run {
  const struct difference *difference;
  int odd;
};

/* Whose data may stand in a rank's output: its own side's, and in the odd one's its own alone. */
static void check_output(const struct run *run, int rank, const float *out) {
  for (int i = 0; i < LONG; i++) {
    if (out[i] == UNTOUCHED) continue;
    int own = rank == run->odd ? out[i] == ODD : out[i] >= COMMON && out[i] < ODD;
    CHECK(own, "%s: element %d of rank %d is %f", run->difference->name, i, rank, out[i]);
  }
}

static void body(int rank, int size, const char *hosts, void *data) {
  const struct run *run = data;
  const struct difference *difference = run->difference;
  ring_group_t *group = join(rank, hosts, CONNECTIONS);
  float *in = malloc(LONG * sizeof(float)), *out = malloc(LONG * sizeof(float));
  CHECK(in && out);
  for (int i = 0; i < LONG; i++) in[i] = rank == run->odd ? ODD : COMMON, out[i] = UNTOUCHED;
  int one = rank, sum = 0;
  OK(ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(sum == size * (size - 1) / 2);
  call_fn *call = rank == run->odd ? difference->odd : difference->common;
  ring_status_t got = call(group, in, out);
  /* A call that moves nothing may be over before the difference is known; the next isn't. */
  if (got == RING_STATUS_OK) {
    CHECK(call == none || call == barrier, "%s: rank %d got OK", difference->name, rank);
    got = common_call(group, in, out);
  }
  const char *text = last_error();
  CHECK(got == RING_STATUS_MISMATCH, "%s: rank %d got %s: %s", difference->name, rank, ring_status_name(got), text);
  for (int i = 0; i < 3 && difference->shown[i]; i++)
    CHECK(strstr(text, difference->shown[i]), "%s: no \"%s\" in: %s", difference->name, difference->shown[i], text);
  check_output(run, rank, out);
  /* It is sticky, and the same in every form. */
  EXPECT(RING_STATUS_MISMATCH, ring_barrier(group));
  EXPECT(RING_STATUS_MISMATCH, ring_send(group, in, 1, RING_DTYPE_FLOAT32, (rank + 1) % size));
  ring_failure_t failure = {.struct_size = sizeof failure};
  OK(ring_group_failure(group, &failure));
  CHECK(failure.status == RING_STATUS_MISMATCH && failure.rank == -1, "it blames %d", failure.rank);
  CHECK(strcmp(group_error(group), last_error()) == 0);
  ring_group_destroy(group);
  free(in);
  free(out);
}

/* A call that every rank refuses leaves the group healthy. */
static void refused_alike(int rank, int size, const char *hosts, void *data) {
  (void)data;
  ring_group_t *group = join(rank, hosts, 1);
  int one = 1, sum = 0;
  for (int i = 0; i < 3; i++) {
    EXPECT(RING_STATUS_UNSUPPORTED, ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_MEAN));
    EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_all_reduce(group, &one, &sum, 1, 99, RING_OP_SUM));
    OK(ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
    CHECK(sum == size);
  }
  ring_group_destroy(group);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2;
  for (size_t i = 0; i < sizeof DIFFERENCES / sizeof *DIFFERENCES; i++) {
    /* In large rings a difference takes turns: each stands at every third position. */
    int step = size > 4 ? 3 : 1;
    for (int odd = (int)i % step; odd < size; odd += step) {
      struct run run = {&DIFFERENCES[i], odd};
      char *hosts = make_hosts(size, 1);
      run_ranks(size, hosts, body, &run, 20, 0);
      free(hosts);
    }
  }
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, refused_alike, NULL, 20, 0);
  free(hosts);
  return 0;
}
