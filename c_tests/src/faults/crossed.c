/* One rank waits for a message from a rank that waits for it in a collective: neither can come, which the
 * deadline finds to be a mismatch of both calls. */
#include <unistd.h>

#include "witness.h"

enum { TIMEOUT_MS = 2000 };

static void body(int rank, int size, const char *hosts, void *data) {
  struct witness *witness = (struct witness *)data + rank;
  int32_t value;
  (void)size;
  ring_group_t *group = join(rank, hosts, 1);
  OK(ring_barrier(group));
  OK(ring_group_set_timeout(group, TIMEOUT_MS));
  witness_enter(witness);
  witness_failure(witness, group,
                  rank == 0 ? ring_recv(group, &value, 1, RING_DTYPE_INT32, 1) : ring_barrier(group));
  ring_group_destroy(group);
}

static void one_case(int index, int cases, const char *unused, void *data) {
  const int size = 2 + index;
  (void)cases;
  (void)unused;
  (void)data;
  struct witness *witnesses = shared((size_t)size * sizeof *witnesses);
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, witnesses, 20, 0);
  free(hosts);
  double last = 0;
  for (int rank = 0; rank < size; rank++)
    if (witnesses[rank].entered > last) last = witnesses[rank].entered;
  const char *parts[] = {"barrier()", "message(int32, 1)"};
  for (int i = 0; i < 2; i++) {
    struct verdict verdict = {
        .status = RING_STATUS_MISMATCH,
        .rank = -1,
        .part = parts[i],
        .to = last + TIMEOUT_MS / 1000.0 + HEARS_S,
    };
    expect_verdict(witnesses, size, 0, &verdict);
  }
}

int main(void) {
  run_ranks(3, NULL, one_case, NULL, 30, 0);
  return 0;
}
