/* Ranks that meet at a rendezvous; the harness's `hosts` is where. */
#ifndef MEETING_H
#define MEETING_H

#include "harness.h"

/* Text of a free port of this host; valid until the next call. */
static inline const char *rendezvous_at(const char *host) {
  static char text[64];
  snprintf(text, sizeof text, "%s:%d", host, free_port());
  return text;
}

static inline ring_config_t meeting_config(int rank, int size, const char *rendezvous) {
  ring_config_t config = make_config(rank, NULL, 1);
  config.rendezvous = rendezvous;
  config.size = size;
  return config;
}

/* Every number is right. */
static inline void sum_is_right(ring_group_t *group) {
  enum { COUNT = 50001 };
  static int values[COUNT];
  int rank = ring_group_rank(group), size = ring_group_size(group);
  for (int i = 0; i < COUNT; i++) values[i] = i + rank;
  OK(ring_all_reduce(group, values, values, COUNT, RING_DTYPE_INT32, RING_OP_SUM));
  for (int i = 0; i < COUNT; i++) CHECK(values[i] == size * i + size * (size - 1) / 2, "%d", values[i]);
}

static inline void meets(const ring_config_t *config) {
  ring_group_t *group = NULL;
  OK(ring_group_create(config, &group));
  CHECK(ring_group_rank(group) == config->rank && ring_group_size(group) == config->size);
  sum_is_right(group);
  ring_group_destroy(group);
}

#endif
