/* Messages between any two ranks, alone and beside collectives. Argument: ranks. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "reference.h"

static const size_t COUNTS[] = {0, 1, 3, 1021, 65537};

static void check_payload(ring_dtype_t dtype, int from, size_t count, const void *got) {
  void *right = malloc(count * ring_dtype_size(dtype) + 1);
  fill_input(dtype, from, count, right);
  CHECK(memcmp(got, right, count * ring_dtype_size(dtype)) == 0, "%zu elements from rank %d", count, from);
  free(right);
}

static void send_one(ring_group_t *group, size_t count, ring_dtype_t dtype, int to) {
  void *buffer = malloc(count * 8 + 1);
  fill_input(dtype, ring_group_rank(group), count, buffer);
  OK(ring_send(group, buffer, count, dtype, to));
  free(buffer);
}

static void recv_one(ring_group_t *group, size_t count, ring_dtype_t dtype, int from) {
  void *buffer = malloc(count * 8 + 1);
  OK(ring_recv(group, buffer, count, dtype, from));
  check_payload(dtype, from, count, buffer);
  free(buffer);
}

/* Round the ring in both directions, one rank after the other. */
static void relay(ring_group_t *group, size_t count, ring_dtype_t dtype) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  for (int direction = 0; direction < 2; direction++) {
    int to = direction ? left : right, from = direction ? right : left;
    if (rank == 0) {
      send_one(group, count, dtype, to);
      recv_one(group, count, dtype, from);
    } else {
      recv_one(group, count, dtype, from);
      send_one(group, count, dtype, to);
    }
  }
}

/* Everyone at once: only send_recv can do that with more than the connections hold. */
static void shift(ring_group_t *group, size_t count, ring_dtype_t dtype) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  char *out = malloc(count * 8 + 1), *in = malloc(count * 8 + 1);
  fill_input(dtype, rank, count, out);
  OK(ring_send_recv(group, out, count, right, in, count, left, dtype));
  check_payload(dtype, left, count, in);
  OK(ring_send_recv(group, out, count, left, in, count, right, dtype));
  check_payload(dtype, right, count, in);
  free(out);
  free(in);
}

struct waiting {
  ring_group_t *group;
  int from;
};

static void *receiver(void *data) {
  struct waiting *waiting = data;
  recv_one(waiting->group, 1021, RING_DTYPE_INT32, waiting->from);
  return NULL;
}

/* A receive that waits holds up no collective that is called after it. */
static void beside_collectives(ring_group_t *group) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  struct waiting waiting = {group, left};
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, receiver, &waiting) == 0);
  usleep(20000);
  for (int i = 0; i < 20; i++) {
    int one = 1, sum = 0;
    OK(ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
    CHECK(sum == size);
  }
  send_one(group, 1021, RING_DTYPE_INT32, right);
  pthread_join(thread, NULL);
  OK(ring_barrier(group));
}

struct exchange {
  ring_group_t *group;
  int peer;
};

static void *exchanger(void *data) {
  struct exchange *exchange = data;
  int32_t out = 7, in = 0;
  OK(ring_send_recv(exchange->group, &out, 1, exchange->peer, &in, 1, exchange->peer, RING_DTYPE_INT32));
  CHECK(in == 8, "%d", in);
  return NULL;
}

/* A send_recv whose receiving half has to wait for its turn still sends: the peer sends nothing
 * before it has got that. */
static void turns(ring_group_t *group) {
  int rank = ring_group_rank(group), peer = 1 - rank;
  int32_t value = 0;
  if (rank == 0) {
    struct waiting waiting = {group, peer};
    struct exchange exchange = {group, peer};
    pthread_t first, second;
    CHECK(pthread_create(&first, NULL, receiver, &waiting) == 0);
    usleep(50000);
    CHECK(pthread_create(&second, NULL, exchanger, &exchange) == 0);
    pthread_join(second, NULL);
    pthread_join(first, NULL);
  } else {
    OK(ring_recv(group, &value, 1, RING_DTYPE_INT32, peer));
    CHECK(value == 7);
    send_one(group, 1021, RING_DTYPE_INT32, peer);
    value = 8;
    OK(ring_send(group, &value, 1, RING_DTYPE_INT32, peer));
  }
  OK(ring_barrier(group));
}

