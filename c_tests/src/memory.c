/* Every function of ring.h, and every status that a program can bring about, in a small ring: for
 * valgrind, which slows a call down a hundred times, so that nothing here is timed. Argument: ranks. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"

/* Elements: nothing, a flood, a ring of one part, a ring of two, also in a ring of two ranks and on all lanes, each
 * awkward. */
static const size_t COUNTS[] = {0, 1, 5, 1021, 9001, 40009, 300007};
/* A rank whose neighbours have failed already waits for others as long as it may connect. */
enum { MOST = 300007, PATIENCE_MS = 120000, ALONE_MS = 15000 };
static const char SECRET[] = "a secret of enough bytes";

/* Statuses that some rank has been given, as bits. */
static unsigned *given;

#define GET(status, call)                                                          \
  do {                                                                             \
    EXPECT(status, call);                                                          \
    __atomic_fetch_or(given, 1u << (status), __ATOMIC_SEQ_CST);                    \
  } while (0)

static ring_config_t patient(int rank, const char *hosts, int connections) {
  ring_config_t config = make_config(rank, hosts, connections);
  config.job_id = "memory";
  config.connect_timeout_ms = config.timeout_ms = PATIENCE_MS;
  return config;
}

/* With a secret where the connections are several. */
static ring_group_t *enter(int rank, const char *hosts, int connections) {
  ring_config_t config = patient(rank, hosts, connections);
  ring_group_t *group = NULL;
  if (connections > 1) config.secret = SECRET, config.secret_len = sizeof SECRET;
  GET(RING_STATUS_OK, ring_group_create(&config, &group));
  return group;
}

static void texts(void) {
  CHECK(ring_version() == RING_VERSION && ring_abi_version() == RING_ABI_VERSION && ring_version_string());
  CHECK(ring_get_api_v1()->all_reduce && ring_get_api_v1()->abi_version == RING_ABI_VERSION);
  for (int i = -1; i < 20; i++) {
    CHECK(ring_dtype_name(i) && ring_op_name(i) && ring_status_name(i) && ring_status_string(i));
    CHECK((ring_dtype_size(i) != 0) == (i >= 0 && i <= RING_DTYPE_COMPLEX64));
  }
}

static void all_collectives(int rank, int size, const char *hosts, void *data) {
  int connections = *(int *)data;
  ring_group_t *group = enter(rank, hosts, connections);
  CHECK(ring_group_rank(group) == rank && ring_group_size(group) == size);
  for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
    /* Each buffer ends where its elements do. */
    size_t count = COUNTS[i], whole = count * (size_t)size;
    int32_t *send = malloc(count * sizeof *send), *recv = malloc(count * sizeof *recv);
    int32_t *gathered = malloc(whole * sizeof *gathered);
    for (size_t k = 0; k < count; k++) send[k] = (int32_t)k * (rank + 1);
    GET(RING_STATUS_OK, ring_all_reduce(group, send, recv, count, RING_DTYPE_INT32, RING_OP_SUM));
    for (size_t k = 0; k < count; k++) CHECK(recv[k] == (int32_t)k * size * (size + 1) / 2, "element %zu", k);
    OK(ring_all_gather(group, send, gathered, count, RING_DTYPE_INT32));
    for (size_t k = 0; k < whole; k++) CHECK(gathered[k] == (int32_t)(k % count) * (int32_t)(k / count + 1));
    OK(ring_all_reduce(group, send, send, count, RING_DTYPE_INT32, RING_OP_MAX));
    for (size_t k = 0; k < count; k++) CHECK(send[k] == (int32_t)k * size, "element %zu", k);
    free(send);
    free(recv);
    free(gathered);
  }
  for (ring_dtype_t dtype = 0; dtype <= RING_DTYPE_COMPLEX64; dtype++) {
    for (ring_op_t op = 0; op <= RING_OP_BXOR; op++) {
      size_t bytes = 37 * ring_dtype_size(dtype);
      unsigned char *array = malloc(bytes);
      memset(array, rank + 1, bytes);
      ring_status_t status = ring_all_reduce(group, array, array, 37, dtype, op);
      if (status != RING_STATUS_OK) GET(RING_STATUS_UNSUPPORTED, status);
      free(array);
    }
  }
  OK(ring_barrier(group));
  ring_group_destroy(group);
}

