/* Groups split from a group: who is in them, that they live and fail apart, and that a split which one rank can't
 * carry out is none on any. Argument: ranks. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

enum { VICTIM = 2, KEPT = 8 };

static void check_sum(ring_group_t *group, int value, int sum) {
  int got = 0;
  OK(ring_all_reduce(group, &value, &got, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(got == sum, "%d, not %d", got, sum);
}

/* The first group's ranks add up. */
static void check_all(ring_group_t *group) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  check_sum(group, rank, size * (size - 1) / 2);
}

static ring_group_t *split(ring_group_t *group, int color, int key) {
  ring_group_t *child = (ring_group_t *)group;
  OK(ring_group_split(group, color, key, &child));
  CHECK((child == NULL) == (color < 0) && child != group);
  return child;
}

/* Colors and keys of all kinds, whose groups live side by side and end in another order. */
static void kinds(int rank, int size, const char *hosts, void *data) {
  int descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  (void)data;
  ring_group_t *group = join(rank, hosts, 1 + size % 3), *kept[KEPT] = {0};
  int made = 0;
  /* Reversed. */
  kept[made++] = split(group, 0, -rank);
  CHECK(ring_group_rank(kept[0]) == size - 1 - rank && ring_group_size(kept[0]) == size);
  /* Odd and even, with equal keys. */
  kept[made++] = split(group, rank % 2, 7);
  CHECK(ring_group_rank(kept[1]) == rank / 2 && ring_group_size(kept[1]) == (size + 1 - rank % 2) / 2);
  int evens = (size + 1) / 2, odds = size / 2;
  check_sum(kept[1], rank, rank % 2 ? odds * odds : evens * (evens - 1));
  /* Each alone; of these and of nobody's there is no connection. */
  int before = entries("/proc/self/fd");
  kept[made++] = split(group, rank, 0);
  CHECK(ring_group_rank(kept[2]) == 0 && ring_group_size(kept[2]) == 1);
  check_sum(kept[2], rank, rank);
  CHECK(split(group, -1, 0) == NULL);
  CHECK(entries("/proc/self/fd") - before <= 4, "%d more descriptors", entries("/proc/self/fd") - before);
  /* All but the last. */
  kept[made++] = split(group, rank == size - 1 ? -5 : 3, rank);
  if (kept[3]) check_all(kept[3]);
  /* Of a child. */
  kept[made++] = split(kept[0], 0, rank);
  check_all(kept[4]);
  /* One watcher for all of them. */
  CHECK(entries("/proc/self/task") <= threads + 1, "%d threads", entries("/proc/self/task") - threads);
  ring_group_t *first = group;
  for (int i = 0; i < made; i++) {
    int next = (i * 3 + 1) % made;
    if (i == 2) ring_group_destroy(first), first = NULL;
    if (first) check_all(first);
    ring_group_destroy(kept[next]);
    kept[next] = NULL;
    for (int j = 0; j < made; j++)
      if (kept[j] && j != 1 && j != 2) check_all(kept[j]);
  }
  ring_group_destroy(first);
  CHECK(entries("/proc/self/fd") == descriptors, "%d descriptors, not %d", entries("/proc/self/fd"), descriptors);
  CHECK(entries("/proc/self/task") == threads, "%d threads are left", entries("/proc/self/task") - threads);
}

/* A split takes its turn behind requests, and a group that was split off has requests and direct links, too. */
static void behind_requests(int rank, int size, const char *hosts, void *data) {
  enum { COUNT = 300001, BLOCK = 20011 };
  ring_group_t *group = join(rank, hosts, 1), *child;
  size_t blocks = (size_t)size * BLOCK;
  uint32_t *in = malloc(COUNT * sizeof *in), *out = calloc(COUNT, sizeof *out);
  uint32_t *send = malloc(blocks * sizeof *send), *recv = calloc(blocks, sizeof *recv);
  ring_request_t *first = NULL, *second = NULL;
  (void)data;
  for (size_t i = 0; i < COUNT; i++) in[i] = (uint32_t)(i * 7 + (size_t)rank);
  OK(ring_all_reduce_async(group, in, out, COUNT, RING_DTYPE_UINT32, RING_OP_MAX, &first));
  child = split(group, 0, -rank);
  bool done = false;
  OK(ring_request_test(first, &done));
  CHECK(done, "the split has overtaken a request");
  int own = ring_group_rank(child);
  for (size_t i = 0; i < blocks; i++) send[i] = (uint32_t)(i * 5 + (size_t)own * 1000003);
  OK(ring_all_to_all_async(child, send, recv, BLOCK, RING_DTYPE_UINT32, &second));
  OK(ring_request_wait(second, RING_TIMEOUT_INFINITE));
  for (size_t i = 0; i < blocks; i++) {
    size_t from = i / BLOCK, right = ((size_t)own * BLOCK + i % BLOCK) * 5 + from * 1000003;
    CHECK(recv[i] == (uint32_t)right, "element %zu is %u", i, recv[i]);
  }
  for (size_t i = 0; i < COUNT; i++) CHECK(out[i] == (uint32_t)(i * 7 + (size_t)size - 1));
  ring_request_destroy(first);
  ring_request_destroy(second);
  ring_group_destroy(group);
  check_all(child);
  ring_group_destroy(child);
  free(in);
  free(out);
  free(send);
  free(recv);
}

