/* Arguments: ranks, connections. */
#include <string.h>

#include "harness.h"
#include "reference.h"

static int connections;

static void check(ring_group_t *group, ring_dtype_t dtype, size_t count) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  size_t part = count * ring_dtype_size(dtype), whole = part * (size_t)size;
  unsigned char *send = malloc(part + 1), *recv = malloc(whole + 2), *right = malloc(whole + 1);
  CHECK(send && recv && right);
  for (int r = 0; r < size; r++) fill_input(dtype, r, count, right + (size_t)r * part);
  unsigned char *odd = recv + dtype % 2;
  memset(recv, 0xa5, whole + 2);
  fill_input(dtype, rank, count, send);
  OK(ring_all_gather(group, send, odd, count, dtype));
  CHECK(memcmp(odd, right, whole) == 0, "%s, %zu elements", ring_dtype_name(dtype), count);
  CHECK(odd[whole] == 0xa5);
  memset(odd, 0xa5, whole);
  memcpy(odd + (size_t)rank * part, send, part);
  OK(ring_all_gather(group, odd + (size_t)rank * part, odd, count, dtype));
  CHECK(memcmp(odd, right, whole) == 0, "in place, %s, %zu elements", ring_dtype_name(dtype), count);
  free(send);
  free(recv);
  free(right);
}

static void body(int rank, int size, const char *hosts, void *data) {
  (void)data;
  ring_group_t *group = join(rank, hosts, connections);
  const size_t counts[] = {0, 1, 2, (size_t)size - 1, (size_t)size, (size_t)size + 1, 1021, 65537};
  for (ring_dtype_t dtype = RING_DTYPE_BOOL; dtype <= RING_DTYPE_COMPLEX64; dtype++)
    for (int i = 0; i < 8; i++) check(group, dtype, counts[i]);
  check(group, RING_DTYPE_UINT8, 1048577);
  check(group, RING_DTYPE_FLOAT32, 1048577);
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
