/* What a rank hears of others on MLX's wire, where nobody tells: it sees its own connections alone, names the neighbour
 * at their other end, and closes all of its own, from which the next rank hears. Arguments: kill, fork, stop, abort or
 * leave; ranks. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../faults/witness.h"
#include "member.h"

enum { COUNT = 1 << 20, MAX_DELAY_US = 30000, TIMEOUT_MS = 1500 };
/* As in faults/stop.c: a stopped rank may have been waited for before, and what its host still takes is progress. */
#define EARLY_S 0.3
#define MOVES_ON_S 0.6
#define ABORTS_S 0.1

enum work { ALL_REDUCE, ALL_GATHER, BARRIER, MESSAGE, REQUESTS, IDLE, WORKS };
static const char *names[] = {"all_reduce", "all_gather", "barrier", "", "all_reduce", "barrier"};

struct run {
  enum work work;
  int victim, timeout_ms;
  int forks; /* the victim has a child that lives on */
  double when; /* the fault was */
  int done;    /* it has happened */
  struct witness witnesses[8];
};

static ring_status_t requests(ring_group_t *group, float *data) {
  enum { AT_ONCE = 3 };
  ring_request_t *requests[AT_ONCE] = {NULL};
  ring_status_t first = RING_STATUS_OK;
  for (int i = 0; i < AT_ONCE && first == RING_STATUS_OK; i++)
    first = ring_all_reduce_async(group, data + i * COUNT, data + i * COUNT, COUNT, RING_DTYPE_FLOAT32, RING_OP_MAX, &requests[i]);
  for (int i = 0; i < AT_ONCE; i++) {
    if (!requests[i]) continue;
    ring_status_t status = ring_request_wait(requests[i], RING_TIMEOUT_INFINITE);
    CHECK(first == RING_STATUS_OK || status == RING_STATUS_OK || status == first, "%s after %s", ring_status_name(status), ring_status_name(first));
    if (first == RING_STATUS_OK) first = status;
    ring_request_destroy(requests[i]);
  }
  return first;
}

/* `memory` holds 2 * COUNT floats a rank. */
static ring_status_t do_work(ring_group_t *group, enum work work, float *memory) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  switch (work) {
    case ALL_REDUCE: return ring_all_reduce(group, memory, memory, COUNT, RING_DTYPE_FLOAT32, RING_OP_MAX);
    case ALL_GATHER: return ring_all_gather(group, memory + size * COUNT, memory, COUNT, RING_DTYPE_FLOAT32);
    case MESSAGE:
      return ring_send_recv(group, memory, COUNT, right_of(rank, size), memory + COUNT, COUNT, left_of(rank, size), RING_DTYPE_FLOAT32);
    case REQUESTS: return requests(group, memory);
    default: return ring_barrier(group);
  }
}

static int is_neighbour(int rank, int other, int size) {
  return other == right_of(rank, size) || other == left_of(rank, size);
}

static void work_on(struct run *run, ring_group_t *group, struct witness *witness, float *memory) {
  ring_status_t status;
  do {
    witness_enter(witness);
    status = do_work(group, run->work, memory);
  } while (status == RING_STATUS_OK);
  witness_failure(witness, group, status);
  double start = seconds();
  ring_group_destroy(group);
  CHECK(seconds() - start < 0.5, "destroying a failed group took %.3f s", seconds() - start);
}

static ring_group_t *begin(struct run *run, int rank, int size, const char *hosts, float **memory) {
  signal(SIGPIPE, SIG_DFL);
  ring_config_t config = mlx_config(rank, hosts);
  if (run->timeout_ms) config.timeout_ms = (uint32_t)run->timeout_ms;
  ring_group_t *group = NULL;
  OK(ring_group_create(&config, &group));
  *memory = calloc((size_t)size * 2 * COUNT, sizeof **memory);
  CHECK(*memory);
  OK(ring_barrier(group));
  return group;
}

