/* Nobody passes a barrier before all have come to it. Argument: ranks. */
#include <stdatomic.h>
#include <unistd.h>

#include "harness.h"

enum { ROUNDS = 50 };

static void body(int rank, int size, const char *hosts, void *data) {
  atomic_int *entered = data;
  ring_group_t *group = join(rank, hosts, 1);
  for (int round = 1; round <= ROUNDS; round++) {
    if (round % size == rank) usleep(2000); /* someone is late */
    atomic_fetch_add(entered, 1);
    OK(ring_barrier(group));
    int count = atomic_load(entered);
    CHECK(count >= round * size, "rank %d passed barrier %d after %d of %d", rank, round, count, round * size);
  }
  ring_group_destroy(group);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 3;
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, shared(sizeof(atomic_int)), 50, 0);
  free(hosts);
  return 0;
}
