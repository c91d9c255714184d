/* Faults at random moments of random calls, for as many rounds as FAULTS_ROUNDS says: after each one every
 * rank has returned in time with the right bits or with an error that blames the same rank, the next call
 * fails at once, and nothing is left behind in those that survive.
 *
 *   stress                    all faults, rings of 2 to 8, 1 to 4 connections
 *   stress FAULT RANKS ROUNDS one fault in a ring of one size, in all_reduces of 4 MiB
 *   stress FAULT RANKS each   likewise, a round in each other kind of call
 *
 * FAULTS_SEED repeats a round: each prints its own when it fails. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "witness.h"
#include "work.h"

enum {
  MAX_SIZE = 8,
  MAX_CONNECTIONS = 4,
  MAX_DELAY_US = 20000, /* from the first call to the fault: several calls of most kinds */
  MAX_TURNS = 10,
  STOP_TIMEOUT_MS = 1500,
  FIRST_OF_EACH = 4, /* of the works: those before have tests of their own */
  ROUNDS = 30, /* when nobody says how many */
  LARGE = 1 << 20,
  LIMIT_S = 60,
};

enum fault { KILL, STOP, MISMATCH, DESTROY, ABORT, FAULTS };
static const char *const NAMES[FAULTS] = {"kill", "stop", "mismatch", "destroy", "abort"};

struct round {
  uint64_t seed;
  enum fault fault;
  int size, connections, culprit;
  const struct work *work;
  size_t count;
  unsigned delay_us; /* of a fault that comes from outside the calls */
  uint32_t turns;    /* before one that comes from inside */
  double struck;
  struct witness witnesses[MAX_SIZE];
};

/* ---- a rank ---- */

struct aborter {
  struct round *round;
  ring_group_t *group;
};

static void *abort_later(void *data) {
  struct aborter *aborter = data;
  usleep(aborter->round->delay_us);
  aborter->round->struck = seconds();
  OK(ring_group_abort(aborter->group));
  return NULL;
}

/* Another call than the others'. It fails, or, where it needs nobody to be complete, the next one does. */
static ring_status_t odd_call(const struct work *work, struct desk *desk) {
  ring_status_t status;
  if (work->kind == BARRIER) return ring_all_gather(desk->group, desk->send, desk->recv, 1, RING_DTYPE_UINT8);
  desk->count -= (size_t)desk->size;
  status = do_work(work, desk);
  if (status == RING_STATUS_OK && work->kind != KINDS && !is_strict(work->kind)) status = next_call(desk->group);
  return status;
}

/* A thread that has been joined may be listed for a moment. */
static void check_entries(const char *folder, int before) {
  for (int tries = 0; entries(folder) != before && tries < 200; tries++) usleep(1000);
  CHECK(entries(folder) == before, "%s: %d entries, then %d", folder, before, entries(folder));
}

static void run_calls(struct round *round, int rank, ring_group_t *group) {
  struct witness *witness = &round->witnesses[rank];
  struct desk desk = open_desk(group, round->count);
  uint64_t random = round->seed ^ (uint64_t)rank << 32;
  const int inside = rank == round->culprit && (round->fault == MISMATCH || round->fault == DESTROY);
  ring_status_t status;
  do {
    /* Now and then a rank computes. */
    if (next_random(&random) % 4 == 0) usleep((useconds_t)(next_random(&random) % 2000));
    if (inside && desk.turn == round->turns) {
      round->struck = seconds();
      if (round->fault == DESTROY) break;
      witness_enter(witness);
      status = odd_call(round->work, &desk);
      CHECK(status != RING_STATUS_OK, "a call that no other rank makes succeeded");
    } else {
      witness_enter(witness);
      status = do_work(round->work, &desk);
    }
  } while (status == RING_STATUS_OK);
  if (!(inside && round->fault == DESTROY)) witness_failure(witness, group, status);
  close_desk(&desk);
}

