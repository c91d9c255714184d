/* One rank stays away from a call, alive and computing: the others time out and name it. It hears so
 * without a call, and in its next one. */
#include <string.h>
#include <unistd.h>

#include "witness.h"

enum { TIMEOUT_MS = 2000 };

struct run {
  int absent;
  struct witness witnesses[8];
};

static void body(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  struct witness *witness = &run->witnesses[rank];
  (void)size;
  ring_group_t *group = join(rank, hosts, 1);
  OK(ring_barrier(group));
  OK(ring_group_set_timeout(group, TIMEOUT_MS));
  witness_ready(witness);
  if (rank == run->absent) {
    witness_idle(witness, group, TIMEOUT_MS / 1000.0 + 2);
  } else {
    witness_enter(witness);
    witness_failure(witness, group, ring_barrier(group));
  }
  ring_group_destroy(group);
}

static const struct {
  int size, absent;
} CASES[] = {{2, 0}, {2, 1}, {3, 1}, {4, 0}, {4, 2}, {5, 4}, {8, 0}, {8, 5}};

static void one_case(int index, int cases, const char *unused, void *data) {
  struct run *run = shared(sizeof *run);
  int size = CASES[index].size;
  (void)cases;
  (void)unused;
  (void)data;
  run->absent = CASES[index].absent;
  char *hosts = make_hosts(size, 1), name[32];
  run_ranks(size, hosts, body, run, 20, 0);
  free(hosts);
  double first = 1e300, last = 0;
  for (int rank = 0; rank < size; rank++) {
    const struct witness *w = &run->witnesses[rank];
    double took = w->failed - w->entered;
    if (rank == run->absent) continue;
    if (w->entered < first) first = w->entered;
    if (w->entered > last) last = w->entered;
    CHECK(strstr(w->text, "barrier"), "%s", w->text);
    CHECK(w->used_s < CPU_SHARE * took, "rank %d used %.3f s of a core in %.3f s", rank, w->used_s, took);
  }
  snprintf(name, sizeof name, "rank %d", run->absent);
  struct verdict verdict = {
      .status = RING_STATUS_TIMEOUT,
      .rank = run->absent,
      .part = name,
      .from = first + TIMEOUT_MS / 1000.0,
      .to = last + TIMEOUT_MS / 1000.0 + HEARS_S,
  };
  expect_verdict(run->witnesses, size, 0, &verdict);
}

int main(void) {
  run_ranks(sizeof CASES / sizeof *CASES, NULL, one_case, NULL, 60, 0);
  return 0;
}
