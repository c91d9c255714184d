/* Ranks wait for one that is slow but alive: the call completes, waiting costs no core, and a signal
 * still ends a process that waits. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "witness.h"

enum { LATE_S = 5, COUNT = 1 << 20 };

static void waits(int rank, int size, const char *hosts, void *data) {
  (void)data;
  ring_group_t *group = join(rank, hosts, 1);
  float *array = malloc(COUNT * sizeof *array);
  CHECK(array);
  for (int i = 0; i < COUNT; i++) array[i] = (float)(rank + 1);
  OK(ring_barrier(group));
  double used = cpu_seconds(), start = seconds();
  if (rank == size - 1) {
    sleep(LATE_S);
    OK(ring_barrier(group));
  } else {
    OK(ring_barrier(group));
    double took = seconds() - start;
    used = cpu_seconds() - used;
    CHECK(took > LATE_S - 0.5, "it took %.3f s", took);
    CHECK(used < CPU_SHARE * took, "rank %d of %d used %.3f s of a core in %.3f s", rank, size, used, took);
  }
  /* A large call, too, in the middle of which the last rank is waited for. */
  if (rank == size - 1) sleep(1);
  OK(ring_all_reduce(group, array, array, COUNT, RING_DTYPE_FLOAT32, RING_OP_SUM));
  for (int i = 0; i < COUNT; i++) CHECK(array[i] == (float)(size * (size + 1) / 2), "element %d is %f", i, array[i]);
  free(array);
  ring_group_destroy(group);
}

static void waits_for_ever(int rank, int size, const char *hosts, void *data) {
  struct witness *witness = (struct witness *)data + rank;
  (void)size;
  ring_group_t *group = join(rank, hosts, 1);
  OK(ring_barrier(group));
  witness_ready(witness);
  if (rank == 1) {
    witness_idle(witness, group, 5);
  } else {
    witness_enter(witness);
    ring_status_t status = ring_barrier(group);
    witness_failure(witness, group, status);
  }
  ring_group_destroy(group);
}

/* Ranks 0 and 2 wait for rank 1; SIGTERM ends rank 0. */
static void terminated(void) {
  struct witness *witnesses = shared(3 * sizeof *witnesses);
  char *hosts = make_hosts(3, 1);
  struct ranks ranks = start_ranks(3, hosts, waits_for_ever, witnesses);
  await_ready(witnesses, 3, 0, 20);
  usleep(300000);
  double sent = seconds();
  kill(ranks.pids[0], SIGTERM);
  int status;
  CHECK(waitpid(ranks.pids[0], &status, 0) == ranks.pids[0]);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "the status is %x", (unsigned)status);
  CHECK(seconds() - sent < 1, "it took %.3f s", seconds() - sent);
  ranks.pids[0] = 0;
  await_ranks(&ranks, 10, 0);
  struct verdict verdict = {.status = RING_STATUS_PEER_LOST, .part = "rank 0", .to = sent + HEARS_S};
  expect_verdict(witnesses, 3, 1, &verdict);
  free(hosts);
}

int main(void) {
  /* One after the other: too many ranks that spun would leave each other too little to be noticed. */
  for (int size = 4; size <= 8; size += 4) {
    char *hosts = make_hosts(size, 1);
    run_ranks(size, hosts, waits, NULL, 30, 0);
    free(hosts);
  }
  terminated();
  return 0;
}
