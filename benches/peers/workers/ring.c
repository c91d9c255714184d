/* libring's ring_all_reduce, in place. */
#include "worker.h"

#include <ring.h>

static ring_group_t *group;
static char text[1024];

static const char *all_reduce(float *data, size_t count) {
  if (ring_all_reduce(group, data, data, count, RING_DTYPE_FLOAT32, RING_OP_SUM) == RING_STATUS_OK) return NULL;
  ring_group_last_error(group, text, sizeof text);
  return text;
}

int main(int argc, char **argv) {
  ring_config_t config;
  ring_config_init(&config, sizeof config);
  int rank = atoi(variable("RANK")), world = atoi(variable("WORLD"));
  config.rank = rank;
  config.hostfile = variable("HOSTFILE");
  config.transport = RING_TRANSPORT_TCP;
  if (ring_group_create(&config, &group) != RING_STATUS_OK) {
    ring_last_error(text, sizeof text);
    fail(text);
  }
  int status = work(rank, world, argc, argv);
  ring_group_destroy(group);
  return status;
}
