/* Destroying a group doesn't wait for the dead, nor, once the death is known, for the living. */
#include <signal.h>
#include <unistd.h>

#include "witness.h"

enum { MAX_SIZE = 4, VICTIM = 1 };

/* Far less than the second that a healthy group waits for peers that take what was sent. */
#define SOON_S 0.5

struct run {
  int wait_ms; /* from the death to rank 0's destroy; 200 ms more for each next rank */
  int dead;
  struct witness witnesses[MAX_SIZE];
};

static void body(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  (void)size;
  ring_group_t *group = join(rank, hosts, 1);
  OK(ring_barrier(group));
  witness_ready(&run->witnesses[rank]);
  while (!__atomic_load_n(&run->dead, __ATOMIC_ACQUIRE)) usleep(500);
  usleep((useconds_t)(run->wait_ms * 1000 + rank * 200000));
  double start = seconds();
  ring_group_destroy(group);
  CHECK(seconds() - start < SOON_S, "rank %d: destroy took %.3f s", rank, seconds() - start);
}

int main(void) {
  /* At once where no other rank is left to wait for. */
  const struct {
    int size, wait_ms;
  } cases[] = {{2, 0}, {2, 300}, {3, 300}, {4, 300}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int size = cases[i].size;
    struct run *run = shared(sizeof *run);
    run->wait_ms = cases[i].wait_ms;
    char *hosts = make_hosts(size, 1);
    struct ranks ranks = start_ranks(size, hosts, body, run);
    await_ready(run->witnesses, size, 0, 20);
    kill(ranks.pids[VICTIM], SIGKILL);
    __atomic_store_n(&run->dead, 1, __ATOMIC_RELEASE);
    await_ranks(&ranks, 20, 1u << VICTIM);
    free(hosts);
  }
  return 0;
}
