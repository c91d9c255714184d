/* Ranks that are traced, for trace.py, which reads what they leave. Arguments: scenario, ranks, directory. */
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

enum { COUNT = 300000, MANY = 10050, LATE_US = 30000 };

static const char *directory;

static ring_group_t *traced(int rank, const char *hosts) {
  ring_config_t config = make_config(rank, hosts, 1);
  ring_group_t *group = NULL;
  config.trace_dir = directory;
  OK(ring_group_create(&config, &group));
  return group;
}

/* What the group has counted, for comparison, as a line of the rank's: its name in the trace, then the counts. */
static void tell_stats(const ring_group_t *group, int rank, const char *name) {
  char path[4096];
  ring_stats_t stats = {.struct_size = sizeof stats};
  OK(ring_group_stats(group, &stats));
  snprintf(path, sizeof path, "%s/stats-%d", directory, rank);
  FILE *file = fopen(path, "a");
  CHECK(file);
  fprintf(file, "%s|%llu|%llu|%llu|%llu|%llu\n", name, (unsigned long long)stats.operations,
          (unsigned long long)stats.bytes_sent, (unsigned long long)stats.bytes_received,
          (unsigned long long)stats.wait_right_ns, (unsigned long long)stats.wait_left_ns);
  CHECK(fclose(file) == 0);
}

static void await(ring_request_t *request) {
  OK(ring_request_wait(request, RING_TIMEOUT_INFINITE));
  ring_request_destroy(request);
}

static void collectives(ring_group_t *group, float *one, float *all) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  size_t part = COUNT / (size_t)size;
  if (rank == 0) usleep(LATE_US);
  OK(ring_barrier(group));
  for (size_t count = 1; count <= COUNT; count *= 60) {
    OK(ring_all_reduce(group, one, all, count, RING_DTYPE_FLOAT32, RING_OP_SUM));
  }
  OK(ring_all_gather(group, one, all, part, RING_DTYPE_FLOAT32));
  OK(ring_reduce_scatter(group, all, one, part, RING_DTYPE_FLOAT32, RING_OP_MAX));
  OK(ring_reduce(group, one, all, 100, RING_DTYPE_INT32, RING_OP_MIN, size - 1));
  OK(ring_broadcast(group, one, COUNT, RING_DTYPE_UINT8, size / 2));
  OK(ring_all_to_all(group, one, all, 50, RING_DTYPE_FLOAT32));
  OK(ring_all_to_all(group, one, all, 50000 / (size_t)size, RING_DTYPE_FLOAT32));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_all_gather(group, NULL, all, part, RING_DTYPE_FLOAT32));
  OK(ring_barrier(group));
}

static void messages(ring_group_t *group, float *one, float *all) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int far = (rank + size / 2) % size, from = (rank + size - size / 2) % size;
  ring_request_t *requests[4];
  OK(ring_send_recv(group, one, 10, rank, all, 10, rank, RING_DTYPE_FLOAT32));
  if (size == 1) return;
  if (rank == 0) usleep(LATE_US);
  OK(ring_send_recv(group, one, COUNT, right, all, COUNT, left, RING_DTYPE_UINT8));
  OK(ring_send_recv(group, one, 1, far, all, 1, from, RING_DTYPE_FLOAT32));
  if (size % 2 == 0) {
    /* Both halves wait for one neighbour. */
    int peer = rank ^ 1;
    OK(ring_barrier(group));
    if (rank == 0) usleep(LATE_US);
    OK(ring_send_recv(group, one, 5, peer, all, 5, peer, RING_DTYPE_FLOAT32));
    OK(ring_send_recv(group, one, COUNT, peer, all, COUNT, peer, RING_DTYPE_FLOAT32));
  }
  if (rank == 1) OK(ring_send(group, one, 7, RING_DTYPE_FLOAT32, 0));
  if (rank == 0) OK(ring_recv(group, all, 7, RING_DTYPE_FLOAT32, 1));
  OK(ring_barrier(group));
  OK(ring_all_reduce_async(group, one, all, COUNT, RING_DTYPE_FLOAT32, RING_OP_SUM, &requests[0]));
  OK(ring_barrier_async(group, &requests[1]));
  OK(ring_send_async(group, one, 20000, RING_DTYPE_UINT8, left, &requests[2]));
  OK(ring_recv_async(group, one + COUNT / 2, 20000, RING_DTYPE_UINT8, right, &requests[3]));
  for (int i = 3; i >= 0; i--) await(requests[i]);
}

static void work(int rank, int size, const char *hosts) {
  ring_group_t *group = traced(rank, hosts), *half, *one_rank;
  float *one = calloc(COUNT, sizeof *one), *all = calloc(COUNT, sizeof *all);
  char name[64];
  collectives(group, one, all);
  messages(group, one, all);
  OK(ring_group_split(group, rank % 2, -rank, &half));
  collectives(half, one, all);
  messages(half, one, all);
  OK(ring_group_split(half, ring_group_rank(half) ? -1 : 5, 0, &one_rank));
  snprintf(name, sizeof name, "split %d color %d", size == 1 ? 14 : 17 + (size % 2 == 0), rank % 2);
  tell_stats(half, rank, name);
  if (one_rank) {
    collectives(one_rank, one, all);
    int half_size = ring_group_size(half), number = half_size == 1 ? 14 : 17 + (half_size % 2 == 0);
    snprintf(name + strlen(name), sizeof name - strlen(name), ", split %d color 5", number);
    tell_stats(one_rank, rank, name);
    ring_group_destroy(one_rank);
  }
  ring_group_destroy(half);
  OK(ring_barrier(group));
  tell_stats(group, rank, "");
  ring_group_destroy(group);
  free(one);
  free(all);
}

