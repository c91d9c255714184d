/* What a group with one connection keeps in memory after calls of every size. Argument: ranks. */
#include <string.h>

#include "harness.h"

enum {
  MOST = 64 << 20,  /* bytes of the largest array */
  LIMIT_KIB = 4096, /* what a group may keep, whatever its size */
};

/* KiB of pages that are no file's: heaps, stacks, and what malloc has mapped for itself. */
static long anonymous_kib(void) {
  char line[256];
  long kib = -1;
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  if (!file) return -1;
  while (fgets(line, sizeof line, file)) (void)sscanf(line, "Anonymous: %ld kB", &kib);
  fclose(file);
  return kib;
}

static void body(int rank, int size, const char *hosts, void *data) {
  unsigned char *array = malloc(MOST), *whole = malloc(MOST);
  int right = (rank + 1) % size, left = (rank + size - 1) % size;
  (void)data;
  CHECK(array && whole, "no memory");
  /* Not zeroes: these would be had without touching a page. */
  memset(array, rank + 1, MOST);
  memset(whole, rank + 1, MOST);
  anonymous_kib(); /* what reading takes itself */
  long before = anonymous_kib();
  ring_group_t *group = join(rank, hosts, 1);
  long formed = anonymous_kib();
  OK(ring_barrier(group));
  long small = anonymous_kib();
  for (size_t count = 1; count <= MOST; count *= 4) {
    OK(ring_all_reduce(group, array, whole, count, RING_DTYPE_UINT8, RING_OP_SUM));
    OK(ring_all_reduce(group, array, array, count, RING_DTYPE_UINT8, RING_OP_SUM));
  }
  long reduced = anonymous_kib();
  for (size_t count = 1; count <= MOST / (size_t)size; count *= 4)
    OK(ring_all_gather(group, array, whole, count, RING_DTYPE_UINT8));
  for (size_t count = 1; count <= MOST; count *= 4)
    OK(ring_send_recv(group, array, count, right, whole, count, left, RING_DTYPE_UINT8));
  long after = anonymous_kib();
  printf("rank %d of %d keeps %ld KiB: %ld of them when formed, %ld after a barrier, %ld after all_reduces\n", rank,
         size, after - before, formed - before, small - before, reduced - before);
  CHECK(after - before < LIMIT_KIB, "%ld KiB", after - before);
  OK(ring_barrier(group));
  ring_group_destroy(group);
  free(array);
  free(whole);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2;
  if (anonymous_kib() < 0) {
    printf("skipped: /proc/self/smaps_rollup is Linux's\n");
    return 77;
  }
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, NULL, 100, 0);
  free(hosts);
  return 0;
}
