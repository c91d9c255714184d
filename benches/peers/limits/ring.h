/* A ring that moves what an all-reduce moves. */
#ifndef RING_H
#define RING_H

#include "processes.h"

enum {
  SPAN = 32 << 20, /* bytes of each rank's arrays: it walks through memory as through real ones */
};

void add(float *restrict to, const float *restrict from, size_t count);

/* Each rank sends to the right while it receives from the left. Every other MiB that arrives is added where the plan
 * says so: the half of an all-reduce that reduces. */
plan_t ring_plan(body_t *body, int ranks, bool adds);

/* Runs it. tables.py looks for the names of the TCP rings. */
void measure_ring(const plan_t *plan, const char *kind);

#endif
