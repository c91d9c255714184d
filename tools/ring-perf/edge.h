/* Measuring the edge between two neighbours, by messages: they have connections of their own, which the left rank
 * has opened to the right one's first address. In a ring of two each rank has opened the one that it sends on. */
#ifndef EDGE_H
#define EDGE_H

#include "verdict.h"

#include <ring.h>
#include <stdint.h>

/* Bytes of a message where bandwidth is measured: the costs of a message don't count, and it stays in a core's cache. */
enum { CHUNK_BYTES = 1 << 20 };

/* A run over a ring's edges as a rank sees it. */
typedef struct run {
  ring_group_t *group;
  int rank;
  int size;
  int edges;                /* edge e is between ranks e and e + 1; a ring of two has one */
  uint8_t *chunks[2 * WAYS]; /* CHUNK_BYTES each */
} run_t;

/* Measures an edge while the rest of the ring waits; then all ranks have its numbers. Every rank makes this call. */
ring_status_t measure_edge(const run_t *run, int edge, edge_t *out);

/* What goes to a neighbour or comes from it, in messages of CHUNK_BYTES and a last one. */
ring_status_t send_bytes(const run_t *run, const uint8_t *chunk, uint64_t bytes, int peer);
ring_status_t receive_bytes(const run_t *run, uint8_t *chunk, uint64_t bytes, int peer);

double monotonic_us(void);

#endif