static void body(int rank, int size, const char *hosts, void *data) {
  (void)data;
  ring_group_t *group = join(rank, hosts, 1);
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  float in[4] = {1, 2, 3, 4}, out[4] = {0};
  /* To oneself, and to nobody. */
  OK(ring_send_recv(group, in, 4, rank, out, 4, rank, RING_DTYPE_FLOAT32));
  CHECK(memcmp(in, out, sizeof in) == 0);
  OK(ring_send_recv(group, in, 4, -1, out, 4, -1, RING_DTYPE_FLOAT32));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_send(group, in, 4, RING_DTYPE_FLOAT32, rank));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_recv(group, out, 4, RING_DTYPE_FLOAT32, size));
  if (size > 1) {
    for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
      relay(group, COUNTS[i], RING_DTYPE_UINT8);
      relay(group, COUNTS[i], RING_DTYPE_FLOAT32);
      shift(group, COUNTS[i], RING_DTYPE_INT64);
    }
    if (size <= 3) {
      relay(group, 1048577, RING_DTYPE_FLOAT32);
      shift(group, 1048577, RING_DTYPE_INT64);
    }
    /* Halves of a send_recv meet plain calls. */
    if (rank == 0) OK(ring_send_recv(group, in, 4, right, NULL, 0, -1, RING_DTYPE_FLOAT32));
    if (rank == 1) OK(ring_send_recv(group, NULL, 0, -1, out, 4, left, RING_DTYPE_FLOAT32));
    /* Many short ones arrive in order. */
    for (int32_t i = 0; i < 300; i++) {
      int32_t sent = i * 100 + rank, got = -1;
      OK(ring_send(group, &sent, 1, RING_DTYPE_INT32, right));
      if (i % 3 == 2) {
        for (int32_t j = i - 2; j <= i; j++) {
          OK(ring_recv(group, &got, 1, RING_DTYPE_INT32, left));
          CHECK(got == j * 100 + left, "%d", got);
        }
      }
    }
    beside_collectives(group);
    if (size == 2) turns(group);
  }
  ring_group_destroy(group);
}

/* A message that isn't what the receiver asked for is told by both numbers, and stored nowhere. */
static void differing(int rank, int size, const char *hosts, void *data) {
  int which = *(int *)data;
  ring_group_t *group = join(rank, hosts, 1);
  float buffer[8] = {9, 9, 9, 9, 9, 9, 9, 9};
  if (rank == 0) {
    (void)size;
    OK(ring_send(group, buffer, 4, RING_DTYPE_FLOAT32, 1));
    CHECK(ring_barrier(group) == RING_STATUS_MISMATCH, "%s", last_error());
  } else if (rank == 1) {
    float untouched[8] = {1, 2, 3, 4, 5, 6, 7, 8}, before[8];
    memcpy(before, untouched, sizeof before);
    EXPECT(RING_STATUS_MISMATCH, which ? ring_recv(group, untouched, 4, RING_DTYPE_INT32, 0)
                                       : ring_recv(group, untouched, 5, RING_DTYPE_FLOAT32, 0));
    CHECK(strstr(last_error(), "message(float32, 4)"), "%s", last_error());
    CHECK(strstr(last_error(), which ? "message(int32, 4)" : "message(float32, 5)"), "%s", last_error());
    CHECK(memcmp(untouched, before, sizeof before) == 0);
    EXPECT(RING_STATUS_MISMATCH, ring_barrier(group));
  }
  ring_group_destroy(group);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2;
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, NULL, 100, 0);
  free(hosts);
  for (int which = 0; which < 2 && size == 2; which++) {
    hosts = make_hosts(size, 1);
    run_ranks(size, hosts, differing, &which, 20, 0);
    free(hosts);
  }
  return 0;
}
