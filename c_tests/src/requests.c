/* Requests: calls that go on beside their callers, in any mixture, waited for in any order. Argument: ranks. */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

enum {
  LARGE = 3 << 18, /* elements: 3 MiB, more than connections hold */
  MOST = 160,      /* requests in flight */
};

static int right_of(const ring_group_t *group) { return (ring_group_rank(group) + 1) % ring_group_size(group); }

static int left_of(const ring_group_t *group) {
  return (ring_group_rank(group) + ring_group_size(group) - 1) % ring_group_size(group);
}

/* What a rank sends or contributes as element i of its operation `number`. */
static uint32_t element(int rank, unsigned number, size_t i) {
  return (uint32_t)(rank + 1) * 2654435761u + number * 40503u + (uint32_t)i * 97u;
}

static uint32_t *filled(int rank, unsigned number, size_t count) {
  uint32_t *array = malloc(count * sizeof *array + 1);
  CHECK(array);
  for (size_t i = 0; i < count; i++) array[i] = element(rank, number, i);
  return array;
}

/* All neighbours send to and receive from both sides at once. */
static void pairs(ring_group_t *group, size_t count) {
  int rank = ring_group_rank(group), right = right_of(group), left = left_of(group);
  uint32_t *out[2] = {filled(rank, 1, count), filled(rank, 2, count)};
  uint32_t *in[2] = {filled(0, 9, count), filled(0, 9, count)};
  ring_request_t *requests[4];
  OK(ring_recv_async(group, in[0], count, RING_DTYPE_UINT32, left, &requests[0]));
  OK(ring_send_async(group, out[0], count, RING_DTYPE_UINT32, right, &requests[1]));
  OK(ring_recv_async(group, in[1], count, RING_DTYPE_UINT32, right, &requests[2]));
  OK(ring_send_async(group, out[1], count, RING_DTYPE_UINT32, left, &requests[3]));
  for (int i = 0; i < 4; i++) OK(ring_request_wait(requests[i], RING_TIMEOUT_INFINITE));
  for (size_t i = 0; i < count; i++) {
    CHECK(in[0][i] == element(left, 1, i), "element %zu from the left", i);
    CHECK(in[1][i] == element(right, 2, i), "element %zu from the right", i);
  }
  for (int i = 0; i < 4; i++) ring_request_destroy(requests[i]);
  for (int i = 0; i < 2; i++) free(out[i]), free(in[i]);
}

enum kind { ALL_REDUCE, ALL_GATHER, BARRIER, ROUND_RIGHT, ROUND_LEFT, BLOCKING, KINDS };

/* One of a mixture's operations: its buffers, and its request or two. */
struct operation {
  enum kind kind;
  unsigned number;
  size_t count;
  uint32_t *send, *recv;
  ring_request_t *requests[2];
  int parts;
};

static void start(ring_group_t *group, struct operation *it) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  int to = it->kind == ROUND_RIGHT ? right_of(group) : left_of(group);
  int from = it->kind == ROUND_RIGHT ? left_of(group) : right_of(group);
  const ring_dtype_t dtype = RING_DTYPE_UINT32;
  it->send = filled(rank, it->number, it->count);
  it->recv = filled(0, 99, it->count * (size_t)size);
  it->parts = 1;
  switch (it->kind) {
    case ALL_REDUCE:
      OK(ring_all_reduce_async(group, it->send, it->recv, it->count, dtype, RING_OP_SUM, &it->requests[0]));
      break;
    case ALL_GATHER:
      OK(ring_all_gather_async(group, it->send, it->recv, it->count, dtype, &it->requests[0]));
      break;
    case BARRIER:
      OK(ring_barrier_async(group, &it->requests[0]));
      break;
    case BLOCKING:
      it->parts = 0;
      OK(ring_all_reduce(group, it->send, it->recv, it->count, dtype, RING_OP_SUM));
      break;
    default:
      it->parts = 2;
      OK(ring_send_async(group, it->send, it->count, dtype, to, &it->requests[0]));
      OK(ring_recv_async(group, it->recv, it->count, dtype, from, &it->requests[1]));
  }
}

static void check(const ring_group_t *group, const struct operation *it) {
  int size = ring_group_size(group), from = it->kind == ROUND_RIGHT ? left_of(group) : right_of(group);
  for (size_t i = 0; i < it->count; i++) {
    uint32_t sum = 0;
    for (int rank = 0; rank < size; rank++) {
      sum += element(rank, it->number, i);
      if (it->kind == ALL_GATHER)
        CHECK(it->recv[(size_t)rank * it->count + i] == element(rank, it->number, i), "operation %u", it->number);
    }
    if (it->kind == ALL_REDUCE || it->kind == BLOCKING)
      CHECK(it->recv[i] == sum, "operation %u, element %zu", it->number, i);
    if (it->kind == ROUND_RIGHT || it->kind == ROUND_LEFT)
      CHECK(it->recv[i] == element(from, it->number, i), "operation %u, element %zu", it->number, i);
  }
}

