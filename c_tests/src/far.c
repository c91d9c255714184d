/* Messages between ranks that are no neighbours, whose links are made at first use: all pairs at once, beside
 * collectives; and the end of a rank or a group with such links. Argument: ranks, 4 or more. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

enum { FAR = 2, LARGE = 16 << 20, MAX_PEERS = 8 };

static const size_t COUNTS[] = {0, 1, 3, 1021, 65537, 300001};
enum { KINDS = sizeof COUNTS / sizeof *COUNTS };

static uint32_t element(int from, int to, size_t count, size_t index) {
  return (uint32_t)index * 2654435761u + (uint32_t)(from * 8191 + to * 131) + (uint32_t)count;
}

static void send_one(ring_group_t *group, int to, size_t count) {
  int rank = ring_group_rank(group);
  uint32_t *array = malloc(count * sizeof *array + 1);
  for (size_t i = 0; i < count; i++) array[i] = element(rank, to, count, i);
  OK(ring_send(group, array, count, RING_DTYPE_UINT32, to));
  free(array);
}

static void recv_one(ring_group_t *group, int from, size_t count) {
  int rank = ring_group_rank(group);
  uint32_t *array = malloc(count * sizeof *array + 1);
  OK(ring_recv(group, array, count, RING_DTYPE_UINT32, from));
  for (size_t i = 0; i < count; i++)
    CHECK(array[i] == element(from, rank, count, i), "element %zu of %zu from rank %d is %u", i, count, from, array[i]);
  free(array);
}

struct way {
  ring_group_t *group;
  int peer, sends;
};

static void *on_way(void *data) {
  struct way *way = data;
  for (int i = 0; i < KINDS; i++) (way->sends ? send_one : recv_one)(way->group, way->peer, COUNTS[i]);
  return NULL;
}

static void check_sum(ring_group_t *group) {
  int one = 1, sum = 0;
  OK(ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(sum == ring_group_size(group));
}

/* Each way on a thread of its own, in both directions at once, while the ranks also reduce. */
static void all_at_once(ring_group_t *group) {
  int rank = ring_group_rank(group), size = ring_group_size(group), threads = 0;
  pthread_t thread[2 * MAX_PEERS];
  struct way ways[2 * MAX_PEERS];
  for (int peer = 0; peer < size; peer++) {
    for (int sends = 0; sends < 2 && peer != rank; sends++) {
      ways[threads] = (struct way){group, peer, sends};
      CHECK(pthread_create(&thread[threads], NULL, on_way, &ways[threads]) == 0);
      threads++;
    }
  }
  for (int i = 0; i < 20; i++) check_sum(group);
  while (threads > 0) pthread_join(thread[--threads], NULL);
}

static int sockets(void) {
  int count = 0, type;
  socklen_t len = sizeof type;
  for (int fd = 3; fd < 256; fd++) count += getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
  return count;
}

/* All pairs; then a forked child has none of the links, and destroy leaves nothing. */
static void pairs(int rank, int size, const char *hosts, void *data) {
  ring_config_t config = make_config(rank, hosts, *(int *)data);
  if (*(int *)data > 1) {
    config.secret = "a secret of this test";
    config.secret_len = strlen(config.secret);
  }
  ring_group_t *group = NULL;
  int before = entries("/proc/self/fd"), status = -1;
  OK(ring_group_create(&config, &group));
  for (int round = 0; round < 3; round++) all_at_once(group);
  pid_t child = fork();
  if (child == 0) {
    int value;
    EXPECT(RING_STATUS_INVALID_STATE, ring_recv(group, &value, 1, RING_DTYPE_INT32, (rank + FAR) % size));
    CHECK(sockets() == 0, "%d sockets are open in the child", sockets());
    exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0, "the child's status is %x", status);
  all_at_once(group);
  OK(ring_barrier(group));
  ring_group_destroy(group);
  CHECK(entries("/proc/self/fd") == before, "%d descriptors, then %d", before, entries("/proc/self/fd"));
}

/* What was sent before the end arrives after it, also when it was the first on its link. */
static void sent_before(int rank, int size, const char *hosts, void *data) {
  size_t count = *(size_t *)data;
  ring_group_t *group = join(rank, hosts, 1);
  (void)size;
  if (rank == 0) send_one(group, FAR, count);
  if (rank == FAR) {
    usleep(500000);
    recv_one(group, 0, count);
  }
  ring_group_destroy(group);
}

struct blocked {
  ring_group_t *group;
  ring_status_t status;
  double returned;
  char text[512];
};

/* A message that never comes. */
static void *blocked_recv(void *data) {
  struct blocked *blocked = data;
  int value;
  blocked->status = ring_recv(blocked->group, &value, 1, RING_DTYPE_INT32, FAR);
  blocked->returned = seconds();
  snprintf(blocked->text, sizeof blocked->text, "%s", last_error());
  return NULL;
}

