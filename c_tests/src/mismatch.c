/* One rank makes another call than the rest: nobody gets numbers. Argument: ranks. */
#include <string.h>

#include "harness.h"

enum { LONG = 1 << 20 };

struct difference {
  const char *name;
  const char *common, *odd; /* what the text shows of the two calls */
};

static const struct difference DIFFERENCES[] = {
    {"count", "all_reduce(float32, sum, 1000)", "all_reduce(float32, sum, 1001)"},
    {"large count", "all_reduce(float32, sum, 1000)", "all_reduce(float32, sum, 1048576)"},
    {"dtype", "all_reduce(float32, sum, 1000)", "all_reduce(int32, sum, 1000)"},
    {"op", "all_reduce(float32, sum, 1000)", "all_reduce(float32, max, 1000)"},
    {"kind", "all_reduce(float32, sum, 1000)", "all_gather(int32, 8)"},
    {"barrier", "all_reduce(float32, sum, 1000)", "barrier()"},
    {"ahead", "all_reduce(float32, sum, 1000)", "as call 3"},
    {"zero", "all_reduce(float32, sum, 1000)", "all_reduce(float32, sum, 0)"},
};

static ring_status_t odd_call(ring_group_t *group, const char *name, float *in, float *out) {
  if (!strcmp(name, "count")) return ring_all_reduce(group, in, out, 1001, RING_DTYPE_FLOAT32, RING_OP_SUM);
  if (!strcmp(name, "large count")) return ring_all_reduce(group, in, out, LONG, RING_DTYPE_FLOAT32, RING_OP_SUM);
  if (!strcmp(name, "dtype")) return ring_all_reduce(group, in, out, 1000, RING_DTYPE_INT32, RING_OP_SUM);
  if (!strcmp(name, "op")) return ring_all_reduce(group, in, out, 1000, RING_DTYPE_FLOAT32, RING_OP_MAX);
  if (!strcmp(name, "kind")) return ring_all_gather(group, in, out, 8, RING_DTYPE_INT32);
  if (!strcmp(name, "barrier")) return ring_barrier(group);
  if (!strcmp(name, "zero")) return ring_all_reduce(group, in, out, 0, RING_DTYPE_FLOAT32, RING_OP_SUM);
  /* A refused call takes a number: the next one is a call ahead. */
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_all_reduce(group, NULL, out, 1000, RING_DTYPE_FLOAT32, RING_OP_SUM));
  return ring_all_reduce(group, in, out, 1000, RING_DTYPE_FLOAT32, RING_OP_SUM);
}

static void body(int rank, int size, const char *hosts, void *data) {
  const struct difference *difference = data;
  ring_group_t *group = join(rank, hosts, 1);
  float *in = calloc(LONG, sizeof(float)), *out = calloc(LONG, sizeof(float));
  int one = rank, sum = 0;
  OK(ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(sum == size * (size - 1) / 2);
  ring_status_t got = rank == 1 ? odd_call(group, difference->name, in, out)
                                : ring_all_reduce(group, in, out, 1000, RING_DTYPE_FLOAT32, RING_OP_SUM);
  const char *text = last_error();
  CHECK(got == RING_STATUS_MISMATCH, "%s: rank %d got %s: %s", difference->name, rank, ring_status_name(got), text);
  CHECK(strstr(text, difference->common) && strstr(text, difference->odd), "%s: %s", difference->name, text);
  if (!strcmp(difference->name, "ahead")) CHECK(strstr(text, "RING_STATUS_INVALID_ARGUMENT"), "%s", text);
  /* It is sticky, and the same in every form. */
  EXPECT(RING_STATUS_MISMATCH, ring_barrier(group));
  EXPECT(RING_STATUS_MISMATCH, ring_send(group, in, 1, RING_DTYPE_FLOAT32, (rank + 1) % size));
  ring_failure_t failure = {.struct_size = sizeof failure};
  OK(ring_group_failure(group, &failure));
  CHECK(failure.status == RING_STATUS_MISMATCH && failure.rank == -1);
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
    char *hosts = make_hosts(size, 1);
    run_ranks(size, hosts, body, (void *)&DIFFERENCES[i], 20, 0);
    free(hosts);
  }
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, refused_alike, NULL, 20, 0);
  free(hosts);
  return 0;
}