/* The same operations on all ranks, each of which waits in an order of its own. */
static void mixture(ring_group_t *group, uint64_t seed, int operations, int large) {
  static const size_t counts[] = {0, 1, 7, 1021, 20000, 70001};
  struct operation list[MOST];
  uint64_t ours = seed * 100 + (uint64_t)ring_group_rank(group);
  int in_flight = 0;
  for (int i = 0; i < operations; i++) {
    struct operation *it = &list[i];
    memset(it, 0, sizeof *it);
    /* Blocking ones wait for those before them: few, and late. */
    it->kind = (enum kind)(next_random(&seed) % (i % 40 == 39 ? KINDS : BLOCKING));
    it->number = (unsigned)i + 10;
    it->count = large && i % 10 == 0 ? LARGE : counts[next_random(&seed) % 6];
    if (ring_group_size(group) == 1 && (it->kind == ROUND_RIGHT || it->kind == ROUND_LEFT)) it->kind = ALL_REDUCE;
    start(group, it);
    in_flight += it->parts;
  }
  while (in_flight > 0) {
    struct operation *it = &list[next_random(&ours) % (unsigned)operations];
    if (it->parts == 0) continue;
    ring_request_t *request = it->requests[--it->parts];
    bool done = false;
    if (next_random(&ours) % 4 == 0) OK(ring_request_test(request, &done));
    if (!done) OK(ring_request_wait(request, RING_TIMEOUT_INFINITE));
    OK(ring_request_wait(request, 0));
    ring_request_destroy(request);
    in_flight--;
  }
  for (int i = 0; i < operations; i++) {
    check(group, &list[i]);
    free(list[i].send);
    free(list[i].recv);
  }
}

/* A request that can't be done yet is pending, and the group is well. */
static void pending(ring_group_t *group) {
  int rank = ring_group_rank(group), value = rank, got = -1;
  ring_request_t *in = NULL, *barrier = NULL;
  bool done = true;
  OK(ring_barrier(group));
  OK(ring_recv_async(group, &got, 1, RING_DTYPE_INT32, left_of(group), &in));
  OK(ring_request_test(in, &done));
  CHECK(!done);
  EXPECT(RING_STATUS_PENDING, ring_request_wait(in, 0));
  double before = seconds();
  EXPECT(RING_STATUS_PENDING, ring_request_wait(in, 50));
  CHECK(seconds() - before >= 0.05 && strstr(last_error(), "still running"), "%s", last_error());
  /* No collective waits for it. */
  OK(ring_barrier(group));
  EXPECT(RING_STATUS_PENDING, ring_request_wait(in, 0));
  OK(ring_barrier_async(group, &barrier));
  OK(ring_request_wait(barrier, RING_TIMEOUT_INFINITE));
  OK(ring_send(group, &value, 1, RING_DTYPE_INT32, right_of(group)));
  OK(ring_request_wait(in, 20000));
  CHECK(got == left_of(group), "%d", got);
  for (int i = 0; i < 2; i++) {
    OK(ring_request_test(in, &done));
    CHECK(done);
    OK(ring_request_wait(in, RING_TIMEOUT_INFINITE));
  }
  ring_request_destroy(in);
  ring_request_destroy(barrier);
  /* Destroying one that runs waits for it. */
  OK(ring_barrier(group));
  got = -1;
  OK(ring_recv_async(group, &got, 1, RING_DTYPE_INT32, left_of(group), &in));
  usleep(rank == 0 ? 100000 : 0);
  OK(ring_send(group, &value, 1, RING_DTYPE_INT32, right_of(group)));
  ring_request_destroy(in);
  CHECK(got == left_of(group), "%d", got);
}

struct sum {
  ring_group_t *group;
  int value;
};

static void *reduce(void *data) {
  struct sum *sum = data;
  int one = 1;
  OK(ring_all_reduce(sum->group, &one, &sum->value, 1, RING_DTYPE_INT32, RING_OP_SUM));
  return NULL;
}

/* Calls of several threads wait behind requests, and requests behind calls: rank 0 is late, so that all of the
 * others' are under way at once. */
