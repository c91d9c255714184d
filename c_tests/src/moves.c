/* Collectives that only move data, byte for byte, from and to every rank. Arguments: ranks, connections. */
#include <string.h>

#include "calls.h"

static int connections;

static const ring_dtype_t DTYPES[] = {RING_DTYPE_UINT8, RING_DTYPE_BFLOAT16, RING_DTYPE_FLOAT32, RING_DTYPE_COMPLEX64};
static const enum kind EQUAL[] = {ALL_GATHER, BROADCAST, GATHER, SCATTER, ALL_TO_ALL};

/* One count of each call, with every root. */
static void equal(ring_group_t *group, size_t count, ring_dtype_t dtype) {
  const int size = ring_group_size(group);
  for (size_t i = 0; i < sizeof EQUAL / sizeof *EQUAL; i++) {
    struct call call = {.kind = EQUAL[i], .dtype = dtype, .count = count};
    for (call.root = 0; call.root < (has_root(call.kind) ? size : 1); call.root++)
      check_call(group, &call, (count + (size_t)call.root) % 3);
  }
}

/* A megabyte or four, with a root or two. */
static void large(ring_group_t *group, size_t bytes, ring_dtype_t dtype) {
  const int size = ring_group_size(group);
  for (size_t i = 0; i < sizeof EQUAL / sizeof *EQUAL; i++) {
    const bool whole = EQUAL[i] == BROADCAST;
    const size_t count = bytes / ring_dtype_size(dtype) / (whole ? 1 : (size_t)size);
    struct call call = {.kind = EQUAL[i], .dtype = dtype, .count = count};
    for (call.root = size > 2 ? size / 2 : 0; call.root < (has_root(call.kind) ? size : size / 2 + 1); call.root += 3)
      check_call(group, &call, 1);
  }
}

/* How long parts are: evenly, not at all, unevenly, with zeros, all on one rank. */
enum shape { EVEN, NONE, UNEVEN, ZEROS, ONE, SHAPES };

static size_t length(enum shape shape, int from, int to, size_t unit) {
  const size_t a = (size_t)from, b = (size_t)to;
  switch (shape) {
    case EVEN: return unit;
    case NONE: return 0;
    case UNEVEN: return unit * (1 + (a * 3 + b * 5) % 7) / 4 + (a + 2 * b) % 3;
    case ZEROS: return (a + b) % 2 ? 0 : unit + a;
    default: return from == 1 || to == 1 ? unit : 0;
  }
}

static void listed(ring_group_t *group, size_t unit, ring_dtype_t dtype) {
  const int size = ring_group_size(group);
  for (int shape = 0; shape < SHAPES; shape++) {
    for (int gaps = 0; gaps < 2; gaps++) {
      struct call gather = {.kind = ALL_GATHER_V, .dtype = dtype, .gaps = gaps};
      struct call exchange = {.kind = ALL_TO_ALL_V, .dtype = dtype, .gaps = gaps};
      for (int to = 0; to < size; to++) {
        gather.counts[0][to] = shape == ONE ? (to == size - 1) * unit : length(shape, to, 0, unit);
        for (int from = 0; from < size; from++) exchange.counts[from][to] = length(shape, from, to, unit);
      }
      check_call(group, &gather, unit % 3);
      check_call(group, &exchange, unit % 3);
    }
  }
}

static void body(int rank, int size, const char *hosts, void *data) {
  (void)data;
  ring_group_t *group = join(rank, hosts, connections);
  const size_t n = (size_t)size, counts[] = {0, 1, 2, n - 1, n, n + 1, 1021};
  for (size_t d = 0; d < sizeof DTYPES / sizeof *DTYPES; d++) {
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) equal(group, counts[i], DTYPES[d]);
    listed(group, 1, DTYPES[d]);
    listed(group, 300, DTYPES[d]);
  }
  equal(group, 20011, RING_DTYPE_FLOAT32);
  listed(group, 20011, RING_DTYPE_BFLOAT16);
  listed(group, 150001, RING_DTYPE_UINT8);
  large(group, 1000003, RING_DTYPE_UINT8);
  large(group, 4 << 20, RING_DTYPE_FLOAT32);
  ring_group_destroy(group);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2;
  connections = argc > 2 ? atoi(argv[2]) : 1;
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, NULL, 100, 0);
  free(hosts);
  return 0;
}
