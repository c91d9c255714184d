/* A rank aborts its group: every rank that is blocked, or looks, knows within 100 ms who did. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "witness.h"

enum { SIZE = 4, ABORTER = 1 };

/* The promise. */
#define ABORTS_S 0.1

struct run {
  double aborted; /* when it began to */
  struct witness witnesses[SIZE];
};

static void *abort_soon(void *data) {
  struct run *run = ((void **)data)[0];
  ring_group_t *group = ((void **)data)[1];
  usleep(300000);
  run->aborted = seconds();
  OK(ring_group_abort(group));
  return NULL;
}

/* Ranks 0, 1 and 2 are blocked in a collective, for want of rank 3; a thread of rank 1 aborts. */
static void blocked(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  struct witness *witness = &run->witnesses[rank];
  ring_group_t *group = join(rank, hosts, 1);
  void *context[] = {run, group};
  pthread_t thread;
  OK(ring_barrier(group));
  if (rank == ABORTER) CHECK(pthread_create(&thread, NULL, abort_soon, context) == 0);
  if (rank == size - 1) {
    witness_idle(witness, group, 2);
  } else {
    witness_enter(witness);
    witness_failure(witness, group, ring_barrier(group));
  }
  if (rank == ABORTER) pthread_join(thread, NULL);
  ring_group_destroy(group);
}

/* All wait for a message from the right. */
static void blocked_in_message(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  struct witness *witness = &run->witnesses[rank];
  ring_group_t *group = join(rank, hosts, 1);
  void *context[] = {run, group};
  pthread_t thread;
  int32_t value;
  OK(ring_barrier(group));
  if (rank == ABORTER) CHECK(pthread_create(&thread, NULL, abort_soon, context) == 0);
  witness_enter(witness);
  witness_failure(witness, group, ring_recv(group, &value, 1, RING_DTYPE_INT32, (rank + 1) % size));
  if (rank == ABORTER) pthread_join(thread, NULL);
  ring_group_destroy(group);
}

/* Nobody is in a call. */
static void idle(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  struct witness *witness = &run->witnesses[rank];
  (void)size;
  ring_group_t *group = join(rank, hosts, 1);
  OK(ring_barrier(group));
  if (rank == ABORTER) {
    usleep(300000);
    run->aborted = seconds();
    OK(ring_group_abort(group));
    CHECK(seconds() - run->aborted < ABORTS_S, "abort took %.3f s", seconds() - run->aborted);
    OK(ring_group_abort(group));
  }
  witness_idle(witness, group, 2);
  double start = seconds();
  ring_group_destroy(group);
  CHECK(seconds() - start < 0.5, "destroying an aborted group took %.3f s", seconds() - start);
}

/* A group that has failed keeps its first failure. */
static void failed(int rank, int size, const char *hosts, void *data) {
  (void)data;
  (void)size;
  ring_group_t *group = join(rank, hosts, 1);
  int32_t value[2] = {1, 1};
  OK(ring_barrier(group));
  EXPECT(RING_STATUS_MISMATCH, ring_all_reduce(group, value, value, rank == 0 ? 2 : 1, RING_DTYPE_INT32, RING_OP_SUM));
  char text[2048];
  snprintf(text, sizeof text, "%s", group_error(group));
  OK(ring_group_abort(group));
  usleep(200000);
  ring_failure_t failure = {.struct_size = sizeof failure};
  OK(ring_group_failure(group, &failure));
  CHECK(failure.status == RING_STATUS_MISMATCH && failure.rank == -1, "%s", group_error(group));
  CHECK(strcmp(text, group_error(group)) == 0, "%s; then: %s", text, group_error(group));
  EXPECT(RING_STATUS_MISMATCH, ring_barrier(group));
  ring_group_destroy(group);
}

static void alone(void) {
  ring_config_t config = make_config(0, "[\"here:0\"]", 1);
  ring_group_t *group = NULL;
  OK(ring_group_create(&config, &group));
  OK(ring_barrier(group));
  OK(ring_group_abort(group));
  EXPECT(RING_STATUS_ABORTED, ring_barrier(group));
  ring_group_destroy(group);
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_group_abort(NULL));
}

static void run(rank_body *body) {
  struct run *run = shared(sizeof *run);
  char *hosts = make_hosts(SIZE, 1), name[32];
  run_ranks(SIZE, hosts, body, run, 20, 0);
  free(hosts);
  snprintf(name, sizeof name, "rank %d", ABORTER);
  struct verdict verdict = {
      .status = RING_STATUS_ABORTED,
      .rank = ABORTER,
      .part = name,
      .from = run->aborted,
      .to = run->aborted + ABORTS_S,
  };
  expect_verdict(run->witnesses, SIZE, 0, &verdict);
}

int main(void) {
  run(blocked);
  run(blocked_in_message);
  run(idle);
  char *hosts = make_hosts(SIZE, 1);
  run_ranks(SIZE, hosts, failed, NULL, 20, 0);
  free(hosts);
  alone();
  return 0;
}