static void body(int rank, int size, const char *hosts, void *data) {
  struct round *round = data;
  (void)size;
  int descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  ring_group_t *group = join(rank, hosts, round->connections);
  struct aborter aborter = {round, group};
  pthread_t thread;
  const int aborts = round->fault == ABORT && rank == round->culprit;
  if (round->fault == STOP) OK(ring_group_set_timeout(group, STOP_TIMEOUT_MS));
  OK(ring_barrier(group));
  witness_ready(&round->witnesses[rank]);
  /* An abort ends also a barrier that another rank is still in. */
  if (aborts) await_ready(round->witnesses, round->size, 0, LIMIT_S);
  if (aborts) CHECK(pthread_create(&thread, NULL, abort_later, &aborter) == 0);
  run_calls(round, rank, group);
  if (aborts) pthread_join(thread, NULL);
  ring_group_destroy(group);
  check_entries("/proc/self/fd", descriptors);
  check_entries("/proc/self/task", threads);
}

/* ---- a round ---- */

/* What to do, from the seed alone. */
static void choose(struct round *round, uint64_t seed) {
  const size_t counts[] = {MAX_SIZE * 2, 1000, 5000, 1 << 16, LARGE};
  memset(round, 0, sizeof *round);
  round->seed = seed;
  round->fault = (enum fault)(next_random(&seed) % FAULTS);
  round->size = 2 + (int)(next_random(&seed) % (MAX_SIZE - 1));
  round->work = &WORKS[next_random(&seed) % WORK_COUNT];
  round->count = counts[next_random(&seed) % 5];
  round->connections = 1 + (int)(next_random(&seed) % MAX_CONNECTIONS);
  round->culprit = (int)(next_random(&seed) % (uint64_t)round->size);
  round->delay_us = (unsigned)(next_random(&seed) % MAX_DELAY_US);
  round->turns = (uint32_t)(next_random(&seed) % MAX_TURNS);
}

static ring_status_t status_of(enum fault fault) {
  const ring_status_t statuses[FAULTS] = {RING_STATUS_PEER_LOST, RING_STATUS_TIMEOUT, RING_STATUS_MISMATCH,
                                          RING_STATUS_PEER_LOST, RING_STATUS_ABORTED};
  return statuses[fault];
}

static void run_round(struct round *round) {
  const int size = round->size, culprit = round->culprit;
  /* The dead, the stopped and the departed see nothing, or see it later. */
  const unsigned except = round->fault == MISMATCH || round->fault == ABORT ? 0 : 1u << culprit;
  char *hosts = make_hosts(size, 1), name[32];
  struct ranks ranks = start_ranks(size, hosts, body, round);
  struct witness *witnesses = round->witnesses;
  await_ready(witnesses, size, 0, LIMIT_S);
  if (round->fault == KILL || round->fault == STOP) {
    usleep(round->delay_us);
    round->struck = seconds();
    kill(ranks.pids[culprit], round->fault == KILL ? SIGKILL : SIGSTOP);
  }
  double timeout = round->fault == STOP ? STOP_TIMEOUT_MS / 1000.0 : 0;
  snprintf(name, sizeof name, "rank %d", culprit);
  if (round->fault == STOP) {
    await_told(witnesses, size, except, timeout + 2 * HEARS_S);
  } else {
    await_ranks(&ranks, LIMIT_S, round->fault == KILL ? except : 0);
  }
  struct verdict verdict = {
      .status = status_of(round->fault),
      .rank = round->fault == MISMATCH ? -1 : culprit,
      .part = name,
      .to = round->struck + timeout + HEARS_S,
  };
  expect_verdict(witnesses, size, except, &verdict);
  if (round->fault == STOP) {
    double continued = seconds();
    kill(ranks.pids[culprit], SIGCONT);
    await_ranks(&ranks, LIMIT_S, 0);
    verdict.to = continued + HEARS_S;
    expect_verdict(witnesses, size, ~except, &verdict);
  }
  free(hosts);
  release_ports();
}

