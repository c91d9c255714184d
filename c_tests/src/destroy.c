/* The end of a group: nothing is lost, nothing is left, nobody hangs. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "reference.h"

enum { LARGE = 16 << 20 }; /* elements: 64 MiB */

/* What was sent before the end arrives after it. */
static void sent_before(int rank, int size, const char *hosts, void *data) {
  (void)size;
  (void)data;
  ring_group_t *group = join(rank, hosts, 1);
  uint32_t *array = malloc(LARGE * sizeof *array);
  if (rank == 0) {
    for (uint32_t i = 0; i < LARGE; i++) array[i] = i * 2654435761u;
    OK(ring_send(group, array, LARGE, RING_DTYPE_UINT32, 1));
    ring_group_destroy(group);
  } else {
    sleep(1);
    OK(ring_recv(group, array, LARGE, RING_DTYPE_UINT32, 0));
    for (uint32_t i = 0; i < LARGE; i++) CHECK(array[i] == i * 2654435761u, "element %u", i);
    ring_group_destroy(group);
  }
  free(array);
}

/* The last results arrive, too, though some ranks have gone already. */
static void result_before(int rank, int size, const char *hosts, void *data) {
  (void)data;
  ring_group_t *group = join(rank, hosts, 1);
  int one = 1, sum = 0;
  if (rank == 1) usleep(50000);
  OK(ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(sum == size);
  ring_group_destroy(group);
}

/* A peer that still needs a rank that has left is told so. */
static void left_early(int rank, int size, const char *hosts, void *data) {
  (void)data;
  ring_group_t *group = join(rank, hosts, 1);
  OK(ring_barrier(group));
  OK(ring_barrier(group));
  if (rank != 0) {
    double start = seconds();
    ring_status_t status = ring_barrier(group);
    CHECK(status == RING_STATUS_PEER_LOST, "rank %d of %d: %s", rank, size, ring_status_name(status));
    CHECK(strstr(last_error(), "rank 0") && strstr(last_error(), "has destroyed its group after call 2"), "%s",
          last_error());
    CHECK(seconds() - start < 1);
  }
  ring_group_destroy(group);
}

struct blocked {
  ring_group_t *group;
  ring_status_t collective, message;
};

static void *in_collective(void *data) {
  struct blocked *blocked = data;
  blocked->collective = ring_barrier(blocked->group);
  return NULL;
}

static void *in_message(void *data) {
  struct blocked *blocked = data;
  int value;
  blocked->message = ring_recv(blocked->group, &value, 1, RING_DTYPE_INT32, 1);
  return NULL;
}

/* Threads that are blocked in calls come back first. */
static void while_blocked(int rank, int size, const char *hosts, void *data) {
  (void)size;
  (void)data;
  ring_group_t *group = join(rank, hosts, 1);
  OK(ring_barrier(group));
  if (rank == 0) {
    struct blocked blocked = {group, RING_STATUS_OK, RING_STATUS_OK};
    pthread_t collective, message;
    CHECK(pthread_create(&collective, NULL, in_collective, &blocked) == 0);
    CHECK(pthread_create(&message, NULL, in_message, &blocked) == 0);
    usleep(100000);
    ring_group_destroy(group);
    pthread_join(collective, NULL);
    pthread_join(message, NULL);
    CHECK(blocked.collective == RING_STATUS_ABORTED, "%s", ring_status_name(blocked.collective));
    CHECK(blocked.message == RING_STATUS_ABORTED, "%s", ring_status_name(blocked.message));
  } else {
    usleep(300000);
    /* Rank 0 had entered the second barrier, so that it may succeed here; the third can't. */
    ring_status_t second = ring_barrier(group);
    CHECK(second == RING_STATUS_OK || second == RING_STATUS_PEER_LOST, "%s", last_error());
    EXPECT(RING_STATUS_PEER_LOST, ring_barrier(group));
    ring_group_destroy(group);
  }
}

/* Many groups on the same ports leave no descriptor and no thread. */
static void again(int rank, int size, const char *hosts, void *data) {
  (void)data;
  int descriptors = 0, threads = 0;
  for (int i = 0; i < 200; i++) {
    ring_group_t *group = join(rank, hosts, 1 + i % 2);
    int one = 1, sum = 0;
    OK(ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
    CHECK(sum == size);
    ring_group_destroy(group);
    if (i == 10) descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  }
  CHECK(entries("/proc/self/fd") == descriptors, "%d descriptors, then %d", descriptors, entries("/proc/self/fd"));
  CHECK(entries("/proc/self/task") == threads, "%d threads, then %d", threads, entries("/proc/self/task"));
}

static void run(int size, rank_body *body, int limit_s) {
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, NULL, limit_s, 0);
  free(hosts);
}

int main(void) {
  run(2, sent_before, 20);
  run(2, result_before, 20);
  run(5, result_before, 20);
  run(2, left_early, 20);
  run(3, left_early, 20);
  run(2, while_blocked, 20);
  run(3, while_blocked, 20);
  run(3, again, 60);
  return 0;
}