static void many(int rank, int size, const char *hosts) {
  (void)size;
  ring_group_t *group = traced(rank, hosts);
  for (int i = 0; i < MANY; i++) OK(ring_barrier(group));
  ring_group_destroy(group);
}

/* Rank 1 dies. */
static ring_group_t *ring_with_a_death(int rank, const char *hosts) {
  ring_group_t *group = traced(rank, hosts), *pair;
  OK(ring_group_split(group, 0, rank, &pair));
  OK(ring_barrier(pair));
  OK(ring_barrier(group));
  if (rank == 1) {
    usleep(LATE_US);
    raise(SIGKILL);
  }
  return group;
}

/* More than links hold, so that it waits for the rank that dies. */
static char large[1 << 22];

/* The others are in a call, and exit as programs do that meet an error: without destroy. */
static void in_call(int rank, int size, const char *hosts) {
  (void)size;
  ring_group_t *group = ring_with_a_death(rank, hosts);
  EXPECT(RING_STATUS_PEER_LOST, ring_all_reduce(group, large, large, sizeof large, RING_DTYPE_UINT8, RING_OP_SUM));
  _exit(0);
}

static void in_request(int rank, int size, const char *hosts) {
  (void)size;
  ring_group_t *group = ring_with_a_death(rank, hosts);
  ring_request_t *request;
  OK(ring_all_reduce_async(group, large, large, sizeof large, RING_DTYPE_UINT8, RING_OP_SUM, &request));
  EXPECT(RING_STATUS_PEER_LOST, ring_request_wait(request, RING_TIMEOUT_INFINITE));
  _exit(0);
}

/* The others make no call any more. */
static void between_calls(int rank, int size, const char *hosts) {
  (void)size;
  ring_group_t *group = ring_with_a_death(rank, hosts);
  ring_failure_t failure = {.struct_size = sizeof failure};
  do {
    usleep(1000);
    OK(ring_group_failure(group, &failure));
  } while (failure.status == RING_STATUS_OK);
  /* The file comes from another thread; trace.py sees whether it has. */
  char look[4096];
  snprintf(look, sizeof look, "grep -lqs 'failed: RING_STATUS_PEER_LOST' %s/ring-*-rank-%d.json", directory, rank);
  for (int tries = 0; system(look) != 0 && tries < 500; tries++) usleep(10000);
  _exit(0);
}

/* Something like training, with stages that hand on what they have; rank 2 is late once. The README's picture. */
static void steps(int rank, int size, const char *hosts) {
  enum { STEPS = 4, GRADIENT = 1 << 18, ACTIVATION = 1 << 17 };
  ring_group_t *group = traced(rank, hosts);
  float *gradient = calloc(GRADIENT, sizeof *gradient), *activation = calloc(ACTIVATION, sizeof *activation);
  OK(ring_all_reduce(group, gradient, gradient, GRADIENT, RING_DTYPE_FLOAT32, RING_OP_MEAN));
  OK(ring_barrier(group));
  for (int step = 0; step < STEPS; step++) {
    usleep(step == 2 && rank == 2 ? 9000 : 1500);
    if (rank > 0) OK(ring_recv(group, activation, ACTIVATION, RING_DTYPE_FLOAT32, rank - 1));
    usleep(500);
    if (rank < size - 1) OK(ring_send(group, activation, ACTIVATION, RING_DTYPE_FLOAT32, rank + 1));
    OK(ring_all_reduce(group, gradient, gradient, GRADIENT, RING_DTYPE_FLOAT32, RING_OP_MEAN));
    OK(ring_broadcast(group, gradient, 1, RING_DTYPE_FLOAT32, 0));
  }
  ring_group_destroy(group);
  free(gradient);
  free(activation);
}

static void hear(ring_log_level_t level, const char *text, void *heard) {
  if (level == RING_LOG_LEVEL_WARN && strstr(text, "the trace ") && strstr(text, "No such file")) ++*(int *)heard;
}

/* What can't be written is said, and fails nothing. */
static void gone(int rank, int size, const char *hosts) {
  (void)size;
  int heard = 0;
  ring_group_t *group = traced(rank, hosts);
  ring_set_log_callback(hear, &heard, RING_LOG_LEVEL_WARN);
  OK(ring_barrier(group));
  CHECK(rmdir(directory) == 0);
  ring_group_destroy(group);
  ring_set_log_callback(NULL, NULL, RING_LOG_LEVEL_WARN);
  CHECK(heard == 1 && access(directory, F_OK) != 0);
}

typedef void scene(int rank, int size, const char *hosts);
static const struct scenario {
  const char *name;
  scene *scene;
  unsigned may_die; /* ranks, by bit */
} scenarios[] = {
    {"work", work, 0},
    {"many", many, 0},
    {"steps", steps, 0},
    {"gone", gone, 0},
    {"call", in_call, 1 << 1},
    {"request", in_request, 1 << 1},
    {"idle", between_calls, 1 << 1},
};

static void body(int rank, int size, const char *hosts, void *data) {
  const struct scenario *scenario = data;
  scenario->scene(rank, size, hosts);
}

int main(int argc, char **argv) {
  CHECK(argc == 4, "arguments: scenario, ranks, directory");
  struct scenario scenario = {0};
  for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
    if (!strcmp(argv[1], scenarios[i].name)) scenario = scenarios[i];
  }
  CHECK(scenario.scene, "no such scenario: %s", argv[1]);
  int size = atoi(argv[2]);
  char *hosts = make_hosts(size, 1);
  directory = argv[3];
  run_ranks(size, hosts, body, &scenario, 50, scenario.may_die);
  free(hosts);
  return 0;
}