/* Groups of its ranks, and of theirs. */
static void all_splits(int rank, int size, const char *hosts, void *data) {
  ring_group_t *group = enter(rank, hosts, 2), *half = NULL, *one = NULL, *none = group;
  int sum = 0;
  (void)data;
  OK(ring_group_split(group, rank % 2, -rank, &half));
  OK(ring_group_split(half, ring_group_rank(half), 0, &one));
  OK(ring_group_split(group, -1, 0, &none));
  CHECK(none == NULL && ring_group_size(one) == 1);
  ring_group_destroy(group);
  OK(ring_all_reduce(half, &rank, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(size > 3 || sum == (rank % 2 ? 1 : size == 3 ? 2 : 0), "%d", sum);
  GET(RING_STATUS_INVALID_ARGUMENT, ring_group_split(half, 0, 0, NULL));
  ring_group_destroy(one);
  ring_group_destroy(half);
}

/* Every kind once a count, and with displacements. */
static void every_kind(int rank, int size, const char *hosts, void *data) {
  ring_group_t *group = enter(rank, hosts, *(int *)data);
  const size_t counts[] = {0, 1, 1021, 40009};
  for (int i = 0; i < 2 * KINDS * 4; i++) {
    struct call call = plain_call((enum kind)(i % KINDS), size, counts[i / KINDS % 4]);
    call.gaps = i >= KINDS * 4;
    if (call.gaps && call.kind != ALL_GATHER_V && call.kind != ALL_TO_ALL_V) continue;
    const size_t sent = send_elements(&call, size, rank) * element_bytes(&call);
    const size_t received = recv_elements(&call, size, rank) * element_bytes(&call);
    /* What isn't received where there are no gaps would be told as uninitialised. */
    unsigned char *send = calloc(sent, 1), *recv = malloc(received);
    size_t zeros = 0;
    if (call.gaps || (call.kind == BROADCAST && rank == call.root)) memset(recv, 0, received);
    OK(make_call(group, &call, send, recv));
    for (size_t k = 0; k < received; k++) zeros += recv[k] == 0;
    CHECK(zeros == received, "%s of %zu", kind_name(call.kind), call.count);
    free(send);
    free(recv);
  }
  ring_group_destroy(group);
}

static void all_messages(int rank, int size, const char *hosts, void *data) {
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  ring_group_t *group = enter(rank, hosts, 2);
  (void)data;
  for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
    size_t count = COUNTS[i];
    int32_t *send = malloc(count * sizeof *send), *recv = malloc(count * sizeof *recv);
    for (size_t k = 0; k < count; k++) send[k] = (int32_t)k + rank;
    OK(ring_send_recv(group, send, count, right, recv, count, left, RING_DTYPE_INT32));
    for (size_t k = 0; k < count; k++) CHECK(recv[k] == (int32_t)k + left);
    OK(ring_send_recv(group, send, count, rank, recv, count, rank, RING_DTYPE_INT32));
    /* Rank 0 receives last: not all send at once. */
    if (size > 1 && rank > 0) OK(ring_recv(group, recv, count, RING_DTYPE_INT32, left));
    if (size > 1) OK(ring_send(group, send, count, RING_DTYPE_INT32, right));
    if (size > 1 && rank == 0) OK(ring_recv(group, recv, count, RING_DTYPE_INT32, left));
    free(send);
    free(recv);
  }
  ring_group_destroy(group);
}

/* A request that has ended, whose buffers go with it. */
static void finish(ring_status_t status, ring_request_t *request, void *first, void *second) {
  bool done = false;
  GET(status, ring_request_wait(request, RING_TIMEOUT_INFINITE));
  free(first);
  free(second);
  OK(ring_request_test(request, &done));
  CHECK(done);
  ring_request_destroy(request);
}

/* Each request is waited for after all have been started, and its buffers are freed at once. */
static void all_requests(int rank, int size, const char *hosts, void *data) {
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  ring_group_t *group = enter(rank, hosts, 1);
  ring_stats_t stats = {.struct_size = sizeof stats};
  (void)data;
  for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
    size_t count = COUNTS[i], whole = count * (size_t)size;
    const ring_dtype_t dtype = RING_DTYPE_INT32;
    ring_request_t *requests[8];
    void *send[8], *recv[8];
    int started = 0;
    for (int k = 0; k < 8; k++) send[k] = calloc(whole, 4), recv[k] = calloc(whole, 4);
    OK(ring_all_reduce_async(group, send[0], recv[0], count, dtype, RING_OP_SUM, &requests[started++]));
    OK(ring_all_gather_async(group, send[1], recv[1], count, dtype, &requests[started++]));
    OK(ring_reduce_scatter_async(group, send[2], recv[2], count, dtype, RING_OP_SUM, &requests[started++]));
    OK(ring_broadcast_async(group, send[3], count, dtype, 0, &requests[started++]));
    OK(ring_all_to_all_async(group, send[4], recv[4], count, dtype, &requests[started++]));
    OK(ring_barrier_async(group, &requests[started++]));
    if (size > 1) OK(ring_send_async(group, send[6], count, dtype, right, &requests[started++]));
    if (size > 1) OK(ring_recv_async(group, recv[7], count, dtype, left, &requests[started++]));
    for (int k = 7; k >= started; k--) free(send[k]), free(recv[k]);
    while (started-- > 0) finish(RING_STATUS_OK, requests[started], send[started], recv[started]);
  }
  OK(ring_group_stats(group, &stats));
  CHECK(stats.operations > 0);
  ring_group_destroy(group);
}

