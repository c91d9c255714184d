/* A rank of a ring on stock MLX's wire. */
#ifndef MEMBER_H
#define MEMBER_H

#include "harness.h"

/* A configuration with timeouts for tests. */
static inline ring_config_t mlx_config(int rank, const char *hosts) {
  ring_config_t config = make_config(rank, hosts, 0);
  config.job_id = NULL; /* nothing tells it */
  config.wire = RING_WIRE_MLX;
  return config;
}

/* Joins the ring, or ends this process. */
static inline ring_group_t *mlx_join(int rank, const char *hosts) {
  ring_config_t config = mlx_config(rank, hosts);
  ring_group_t *group = NULL;
  OK(ring_group_create(&config, &group));
  return group;
}

static inline int right_of(int rank, int size) { return (rank + 1) % size; }
static inline int left_of(int rank, int size) { return (rank + size - 1) % size; }

/* Sums ones of all ranks: the ring works, and nothing that doesn't belong there is on its connections. */
static inline void expect_sum(ring_group_t *group, size_t count) {
  int32_t *values = malloc((count + 1) * sizeof *values);
  CHECK(values);
  for (size_t i = 0; i < count; i++) values[i] = (int32_t)i + ring_group_rank(group);
  OK(ring_all_reduce(group, values, values, count, RING_DTYPE_INT32, RING_OP_SUM));
  int size = ring_group_size(group);
  for (size_t i = 0; i < count; i++) {
    int32_t right = (int32_t)i * size + size * (size - 1) / 2;
    CHECK(values[i] == right, "element %zu is %d, not %d", i, values[i], right);
  }
  free(values);
}

#endif