static void body(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  float *memory;
  ring_group_t *group = begin(run, rank, size, hosts, &memory);
  if (run->forks && rank == run->victim) {
    int left[2];
    CHECK(pipe(left) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      EXPECT(RING_STATUS_INVALID_STATE, ring_barrier(group));
      CHECK(write(left[1], "", 1) == 1);
      sleep(3);
      _exit(0);
    }
    char byte;
    CHECK(read(left[0], &byte, 1) == 1);
  }
  witness_ready(&run->witnesses[rank]);
  if (run->work == IDLE)
    while (!__atomic_load_n(&run->done, __ATOMIC_ACQUIRE)) usleep(1000);
  work_on(run, group, &run->witnesses[rank], memory);
  free(memory);
}

/* Each rank but the victim has failed with one of two statuses and named a neighbour, and at least one of those who
 * could see the fault has the victim in its text, with the first status. One that waits for both neighbours names both in
 * its text and none in its number. */
static void expect_neighbours(const struct run *run, int size, ring_status_t first, ring_status_t other, double from, double to) {
  int named = 0;
  char victim[16];
  snprintf(victim, sizeof victim, "rank %d", run->victim);
  for (int rank = 0; rank < size; rank++) {
    const struct witness *w = &run->witnesses[rank];
    if (rank == run->victim) continue;
    CHECK(w->status == first || w->status == other, "rank %d of %d: %s: %s", rank, size, ring_status_name(w->status), w->text);
    CHECK(w->failed >= from, "rank %d of %d: %.3f s too early: %s", rank, size, from - w->failed, w->text);
    CHECK(w->failed <= to, "rank %d of %d: %.3f s too late: %s", rank, size, w->failed - to, w->text);
    CHECK(w->next_s < NEXT_CALL_S, "rank %d of %d: the next call took %.3f s", rank, size, w->next_s);
    CHECK(strstr(w->text, names[run->work]), "no %s in: %s", names[run->work], w->text);
    CHECK(w->failure.detected_by == rank, "%d: %s", w->failure.detected_by, w->text);
    if (w->failure.rank >= 0) {
      char name[16];
      snprintf(name, sizeof name, "rank %d", w->failure.rank);
      CHECK(is_neighbour(rank, w->failure.rank, size) && strstr(w->text, name), "rank %d of %d names %d: %s", rank, size,
            w->failure.rank, w->text);
    } else {
      CHECK(w->status == RING_STATUS_TIMEOUT && size > 2, "rank %d of %d names nobody: %s", rank, size, w->text);
    }
    if (w->status == first && is_neighbour(rank, run->victim, size) && strstr(w->text, victim)) named++;
    CHECK(size > 2 || w->failure.rank == run->victim, "%s", w->text);
  }
  CHECK(named > 0, "nobody named rank %d of %d: rank %d: %s", run->victim, size, right_of(run->victim, size),
        run->witnesses[right_of(run->victim, size)].text);
}

static void kill_one(int size, int victim, enum work work, int forks) {
  struct run *run = shared(sizeof *run);
  *run = (struct run){.victim = victim, .work = work, .forks = forks};
  uint64_t random = (uint64_t)getpid();
  char *hosts = make_hosts(size, 1 + victim % 2);
  struct ranks ranks = start_ranks(size, hosts, body, run);
  await_ready(run->witnesses, size, 0, 20);
  usleep((useconds_t)(next_random(&random) % MAX_DELAY_US));
  run->when = seconds();
  kill(ranks.pids[victim], SIGKILL);
  if (work == IDLE) usleep(100000); /* nobody looks before the next call */
  __atomic_store_n(&run->done, 1, __ATOMIC_RELEASE);
  await_ranks(&ranks, 30, 1u << victim);
  expect_neighbours(run, size, RING_STATUS_PEER_LOST, RING_STATUS_PEER_LOST, 0, run->when + HEARS_S);
  free(hosts);
}

