/* What a group counts. Argument: ranks. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"

enum { COUNT = 50000, HEADER = 48, VISITS = 5 };

static ring_stats_t of(const ring_group_t *group) {
  ring_stats_t stats = {.struct_size = sizeof stats};
  OK(ring_group_stats(group, &stats));
  CHECK(stats.struct_size == sizeof stats);
  return stats;
}

/* Somebody who is no rank knocks at a rank's port. */
static void knock(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  char byte;
  address.sin_port = htons((uint16_t)port);
  int visitor = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(connect(visitor, (struct sockaddr *)&address, sizeof address) == 0);
  CHECK(send(visitor, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL) == 18);
  while (read(visitor, &byte, 1) > 0) continue;
  close(visitor);
}

static void sizes(ring_group_t *group) {
  struct {
    ring_stats_t stats;
    uint64_t beyond;
  } room;
  memset(&room, 0x55, sizeof room);
  room.stats.struct_size = sizeof room;
  OK(ring_group_stats(group, &room.stats));
  CHECK(room.stats.operations < 1000 && room.beyond == 0);
  memset(&room, 0x55, sizeof room);
  room.stats.struct_size = 16;
  OK(ring_group_stats(group, &room.stats));
  CHECK(room.stats.operations < 1000 && room.stats.bytes_sent == 0x5555555555555555u);
  room.stats.struct_size = 7;
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_group_stats(group, &room.stats));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_group_stats(group, NULL));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_group_stats(NULL, &room.stats));
}

static void alone(ring_group_t *group) {
  int one = 1, sum;
  ring_request_t *request = NULL;
  OK(ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  OK(ring_barrier_async(group, &request));
  ring_request_destroy(request);
  OK(ring_send_recv(group, &one, 1, 0, &sum, 1, 0, RING_DTYPE_INT32));
  ring_stats_t stats = of(group);
  CHECK(stats.operations == 4 && stats.bytes_sent == 0 && stats.bytes_received == 0);
}

static void body(int rank, int size, const char *hosts, void *data) {
  ring_group_t *group = join(rank, hosts, 1);
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  ring_request_t *requests[2];
  ring_status_t status;
  int *ready = data;
  sizes(group);
  if (size == 1) {
    alone(group);
    ring_group_destroy(group);
    return;
  }
  char *array = malloc(COUNT * (size_t)size), *part = malloc(COUNT);
  ring_stats_t before = of(group), after;
  CHECK(before.operations == 0 && before.bytes_sent == 0 && before.wait_left_ns == 0 && before.strangers_refused == 0);

  /* In an all-gather each rank passes on all parts but one, with a header to each neighbour process. */
  memset(part, rank, COUNT);
  OK(ring_all_gather(group, part, array, COUNT, RING_DTYPE_UINT8));
  after = of(group);
  CHECK(after.operations == 1);
  uint64_t parts = COUNT * (uint64_t)(size - 1);
  CHECK(after.bytes_sent >= parts && after.bytes_sent <= parts + 2 * HEADER, "%llu bytes sent",
        (unsigned long long)after.bytes_sent);
  CHECK(after.bytes_received >= parts && after.bytes_received <= parts + 2 * HEADER);
  CHECK(after.busy_ns > 0);

  /* The first large all-to-all makes links, about which ranks send each other some bytes. */
  uint64_t sent[3] = {after.bytes_sent};
  for (int i = 1; i < 3; i++) {
    OK(ring_all_to_all(group, part, array, COUNT / (size_t)size, RING_DTYPE_UINT8));
    sent[i] = of(group).bytes_sent;
  }
  CHECK(size < 4 || sent[1] - sent[0] > sent[2] - sent[1]);

  /* Messages and requests. */
  OK(ring_barrier(group));
  before = of(group);
  OK(ring_send_recv(group, part, COUNT, right, array, COUNT, left, RING_DTYPE_UINT8));
  OK(ring_send_async(group, part, COUNT, RING_DTYPE_UINT8, left, &requests[0]));
  OK(ring_recv_async(group, array, COUNT, RING_DTYPE_UINT8, right, &requests[1]));
  for (int i = 0; i < 2; i++) {
    OK(ring_request_wait(requests[i], RING_TIMEOUT_INFINITE));
    ring_request_destroy(requests[i]);
  }
  after = of(group);
  CHECK(after.operations == before.operations + 4);
  CHECK(after.bytes_sent - before.bytes_sent == 2 * (COUNT + HEADER), "%llu bytes sent",
        (unsigned long long)(after.bytes_sent - before.bytes_sent));
  CHECK(after.bytes_received - before.bytes_received == 2 * (COUNT + HEADER));

  /* What waits for one neighbour counts for that one, whether or not a thread is blocked in it. */
  for (int by_request = 0; by_request < 2; by_request++) {
    OK(ring_barrier(group));
    before = of(group);
    if (rank == 0) {
      usleep(300000);
      OK(ring_send(group, part, 1, RING_DTYPE_UINT8, 1));
    }
    if (rank == 1 && by_request) {
      OK(ring_recv_async(group, part, 1, RING_DTYPE_UINT8, 0, &requests[0]));
      OK(ring_request_wait(requests[0], RING_TIMEOUT_INFINITE));
      ring_request_destroy(requests[0]);
    } else if (rank == 1) {
      OK(ring_recv(group, part, 1, RING_DTYPE_UINT8, 0));
    }
    if (rank == 1) {
      after = of(group);
      uint64_t waited = after.wait_left_ns - before.wait_left_ns, busy = after.busy_ns - before.busy_ns;
      CHECK(waited > 100000000 && busy >= waited, "waited for %llu of %llu ns", (unsigned long long)waited,
            (unsigned long long)busy);
      CHECK(after.wait_right_ns == before.wait_right_ns);
    }
  }

  /* A refused call is none, and a failed one neither. */
  OK(ring_barrier(group));
  before = of(group);
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_all_gather(group, NULL, array, COUNT, RING_DTYPE_UINT8));
  CHECK(of(group).operations == before.operations && of(group).bytes_sent == before.bytes_sent);
  OK(ring_barrier(group));

  /* Strangers. */
  if (rank == 0) {
    for (int i = 0; i < VISITS; i++) knock(atoi(strchr(hosts, ':') + 1));
    for (int i = 0; i < 1000 && of(group).strangers_refused < VISITS; i++) usleep(1000);
    CHECK(of(group).strangers_refused == VISITS, "%llu", (unsigned long long)of(group).strangers_refused);
  }
  CHECK(rank == 0 || of(group).strangers_refused == 0);
  __atomic_fetch_add(ready, 1, __ATOMIC_SEQ_CST);
  while (rank == 0 && __atomic_load_n(ready, __ATOMIC_SEQ_CST) < size) usleep(1000);
  if (rank == 0) OK(ring_group_abort(group));
  while ((status = ring_barrier(group)) == RING_STATUS_OK) continue;
  EXPECT(RING_STATUS_ABORTED, status);
  CHECK(of(group).operations > 0);
  ring_group_destroy(group);
  free(array);
  free(part);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2;
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, shared(sizeof(int)), 50, 0);
  free(hosts);
  return 0;
}
