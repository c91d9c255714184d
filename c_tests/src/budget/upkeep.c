/* Calls that have been made once of each kind take no memory, start no thread and touch no page for the first time, in
 * whatever order they come again. Arguments: ranks, connections. */
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "counts.h"
#include "harness.h"

enum {
  MOST = 1 << 22, /* bytes of the largest array */
  ROUNDS = 40,
  STRAY = 10,     /* what happens at most in one of so many rounds isn't what a call does */
  MAX_KINDS = 64,
};

enum function { BARRIER, ALL_REDUCE, ALL_REDUCE_IN_PLACE, ALL_GATHER, ALL_GATHER_IN_PLACE, ALONG, SEND_RECV };

static const char *const FUNCTION_NAMES[] = {"barrier",    "all_reduce",          "all_reduce in place",
                                             "all_gather", "all_gather in place", "send and recv",
                                             "send_recv"};

struct kind {
  enum function function;
  ring_dtype_t dtype;
  size_t bytes; /* of an array, about */
};

static unsigned char *one, *other; /* of MOST bytes for each rank */

/* A message that every rank hands on to its right, rank 0 first. */
static void along(ring_group_t *group, size_t count, ring_dtype_t dtype) {
  int rank = ring_group_rank(group), size = ring_group_size(group), right = (rank + 1) % size;
  if (rank == 0) OK(ring_send(group, one, count, dtype, right));
  OK(ring_recv(group, other, count, dtype, (rank + size - 1) % size));
  if (rank != 0) OK(ring_send(group, other, count, dtype, right));
}

static void call(ring_group_t *group, const struct kind *kind) {
  ring_dtype_t dtype = kind->dtype;
  int rank = ring_group_rank(group), size = ring_group_size(group);
  size_t element = ring_dtype_size(dtype), count = kind->bytes / element;
  switch (kind->function) {
    case BARRIER: OK(ring_barrier(group)); break;
    case ALL_REDUCE: OK(ring_all_reduce(group, one, other, count, dtype, RING_OP_MAX)); break;
    case ALL_REDUCE_IN_PLACE: OK(ring_all_reduce(group, one, one, count, dtype, RING_OP_SUM)); break;
    case ALL_GATHER: OK(ring_all_gather(group, one, other, count, dtype)); break;
    case ALL_GATHER_IN_PLACE:
      OK(ring_all_gather(group, other + (size_t)rank * count * element, other, count, dtype));
      break;
    case ALONG: along(group, count, dtype); break;
    case SEND_RECV:
      OK(ring_send_recv(group, one, count, (rank + 1) % size, other, count, (rank + size - 1) % size, dtype));
      break;
  }
}

static int list_kinds(struct kind *kinds) {
  const ring_dtype_t dtypes[] = {RING_DTYPE_FLOAT32, RING_DTYPE_BFLOAT16, RING_DTYPE_COMPLEX64, RING_DTYPE_UINT8};
  const size_t bytes[] = {8, 5000, 40000, 100000, 1 << 20, MOST};
  int count = 0;
  for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
      kinds[count++] = (struct kind){ALL_REDUCE + (enum function)(k % 2), dtypes[k], bytes[i]};
    for (int function = ALL_GATHER; function <= SEND_RECV; function++)
      kinds[count++] = (struct kind){(enum function)function, dtypes[i % 4], bytes[i]};
  }
  kinds[count++] = (struct kind){BARRIER, 0, 0};
  CHECK(count <= MAX_KINDS, "%d", count);
  return count;
}

/* Where it can be told, this thread's: what the watcher touches is no call's. */
static long page_faults(void) {
  struct rusage usage;
#ifdef RUSAGE_THREAD
  CHECK(getrusage(RUSAGE_THREAD, &usage) == 0, "no usage");
#else
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0, "no usage");
#endif
  return usage.ru_minflt + usage.ru_majflt;
}

/* What a kind of call was seen to take. */
struct taken {
  long allocations, faults;
};

static void add(struct taken *taken, ring_group_t *group, const struct kind *kind) {
  long faults = page_faults(), allocations = counts_since_start().here[ALLOCATIONS];
  call(group, kind);
  taken->faults += page_faults() - faults;
  taken->allocations += counts_since_start().here[ALLOCATIONS] - allocations;
}

static void check(const struct kind *kinds, const struct taken *taken, int count) {
  struct counts counts = counts_since_start();
  struct taken sum = {0, 0};
  for (int k = 0; k < count; k++) {
    sum.allocations += taken[k].allocations;
    sum.faults += taken[k].faults;
    if (taken[k].allocations == 0 && taken[k].faults == 0) continue;
    printf("%s of %zu bytes in %d rounds: %ld allocations, %ld page faults\n", FUNCTION_NAMES[kinds[k].function],
           kinds[k].bytes, ROUNDS, taken[k].allocations, taken[k].faults);
  }
  fflush(stdout);
  CHECK(sum.allocations == 0, "%ld allocations", sum.allocations);
  CHECK(counts.here[FREES] == 0, "%ld frees", counts.here[FREES]);
  /* The kernel takes pages away to move them or to put them together, and the next touch faults. */
  CHECK(sum.faults <= ROUNDS / STRAY, "%ld page faults", sum.faults);
  /* The watcher may still hear how the ring has formed. */
  CHECK(counts.elsewhere[ALLOCATIONS] <= ROUNDS / STRAY, "%ld allocations beside the calls",
        counts.elsewhere[ALLOCATIONS]);
}

static void body(int rank, int size, const char *hosts, void *data) {
  struct kind kinds[MAX_KINDS];
  struct taken taken[MAX_KINDS] = {{0, 0}};
  int count = list_kinds(kinds);
  size_t bytes = (size_t)MOST * (size_t)size;
  uint64_t random = 7; /* the same on every rank */
  CHECK((one = malloc(bytes)) && (other = malloc(bytes)), "no memory");
  /* Not zeroes: these would be had without touching a page. */
  memset(one, rank + 1, bytes);
  memset(other, rank + 1, bytes);
  ring_group_t *group = join(rank, hosts, *(int *)data);
  for (int k = 0; k < count; k++) call(group, &kinds[k]);
  int threads = entries("/proc/self/task");
  counts_start();
  /* The largest came last: now they come first, and then in any order. */
  for (int k = count - 1; k >= 0; k--) add(&taken[k], group, &kinds[k]);
  for (int round = 1; round < ROUNDS; round++)
    for (int i = 0; i < count; i++) {
      int k = (int)(next_random(&random) % (uint64_t)count);
      add(&taken[k], group, &kinds[k]);
    }
  check(kinds, taken, count);
  CHECK(entries("/proc/self/task") == threads, "%d threads, not %d", entries("/proc/self/task"), threads);
  OK(ring_barrier(group));
  ring_group_destroy(group);
  free(one);
  free(other);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2, connections = argc > 2 ? atoi(argv[2]) : 1;
  if (!counts_work()) {
    printf("skipped: what a library calls is counted with glibc only\n");
    return 77;
  }
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, &connections, 100, 0);
  free(hosts);
  return 0;
}