/* Requests that meet the end of their group, by an abort or by destroy, in the middle of what they do: the library
 * touches their buffers no more. */
static void ended_requests(int rank, int size, const char *hosts, void *data) {
  enum { REQUESTS = 12 };
  int by_abort = *(int *)data, right = (rank + 1) % size, left = (rank + size - 1) % size;
  ring_group_t *group = enter(rank, hosts, 1);
  ring_request_t *requests[REQUESTS];
  void *send[REQUESTS], *recv[REQUESTS];
  OK(ring_barrier(group));
  /* Rank 0 starts no collective; the others' are under way, and so are messages both ways. */
  for (int i = 0; i < REQUESTS; i++) {
    send[i] = calloc(MOST, 4), recv[i] = calloc(MOST, 4);
    if (i % 4 == 0) OK(ring_send_async(group, send[i], MOST, RING_DTYPE_INT32, i % 8 ? right : left, &requests[i]));
    if (i % 4 == 1) OK(ring_recv_async(group, recv[i], MOST, RING_DTYPE_INT32, i % 8 == 1 ? left : right, &requests[i]));
    if (i % 4 > 1 && rank > 0)
      OK(ring_all_reduce_async(group, send[i], recv[i], MOST, RING_DTYPE_INT32, RING_OP_SUM, &requests[i]));
    if (i % 4 > 1 && rank == 0)
      OK(ring_recv_async(group, recv[i], MOST, RING_DTYPE_INT32, i % 2 ? left : right, &requests[i]));
  }
  sleep(rank == 0 ? 1 : 0);
  GET(RING_STATUS_PENDING, ring_request_wait(requests[REQUESTS - 1], 0));
  if (rank == 0 && by_abort) OK(ring_group_abort(group));
  if (rank == 0 && !by_abort) ring_group_destroy(group);
  for (int i = REQUESTS - 1; i >= 0; i--) {
    ring_status_t status = ring_request_wait(requests[i], RING_TIMEOUT_INFINITE);
    CHECK(status == RING_STATUS_OK || status == RING_STATUS_ABORTED || (!by_abort && status == RING_STATUS_PEER_LOST),
          "%s", last_error());
    /* Only messages may have ended well: no collective had rank 0. */
    CHECK(status != RING_STATUS_OK || i % 4 < 2 || rank == 0);
    free(recv[i]);
    free(send[i]);
    ring_request_destroy(requests[i]);
  }
  if (rank > 0 || by_abort) ring_group_destroy(group);
}