/* ---- all of them ---- */

static const struct round *current; /* NULL between rounds */
static pid_t parent;

static void tell_round(void) {
  if (!current || getpid() != parent) return;
  fprintf(stderr,
          "FAULTS_SEED=%llu FAULTS_ROUNDS=1 repeats this round: %s of rank %d of %d in %s of %zu elements, %d "
          "connections, after %u turns or %u us\n",
          (unsigned long long)current->seed, NAMES[current->fault], current->culprit, current->size,
          current->work->name, current->count, current->connections, current->turns, current->delay_us);
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print_distribution(const char *what, double *values, int count) {
  if (count == 0) return;
  qsort(values, (size_t)count, sizeof *values, by_size);
  printf("%s: median %.3f ms, 90th percentile %.3f ms, max %.3f ms, in %d rounds\n", what, values[count / 2] * 1e3,
         values[count * 9 / 10] * 1e3, values[count - 1] * 1e3, count);
}

int main(int argc, char **argv) {
  const char *told_seed = getenv("FAULTS_SEED"), *told_rounds = getenv("FAULTS_ROUNDS");
  uint64_t seed = told_seed ? strtoull(told_seed, NULL, 10) : (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
  const int each = argc == 4 && !strcmp(argv[3], "each");
  int rounds = argc == 4 ? atoi(argv[3]) : told_rounds ? atoi(told_rounds) : ROUNDS, fixed = -1, done[FAULTS] = {0};
  if (each) rounds = WORK_COUNT - FIRST_OF_EACH;
  if (told_rounds && argc == 4 && told_seed) rounds = atoi(told_rounds); /* repeats one of a kind */
  for (int fault = 0; argc == 4 && fault < FAULTS; fault++)
    if (!strcmp(argv[1], NAMES[fault])) fixed = fault;
  int size = argc == 4 ? atoi(argv[2]) : 0;
  CHECK(argc == 1 || (argc == 4 && fixed >= 0 && size >= 2 && size <= MAX_SIZE),
        "arguments: none, or fault, ranks, rounds");
  CHECK(rounds > 0, "no rounds");
  double *heard_s = malloc((size_t)rounds * sizeof *heard_s), *next_s = malloc((size_t)rounds * sizeof *next_s);
  CHECK(heard_s && next_s);
  int kills = 0;
  parent = getpid();
  atexit(tell_round);
  printf("FAULTS_SEED=%llu, %d rounds\n", (unsigned long long)seed, rounds);
  struct round *round = shared(sizeof *round);
  for (int i = 0; i < rounds; i++) {
    choose(round, seed + (uint64_t)i);
    if (fixed >= 0) {
      round->fault = (enum fault)fixed;
      round->culprit %= size;
      round->size = size;
      round->work = &WORKS[each ? FIRST_OF_EACH + round->seed % (WORK_COUNT - FIRST_OF_EACH) : 0];
      round->count = LARGE;
    }
    current = round;
    run_round(round);
    current = NULL;
    done[round->fault]++;
    double last = 0, slowest = 0;
    for (int rank = 0; rank < round->size; rank++) {
      const struct witness *w = &round->witnesses[rank];
      if (!w->told) continue;
      if (w->failed > last) last = w->failed;
      if (w->next_s > slowest) slowest = w->next_s;
    }
    if (round->fault == KILL) heard_s[kills++] = last - round->struck;
    next_s[i] = slowest;
    if ((i + 1) % 100 == 0) {
      printf("%d rounds:", i + 1);
      for (int fault = 0; fault < FAULTS; fault++) printf(" %s %d", NAMES[fault], done[fault]);
      printf("\n");
      fflush(stdout);
    }
  }
  print_distribution("from SIGKILL to the error on the last rank", heard_s, kills);
  print_distribution("the slowest next call after an error", next_s, rounds);
  return 0;
}
