/* A host that knows the library by the table alone: it isn't linked with it and looks up one name. Arguments: the
 * library's path, and the number of ranks. $PORT is the first of as many ports. It is C99 and C++11. */
#include <dlfcn.h>
#include <ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const ring_api_v1_t *ring;

static void fail(int line, const char *what) {
  char text[1024] = "";
  if (ring) ring->last_error(text, sizeof text);
  fprintf(stderr, "%s:%d: %s (last error: %s)\n", __FILE__, line, what, text);
  exit(1);
}
#define CHECK(condition) ((condition) ? (void)0 : fail(__LINE__, #condition))
#define OK(call) CHECK((call) == RING_STATUS_OK)

enum { MOST_RANKS = 8, COUNT = 3001, TIMEOUT_MS = 20000 };

static int log_lines, log_errors;

static void keep_line(ring_log_level_t level, const char *message, void *user_data) {
  CHECK(message && user_data == &log_lines);
  log_lines++;
  if (level == RING_LOG_LEVEL_ERROR) log_errors++;
}

static const ring_api_v1_t *load(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(library);
  void *found = dlsym(library, "ring_get_api_v1");
  CHECK(found);
  const ring_api_v1_t *(*get_api)(void);
  memcpy(&get_api, &found, sizeof get_api);
  const ring_api_v1_t *api = get_api();
  CHECK(api && api->abi_version == RING_ABI_VERSION);
  CHECK(api->struct_size >= offsetof(ring_api_v1_t, group_stats) + sizeof api->group_stats);
  /* The table and what it points to stay. */
  CHECK(dlclose(library) == 0);
  return api;
}

static void names(void) {
  CHECK(ring->version() == RING_VERSION && ring->ring_abi_version() == RING_ABI_VERSION);
  CHECK(strlen(ring->version_string()) > 0);
  CHECK(ring->dtype_size(RING_DTYPE_BFLOAT16) == 2 && strcmp(ring->dtype_name(RING_DTYPE_BOOL), "bool") == 0);
  CHECK(strcmp(ring->op_name(RING_OP_MIN), "min") == 0 && strlen(ring->status_string(RING_STATUS_TIMEOUT)) > 0);
  CHECK(strcmp(ring->status_name(RING_STATUS_TIMEOUT), "RING_STATUS_TIMEOUT") == 0);
}

static ring_group_t *join(int rank, int size, const char *hosts) {
  ring_config_t config;
  ring->config_init(&config, sizeof config);
  CHECK(config.struct_size == sizeof config && config.rank == -1);
  config.rank = rank;
  config.hosts = hosts;
  config.job_id = "plugin";
  config.connect_timeout_ms = config.timeout_ms = TIMEOUT_MS;
  ring_group_t *group = NULL;
  OK(ring->group_create(&config, &group));
  CHECK(ring->group_rank(group) == rank && ring->group_size(group) == size);
  OK(ring->group_set_timeout(group, TIMEOUT_MS));
  return group;
}

static int sum_of_ranks(int size) { return size * (size - 1) / 2; }

static void collectives(ring_group_t *group, int rank, int size) {
  static int32_t mine[COUNT], sums[COUNT], all[COUNT * MOST_RANKS];
  for (int i = 0; i < COUNT; i++) mine[i] = 7 * i + rank;
  OK(ring->all_reduce(group, mine, sums, COUNT, RING_DTYPE_INT32, RING_OP_SUM));
  for (int i = 0; i < COUNT; i++) CHECK(sums[i] == 7 * i * size + sum_of_ranks(size));
  OK(ring->all_gather(group, mine, all, COUNT, RING_DTYPE_INT32));
  for (int i = 0; i < COUNT * size; i++) CHECK(all[i] == 7 * (i % COUNT) + i / COUNT);
  int32_t told = rank == size - 1 ? 99 : 0;
  OK(ring->broadcast(group, &told, 1, RING_DTYPE_INT32, size - 1));
  CHECK(told == 99);
  OK(ring->barrier(group));
}

/* A token goes around; then all exchange at once. */
static void messages(ring_group_t *group, int rank, int size) {
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int64_t token = 1000, from_left = -1, own = rank;
  if (size > 1) {
    if (rank > 0) OK(ring->recv(group, &token, 1, RING_DTYPE_INT64, left));
    token += rank;
    OK(ring->send(group, &token, 1, RING_DTYPE_INT64, right));
    if (rank == 0) {
      OK(ring->recv(group, &token, 1, RING_DTYPE_INT64, left));
      CHECK(token == 1000 + sum_of_ranks(size));
    }
  }
  OK(ring->send_recv(group, &own, 1, right, &from_left, 1, left, RING_DTYPE_INT64));
  CHECK(from_left == left);
}

