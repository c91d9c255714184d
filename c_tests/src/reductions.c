/* reduce_scatter, its form with counts, and reduce, bit for bit. Arguments: ranks, connections. */
#include "calls.h"
#include "reference.h"

static int connections;

static void equal(ring_group_t *group, ring_dtype_t dtype, ring_op_t op, size_t count, int roots) {
  struct call call = {.kind = REDUCE_SCATTER, .dtype = dtype, .op = op, .count = count};
  check_call(group, &call, (size_t)dtype % 2);
  call.kind = REDUCE;
  const int size = ring_group_size(group), first = (int)(count % (size_t)size);
  for (int i = 0; i < roots && i < size; i++) {
    call.root = (first + i) % size;
    check_call(group, &call, (size_t)dtype % 2);
  }
}

/* Parts of different lengths, some of none; or all on one rank. */
static void listed(ring_group_t *group, ring_dtype_t dtype, ring_op_t op, size_t unit) {
  struct call call = {.kind = REDUCE_SCATTER_V, .dtype = dtype, .op = op};
  const int size = ring_group_size(group);
  for (int rank = 0; rank < size; rank++) call.counts[0][rank] = unit * ((size_t)rank * 5 % 4) / 2 + (size_t)rank % 2;
  check_call(group, &call, (size_t)op % 2);
  for (int rank = 0; rank < size; rank++) call.counts[0][rank] = rank == size / 2 ? 2 * unit : 0;
  check_call(group, &call, (size_t)op % 2);
}

static void refused(ring_group_t *group, ring_dtype_t dtype, ring_op_t op) {
  const enum kind kinds[] = {REDUCE_SCATTER, REDUCE, REDUCE_SCATTER_V};
  static double send[MAX_RING], recv[MAX_RING];
  for (int i = 0; i < 3; i++) {
    struct call call = {.kind = kinds[i], .dtype = dtype, .op = op, .count = 1};
    EXPECT(RING_STATUS_UNSUPPORTED, make_call(group, &call, send, recv));
  }
}

static void body(int rank, int size, const char *hosts, void *data) {
  (void)data;
  ring_group_t *group = join(rank, hosts, connections);
  const size_t n = (size_t)size, counts[] = {0, 1, 2, n - 1, n, n + 1, 1021};
  for (ring_dtype_t dtype = RING_DTYPE_BOOL; dtype <= RING_DTYPE_COMPLEX64; dtype++) {
    for (ring_op_t op = RING_OP_SUM; op <= RING_OP_BXOR; op++) {
      if (!is_supported(dtype, op)) {
        refused(group, dtype, op);
        continue;
      }
      equal(group, dtype, op, 3, size);
      equal(group, dtype, op, n + 1, 1);
      listed(group, dtype, op, 5);
    }
    for (int i = 0; i < 7; i++) equal(group, dtype, i % 2 ? RING_OP_SUM : RING_OP_MAX, counts[i], 1);
    listed(group, dtype, RING_OP_SUM, 1021);
  }
  /* Around the sizes at which the way of a call changes, and well beyond. */
  const size_t edges[] = {4096, 8193, 16383, 16384, 20011};
  for (int i = 0; i < 5; i++) {
    equal(group, RING_DTYPE_FLOAT32, RING_OP_SUM, edges[i], size);
    equal(group, RING_DTYPE_FLOAT16, RING_OP_MEAN, edges[i] / n, 1);
    equal(group, RING_DTYPE_FLOAT32, RING_OP_SUM, edges[i] / n, 1);
    listed(group, RING_DTYPE_FLOAT32, RING_OP_SUM, edges[i] / n);
  }
  equal(group, RING_DTYPE_FLOAT32, RING_OP_SUM, 300007, 1);
  listed(group, RING_DTYPE_INT64, RING_OP_SUM, 100003);
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
