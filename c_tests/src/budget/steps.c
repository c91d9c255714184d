/* What a call asks of the system, counted call by call: with the clock stopped no wait is ever long enough for a
 * sleep, so that the counts are the same however slow the machine is. Argument: ranks.
 *
 * traced.sh runs this in strace, which sees what goes past libc's functions, too: it reads the marks. */
#include <string.h>
#include <unistd.h>

#include "counts.h"
#include "harness.h"

enum { CALLS = 2000, TRACED_CALLS = 200, LARGE = 1 << 18, WARM_UP = 3 };

static int calls = CALLS;

/* A system call that says something, and does nothing. */
static void mark(const char *what, const char *name) {
  char text[128];
  snprintf(text, sizeof text, "/no such file: %s %s %d", what, name, calls);
  CHECK(access(text, F_OK) != 0);
}

struct kind {
  const char *name;
  size_t count; /* of int32; 0 is a barrier */
};

static void call(ring_group_t *group, const struct kind *kind, int32_t *array) {
  if (kind->count == 0) OK(ring_barrier(group));
  else OK(ring_all_reduce(group, array, array, kind->count, RING_DTYPE_INT32, RING_OP_SUM));
}

/* Messages that a rank sends in a call that is flooded, and as many that it receives. */
static long messages(int size) { return size / 2 + (size - 1) / 2; }

static void check(const struct kind *kind, int size, const struct counts *counts) {
  const long *here = counts->here, all = calls;
  char told[512], *end = told;
  for (int i = 0; i < COUNTS; i++) end += sprintf(end, " %ld %s", here[i], COUNT_NAMES[i]);
  printf("%s, %d ranks, %ld calls:%s\n", kind->name, size, all, told);
  CHECK(here[ALLOCATIONS] + here[FREES] + here[EARLY_READS] + here[POLLS] + here[OTHERS] == 0, "%s:%s", kind->name, told);
  CHECK(here[CLOCK_READS] <= here[YIELDS], "%s:%s", kind->name, told);
  /* What the other threads do isn't done for each call. */
  for (int i = 0; i < COUNTS; i++)
    CHECK(counts->elsewhere[i] < all / 4, "%s: %ld %s beside the calls", kind->name, counts->elsewhere[i], COUNT_NAMES[i]);
  if (kind->count == LARGE) return;
  long sends = messages(size) * all, neighbours = size == 2 ? 1 : 2;
  CHECK(here[SENDS] == sends, "%s: not %ld sends:%s", kind->name, sends, told);
  /* A neighbour's next message may come in the same read. */
  CHECK(here[RECEIPTS] <= sends, "%s: %s", kind->name, told);
  /* In each turn each neighbour that something is to come from is asked once: turns are those that end in a yield, and
   * those in which something moved. */
  long turns = here[YIELDS] + here[SENDS] + here[RECEIPTS];
  CHECK(here[MISSES] <= turns * neighbours, "%s: %s", kind->name, told);
}

static void body(int rank, int size, const char *hosts, void *data) {
  static int32_t array[LARGE];
  const struct kind kinds[] = {{"barrier", 0}, {"8 bytes", 2}, {"4 KiB", 1024}, {"1 MiB", LARGE}};
  ring_group_t *group = join(rank, hosts, 1);
  (void)data;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    for (int k = 0; k < WARM_UP; k++) call(group, &kinds[i], array);
    stop_clock();
    /* A rank that goes on to something else lets the others wait: it counts nothing of theirs. */
    mark("begin", kinds[i].name);
    counts_start();
    for (int k = 0; k < calls; k++) call(group, &kinds[i], array);
    struct counts counts = counts_since_start();
    mark("end", kinds[i].name);
    start_clock();
    check(&kinds[i], size, &counts);
    memset(array, 0, sizeof array);
  }
  ring_group_destroy(group);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2;
  if (argc > 2) calls = TRACED_CALLS;
  if (!counts_work()) {
    printf("skipped: what a library calls is counted with glibc only\n");
    return 77;
  }
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, NULL, 100, 0);
  free(hosts);
  return 0;
}