static void requests(ring_group_t *group, int rank, int size) {
  static float mine[COUNT], sums[COUNT];
  ring_request_t *sum = NULL, *message = NULL;
  bool done = false;
  double in = -1, out = rank;
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  for (int i = 0; i < COUNT; i++) mine[i] = (float)(i + rank);
  if (size > 1) {
    OK(ring->recv_async(group, &in, 1, RING_DTYPE_FLOAT64, left, &message));
    /* The left rank sends after this barrier. */
    CHECK(ring->request_wait(message, 0) == RING_STATUS_PENDING);
    OK(ring->request_test(message, &done));
    CHECK(!done);
    OK(ring->barrier(group));
    OK(ring->send(group, &out, 1, RING_DTYPE_FLOAT64, right));
  }
  OK(ring->all_reduce_async(group, mine, sums, COUNT, RING_DTYPE_FLOAT32, RING_OP_MAX, &sum));
  OK(ring->request_wait(sum, RING_TIMEOUT_INFINITE));
  OK(ring->request_test(sum, &done));
  CHECK(done);
  for (int i = 0; i < COUNT; i++) CHECK(sums[i] == (float)(i + size - 1));
  if (size > 1) {
    OK(ring->request_wait(message, RING_TIMEOUT_INFINITE));
    CHECK(in == left);
  }
  ring->request_destroy(sum);
  ring->request_destroy(message);
}

static void split(ring_group_t *group, int rank, int size) {
  ring_group_t *half = NULL;
  OK(ring->group_split(group, rank % 2, -rank, &half));
  int32_t members = 1, first = rank;
  OK(ring->all_reduce(half, &members, &members, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(members == (size + 1 - rank % 2) / 2 && members == ring->group_size(half));
  /* The highest rank has the lowest key. */
  OK(ring->broadcast(half, &first, 1, RING_DTYPE_INT32, 0));
  CHECK(first == rank + 2 * ring->group_rank(half));
  ring->group_destroy(half);
}

static void stats(ring_group_t *group, int size) {
  ring_stats_t counted;
  memset(&counted, 0, sizeof counted);
  counted.struct_size = sizeof counted;
  OK(ring->group_stats(group, &counted));
  CHECK(counted.operations > 5 && counted.struct_size == sizeof counted);
  CHECK(size == 1 || (counted.bytes_sent > COUNT * sizeof(float) && counted.bytes_received > COUNT * sizeof(float)));
}

/* A call that this rank alone is refused, then one that fails the group. */
static void failure(ring_group_t *group, int rank, int size) {
  char text[512];
  double value[3] = {0, 0, 0};
  CHECK(ring->barrier(NULL) == RING_STATUS_INVALID_ARGUMENT);
  CHECK(ring->last_error(text, sizeof text) == strlen(text) && strstr(text, "group is NULL"));

  ring_status_t expected = size > 1 ? RING_STATUS_MISMATCH : RING_STATUS_ABORTED;
  if (size == 1) OK(ring->group_abort(group));
  size_t count = rank == 0 ? 3 : 2;
  CHECK(ring->all_reduce(group, value, value, count, RING_DTYPE_FLOAT64, RING_OP_SUM) == expected);
  CHECK(ring->last_error(text, sizeof text) > 0);
  CHECK(ring->group_last_error(group, text, sizeof text) > 0);
  CHECK(size == 1 || strstr(text, "all_reduce"));
  CHECK(ring->barrier(group) == expected);
  ring_failure_t failed;
  memset(&failed, 0, sizeof failed);
  failed.struct_size = sizeof failed;
  OK(ring->group_failure(group, &failed));
  CHECK(failed.status == expected);
  CHECK(log_errors > 0);
}

static void body(int rank, int size, const char *hosts) {
  OK(ring->set_log_callback(keep_line, &log_lines, RING_LOG_LEVEL_DEBUG));
  names();
  ring_group_t *group = join(rank, size, hosts);
  CHECK(size == 1 || log_lines > 0);
  collectives(group, rank, size);
  messages(group, rank, size);
  requests(group, rank, size);
  split(group, rank, size);
  stats(group, size);
  failure(group, rank, size);
  ring->group_destroy(group);
  ring->group_destroy(NULL);
  OK(ring->set_log_callback(NULL, NULL, RING_LOG_LEVEL_ERROR));
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  const char *port = getenv("PORT");
  int size = atoi(argv[2]), failed = 0;
  CHECK(port && size >= 1 && size <= MOST_RANKS);
  char hosts[MOST_RANKS * 32] = "[";
  for (int rank = 0; rank < size; rank++) {
    size_t end = strlen(hosts);
    snprintf(hosts + end, sizeof hosts - end, "%s\"127.0.0.1:%d\"", rank > 0 ? "," : "", atoi(port) + rank);
  }
  strcat(hosts, "]");
  /* Loaded once, used in each child. */
  ring = load(argv[1]);
  for (int rank = 0; rank < size; rank++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      body(rank, size, hosts);
      exit(0);
    }
  }
  for (int rank = 0; rank < size; rank++) {
    int status = 1;
    CHECK(wait(&status) > 0);
    failed |= status;
  }
  return failed != 0;
}
