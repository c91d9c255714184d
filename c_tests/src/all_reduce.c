/* Every type and operation, bit for bit. Arguments: ranks, connections, [large]. */
#include <string.h>

#include "harness.h"
#include "reference.h"

enum { GUARD = 16 };
static const unsigned char GUARD_BYTE = 0xa5;

static int connections;
static bool large;

static bool guards_hold(const unsigned char *buffer, size_t bytes) {
  for (int i = 0; i < GUARD; i++)
    if (buffer[i] != GUARD_BYTE || buffer[GUARD + bytes + (size_t)i] != GUARD_BYTE) return false;
  return true;
}

static void check(ring_group_t *group, ring_dtype_t dtype, ring_op_t op, size_t count) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  size_t bytes = count * ring_dtype_size(dtype);
  unsigned char *memory[4];
  for (int i = 0; i < 4; i++) CHECK((memory[i] = malloc(bytes + 2 * GUARD + 1)));
  /* Odd addresses for every other type: any alignment is allowed. */
  unsigned char *send = memory[0] + dtype % 2, *recv = memory[1] + dtype % 2, *right = memory[2], *before = memory[3];
  memset(send, GUARD_BYTE, bytes + 2 * GUARD);
  memset(recv, GUARD_BYTE, bytes + 2 * GUARD);
  fill_input(dtype, rank, count, send + GUARD);
  memcpy(before, send, bytes + 2 * GUARD);
  const char *names[2] = {ring_dtype_name(dtype), ring_op_name(op)};
  if (!is_supported(dtype, op)) {
    EXPECT(RING_STATUS_UNSUPPORTED, ring_all_reduce(group, send + GUARD, recv + GUARD, count, dtype, op));
  } else {
    expect_all_reduce(dtype, op, size, count, right);
    OK(ring_all_reduce(group, send + GUARD, recv + GUARD, count, dtype, op));
    size_t at = first_difference(dtype, count, recv + GUARD, right);
    CHECK(at == count, "%s %s, %zu elements: rank %d differs at %zu", names[0], names[1], count, rank, at);
    CHECK(memcmp(send, before, bytes + 2 * GUARD) == 0, "%s %s: the input was written", names[0], names[1]);
    CHECK(guards_hold(recv, bytes), "%s %s: written beside the output", names[0], names[1]);
    OK(ring_all_reduce(group, send + GUARD, send + GUARD, count, dtype, op));
    at = first_difference(dtype, count, send + GUARD, right);
    CHECK(at == count, "in place, %s %s, %zu elements: rank %d differs at %zu", names[0], names[1], count, rank, at);
    CHECK(guards_hold(send, bytes), "in place, %s %s: written beside the output", names[0], names[1]);
  }
  for (int i = 0; i < 4; i++) free(memory[i]);
}

static void body(int rank, int size, const char *hosts, void *data) {
  (void)data;
  ring_group_t *group = join(rank, hosts, connections);
  if (large) {
    const ring_dtype_t dtypes[] = {RING_DTYPE_INT8, RING_DTYPE_BFLOAT16, RING_DTYPE_FLOAT32, RING_DTYPE_COMPLEX64};
    for (int i = 0; i < 4; i++)
      for (ring_op_t op = RING_OP_SUM; op <= RING_OP_MAX; op++) {
        check(group, dtypes[i], op, 65537);
        check(group, dtypes[i], op, 1048577);
      }
  } else {
    const size_t counts[] = {0, 1, 2, (size_t)size - 1, (size_t)size, (size_t)size + 1, 1021};
    for (ring_dtype_t dtype = RING_DTYPE_BOOL; dtype <= RING_DTYPE_COMPLEX64; dtype++)
      for (ring_op_t op = RING_OP_SUM; op <= RING_OP_BXOR; op++)
        for (int i = 0; i < 7; i++) check(group, dtype, op, counts[i]);
    /* Around the sizes at which the way of a call changes. */
    const size_t edges[] = {4096, 4097, 8193, 16383, 16384, 16385, 20011};
    for (int i = 0; i < 7; i++) {
      check(group, RING_DTYPE_FLOAT32, RING_OP_SUM, edges[i]);
      check(group, RING_DTYPE_FLOAT16, RING_OP_MEAN, edges[i]);
      check(group, RING_DTYPE_INT64, RING_OP_MIN, edges[i]);
    }
  }
  ring_failure_t failure = {.struct_size = sizeof failure};
  OK(ring_group_failure(group, &failure));
  CHECK(failure.status == RING_STATUS_OK && failure.rank == -1);
  ring_group_destroy(group);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2;
  connections = argc > 2 ? atoi(argv[2]) : 1;
  large = argc > 3;
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, NULL, large ? 200 : 100, 0);
  free(hosts);
  if (!large && connections == 1) {
    /* Two addresses a rank, two connections each. */
    connections = 2;
    hosts = make_hosts(size, 2);
    run_ranks(size, hosts, body, NULL, 100, 0);
    free(hosts);
  }
  return 0;
}