static void turns(ring_group_t *group) {
  int rank = ring_group_rank(group), size = ring_group_size(group), one = 1, sums[8] = {0};
  struct sum blocked = {group, 0};
  ring_request_t *requests[8];
  pthread_t thread;
  OK(ring_barrier(group));
  if (rank == 0) usleep(50000);
  for (int i = 0; i < 4; i++)
    OK(ring_all_reduce_async(group, &one, &sums[i], 1, RING_DTYPE_INT32, RING_OP_SUM, &requests[i]));
  CHECK(pthread_create(&thread, NULL, reduce, &blocked) == 0);
  usleep(20000);
  for (int i = 4; i < 8; i++)
    OK(ring_all_reduce_async(group, &one, &sums[i], 1, RING_DTYPE_INT32, RING_OP_SUM, &requests[i]));
  for (int i = 7; i >= 0; i--) {
    OK(ring_request_wait(requests[i], RING_TIMEOUT_INFINITE));
    ring_request_destroy(requests[i]);
    CHECK(sums[i] == size, "%d", sums[i]);
  }
  pthread_join(thread, NULL);
  CHECK(blocked.value == size);
}

/* A send_recv whose halves wait behind requests: neither half waits for the other. */
static void behind(ring_group_t *group) {
  int rank = ring_group_rank(group), size = ring_group_size(group), first = -1, second = -1, out[2] = {7, 8};
  ring_request_t *request = NULL;
  if (size != 2) return;
  OK(ring_barrier(group));
  if (rank == 0) {
    OK(ring_recv_async(group, &first, 1, RING_DTYPE_INT32, 1, &request));
    OK(ring_send_recv(group, &out[0], 1, 1, &second, 1, 1, RING_DTYPE_INT32));
    OK(ring_request_wait(request, 0));
    ring_request_destroy(request);
    CHECK(first == 7 && second == 8, "%d, %d", first, second);
  } else {
    /* Nothing is sent before rank 0's half has come. */
    OK(ring_recv(group, &first, 1, RING_DTYPE_INT32, 0));
    CHECK(first == 7);
    for (int i = 0; i < 2; i++) OK(ring_send(group, &out[i], 1, RING_DTYPE_INT32, 0));
  }
}

/* Refused calls give no request; collectives take their number all the same. */
static void refused(ring_group_t *group) {
  int rank = ring_group_rank(group), size = ring_group_size(group), one = 1, sum = 0;
  ring_request_t *none = NULL, *request = NULL;
  ring_failure_t failure = {.struct_size = sizeof failure};
  bool done;
  for (int i = 0; i < 3; i++) {
    OK(ring_barrier_async(group, &request));
    EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_barrier_async(group, NULL));
    EXPECT(RING_STATUS_INVALID_ARGUMENT,
           ring_all_reduce_async(group, NULL, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM, &none));
    EXPECT(RING_STATUS_UNSUPPORTED,
           ring_all_reduce_async(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_MEAN, &none));
    EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_send_async(group, &one, 1, 99, right_of(group), &none));
    EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_send_async(group, &one, 1, RING_DTYPE_INT32, rank, &none));
    EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_recv_async(group, &one, 1, RING_DTYPE_INT32, size, &none));
    EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_recv_async(group, NULL, 1, RING_DTYPE_INT32, right_of(group), &none));
    CHECK(none == NULL);
    OK(ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
    CHECK(sum == size);
    OK(ring_request_wait(request, 0));
    ring_request_destroy(request);
  }
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_barrier_async(NULL, &none));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_request_test(NULL, &done));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_request_wait(NULL, 0));
  ring_request_destroy(NULL);
  /* 15 numbers have been taken. On one rank alone the refusal is everyone's mismatch, in words. */
  if (size == 1) return;
  OK(ring_barrier_async(group, &request));
  OK(ring_request_wait(request, RING_TIMEOUT_INFINITE));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_request_test(request, NULL));
  ring_request_destroy(request);
  /* A failure may reach ranks that are still in the call before it. */
  for (int from = 1; rank == 0 && from < size; from++) OK(ring_recv(group, &sum, 1, RING_DTYPE_INT32, from));
  if (rank > 0) OK(ring_send(group, &one, 1, RING_DTYPE_INT32, 0));
  if (rank == 0) EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_barrier_async(group, NULL));
  request = NULL;
  /* The group may have failed by then, for want of rank 0's. */
  ring_status_t started = ring_barrier_async(group, &request);
  if (started != RING_STATUS_OK) {
    EXPECT(RING_STATUS_MISMATCH, started);
  } else {
    EXPECT(RING_STATUS_MISMATCH, ring_request_wait(request, RING_TIMEOUT_INFINITE));
    EXPECT(RING_STATUS_MISMATCH, ring_request_wait(request, 0));
    OK(ring_request_test(request, &done));
    CHECK(done);
  }
  CHECK(strstr(group_error(group), "RING_STATUS_INVALID_ARGUMENT"), "%s", group_error(group));
  OK(ring_group_failure(group, &failure));
  CHECK(failure.sequence == 17, "call %llu: %s", (unsigned long long)failure.sequence, group_error(group));
  EXPECT(RING_STATUS_MISMATCH, ring_barrier_async(group, &none));
  EXPECT(RING_STATUS_MISMATCH, ring_send_async(group, &one, 1, 99, 99, &none));
  CHECK(none == NULL);
  ring_request_destroy(request);
}

