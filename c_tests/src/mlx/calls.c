/* What MLX's wire carries, by every way of calling it: how many bytes it takes, requests, threads, empty calls, and the
 * order of messages and collectives. What the numbers are is checked beside MLX, see c_tests/mlx. Arguments: ranks,
 * addresses. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "member.h"

/* MLX's own numbers. */
enum { PART_BYTES = 262144, SHARE_BYTES = 1024 };

static const ring_dtype_t I32 = RING_DTYPE_INT32;

static ring_stats_t of(const ring_group_t *group) {
  ring_stats_t stats = {.struct_size = sizeof stats};
  OK(ring_group_stats(group, &stats));
  return stats;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t most(size_t a, size_t b) { return a > b ? a : b; }
static size_t up(size_t a, size_t b) { return (a + b - 1) / b; }

struct moved {
  size_t sent, received;
};

/* Elements of segment `index` of `length` elements. */
static size_t segment(size_t length, int size, int index) {
  size_t each = up(length, (size_t)size);
  return least(((size_t)index + 1) * each, length) - least((size_t)index * each, length);
}

/* What a rank sends and receives of one part, step by step. */
static void add_part(struct moved *moved, int rank, int size, size_t length, int steps, int d, size_t width) {
  int s = rank, t = (rank + d + size) % size;
  for (int step = 0; step < steps; step++) {
    moved->sent += segment(length, size, s) * width;
    moved->received += segment(length, size, t) * width;
    s = (s + d + size) % size;
    t = (t + d + size) % size;
  }
}

static struct moved of_all_reduce(int rank, int size, int lanes, size_t count, size_t width) {
  struct moved moved = {0};
  int steps = 2 * (size - 1);
  if (count < (size_t)size) {
    add_part(&moved, rank, size, (size_t)size, steps, -1, width);
    return moved;
  }
  size_t parts = most(1, least(2 * (size_t)lanes, count * width / ((size_t)size * PART_BYTES))), each = up(count, parts);
  for (size_t i = 0; i < parts; i++)
    add_part(&moved, rank, size, least((i + 1) * each, count) - least(i * each, count), steps, i % 2 ? -1 : 1, width);
  return moved;
}

/* Makes a call and checks what it counts as. */
#define MOVES(group, operations_, expected, call)                                                          \
  do {                                                                                                     \
    ring_stats_t before_ = of(group);                                                                      \
    OK(call);                                                                                              \
    ring_stats_t after_ = of(group);                                                                       \
    struct moved right_ = (expected);                                                                      \
    CHECK(after_.operations == before_.operations + (operations_), "%d", (int)(after_.operations - before_.operations)); \
    CHECK(after_.bytes_sent - before_.bytes_sent == right_.sent, "sent %zu bytes, not %zu",                \
          (size_t)(after_.bytes_sent - before_.bytes_sent), right_.sent);                                  \
    CHECK(after_.bytes_received - before_.bytes_received == right_.received, "received %zu bytes, not %zu", \
          (size_t)(after_.bytes_received - before_.bytes_received), right_.received);                      \
  } while (0)

static void bytes(ring_group_t *group, int lanes) {
  int rank = ring_group_rank(group), size = ring_group_size(group), right = right_of(rank, size), left = left_of(rank, size);
  size_t n = (size_t)size, edge = n * PART_BYTES / 4;
  const size_t counts[] = {0, 1, n - 1, n, n + 1, 7, 1000, 65537, 2 * edge - 1, 2 * edge, 2 * edge + 1, 4 * edge - 1, 4 * edge, 4 * edge + 1};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    size_t count = counts[i], total = count * 4;
    int32_t *values = calloc(count * n + 1, 4), *others = calloc(count * n + 1, 4);
    CHECK(values && others);
    MOVES(group, 1, of_all_reduce(rank, size, lanes, count, 4), ring_all_reduce(group, values, values, count, I32, RING_OP_SUM));
    struct moved passed = {total * (n - 1), total * (n - 1)}, out = {total, 0}, in = {0, total}, both = {total, total};
    MOVES(group, 1, passed, ring_all_gather(group, values, others, count, I32));
    MOVES(group, 2, both, ring_send_recv(group, values, count, right, others, count, left, I32));
    MOVES(group, 2, both, ring_send_recv(group, values, count, left, others, count, right, I32));
    /* One way alone, from even to odd ranks. */
    if (rank % 2 == 0 && rank + 1 < size) MOVES(group, 1, out, ring_send(group, values, count, I32, right));
    if (rank % 2 == 1) MOVES(group, 1, in, ring_recv(group, values, count, I32, left));
    if (rank % 2 == 0 && rank + 1 < size) MOVES(group, 1, in, ring_send_recv(group, NULL, 0, -1, values, count, right, I32));
    if (rank % 2 == 1) MOVES(group, 1, out, ring_send_recv(group, values, count, left, NULL, 0, -1, I32));
    free(values);
    free(others);
  }
  MOVES(group, 1, of_all_reduce(rank, size, lanes, 1, 4), ring_barrier(group));
  ring_stats_t stats = of(group);
  CHECK(stats.strangers_refused == 0);
}