static void refused(int rank, int size, const char *hosts, void *data) {
  ring_group_t *group = enter(rank, hosts, 1);
  ring_failure_t failure = {.struct_size = sizeof failure};
  int value = rank;
  (void)data;
  (void)size;
  GET(RING_STATUS_INVALID_ARGUMENT, ring_all_reduce(group, NULL, NULL, 1, RING_DTYPE_INT32, RING_OP_SUM));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_send(group, &value, 1, RING_DTYPE_INT32, rank));
  GET(RING_STATUS_UNSUPPORTED, ring_all_reduce(group, &value, &value, 1, RING_DTYPE_INT32, RING_OP_MEAN));
  OK(ring_group_set_timeout(group, PATIENCE_MS));
  OK(ring_group_failure(group, &failure));
  CHECK(failure.status == RING_STATUS_OK && *group_error(group) == 0 && *last_error() != 0);
  OK(ring_barrier(group));
  ring_group_destroy(group);
}

/* The groups of a forked child are its parent's. */
static void forked(int rank, int size, const char *hosts, void *data) {
  ring_group_t *group = enter(rank, hosts, 1);
  int status = -1;
  (void)data;
  (void)size;
  pid_t child = fork();
  if (child == 0) {
    GET(RING_STATUS_INVALID_STATE, ring_barrier(group));
    ring_group_destroy(group);
    /* Destroy does nothing there, so that what the child has kept is no leak. */
    raise(SIGTERM);
  }
  OK(ring_barrier(group));
  CHECK(waitpid(child, &status, 0) == child && status == SIGTERM, "the child's status is %x", status);
  ring_group_destroy(group);
}

/* How a group fails; the last rank is at fault. */
struct fault {
  ring_status_t status;
  int leaves; /* destroys its group instead */
};

static void failing(int rank, int size, const char *hosts, void *data) {
  const struct fault *fault = data;
  ring_group_t *group = enter(rank, hosts, 1);
  ring_failure_t failure = {.struct_size = sizeof failure};
  int last = size - 1, value = rank, sum = 0;
  float *large = calloc(MOST, sizeof *large);
  OK(ring_all_reduce(group, &value, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(sum == size * (size - 1) / 2);
  /* Half of it later the roll is called, which the last rank answers in its sleep. */
  if (fault->status == RING_STATUS_TIMEOUT) OK(ring_group_set_timeout(group, 2000));
  if (rank == last && fault->status == RING_STATUS_PEER_LOST && !fault->leaves) raise(SIGTERM);
  if (rank == last && fault->status == RING_STATUS_TIMEOUT) sleep(6);
  if (rank == last && fault->status == RING_STATUS_MISMATCH) {
    GET(fault->status, ring_all_gather(group, large, large, 0, RING_DTYPE_FLOAT32));
  } else if (rank != last) {
    GET(fault->status, ring_all_reduce(group, large, large, MOST, RING_DTYPE_FLOAT32, RING_OP_SUM));
    EXPECT(fault->status, ring_barrier(group));
    EXPECT(fault->status, ring_send(group, &value, 1, RING_DTYPE_INT32, (rank + 1) % size));
    EXPECT(fault->status, ring_recv(group, &value, 1, RING_DTYPE_INT32, (rank + 1) % size));
    OK(ring_group_failure(group, &failure));
    CHECK(failure.status == fault->status && *group_error(group) != 0);
    /* A mismatch takes two. */
    CHECK(failure.rank == (fault->status == RING_STATUS_MISMATCH ? -1 : last), "rank %d: %s", failure.rank,
          group_error(group));
    CHECK(!fault->leaves || strstr(group_error(group), "destroyed"), "%s", group_error(group));
    /* A failed group keeps its failure. */
    OK(ring_group_abort(group));
    EXPECT(fault->status, ring_barrier(group));
  }
  ring_group_destroy(group);
  free(large);
}

/* The last rank leaves, which nobody minds who doesn't need it. */
static void goodbye(int rank, int size, const char *hosts, void *data) {
  ring_group_t *group = enter(rank, hosts, 1);
  ring_failure_t failure = {.struct_size = sizeof failure};
  int last = size - 1, value = rank;
  (void)data;
  OK(ring_barrier(group));
  if (rank != last) {
    sleep(2);
    if (last > 1 && rank == 0) OK(ring_send(group, &value, 1, RING_DTYPE_INT32, 1));
    if (last > 1 && rank == 1) OK(ring_recv(group, &value, 1, RING_DTYPE_INT32, 0));
    CHECK(rank > 1 || value == 0);
    EXPECT(RING_STATUS_PEER_LOST, ring_barrier(group));
    OK(ring_group_failure(group, &failure));
    CHECK(failure.rank == last && strstr(group_error(group), "destroyed"), "%s", group_error(group));
  }
  ring_group_destroy(group);
}

static void *blocked(void *group) {
  GET(RING_STATUS_ABORTED, ring_barrier(group));
  return NULL;
}

/* The end of a group, or an abort, while a call is blocked in it. */
static void aborted(int rank, int size, const char *hosts, void *data) {
  int by_abort = *(int *)data;
  ring_status_t status;
  ring_group_t *group = enter(rank, hosts, 1);
  (void)size;
  OK(ring_barrier(group));
  if (rank == 0) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, blocked, group) == 0);
    sleep(1);
    if (by_abort) {
      OK(ring_group_abort(group));
      pthread_join(thread, NULL);
      ring_group_destroy(group);
    } else {
      ring_group_destroy(group);
      pthread_join(thread, NULL);
    }
    return;
  }
  sleep(2);
  while ((status = ring_barrier(group)) == RING_STATUS_OK) continue; /* rank 0 had entered one */
  EXPECT(by_abort ? RING_STATUS_ABORTED : RING_STATUS_PEER_LOST, status);
  CHECK(strstr(group_error(group), "rank 0"), "%s", group_error(group));
  ring_group_destroy(group);
}