static void stop_one(int victim, int size, const char *unused, void *data) {
  struct run *run = shared(sizeof *run);
  (void)unused, (void)data;
  *run = (struct run){.victim = victim, .work = (enum work)(victim % REQUESTS), .timeout_ms = TIMEOUT_MS};
  uint64_t random = (uint64_t)getpid();
  char *hosts = make_hosts(size, 1 + victim % 2);
  struct ranks ranks = start_ranks(size, hosts, body, run);
  await_ready(run->witnesses, size, 0, 20);
  usleep((useconds_t)(next_random(&random) % MAX_DELAY_US));
  run->when = seconds();
  kill(ranks.pids[victim], SIGSTOP);
  double timeout = TIMEOUT_MS / 1000.0;
  await_told(run->witnesses, size, 1u << victim, timeout + MOVES_ON_S + 2 * HEARS_S);
  expect_neighbours(run, size, RING_STATUS_TIMEOUT, RING_STATUS_PEER_LOST, run->when - EARLY_S + timeout,
                    run->when + MOVES_ON_S + timeout + HEARS_S);
  for (int rank = 0; rank < size; rank++) {
    const struct witness *w = &run->witnesses[rank];
    double took = w->failed - w->entered;
    if (rank != victim && took > 1) CHECK(w->used_s < CPU_SHARE * took, "rank %d used %.3f s of a core in %.3f s", rank, w->used_s, took);
  }
  /* The accused finds its connections closed. */
  double continued = seconds();
  kill(ranks.pids[victim], SIGCONT);
  await_ranks(&ranks, 10, 0);
  const struct witness *w = &run->witnesses[victim];
  CHECK(w->status == RING_STATUS_PEER_LOST || w->status == RING_STATUS_TIMEOUT, "%s", w->text);
  CHECK(w->failed < continued + HEARS_S, "%.3f s", w->failed - continued);
  free(hosts);
}

/* A thread that aborts or destroys a group whose call is blocked. */
struct aborter {
  struct run *run;
  ring_group_t *group;
  int destroys;
};

static void *abort_later(void *data) {
  struct aborter *aborter = data;
  usleep(30000);
  aborter->run->when = seconds();
  if (aborter->destroys) ring_group_destroy(aborter->group);
  else OK(ring_group_abort(aborter->group));
  CHECK(seconds() - aborter->run->when < ABORTS_S + 0.5 * aborter->destroys, "%.3f s", seconds() - aborter->run->when);
  return NULL;
}

static void aborting(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  struct witness *witness = &run->witnesses[rank];
  float *memory;
  ring_group_t *group = begin(run, rank, size, hosts, &memory);
  witness_ready(witness);
  if (run->work == IDLE) {
    if (rank != run->victim) {
      while (!__atomic_load_n(&run->done, __ATOMIC_ACQUIRE)) usleep(1000);
      work_on(run, group, witness, memory);
      free(memory);
      return;
    }
    /* Nothing runs that would close the connections, and the group stays. */
    OK(ring_group_abort(group));
    run->when = seconds();
    __atomic_store_n(&run->done, 1, __ATOMIC_RELEASE);
    witness_failure(witness, group, ring_barrier(group));
    CHECK(witness->status == RING_STATUS_ABORTED, "%s", witness->text);
    await_told(run->witnesses, size, 0, 5);
    ring_group_destroy(group);
    free(memory);
    return;
  }
  if (rank != run->victim) {
    if (rank == right_of(run->victim, size)) usleep(100000); /* without it nobody gets further */
    work_on(run, group, witness, memory);
    free(memory);
    return;
  }
  pthread_t thread;
  struct aborter aborter = {.run = run, .group = group, .destroys = run->done};
  CHECK(pthread_create(&thread, NULL, abort_later, &aborter) == 0);
  ring_status_t status;
  do status = do_work(group, run->work, memory);
  while (status == RING_STATUS_OK);
  double ended = seconds();
  CHECK(status == RING_STATUS_ABORTED, "%s: %s", ring_status_name(status), last_error());
  CHECK(ended - run->when < ABORTS_S, "%.3f s", ended - run->when);
  if (!aborter.destroys) witness_failure(witness, group, status);
  pthread_join(thread, NULL);
  if (!aborter.destroys) ring_group_destroy(group);
  free(memory);
}