/* Any byte but 0 is true; results are 0 or 1, and so is what MLX's ranks would get. */
static void bools(ring_group_t *group) {
  static const unsigned char bytes[] = {0, 1, 2, 128, 255, 0, 0, 7};
  static const size_t counts[] = {1, 2, 3, 8, 1000, 3000001};
  int rank = ring_group_rank(group), size = ring_group_size(group);
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
    for (int i = 0; i < 6; i++) {
      ring_op_t op = (ring_op_t)(i % 3);
      size_t count = counts[c];
      unsigned char *in = malloc(count), *out = i < 3 ? malloc(count) : in;
      for (size_t e = 0; e < count; e++) in[e] = bytes[(e + (size_t)rank * 3) % sizeof bytes];
      OK(ring_all_reduce(group, in, out, count, RING_DTYPE_BOOL, op));
      for (size_t e = 0; e < count; e++) {
        int any = 0, all = 1;
        for (int r = 0; r < size; r++) {
          any |= bytes[(e + (size_t)r * 3) % sizeof bytes] != 0;
          all &= bytes[(e + (size_t)r * 3) % sizeof bytes] != 0;
        }
        CHECK(out[e] == (op == RING_OP_MIN ? all : any), "%s: element %zu of %zu is %d", ring_op_name(op), e, count, out[e]);
      }
      if (out != in) free(out);
      free(in);
    }
  }
}

/* Messages and collectives of one group stand in one order, whoever waits for which of them first. Every rank but the
 * first passes on what it got, as a chain that a sum crosses between ranks 0 and 1. */
static void requests(ring_group_t *group) {
  enum { COUNT = 70000, REQUESTS = 6 };
  int rank = ring_group_rank(group), size = ring_group_size(group), right = right_of(rank, size), left = left_of(rank, size);
  int32_t *out = malloc(COUNT * 4), *in = malloc(COUNT * 4), *sum = malloc(COUNT * 4), *all = malloc((size_t)size * COUNT * 4);
  ring_request_t *request[REQUESTS] = {NULL};
  int made = 0;
  for (int i = 0; i < COUNT; i++) out[i] = sum[i] = i + rank;
  if (rank == 0) OK(ring_send_async(group, out, COUNT, I32, right, &request[made++]));
  if (rank == 1) OK(ring_recv_async(group, in, COUNT, I32, left, &request[made++]));
  OK(ring_all_reduce_async(group, sum, sum, COUNT, I32, RING_OP_SUM, &request[made++]));
  if (rank > 1) OK(ring_recv_async(group, in, COUNT, I32, left, &request[made++]));
  if (rank > 0) OK(ring_send_async(group, out, COUNT, I32, right, &request[made++]));
  if (rank == 0) OK(ring_recv_async(group, in, COUNT, I32, left, &request[made++]));
  OK(ring_barrier_async(group, &request[made++]));
  OK(ring_all_gather_async(group, out, all, COUNT, I32, &request[made++]));
  /* A blocking call comes after all of them. */
  expect_sum(group, 1000);
  bool done = false;
  for (int i = 0; i < made; i++) {
    OK(ring_request_test(request[i], &done));
    CHECK(done, "request %d", i);
  }
  for (int i = made - 1; i >= 0; i--) {
    OK(ring_request_wait(request[i], 0));
    ring_request_destroy(request[i]);
  }
  for (int i = 0; i < COUNT; i++) {
    CHECK(sum[i] == i * size + size * (size - 1) / 2, "element %d of the sum is %d", i, sum[i]);
    CHECK(in[i] == i + left, "element %d of the message is %d", i, in[i]);
    for (int r = 0; r < size; r++) CHECK(all[r * COUNT + i] == i + r);
  }
  free(out), free(in), free(sum), free(all);
}

