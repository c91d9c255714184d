/* The log callback gets lines, and nothing calls into a group from it. */
#include <string.h>

#include "harness.h"

struct seen {
  ring_group_t *group;
  int lines, refused;
  ring_log_level_t worst;
};

static void keep(ring_log_level_t level, const char *message, void *user_data) {
  struct seen *seen = user_data;
  CHECK(message && strlen(message) > 0 && level >= RING_LOG_LEVEL_ERROR && level <= RING_LOG_LEVEL_DEBUG);
  seen->lines++;
  if (seen->worst == 0 || level < seen->worst) seen->worst = level;
  if (seen->group) seen->refused += ring_barrier(seen->group) == RING_STATUS_INVALID_STATE;
}

static void body(int rank, int size, const char *hosts, void *data) {
  struct seen seen = {NULL, 0, 0, 0};
  (void)size;
  (void)data;
  OK(ring_set_log_callback(keep, &seen, RING_LOG_LEVEL_DEBUG));
  ring_group_t *group = join(rank, hosts, 1);
  CHECK(seen.lines > 0, "forming a ring is worth a line");
  OK(ring_barrier(group));
  if (rank == 0) {
    ring_group_destroy(group);
    return;
  }
  seen.group = group;
  EXPECT(RING_STATUS_PEER_LOST, ring_barrier(group));
  CHECK(seen.worst == RING_LOG_LEVEL_ERROR && seen.refused > 0);
  OK(ring_set_log_callback(NULL, NULL, 0));
  int lines = seen.lines;
  ring_group_destroy(group);
  CHECK(seen.lines == lines);
}

int main(void) {
  struct seen seen = {NULL, 0, 0, 0};
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_set_log_callback(keep, &seen, 0));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_set_log_callback(keep, &seen, 5));
  char *hosts = make_hosts(2, 1);
  run_ranks(2, hosts, body, NULL, 20, 0);
  free(hosts);
  CHECK(seen.lines == 0);
  return 0;
}
