/* Ranks with many requests under way meet a fault: each request ends with the group's status, in time, and lets go of
 * its buffers. Arguments: the fault, ranks. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "witness.h"

enum {
  COUNT = 1 << 20,  /* elements of the large requests: 4 MiB, which are still under way */
  QUEUED = 30,      /* requests behind them, a third of them messages */
  TIMEOUT_MS = 2000,
  VICTIM = 1,
};

/* An abort's promise is 100 ms. */
#define ABORTS_S 0.1

enum fault { KILLED, STOPPED, ABORTED, DESTROYED, DIFFERS };
static const char *const NAMES[] = {"killed", "stopped", "aborted", "destroyed", "differs"};
static const ring_status_t STATUSES[] = {RING_STATUS_PEER_LOST, RING_STATUS_TIMEOUT, RING_STATUS_ABORTED,
                                         RING_STATUS_PEER_LOST, RING_STATUS_MISMATCH};

struct run {
  enum fault fault;
  double struck;
  int go_on; /* the stopped rank may */
  struct witness witnesses[8];
};

struct under_way {
  ring_request_t *request;
  void *buffers[2];
};

/* A request of a collective, or of a message that its peer never sends. */
static struct under_way start(ring_group_t *group, int i) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  size_t count = i < 3 ? COUNT : 100;
  struct under_way it = {NULL, {calloc(count, 4), calloc(count, 4)}};
  if (i % 3 == 0) {
    OK(ring_recv_async(group, it.buffers[0], count, RING_DTYPE_FLOAT32, (rank + (i % 2 ? 1 : size - 1)) % size,
                       &it.request));
  } else {
    OK(ring_all_reduce_async(group, it.buffers[0], it.buffers[1], count, RING_DTYPE_FLOAT32, RING_OP_SUM, &it.request));
  }
  return it;
}

/* The victim makes none of the collectives, so that no other rank's can be done. */
static void body(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  struct witness *witness = &run->witnesses[rank];
  struct under_way list[QUEUED];
  int value = 0, count = 0;
  ring_status_t status = RING_STATUS_OK;
  ring_group_t *group = join(rank, hosts, 1);
  OK(ring_barrier(group));
  OK(ring_group_set_timeout(group, TIMEOUT_MS));
  if (run->fault != STOPPED) OK(ring_group_set_timeout(group, 20000));
  if (rank == VICTIM) {
    /* It has messages alone. */
    for (int i = 0; i < QUEUED; i += 3) list[count++] = start(group, i);
  } else {
    for (int i = 0; i < QUEUED; i++) list[count++] = start(group, i);
  }
  witness_ready(witness);
  witness_enter(witness);
  if (rank == VICTIM) {
    usleep(100000);
    if (run->fault == KILLED) {
      run->struck = seconds();
      raise(SIGKILL);
    }
    while (run->fault == STOPPED && !__atomic_load_n(&run->go_on, __ATOMIC_ACQUIRE)) usleep(1000);
    if (run->fault == ABORTED || run->fault == DIFFERS) run->struck = seconds();
    if (run->fault == ABORTED) OK(ring_group_abort(group));
    if (run->fault == DIFFERS) {
      status = ring_broadcast(group, &value, 1, RING_DTYPE_INT32, 0);
      CHECK(status == RING_STATUS_MISMATCH, "%s", last_error());
    }
    if (run->fault == DESTROYED) {
      run->struck = seconds();
      ring_group_destroy(group);
    }
  }
  /* The last first: each has its status, and its memory is its owner's again. */
  for (int i = count - 1; i >= 0; i--) {
    bool done = false;
    ring_status_t got = ring_request_wait(list[i].request, 30000);
    for (int k = 0; k < 2; k++) {
      memset(list[i].buffers[k], 0xa5, 100 * 4);
      free(list[i].buffers[k]);
    }
    if (rank == VICTIM && run->fault == DESTROYED) {
      CHECK(got == RING_STATUS_ABORTED, "%s", last_error());
      CHECK(strstr(last_error(), "destroyed the group"), "%s", last_error());
    } else {
      if (i == count - 1) witness_failure(witness, group, got);
      CHECK(got == STATUSES[run->fault], "request %d: %s, not %s: %s", i, ring_status_name(got),
            ring_status_name(STATUSES[run->fault]), last_error());
      CHECK(seconds() - witness->failed < 1, "request %d came %.3f s after the last", i, seconds() - witness->failed);
    }
    OK(ring_request_test(list[i].request, &done));
    CHECK(done);
    ring_request_destroy(list[i].request);
  }
  (void)size;
  if (rank != VICTIM || run->fault != DESTROYED) ring_group_destroy(group);
}

int main(int argc, char **argv) {
  CHECK(argc == 3, "arguments: fault, ranks");
  int size = atoi(argv[2]);
  struct run *run = shared(sizeof *run);
  while (strcmp(NAMES[run->fault], argv[1]) != 0) run->fault++;
  char *hosts = make_hosts(size, 1), name[32];
  struct ranks ranks = start_ranks(size, hosts, body, run);
  unsigned victim = 1u << VICTIM;
  await_ready(run->witnesses, size, 0, 20);
  if (run->fault == STOPPED) {
    run->struck = seconds();
    kill(ranks.pids[VICTIM], SIGSTOP);
    await_told(run->witnesses, size, victim, 10);
    __atomic_store_n(&run->go_on, 1, __ATOMIC_RELEASE);
    kill(ranks.pids[VICTIM], SIGCONT);
  }
  await_ranks(&ranks, 40, run->fault == KILLED ? victim : 0);
  snprintf(name, sizeof name, "rank %d", VICTIM);
  double within = run->fault == STOPPED ? TIMEOUT_MS / 1000.0 + HEARS_S : run->fault == ABORTED ? ABORTS_S : HEARS_S;
  struct verdict verdict = {
      .status = STATUSES[run->fault],
      .rank = run->fault == DIFFERS ? -1 : VICTIM,
      .part = name,
      .to = run->struck + within,
  };
  unsigned except = run->fault == ABORTED || run->fault == DIFFERS ? 0 : victim;
  expect_verdict(run->witnesses, size, except, &verdict);
  free(hosts);
  return 0;
}
