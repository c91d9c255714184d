/* A peer dies, stays away, or is slow. SIGPIPE is at its default throughout. */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness.h"

enum { COUNT = 1 << 20 };

struct death {
  double when; /* on the clock that all processes share */
  int victim;
  int connections;
};

static double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* All loop over a large call; the victim kills itself in the middle of one. */
static void killed(int rank, int size, const char *hosts, void *data) {
  struct death *death = data;
  (void)size;
  signal(SIGPIPE, SIG_DFL);
  ring_group_t *group = join(rank, hosts, death->connections);
  float *array = calloc(COUNT, sizeof *array);
  for (int i = 0;; i++) {
    if (rank == death->victim && i == 5) {
      /* Another thread isn't needed: an alarm falls into the call. */
      struct sigaction action = {.sa_handler = SIG_DFL};
      sigaction(SIGALRM, &action, NULL);
      death->when = seconds() + 0.002;
      ualarm(2000, 0);
    }
    ring_status_t status = ring_all_reduce(group, array, array, COUNT, RING_DTYPE_FLOAT32, RING_OP_SUM);
    if (status == RING_STATUS_OK) continue;
    double now = seconds();
    char name[32];
    snprintf(name, sizeof name, "rank %d", death->victim);
    CHECK(status == RING_STATUS_PEER_LOST, "rank %d: %s: %s", rank, ring_status_name(status), last_error());
    CHECK(strstr(last_error(), name), "rank %d: %s", rank, last_error());
    CHECK(now - death->when < 1, "rank %d heard of it after %f s", rank, now - death->when);
    ring_failure_t failure = {.struct_size = sizeof failure};
    OK(ring_group_failure(group, &failure));
    CHECK(failure.rank == death->victim && failure.status == status, "rank %d blames %d", rank, failure.rank);
    double start = seconds();
    EXPECT(RING_STATUS_PEER_LOST, ring_barrier(group));
    CHECK(seconds() - start < 0.01, "the next call took %f s", seconds() - start);
    ring_group_destroy(group);
    free(array);
    return;
  }
}

/* Killed between calls: the survivors learn it in their next one. */
static void killed_idle(int rank, int size, const char *hosts, void *data) {
  struct death *death = data;
  (void)size;
  ring_group_t *group = join(rank, hosts, 1);
  OK(ring_barrier(group));
  if (rank == death->victim) raise(SIGKILL);
  usleep(100000);
  double start = seconds();
  float value = 1;
  EXPECT(RING_STATUS_PEER_LOST, ring_all_reduce(group, &value, &value, 1, RING_DTYPE_FLOAT32, RING_OP_SUM));
  CHECK(seconds() - start < 1);
  EXPECT(RING_STATUS_PEER_LOST, ring_send(group, &value, 1, RING_DTYPE_FLOAT32, (rank + 1) % size));
  ring_group_destroy(group);
}

/* One rank stays away: the others fail at their timeout, and have slept until then. */
static void absent(int rank, int size, const char *hosts, void *data) {
  (void)data;
  (void)size;
  ring_group_t *group = join(rank, hosts, 1);
  OK(ring_barrier(group));
  if (rank == 0) {
    sleep(3);
    ring_group_destroy(group);
    return;
  }
  OK(ring_group_set_timeout(group, 2000));
  double start = seconds(), used = cpu_seconds();
  ring_status_t status = ring_barrier(group);
  double took = seconds() - start;
  used = cpu_seconds() - used;
  CHECK(status == RING_STATUS_TIMEOUT, "rank %d: %s: %s", rank, ring_status_name(status), last_error());
  CHECK(took > 1.5 && took < 3, "it took %f s", took);
  CHECK(used < 0.05 * took, "waiting used %f s of %f", used, took);
  CHECK(strstr(last_error(), "2000 ms"), "%s", last_error());
  EXPECT(RING_STATUS_TIMEOUT, ring_barrier(group));
  ring_group_destroy(group);
}

/* A rank that is slow, but within the timeout, is waited for. */
static void slow(int rank, int size, const char *hosts, void *data) {
  (void)data;
  ring_group_t *group = join(rank, hosts, 1);
  OK(ring_group_set_timeout(group, 3000));
  float *array = malloc(COUNT * sizeof *array);
  for (int i = 0; i < COUNT; i++) array[i] = (float)rank;
  if (rank == 1) sleep(1);
  OK(ring_all_reduce(group, array, array, COUNT, RING_DTYPE_FLOAT32, RING_OP_SUM));
  for (int i = 0; i < COUNT; i++) CHECK(array[i] == (float)(size * (size - 1) / 2));
  free(array);
  ring_group_destroy(group);
}

int main(void) {
  const int sizes[] = {2, 3, 4, 8};
  struct death *death = shared(sizeof *death);
  for (int i = 0; i < 4; i++) {
    for (int victim = 0; victim < sizes[i]; victim += sizes[i] > 4 ? 3 : 1) {
      death->victim = victim;
      death->connections = 1 + victim % 2 * 2;
      char *hosts = make_hosts(sizes[i], 1);
      run_ranks(sizes[i], hosts, killed, death, 30, 1u << victim);
      free(hosts);
    }
  }
  for (int size = 2; size <= 3; size++) {
    death->victim = size - 1;
    char *hosts = make_hosts(size, 1);
    run_ranks(size, hosts, killed_idle, death, 20, 1u << death->victim);
    free(hosts);
  }
  char *hosts = make_hosts(2, 1);
  run_ranks(2, hosts, absent, NULL, 20, 0);
  free(hosts);
  hosts = make_hosts(4, 1);
  run_ranks(4, hosts, slow, NULL, 20, 0);
  free(hosts);
  return 0;
}