/* Threads take turns; since all call with the same numbers it doesn't matter whose call meets whose. */
enum { THREADS = 4, CALLS = 50 };

static void *calling(void *data) {
  for (int i = 0; i < CALLS; i++) expect_sum(data, 3000);
  return NULL;
}

static void *receiving(void *data) {
  ring_group_t *group = data;
  int left = left_of(ring_group_rank(group), ring_group_size(group));
  for (int32_t i = 0; i < CALLS; i++) {
    int32_t in = -1;
    ring_request_t *request;
    OK(ring_recv_async(group, &in, 1, I32, left, &request));
    OK(ring_request_wait(request, RING_TIMEOUT_INFINITE));
    ring_request_destroy(request);
    CHECK(in == i * 100 + left, "message %d from rank %d is %d", i, left, in);
  }
  return NULL;
}

static void threads(ring_group_t *group) {
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&thread[i], NULL, calling, group) == 0);
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  expect_sum(group, 1);
  /* One thread's messages one way while another has the calling one. */
  if (ring_group_rank(group) == 1) {
    CHECK(pthread_create(&thread[0], NULL, receiving, group) == 0);
    pthread_join(thread[0], NULL);
  }
  for (int32_t i = 0; i < CALLS && ring_group_rank(group) == 0; i++) {
    int32_t out = i * 100;
    OK(ring_send(group, &out, 1, I32, 1));
  }
  expect_sum(group, 1);
}

/* A deadline that nobody meets names the neighbour and what it was waited for. The last test: it fails the group. */
static void deadline(ring_group_t *group) {
  int rank = ring_group_rank(group), size = ring_group_size(group), left = left_of(rank, size);
  char byte, name[32];
  OK(ring_group_set_timeout(group, rank == 0 ? 300 : 20000));
  if (rank == 0) {
    double start = seconds();
    EXPECT(RING_STATUS_TIMEOUT, ring_recv(group, &byte, 1, RING_DTYPE_UINT8, left));
    CHECK(seconds() - start > 0.29 && seconds() - start < 1.3, "%.3f s", seconds() - start);
    snprintf(name, sizeof name, "rank %d", left);
    CHECK(strstr(last_error(), name) && strstr(last_error(), "300 ms"), "%s", last_error());
    ring_failure_t failure = {.struct_size = sizeof failure};
    OK(ring_group_failure(group, &failure));
    CHECK(failure.status == RING_STATUS_TIMEOUT && failure.rank == left && failure.detected_by == 0, "%d", failure.rank);
    EXPECT(RING_STATUS_TIMEOUT, ring_barrier(group));
    EXPECT(RING_STATUS_TIMEOUT, ring_send(group, &byte, 1, RING_DTYPE_UINT8, left));
    /* Refusals come first or not; they don't hide that it has failed. */
    ring_status_t status = ring_broadcast(group, &byte, 1, RING_DTYPE_UINT8, 0);
    CHECK(status == RING_STATUS_TIMEOUT || status == RING_STATUS_UNSUPPORTED, "%s", ring_status_name(status));
    usleep(1500000); /* nobody waits until it destroys its group */
  } else {
    /* Its connections are closed, and so on around the ring. A rank that sent something would have ended the wait. */
    double start = seconds();
    EXPECT(RING_STATUS_PEER_LOST, ring_recv(group, &byte, 1, RING_DTYPE_UINT8, left));
    CHECK(seconds() - start < 1.3, "%.3f s", seconds() - start);
    if (rank == 1) usleep(1500000);
  }
}

static int lanes;

static void body(int rank, int size, const char *hosts, void *data) {
  (void)size, (void)data;
  ring_group_t *group = mlx_join(rank, hosts);
  CHECK(ring_group_rank(group) == rank && ring_group_size(group) == size);
  bytes(group, lanes);
  bools(group);
  requests(group);
  threads(group);
  deadline(group);
  ring_group_destroy(group);
}

int main(int argc, char **argv) {
  CHECK(argc == 3, "arguments: ranks, addresses");
  int size = atoi(argv[1]);
  lanes = atoi(argv[2]);
  char *hosts = make_hosts(size, lanes);
  run_ranks(size, hosts, body, NULL, 60, 0);
  free(hosts);
  return 0;
}
