/* A rank destroys its group while the others go on: what doesn't need it succeeds, what does is told who
 * left and after which call. Argument: ranks. */
#include <string.h>
#include <unistd.h>

#include "witness.h"

enum { CALLS = 3, MESSAGE = 1000 };

struct run {
  int leaver;
  int blocked; /* the others are in the next collective when it leaves */
  double left; /* when it began to */
  int talked;  /* of the others; the first collective fails the group, messages included */
  struct witness witnesses[8];
};

static void expect_message(ring_group_t *group, int from) {
  int32_t in[MESSAGE];
  OK(ring_recv(group, in, MESSAGE, RING_DTYPE_INT32, from));
  for (int i = 0; i < MESSAGE; i++) CHECK(in[i] == from * MESSAGE + i, "element %d from rank %d is %d", i, from, in[i]);
}

static void send_message(ring_group_t *group, int to) {
  int32_t out[MESSAGE];
  for (int i = 0; i < MESSAGE; i++) out[i] = ring_group_rank(group) * MESSAGE + i;
  OK(ring_send(group, out, MESSAGE, RING_DTYPE_INT32, to));
}

static void body(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  struct witness *witness = &run->witnesses[rank];
  ring_group_t *group = join(rank, hosts, 1);
  for (int i = 0; i < CALLS; i++) OK(ring_barrier(group));
  if (rank == run->leaver) {
    for (int peer = 0; peer < size; peer++) if (peer != rank) send_message(group, peer);
    if (run->blocked) usleep(300000);
    run->left = seconds();
    ring_group_destroy(group);
    CHECK(seconds() - run->left < 1.5, "destroy took %.3f s", seconds() - run->left);
    return;
  }
  if (!run->blocked) {
    usleep(400000); /* the goodbye has been round */
    ring_failure_t failure = {.struct_size = sizeof failure};
    OK(ring_group_failure(group, &failure));
    CHECK(failure.status == RING_STATUS_OK, "a goodbye alone is no failure: %s", group_error(group));
    /* What the leaver sent before, and what the others send each other after. */
    expect_message(group, run->leaver);
    for (int peer = 0; peer < size; peer++)
      if (peer != rank && peer != run->leaver) send_message(group, peer);
    for (int peer = 0; peer < size; peer++)
      if (peer != rank && peer != run->leaver) expect_message(group, peer);
    OK(ring_group_failure(group, &failure));
    CHECK(failure.status == RING_STATUS_OK, "messages beside the leaver: %s", group_error(group));
    __atomic_fetch_add(&run->talked, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&run->talked, __ATOMIC_ACQUIRE) < size - 1) usleep(500);
  }
  witness_enter(witness);
  witness_failure(witness, group, ring_barrier(group));
  double start = seconds();
  ring_group_destroy(group);
  CHECK(seconds() - start < 0.5, "destroying a failed group took %.3f s", seconds() - start);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2;
  for (int leaver = 0; leaver < size; leaver++) {
    for (int blocked = 0; blocked < 2; blocked++) {
      struct run *run = shared(sizeof *run);
      run->leaver = leaver;
      run->blocked = blocked;
      char *hosts = make_hosts(size, 1), part[2][64];
      run_ranks(size, hosts, body, run, 20, 0);
      free(hosts);
      snprintf(part[0], sizeof part[0], "rank %d", leaver);
      snprintf(part[1], sizeof part[1], "has destroyed its group after call %d", CALLS);
      double last = run->left;
      for (int rank = 0; rank < size; rank++)
        if (rank != leaver && run->witnesses[rank].entered > last) last = run->witnesses[rank].entered;
      for (int i = 0; i < 2; i++) {
        struct verdict verdict = {
            .status = RING_STATUS_PEER_LOST, .rank = leaver, .part = part[i], .to = last + HEARS_S};
        expect_verdict(run->witnesses, size, 1u << leaver, &verdict);
      }
    }
  }
  return 0;
}