static void keep(ring_log_level_t level, const char *message, void *user_data) {
  *(size_t *)user_data += strlen(message) + (size_t)level;
}

static void logged(int rank, int size, const char *hosts, void *data) {
  size_t seen = 0;
  struct fault leaves = {RING_STATUS_PEER_LOST, 1};
  (void)data;
  OK(ring_set_log_callback(keep, &seen, RING_LOG_LEVEL_DEBUG));
  failing(rank, size, hosts, &leaves);
  OK(ring_set_log_callback(NULL, NULL, 0));
  CHECK(seen > 0);
}

static void from_environment(int rank, int size, const char *hosts, void *data) {
  char path[] = "/tmp/ring-hostfile-XXXXXX", text[16];
  ring_group_t *group = NULL;
  (void)size;
  (void)data;
  int file = mkstemp(path);
  CHECK(file >= 0 && write(file, hosts, strlen(hosts)) == (ssize_t)strlen(hosts));
  close(file);
  snprintf(text, sizeof text, "%d", rank);
  setenv("RING_RANK", text, 1);
  setenv("RING_HOSTFILE", path, 1);
  setenv("RING_JOB_ID", "memory", 1);
  OK(ring_group_create_from_env(&group));
  OK(ring_barrier(group));
  ring_group_destroy(group);
  group = NULL;
  setenv("RING_RANK", "none", 1);
  EXPECT(RING_STATUS_INVALID_CONFIG, ring_group_create_from_env(&group));
  CHECK(group == NULL);
  unlink(path);
}

static void not_created(const char *status_of, ring_status_t status, ring_config_t config) {
  ring_group_t *group = NULL;
  ring_status_t got = ring_group_create(&config, &group);
  CHECK(got == status && group == NULL, "%s: %s: %s", status_of, ring_status_name(got), last_error());
  __atomic_fetch_or(given, 1u << got, __ATOMIC_SEQ_CST);
}

