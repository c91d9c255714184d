/* A peer's process exits without a word, with SIGPIPE at its default here: whoever writes to it gets an
 * error and no signal. Each kind of call is the first after the end. */
#include <signal.h>
#include <unistd.h>

#include "witness.h"
#include "work.h"

enum { COUNT = 1 << 20, GONE = 1 };

struct run {
  const struct work *work;
  int wait_us;
  double left;
  struct witness witnesses[4];
};

static void body(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  struct witness *witness = &run->witnesses[rank];
  (void)size;
  signal(SIGPIPE, SIG_DFL);
  ring_group_t *group = join(rank, hosts, 1);
  struct desk desk = open_desk(group, COUNT);
  OK(ring_barrier(group));
  if (rank == GONE) {
    run->left = seconds();
    _exit(0);
  }
  usleep((useconds_t)run->wait_us);
  ring_status_t status;
  do {
    witness_enter(witness);
    status = do_work(run->work, &desk);
  } while (status == RING_STATUS_OK);
  witness_failure(witness, group, status);
  ring_group_destroy(group);
  close_desk(&desk);
}

int main(void) {
  const int waits_us[] = {0, 1000, 100000};
  for (int size = 2; size <= 4; size++) {
    for (int i = 0; i < 4; i++) {
      for (int j = 0; j < 3; j++) {
        struct run *run = shared(sizeof *run);
        run->work = &WORKS[i];
        run->wait_us = waits_us[j];
        char *hosts = make_hosts(size, 1);
        run_ranks(size, hosts, body, run, 20, 0);
        free(hosts);
        struct verdict verdict = {
            .status = RING_STATUS_PEER_LOST,
            .rank = GONE,
            .part = "rank 1",
            .to = run->left + HEARS_S,
        };
        expect_verdict(run->witnesses, size, 1u << GONE, &verdict);
      }
    }
  }
  return 0;
}
