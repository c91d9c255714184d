/* A rank waits for a message in one thread and for a collective in another while a third rank is stopped, and
 * the message's deadline comes first: its peer, held up by the collective, is not at fault. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "witness.h"

enum { SIZE = 4, TIMEOUT_MS = 2000, EARLIER_US = 200000 };

static void *receive(void *group) {
  int32_t value;
  EXPECT(RING_STATUS_TIMEOUT, ring_recv(group, &value, 1, RING_DTYPE_INT32, 1));
  return NULL;
}

static void body(int rank, int size, const char *hosts, void *data) {
  struct witness *witness = (struct witness *)data + rank;
  pthread_t receiver;
  ring_group_t *group = join(rank, hosts, 1);
  (void)size;
  OK(ring_barrier(group));
  OK(ring_group_set_timeout(group, TIMEOUT_MS));
  witness_ready(witness);
  if (rank == 0) CHECK(pthread_create(&receiver, NULL, receive, group) == 0);
  usleep(EARLIER_US);
  witness_enter(witness);
  ring_status_t status = ring_barrier(group);
  /* The stopped rank may find that all others have done their part of it, and hear of the failure in the next one. */
  if (status == RING_STATUS_OK) status = ring_barrier(group);
  witness_failure(witness, group, status);
  if (rank == 0) pthread_join(receiver, NULL);
  ring_group_destroy(group);
}

static void stop_one(int victim) {
  struct witness *witnesses = shared(SIZE * sizeof *witnesses);
  char *hosts = make_hosts(SIZE, 1), name[32];
  struct ranks ranks = start_ranks(SIZE, hosts, body, witnesses);
  await_ready(witnesses, SIZE, 0, 20);
  kill(ranks.pids[victim], SIGSTOP);
  double stopped = seconds();
  await_told(witnesses, SIZE, 1u << victim, 20);
  kill(ranks.pids[victim], SIGCONT);
  await_ranks(&ranks, 20, 0);
  snprintf(name, sizeof name, "rank %d (", victim);
  struct verdict verdict = {
      .status = RING_STATUS_TIMEOUT,
      .rank = victim,
      .part = name,
      .to = stopped + TIMEOUT_MS / 1000.0 + HEARS_S,
  };
  expect_verdict(witnesses, SIZE, 1u << victim, &verdict);
  free(hosts);
}

int main(void) {
  stop_one(2);
  stop_one(3);
  return 0;
}