/* Ranks that can't form a ring. */
static void unformed(int rank, int size, const char *hosts, void *data) {
  ring_config_t config = patient(rank, hosts, 1);
  struct rlimit limit, none;
  (void)data;
  (void)size;
  if (rank == 0) {
    config.hosts = "[\"a:1\", \"b\"]";
    not_created("hosts", RING_STATUS_INVALID_CONFIG, config);
    config.hosts = NULL;
    config.hostfile = "/no/such/file";
    not_created("hostfile", RING_STATUS_INVALID_CONFIG, config);
    config.hostfile = NULL;
    config.hosts = hosts;
    config.transport = RING_TRANSPORT_SHM;
    not_created("transport", RING_STATUS_UNSUPPORTED, config);
    config.transport = RING_TRANSPORT_AUTO;
    config.struct_size = 1;
    not_created("struct_size", RING_STATUS_INVALID_ARGUMENT, config);
    config.struct_size = sizeof config;
    config.connect_timeout_ms = 500;
    not_created("nobody comes", RING_STATUS_CONNECT_FAILED, config);
    /* As many descriptors as are open. */
    getrlimit(RLIMIT_NOFILE, &limit);
    none = limit;
    none.rlim_cur = 3;
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    not_created("descriptors", RING_STATUS_SYSTEM, config);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  }
}

/* Ranks with other claims: both ends of an edge are told. */
static void disagreeing(int rank, int size, const char *hosts, void *data) {
  ring_config_t config = patient(rank, hosts, 1 + rank);
  (void)data;
  (void)size;
  config.connect_timeout_ms = ALONE_MS;
  not_created("lanes", RING_STATUS_CONNECT_FAILED, config);
}

/* Each rank has a secret of its own, or rank 0 none. */
static void unproved(int rank, int size, const char *hosts, void *data) {
  ring_config_t config = patient(rank, hosts, 1);
  char secret[sizeof SECRET];
  int rank_0_has_one = *(int *)data;
  (void)size;
  memcpy(secret, SECRET, sizeof secret);
  secret[0] = (char)('a' + rank);
  if (rank > 0 || rank_0_has_one) config.secret = secret, config.secret_len = sizeof secret;
  config.connect_timeout_ms = ALONE_MS;
  not_created("secrets", RING_STATUS_AUTH_FAILED, config);
}

static void run(int size, rank_body *body, void *data, unsigned may_die) {
  /* Static: the ranks' copies of it are no leaks. */
  static char hosts[1024];
  char *made = make_hosts(size, 1);
  strcpy(hosts, made);
  free(made);
  run_ranks(size, hosts, body, data, 2 * PATIENCE_MS / 1000, may_die);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2, connections = 1 + size % 2, no = 0, yes = 1;
  given = shared(sizeof *given);
  texts();
  run(size, all_collectives, &connections, 0);
  run(size, every_kind, &connections, 0);
  run(size, all_messages, NULL, 0);
  run(size, all_splits, NULL, 0);
  run(size, all_requests, NULL, 0);
  run(size, refused, NULL, 0);
  run(size, from_environment, NULL, 0);
  if (size > 1) {
    struct fault mismatch = {RING_STATUS_MISMATCH, 0}, timeout = {RING_STATUS_TIMEOUT, 0};
    struct fault dies = {RING_STATUS_PEER_LOST, 0}, leaves = {RING_STATUS_PEER_LOST, 1};
    run(size, failing, &mismatch, 0);
    run(size, failing, &timeout, 0);
    run(size, failing, &leaves, 0);
    run(size, failing, &dies, 1u << (size - 1));
    run(size, logged, NULL, 0);
    run(size, goodbye, NULL, 0);
    run(size, aborted, &no, 0);
    run(size, aborted, &yes, 0);
    run(size, ended_requests, &no, 0);
    run(size, ended_requests, &yes, 0);
    run(size, forked, NULL, 0);
    run(size, unformed, NULL, 0);
    run(size, disagreeing, NULL, 0);
    run(size, unproved, &no, 0);
    run(size, unproved, &yes, 0);
    /* What is left needs no memory, or a fault of the library. */
    const unsigned elsewhere = 1u << RING_STATUS_OUT_OF_MEMORY | 1u << RING_STATUS_INTERNAL;
    for (ring_status_t status = 0; status <= RING_STATUS_PENDING; status++)
      CHECK((*given | elsewhere) >> status & 1, "nobody got %s", ring_status_name(status));
  }
  release_ports();
  return 0;
}
