/* A rank enters a long call late by half the timeout, and is then stopped in its middle for as long
 * again: nobody is declared dead, and the sums are right. */
#include <signal.h>
#include <unistd.h>

#include "witness.h"
#include "work.h"

enum { SIZE = 4, LATE = 2, COUNT = 16 << 20, TIMEOUT_MS = 8000, TRIES = 5 };

struct run {
  int entered, left; /* the late rank has */
  struct witness witnesses[SIZE];
};

static void body(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  (void)size;
  ring_group_t *group = join(rank, hosts, 2);
  OK(ring_group_set_timeout(group, TIMEOUT_MS));
  struct desk desk = open_desk(group, COUNT);
  OK(ring_barrier(group));
  witness_ready(&run->witnesses[rank]);
  if (rank == LATE) {
    usleep(TIMEOUT_MS / 2 * 1000);
    __atomic_store_n(&run->entered, 1, __ATOMIC_RELEASE);
  }
  OK(do_work(&WORKS[0], &desk));
  if (rank == LATE) __atomic_store_n(&run->left, 1, __ATOMIC_RELEASE);
  OK(do_work(&WORKS[0], &desk));
  ring_group_destroy(group);
  close_desk(&desk);
}

/* Returns whether the rank was stopped inside its call. */
static int stopped_inside(void) {
  struct run *run = shared(sizeof *run);
  char *hosts = make_hosts(SIZE, 1);
  struct ranks ranks = start_ranks(SIZE, hosts, body, run);
  await_ready(run->witnesses, SIZE, 0, 20);
  while (!__atomic_load_n(&run->entered, __ATOMIC_ACQUIRE)) usleep(500);
  /* Past the filling of its buffer, and well before the end of 64 MiB among four ranks on a few cores. */
  usleep(100000);
  kill(ranks.pids[LATE], SIGSTOP);
  usleep(10000);
  int inside = !__atomic_load_n(&run->left, __ATOMIC_ACQUIRE);
  if (inside) usleep(TIMEOUT_MS / 2 * 1000);
  kill(ranks.pids[LATE], SIGCONT);
  await_ranks(&ranks, 60, 0);
  free(hosts);
  return inside;
}

int main(void) {
  for (int tries = 0; tries < TRIES; tries++)
    if (stopped_inside()) return 0;
  CHECK(0, "the call was always over when the rank was stopped");
}
