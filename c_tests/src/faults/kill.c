/* A rank is killed in the middle of calls, or while all idle: every other rank hears of it, by name,
 * within a second. Arguments: work (or idle), ranks. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "witness.h"
#include "work.h"

enum { COUNT = 1 << 20, MAX_DELAY_US = 30000 };

struct run {
  const struct work *work; /* NULL: no calls */
  int connections;
  struct witness witnesses[8];
};

static void body(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  struct witness *witness = &run->witnesses[rank];
  (void)size;
  signal(SIGPIPE, SIG_DFL);
  ring_group_t *group = join(rank, hosts, run->connections);
  struct desk desk = open_desk(group, COUNT);
  OK(ring_barrier(group));
  witness_ready(witness);
  if (run->work) {
    ring_status_t status;
    do {
      witness_enter(witness);
      status = do_work(run->work, &desk);
    } while (status == RING_STATUS_OK);
    witness_failure(witness, group, status);
  } else {
    witness_idle(witness, group, 3);
  }
  /* A failed group doesn't wait for anybody, least of all for the dead. */
  double start = seconds();
  ring_group_destroy(group);
  CHECK(seconds() - start < 0.5, "destroying a failed group took %.3f s", seconds() - start);
  close_desk(&desk);
}

int main(int argc, char **argv) {
  CHECK(argc == 3, "arguments: work, ranks");
  int size = atoi(argv[2]);
  uint64_t random = (uint64_t)getpid();
  for (int victim = 0; victim < size; victim++) {
    struct run *run = shared(sizeof *run);
    run->work = strcmp(argv[1], "idle") ? find_work(argv[1]) : NULL;
    run->connections = 1 + (victim + size) % 4;
    char *hosts = make_hosts(size, 1);
    struct ranks ranks = start_ranks(size, hosts, body, run);
    await_ready(run->witnesses, size, 0, 20);
    usleep((useconds_t)(next_random(&random) % MAX_DELAY_US));
    double killed = seconds();
    kill(ranks.pids[victim], SIGKILL);
    await_ranks(&ranks, 30, 1u << victim);
    char name[32];
    snprintf(name, sizeof name, "rank %d", victim);
    struct verdict verdict = {
        .status = RING_STATUS_PEER_LOST,
        .rank = victim,
        .part = name,
        .to = killed + HEARS_S,
        .same_text = run->work == NULL,
    };
    expect_verdict(run->witnesses, size, 1u << victim, &verdict);
    /* Who was in a call is told which. */
    for (int rank = 0; run->work && rank < size; rank++) {
      const struct witness *w = &run->witnesses[rank];
      if (rank == victim || w->failure.sequence == 0) continue;
      CHECK(strstr(w->text, run->work->name), "no %s in: %s", run->work->name, w->text);
    }
    free(hosts);
  }
  return 0;
}