static void abort_one(int size, int victim, enum work work, int destroys) {
  struct run *run = shared(sizeof *run);
  *run = (struct run){.victim = victim, .work = work, .done = destroys};
  char *hosts = make_hosts(size, 1 + victim % 2);
  run_ranks(size, hosts, aborting, run, 20, 0);
  free(hosts);
  /* The latest began to look 0.1 s after the ring stood. */
  expect_neighbours(run, size, RING_STATUS_PEER_LOST, RING_STATUS_PEER_LOST, 0, run->when + 0.2 + HEARS_S);
}

/* A rank sends and leaves at once: all of it comes, and what needs the rank fails afterwards. */
static void leaving(int rank, int size, const char *hosts, void *data) {
  static const size_t counts[] = {1, 1000, COUNT / 4, 16 * COUNT};
  struct run *run = data;
  struct witness *witness = &run->witnesses[rank];
  int right = right_of(run->victim, size), left = left_of(run->victim, size);
  int from_left = run->work == IDLE; /* to which side it sends */
  float *memory;
  ring_group_t *group = begin(run, rank, size, hosts, &memory);
  if (rank == run->victim) {
    int32_t *values = malloc(counts[3] * 4);
    for (size_t i = 0; i < counts[3]; i++) values[i] = (int32_t)i * 3;
    for (int i = 0; i < 4; i++) OK(ring_send(group, values, counts[i], RING_DTYPE_INT32, from_left ? left : right));
    double start = seconds();
    ring_group_destroy(group);
    CHECK(seconds() - start < 1.5, "destroy took %.3f s", seconds() - start);
    run->when = seconds();
    free(values);
  } else {
    if (rank == (from_left ? left : right)) {
      int32_t *values = malloc(counts[3] * 4);
      for (int i = 0; i < 4; i++) {
        usleep(100000);
        memset(values, 0xaa, counts[3] * 4);
        OK(ring_recv(group, values, counts[i], RING_DTYPE_INT32, run->victim));
        for (size_t e = 0; e < counts[i]; e++) CHECK(values[e] == (int32_t)e * 3, "element %zu of %zu: %d", e, counts[i], values[e]);
      }
      free(values);
      /* The end of a connection is no failure before somebody needs it. */
      ring_failure_t failure = {.struct_size = sizeof failure};
      OK(ring_group_failure(group, &failure));
      CHECK(failure.status == RING_STATUS_OK);
    }
    witness_ready(witness);
    while (!__atomic_load_n(&run->done, __ATOMIC_ACQUIRE)) usleep(1000);
    work_on(run, group, witness, memory);
  }
  free(memory);
}

static void leave_one(int size, int victim, int to_left) {
  struct run *run = shared(sizeof *run);
  *run = (struct run){.victim = victim, .work = to_left ? IDLE : BARRIER};
  char *hosts = make_hosts(size, 1 + victim % 2);
  struct ranks ranks = start_ranks(size, hosts, leaving, run);
  await_ready(run->witnesses, size, 1u << victim, 20);
  double next = seconds();
  __atomic_store_n(&run->done, 1, __ATOMIC_RELEASE);
  await_ranks(&ranks, 20, 0);
  expect_neighbours(run, size, RING_STATUS_PEER_LOST, RING_STATUS_PEER_LOST, 0, next + HEARS_S);
  free(hosts);
}

int main(int argc, char **argv) {
  CHECK(argc == 3, "arguments: kill, fork, stop, abort or leave; ranks");
  int size = atoi(argv[2]);
  if (!strcmp(argv[1], "stop")) run_ranks(size, NULL, stop_one, NULL, 60, 0);
  for (int victim = 0; victim < size; victim++) {
    for (enum work work = 0; !strcmp(argv[1], "kill") && work < WORKS; work++) kill_one(size, victim, work, 0);
    for (enum work work = ALL_GATHER; !strcmp(argv[1], "fork") && work <= MESSAGE; work++) kill_one(size, victim, work, 1);
    for (enum work work = 0; !strcmp(argv[1], "abort") && work < WORKS; work++)
      for (int destroys = 0; destroys < 1 + (work != IDLE); destroys++) abort_one(size, victim, work, destroys);
    for (int to_left = 0; !strcmp(argv[1], "leave") && to_left < 2; to_left++) leave_one(size, victim, to_left);
  }
  return 0;
}