/* One thread a group, from its first request to its end. */
static void threads(int rank, const char *hosts) {
  ring_group_t *group = join(rank, hosts, 1);
  int before, size = ring_group_size(group);
  ring_request_t *request = NULL;
  OK(ring_barrier(group));
  before = entries("/proc/self/task");
  for (int i = 0; i < 3; i++) {
    OK(ring_barrier_async(group, &request));
    OK(ring_request_wait(request, RING_TIMEOUT_INFINITE));
    ring_request_destroy(request);
    CHECK(entries("/proc/self/task") == before + (size > 1), "%d threads, then %d", before, entries("/proc/self/task"));
  }
  ring_group_destroy(group);
  CHECK(entries("/proc/self/task") == before - (size > 1), "%d threads are left", entries("/proc/self/task"));
}

/* Requests outlive their group: those that were done keep their status, others are aborted, and all let go of
 * their buffers. */
static void outlive(int rank, const char *hosts, int *left) {
  ring_group_t *group = join(rank, hosts, 1);
  ring_request_t *finished = NULL, *unfinished[40];
  int size = ring_group_size(group), count = 0;
  bool done = false;
  OK(ring_barrier_async(group, &finished));
  OK(ring_request_wait(finished, RING_TIMEOUT_INFINITE));
  void *buffers[40];
  if (size > 1) {
    /* Nobody sends. */
    while (count < 40) {
      buffers[count] = calloc(LARGE, 4);
      OK(ring_recv_async(group, buffers[count], LARGE, RING_DTYPE_INT32, count % 2 ? right_of(group) : left_of(group),
                         &unfinished[count]));
      count++;
    }
  }
  /* Rank 0 leaves when all have started theirs, and the others follow. */
  __atomic_fetch_add(left, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(left, __ATOMIC_SEQ_CST) < (rank == 0 ? size : size + 1)) usleep(1000);
  ring_group_destroy(group);
  if (rank == 0) __atomic_fetch_add(left, 1, __ATOMIC_SEQ_CST);
  for (int i = 0; i < count; i++) {
    free(buffers[i]);
    OK(ring_request_test(unfinished[i], &done));
    CHECK(done);
    /* To others the reason is that rank 0 has destroyed its group first. */
    ring_status_t status = ring_request_wait(unfinished[i], 0);
    CHECK(status == RING_STATUS_ABORTED || status == RING_STATUS_PEER_LOST, "%s", last_error());
    CHECK(rank > 0 || status == RING_STATUS_ABORTED, "%s", last_error());
    ring_request_destroy(unfinished[i]);
  }
  OK(ring_request_wait(finished, RING_TIMEOUT_INFINITE));
  ring_request_destroy(finished);
}

/* A forked child has no thread that would end a request. */
static void forked(ring_group_t *group) {
  int value = 0, out = 3, status = -1;
  bool done;
  ring_request_t *request = NULL, *another = NULL;
  OK(ring_barrier(group));
  OK(ring_recv_async(group, &value, 1, RING_DTYPE_INT32, left_of(group), &request));
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    EXPECT(RING_STATUS_INVALID_STATE, ring_request_test(request, &done));
    EXPECT(RING_STATUS_INVALID_STATE, ring_request_wait(request, RING_TIMEOUT_INFINITE));
    EXPECT(RING_STATUS_INVALID_STATE, ring_barrier_async(group, &another));
    ring_request_destroy(request);
    ring_group_destroy(group);
    exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0, "the child's status is %x", status);
  OK(ring_send(group, &out, 1, RING_DTYPE_INT32, right_of(group)));
  OK(ring_request_wait(request, RING_TIMEOUT_INFINITE));
  CHECK(value == 3);
  ring_request_destroy(request);
}

static void body(int rank, int size, const char *hosts, void *data) {
  threads(rank, hosts);
  ring_group_t *group = join(rank, hosts, 2);
  mixture(group, 1, MOST, 0);
  if (size > 1) {
    pairs(group, 0);
    pairs(group, 1021);
    pairs(group, LARGE);
    pending(group);
    turns(group);
    behind(group);
    forked(group);
  }
  mixture(group, 2, 60, size <= 3);
  OK(ring_barrier(group));
  ring_group_destroy(group);
  outlive(rank, hosts, data);
  group = join(rank, hosts, 1);
  refused(group);
  ring_group_destroy(group);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2;
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, shared(sizeof(int)), 100, 0);
  free(hosts);
  return 0;
}
