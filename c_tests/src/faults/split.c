/* A rank that is stopped while the links of a split are made: the others time out, in time, though some of them have
 * waited for its links before they wait for its word. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "witness.h"

enum {
  SIZE = 3,
  VICTIM = 1,
  CONNECTIONS = 48, /* so many links that their making can be seen from outside */
  TIMEOUT_MS = 3000, /* links are waited for half of it, more than the second that is left after a deadline */
};

static void body(int rank, int size, const char *hosts, void *data) {
  struct witness *witness = (struct witness *)data + rank;
  ring_group_t *group = join(rank, hosts, CONNECTIONS), *part = NULL;
  (void)size;
  OK(ring_group_set_timeout(group, TIMEOUT_MS));
  OK(ring_barrier(group));
  witness_ready(witness);
  /* The victim last, when the parent looks. */
  usleep(rank == VICTIM ? 400000 : 200000);
  witness_enter(witness);
  witness_failure(witness, group, ring_group_split(group, 0, 0, &part));
  ring_group_destroy(group);
}

int main(void) {
  struct witness *witnesses = shared(SIZE * sizeof *witnesses);
  char *hosts = make_hosts(SIZE, 1), folder[64];
  struct ranks ranks = start_ranks(SIZE, hosts, body, witnesses);
  const pid_t victim = ranks.pids[VICTIM];
  await_ready(witnesses, SIZE, 0, 20);
  snprintf(folder, sizeof folder, "/proc/%d/fd", (int)victim);
  const int before = entries(folder);
  const double limit = seconds() + 5;
  while (entries(folder) < before + 4) CHECK(seconds() < limit, "no links are made");
  kill(victim, SIGSTOP);
  const double struck = seconds();
  await_told(witnesses, SIZE, 1u << VICTIM, 20);
  expect_verdict(witnesses, SIZE, 1u << VICTIM,
                 &(struct verdict){.status = RING_STATUS_TIMEOUT, .rank = VICTIM, .part = "split(), call 2",
                                   .from = struck, .to = struck + TIMEOUT_MS / 1e3 + HEARS_S, .same_text = 1});
  kill(victim, SIGKILL);
  await_ranks(&ranks, 20, 1u << VICTIM);
  free(hosts);
  return 0;
}
