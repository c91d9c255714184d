/* A rank enters a long call late by half the timeout, and is then stopped in its middle for as long
 * again: nobody is declared dead, and the sums are right. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "witness.h"
#include "work.h"

enum { SIZE = 4, LATE = 2, COUNT = 16 << 20, TIMEOUT_MS = 8000, PAUSE_US = TIMEOUT_MS / 2 * 1000, TRIES = 5 };

/* In a result buffer that no byte has come to. */
enum { NOTHING = 0xff, LOOK_EVERY = 4096 };

struct run {
  uint32_t *recv; /* the late rank's, which the parent sees */
  int left;       /* the late rank has ended its call */
  struct witness witnesses[SIZE];
};

static void body(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  (void)size;
  ring_group_t *group = join(rank, hosts, 2);
  OK(ring_group_set_timeout(group, TIMEOUT_MS));
  struct desk desk = open_desk(group, COUNT);
  if (rank == LATE) {
    free(desk.recv);
    desk.recv = run->recv;
  }
  OK(do_work(&WORKS[0], &desk));
  if (rank == LATE) {
    memset(desk.recv, NOTHING, COUNT * sizeof *desk.recv);
    witness_ready(&run->witnesses[rank]);
    usleep(PAUSE_US);
  }
  OK(do_work(&WORKS[0], &desk));
  if (rank == LATE) {
    __atomic_store_n(&run->left, 1, __ATOMIC_RELEASE);
    desk.recv = NULL;
  }
  ring_group_destroy(group);
  close_desk(&desk);
}

static int has_something(const uint32_t *recv) {
  for (int i = 0; i < COUNT; i += LOOK_EVERY)
    if (__atomic_load_n(&recv[i], __ATOMIC_RELAXED) != UINT32_MAX) return 1;
  return 0;
}

/* Returns whether the rank was stopped inside its call. */
static int stopped_inside(void) {
  struct run *run = shared(sizeof *run);
  run->recv = shared(COUNT * sizeof *run->recv);
  char *hosts = make_hosts(SIZE, 1);
  struct ranks ranks = start_ranks(SIZE, hosts, body, run);
  await_ready(&run->witnesses[LATE], 1, 0, 20);
  double limit = seconds() + TIMEOUT_MS / 1000.0 + 5;
  while (!has_something(run->recv) && seconds() < limit) usleep(200);
  kill(ranks.pids[LATE], SIGSTOP);
  usleep(10000);
  int inside = !__atomic_load_n(&run->left, __ATOMIC_ACQUIRE);
  if (inside) usleep(PAUSE_US);
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