/* One rank is refused: the rest wait for it, and its next collective tells. */
static void refused(int rank, int size, const char *hosts, void *data) {
  ring_group_t *group = join(rank, hosts, 1), *child = group;
  (void)size;
  (void)data;
  if (rank == VICTIM) {
    EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_group_split(group, 0, 0, NULL));
    CHECK(strstr(last_error(), "split, call 1"), "%s", last_error());
    EXPECT(RING_STATUS_MISMATCH, ring_barrier(group));
  } else {
    EXPECT(RING_STATUS_MISMATCH, ring_group_split(group, 0, 0, &child));
    CHECK(child == group, "written on a failure");
  }
  CHECK(strstr(last_error(), "called split() as call 1") &&
            strstr(last_error(), "called barrier() as call 2 after it refused its call 1"), "%s", last_error());
  ring_group_destroy(group);
}

/* One rank splits, the others reduce. */
static void differing(int rank, int size, const char *hosts, void *data) {
  ring_group_t *group = join(rank, hosts, 1), *child = NULL;
  int in = 1, out = -1;
  (void)size;
  (void)data;
  OK(ring_barrier(group));
  EXPECT(RING_STATUS_MISMATCH, rank == VICTIM ? ring_group_split(group, 0, 0, &child)
                                              : ring_all_reduce(group, &in, &out, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(strstr(last_error(), "called split() as call 2") && strstr(last_error(), "all_reduce(int32, sum, 1)"), "%s",
        last_error());
  CHECK(!child && out == -1);
  ring_group_destroy(group);
}

/* An abort of a group harms no other, whichever it is. */
static void aborted(int rank, int size, const char *hosts, void *data) {
  int of_parent = *(int *)data;
  ring_group_t *group = join(rank, hosts, 1);
  ring_group_t *children[2] = {split(group, 0, -rank), split(group, 0, rank)};
  ring_group_t *hit = of_parent ? group : children[0], *other = of_parent ? children[0] : group;
  (void)size;
  if (rank == VICTIM) {
    usleep(50000);
    OK(ring_group_abort(hit));
  }
  EXPECT(RING_STATUS_ABORTED, ring_barrier(hit));
  ring_failure_t failure = {.struct_size = sizeof failure};
  OK(ring_group_failure(hit, &failure));
  CHECK(failure.rank == (of_parent ? VICTIM : size - 1 - VICTIM), "%d: %s", failure.rank, group_error(hit));
  for (int i = 0; i < 10; i++) check_all(other), check_all(children[1]);
  ring_group_t *late = split(other, rank % 2, 0);
  OK(ring_barrier(late));
  EXPECT(RING_STATUS_ABORTED, ring_group_split(hit, 0, 0, &late));
  ring_group_destroy(hit);
  check_all(other);
  OK(ring_barrier(late));
  ring_group_destroy(other);
  OK(ring_barrier(late));
  ring_group_destroy(late);
  ring_group_destroy(children[1]);
}

struct run {
  int ready;
  double killed;
};

/* A rank dies: every group that it was in says so, by its rank there; the others go on. */
static void killed(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  ring_group_t *group = join(rank, hosts, 1);
  ring_group_t *half = split(group, rank % 2, -rank), *pair = split(half, 0, rank);
  OK(ring_barrier(pair));
  __atomic_fetch_add(&run->ready, 1, __ATOMIC_RELEASE);
  if (rank == VICTIM) pause();
  if (rank % 2 == VICTIM % 2) {
    int members = (size + 1) / 2;
    EXPECT(RING_STATUS_PEER_LOST, ring_barrier(half));
    CHECK(seconds() - run->killed < 1, "%.3f s", seconds() - run->killed);
    ring_failure_t failure = {.struct_size = sizeof failure};
    OK(ring_group_failure(half, &failure));
    CHECK(failure.rank == members - 1 - VICTIM / 2, "%d: %s", failure.rank, group_error(half));
    char name[64];
    snprintf(name, sizeof name, "rank %d (127.0.0.1:", failure.rank);
    CHECK(strstr(group_error(half), name), "%s", group_error(half));
    EXPECT(RING_STATUS_PEER_LOST, ring_barrier(pair));
    EXPECT(RING_STATUS_PEER_LOST, ring_barrier(group));
  } else {
    EXPECT(RING_STATUS_PEER_LOST, ring_barrier(group));
    ring_failure_t failure = {.struct_size = sizeof failure};
    OK(ring_group_failure(group, &failure));
    CHECK(failure.rank == VICTIM, "%d: %s", failure.rank, group_error(group));
    for (int i = 0; i < 20; i++) check_all(half), check_all(pair);
    ring_group_t *more = split(pair, 0, 0);
    check_all(more);
    ring_group_destroy(more);
  }
  ring_group_destroy(pair);
  ring_group_destroy(half);
  ring_group_destroy(group);
}

/* A rank that is stopped holds a split up, and is named; one that has died ends it. */
static void held_up(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  ring_config_t config = make_config(rank, hosts, 1);
  ring_group_t *group = NULL, *child = NULL;
  config.timeout_ms = 2000;
  (void)size;
  OK(ring_group_create(&config, &group));
  OK(ring_barrier(group));
  __atomic_fetch_add(&run->ready, 1, __ATOMIC_RELEASE);
  if (rank == VICTIM) pause();
  double start = seconds();
  EXPECT(RING_STATUS_TIMEOUT, ring_group_split(group, 0, 0, &child));
  CHECK(seconds() - start < 3.5, "%.3f s", seconds() - start);
  CHECK(strstr(last_error(), "split(), call 2: ") && strstr(last_error(), "rank 2"), "%s", last_error());
  ring_group_destroy(group);
}

static void run_struck(int size, rank_body *body, int signal) {
  struct run *run = shared(sizeof *run);
  char *hosts = make_hosts(size, 1);
  struct ranks ranks = start_ranks(size, hosts, body, run);
  double end = seconds() + 20;
  while (__atomic_load_n(&run->ready, __ATOMIC_ACQUIRE) < size) {
    CHECK(seconds() < end);
    usleep(500);
  }
  run->killed = seconds();
  kill(ranks.pids[VICTIM], signal);
  if (signal == SIGSTOP) {
    sleep(4);
    kill(ranks.pids[VICTIM], SIGKILL);
  }
  await_ranks(&ranks, 20, 1u << VICTIM);
  free(hosts);
}

static void *split_blocked(void *group) {
  ring_group_t *child = NULL;
  EXPECT(RING_STATUS_ABORTED, ring_group_split(group, 0, 0, &child));
  return NULL;
}

/* Destroy ends a split that waits for the others. */
static void ended(int rank, int size, const char *hosts, void *data) {
  ring_group_t *group = join(rank, hosts, 1);
  (void)size;
  (void)data;
  OK(ring_barrier(group));
  if (rank == 0) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, split_blocked, group) == 0);
    usleep(100000);
    double start = seconds();
    ring_group_destroy(group);
    pthread_join(thread, NULL);
    CHECK(seconds() - start < 1.5, "%.3f s", seconds() - start);
    return;
  }
  usleep(300000);
  /* Rank 0's goodbye is there by then; where it isn't, what rank 0 had called is. */
  ring_status_t status = ring_barrier(group);
  CHECK(status == RING_STATUS_PEER_LOST || status == RING_STATUS_MISMATCH, "%s", last_error());
  ring_group_destroy(group);
}

static void run(int size, rank_body *body, void *data) {
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, data, 30, 0);
  free(hosts);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 4, cases[] = {0, 1};
  for (int i = 0; i < 3; i++) run(size, kinds, NULL);
  run(size, behind_requests, NULL);
  if (size <= VICTIM) return 0;
  run(size, refused, NULL);
  run(size, differing, NULL);
  for (int i = 0; i < 2; i++) run(size, aborted, &cases[i]);
  run(size, ended, NULL);
  run_struck(size, held_up, SIGSTOP);
  if (size >= 4) run_struck(size, killed, SIGKILL);
  return 0;
}
