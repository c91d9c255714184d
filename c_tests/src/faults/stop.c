/* A rank is stopped, before it enters a call or in the middle of one: the others time out and name it,
 * having slept, and it hears the verdict on itself when it goes on. All positions at the same time, each a
 * ring of its own, since all they do is wait. Arguments: before or during, ranks, timeout in ms, works, with which
 * positions take turns. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "witness.h"
#include "work.h"

enum { COUNT = 1 << 20, APART_US = 1000000 };

/* A stopped rank may have been waited for a little before it was stopped. */
#define EARLY_S 0.3
/* What the system still takes for a stopped rank is progress of the others, from which their timeout counts.
 * The last of it was seen 0.35 s after the stop. */
#define MOVES_ON_S 0.6

struct run {
  const struct work *works[WORK_COUNT], *work; /* those of the test, and this ring's */
  int work_count;
  int victim, before, timeout_ms;
  int enter; /* the stopped rank may */
  double stopped;
  struct witness witnesses[8];
};

static void body(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  struct witness *witness = &run->witnesses[rank];
  ring_group_t *group = join(rank, hosts, 1 + run->victim % 2);
  struct desk desk = open_desk(group, COUNT);
  OK(ring_group_set_timeout(group, (uint32_t)run->timeout_ms));
  OK(ring_barrier(group));
  witness_ready(witness);
  if (run->before) {
    if (rank == run->victim) {
      while (!__atomic_load_n(&run->enter, __ATOMIC_ACQUIRE)) usleep(1000);
    } else {
      /* The last one comes APART_US after the first. */
      usleep((useconds_t)(50000 + APART_US * ((rank * 3 + 1) % size) / size));
    }
  }
  ring_status_t status;
  do {
    witness_enter(witness);
    status = do_work(run->work, &desk);
  } while (status == RING_STATUS_OK);
  witness_failure(witness, group, status);
  ring_group_destroy(group);
  close_desk(&desk);
}

static void one_case(int victim, int size, const char *unused, void *data) {
  struct run *run = shared(sizeof *run);
  (void)unused;
  *run = *(const struct run *)data;
  run->victim = victim;
  run->work = run->works[victim % run->work_count];
  uint64_t random = (uint64_t)getpid();
  char *hosts = make_hosts(size, 1), name[32];
  struct ranks ranks = start_ranks(size, hosts, body, run);
  await_ready(run->witnesses, size, 0, 20);
  if (!run->before) usleep((useconds_t)(next_random(&random) % 50000));
  run->stopped = seconds();
  kill(ranks.pids[victim], SIGSTOP);
  double timeout = run->timeout_ms / 1000.0;
  unsigned except = 1u << victim;
  await_told(run->witnesses, size, except, timeout + MOVES_ON_S + 1 + HEARS_S + 1);
  double first = 1e300, last = 0;
  for (int rank = 0; rank < size; rank++) {
    double entered = run->witnesses[rank].entered;
    if (rank == victim) continue;
    if (entered < first) first = entered;
    if (entered > last) last = entered;
  }
  snprintf(name, sizeof name, "rank %d", victim);
  struct verdict verdict = {
      .status = RING_STATUS_TIMEOUT,
      .rank = victim,
      .part = name,
      .from = (run->before ? first : run->stopped - EARLY_S) + timeout,
      .to = (last > run->stopped ? last : run->stopped + MOVES_ON_S) + timeout + HEARS_S,
  };
  expect_verdict(run->witnesses, size, except, &verdict);
  for (int rank = 0; rank < size; rank++) {
    const struct witness *w = &run->witnesses[rank];
    double took = w->failed - w->entered;
    if (rank == victim) continue;
    CHECK(strstr(w->text, run->work->name), "%s", w->text);
    if (took > 1) CHECK(w->used_s < CPU_SHARE * took, "rank %d used %.3f s of a core in %.3f s", rank, w->used_s, took);
  }
  /* Now the accused itself. */
  __atomic_store_n(&run->enter, 1, __ATOMIC_RELEASE);
  double continued = seconds();
  kill(ranks.pids[victim], SIGCONT);
  await_ranks(&ranks, 10, 0);
  verdict.from = 0;
  verdict.to = continued + HEARS_S;
  expect_verdict(run->witnesses, size, ~except, &verdict);
}

int main(int argc, char **argv) {
  CHECK(argc > 4 && argc - 4 <= WORK_COUNT, "arguments: before or during, ranks, timeout, works");
  int size = atoi(argv[2]);
  struct run run = {.before = !strcmp(argv[1], "before"), .timeout_ms = atoi(argv[3]), .work_count = argc - 4};
  for (int i = 4; i < argc; i++) run.works[i - 4] = find_work(argv[i]);
  run_ranks(size, NULL, one_case, &run, 60, 0);
  return 0;
}
