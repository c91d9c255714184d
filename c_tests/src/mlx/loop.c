/* A rank on MLX's wire for c_tests/mlx/stock.py: it calls until a call fails and tells how. Arguments: rank, hostfile, timeout
 * in ms, elements. Lines of its input: "call" (begin to), "abort", "send" (a message to the right, then leave), "recv"
 * (one from the left, then go on). */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "member.h"

static ring_group_t *group;
static float *values;
static size_t count;

static void *aborting(void *line) {
  char next[16];
  while (fgets(next, sizeof next, stdin))
    if (!strcmp(next, "abort\n")) OK(ring_group_abort(group));
  return line;
}

static void call(void) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, aborting, NULL) == 0);
  ring_status_t status;
  double entered, used;
  do {
    memset(values, 0, count * sizeof *values);
    entered = seconds();
    used = cpu_seconds();
    status = ring_all_reduce(group, values, values, count, RING_DTYPE_FLOAT32, RING_OP_SUM);
  } while (status == RING_STATUS_OK);
  double failed = seconds();
  ring_failure_t failure = {.struct_size = sizeof failure};
  char text[1024];
  snprintf(text, sizeof text, "%s", last_error());
  OK(ring_group_failure(group, &failure));
  CHECK(failure.status == status);
  EXPECT(status, ring_barrier(group));
  CHECK(seconds() - failed < 0.1, "the next call took %.3f s", seconds() - failed);
  printf("%s %d %.6f %.6f %.6f %s\n", ring_status_name(status), failure.rank, entered, failed, cpu_seconds() - used, text);
  fflush(stdout);
  ring_group_destroy(group);
  exit(0);
}

int main(int argc, char **argv) {
  CHECK(argc == 5, "arguments: rank, hostfile, timeout in ms, elements");
  signal(SIGPIPE, SIG_DFL);
  ring_config_t config = mlx_config(atoi(argv[1]), NULL);
  config.hostfile = argv[2];
  config.timeout_ms = (uint32_t)atoi(argv[3]);
  count = (size_t)atol(argv[4]);
  values = calloc(count, sizeof *values);
  OK(ring_group_create(&config, &group));
  puts("formed");
  fflush(stdout);
  char line[16];
  int rank = ring_group_rank(group), size = ring_group_size(group);
  while (fgets(line, sizeof line, stdin)) {
    if (!strcmp(line, "call\n")) call();
    if (!strcmp(line, "send\n")) {
      for (size_t i = 0; i < count; i++) values[i] = (float)i;
      OK(ring_send(group, values, count, RING_DTYPE_FLOAT32, right_of(rank, size)));
      ring_group_destroy(group);
      return 0;
    }
    if (!strcmp(line, "recv\n")) {
      OK(ring_recv(group, values, count, RING_DTYPE_FLOAT32, left_of(rank, size)));
      for (size_t i = 0; i < count; i++) CHECK(values[i] == (float)i, "element %zu is %f", i, (double)values[i]);
      puts("received");
      fflush(stdout);
    }
  }
  return 0;
}