/* A receive from a rank that leaves without having sent, waiting or later: it is told at once. */
static void left(int rank, int size, const char *hosts, void *data) {
  int waits = *(int *)data;
  ring_group_t *group = join(rank, hosts, 1);
  struct blocked blocked = {.group = group};
  pthread_t thread;
  (void)size;
  OK(ring_barrier(group));
  if (rank == 0 && waits) CHECK(pthread_create(&thread, NULL, blocked_recv, &blocked) == 0);
  usleep(200000);
  if (rank == FAR) {
    ring_group_destroy(group);
    return;
  }
  double start = seconds();
  if (rank == 0) {
    usleep(200000);
    if (waits) pthread_join(thread, NULL);
    else blocked_recv(&blocked);
    CHECK(blocked.status == RING_STATUS_PEER_LOST, "%s: %s", ring_status_name(blocked.status), blocked.text);
    CHECK(strstr(blocked.text, "message(int32, 1), call 1: rank 2"), "%s", blocked.text);
    CHECK(strstr(blocked.text, "has destroyed its group after call 1"), "%s", blocked.text);
    CHECK(blocked.returned - start < 0.5);
  } else {
    usleep(400000);
  }
  EXPECT(RING_STATUS_PEER_LOST, ring_barrier(group));
  ring_group_destroy(group);
}

/* A receive whose link is not there yet ends with an abort, and with its own rank's destroy. */
static void ended(int rank, int size, const char *hosts, void *data) {
  int by_destroy = *(int *)data;
  ring_group_t *group = join(rank, hosts, 1);
  struct blocked blocked = {.group = group};
  pthread_t thread;
  (void)size;
  OK(ring_barrier(group));
  if (rank == 0) {
    int before = entries("/proc/self/task");
    CHECK(pthread_create(&thread, NULL, blocked_recv, &blocked) == 0);
    usleep(100000);
    double start = seconds();
    if (by_destroy) ring_group_destroy(group);
    else OK(ring_group_abort(group));
    pthread_join(thread, NULL);
    CHECK(blocked.status == RING_STATUS_ABORTED, "%s: %s", ring_status_name(blocked.status), blocked.text);
    CHECK(blocked.returned - start < 0.3, "%.3f s", blocked.returned - start);
    if (!by_destroy) ring_group_destroy(group);
    CHECK(entries("/proc/self/task") < before + 1);
    return;
  }
  if (by_destroy) usleep(300000);
  else EXPECT(RING_STATUS_ABORTED, ring_barrier(group));
  ring_group_destroy(group);
}

/* A differing message is told by both numbers, names both ranks, and is stored nowhere. */
static void differing(int rank, int size, const char *hosts, void *data) {
  ring_group_t *group = join(rank, hosts, 1);
  uint32_t value[2] = {7, 7};
  (void)size;
  (void)data;
  if (rank == 0) OK(ring_send(group, value, 1, RING_DTYPE_UINT32, FAR));
  if (rank == FAR) {
    EXPECT(RING_STATUS_MISMATCH, ring_recv(group, value, 2, RING_DTYPE_UINT32, 0));
    CHECK(!strcmp(last_error(), "rank 0 called message(uint32, 1) as call 1; rank 2 called message(uint32, 2) as call 1"),
          "%s", last_error());
    CHECK(value[0] == 7 && value[1] == 7);
  }
  EXPECT(RING_STATUS_MISMATCH, ring_barrier(group));
  ring_group_destroy(group);
}

/* A rank without a free descriptor can't make a link: it says so, and the others hear that it is its host. */
static void exhausted(int rank, int size, const char *hosts, void *data) {
  int sends = *(int *)data;
  ring_group_t *group = join(rank, hosts, 1);
  uint32_t value = 0;
  (void)size;
  OK(ring_barrier(group));
  if (rank == 0) {
    struct rlimit room, none;
    int lowest_free = dup(0), before = entries("/proc/self/fd");
    CHECK(getrlimit(RLIMIT_NOFILE, &room) == 0);
    none = room;
    none.rlim_cur = (rlim_t)lowest_free;
    close(lowest_free);
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    ring_status_t status = sends ? ring_send(group, &value, 1, RING_DTYPE_UINT32, FAR)
                                 : ring_recv(group, &value, 1, RING_DTYPE_UINT32, FAR);
    CHECK(setrlimit(RLIMIT_NOFILE, &room) == 0);
    CHECK(status == RING_STATUS_SYSTEM && strstr(last_error(), "Too many open files"), "%s: %s",
          ring_status_name(status), last_error());
    CHECK(entries("/proc/self/fd") < before, "%d descriptors, then %d", before, entries("/proc/self/fd"));
  }
  EXPECT(RING_STATUS_SYSTEM, ring_barrier(group));
  ring_failure_t failure = {.struct_size = sizeof failure};
  OK(ring_group_failure(group, &failure));
  CHECK(failure.rank == 0, "%d: %s", failure.rank, group_error(group));
  ring_group_destroy(group);
}

static void run(int size, rank_body *body, void *data, int limit_s) {
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, data, limit_s, 0);
  free(hosts);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 4, cases[] = {0, 1}, connections[] = {1, 3};
  size_t counts[] = {1, LARGE};
  for (int i = 0; i < 2; i++) run(size, pairs, &connections[i], 60);
  for (int i = 0; i < 2; i++) run(size, sent_before, &counts[i], 20);
  for (int i = 0; i < 2; i++) run(size, left, &cases[i], 20);
  for (int i = 0; i < 2; i++) run(size, ended, &cases[i], 20);
  for (int i = 0; i < 2; i++) run(size, exhausted, &cases[i], 20);
  run(size, differing, NULL, 20);
  return 0;
}
