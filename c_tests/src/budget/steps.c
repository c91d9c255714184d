/* What a call asks of the system, counted: while the clock stands no wait is ever long enough for a sleep, so that
 * little depends on how quick the machine is. Arguments: ranks, [calls].
 *
 * traced.sh runs this in strace, which sees what goes past libc's functions, too, between the marks. */
#include <unistd.h>

#include "counts.h"
#include "harness.h"

enum {
  CALLS = 2000,
  LARGE = 1 << 19, /* elements: 2 MiB, which isn't flooded */
  WARM_UP = 8,
  LATE_US = 1000,  /* longer than a call stays awake, */
  VERY_LATE_US = 20000, /* and by far */
  STRAY = 20,      /* what happens in one of so many calls at most isn't what a call does */
};

static long small_calls = CALLS;

struct kind {
  const char *name;
  size_t count; /* of int32; 0 is a barrier */
  bool late;    /* while the clock runs rank 0 lets the others wait */
};

/* Large and late calls take longer. */
static long calls_of(const struct kind *kind) {
  return kind->count == LARGE || kind->late ? small_calls / 5 : small_calls;
}

/* A system call that says something and does nothing. */
static void mark(const char *text) { CHECK(access(text, F_OK) != 0); }

static void call(ring_group_t *group, const struct kind *kind, int32_t *array) {
  if (kind->count == 0) OK(ring_barrier(group));
  else OK(ring_all_reduce(group, array, array, kind->count, RING_DTYPE_INT32, RING_OP_SUM));
}

static void check(const struct kind *kind, int size, const struct counts *counts) {
  const long *here = counts->here, calls = calls_of(kind);
  char told[512], *end = told;
  end += sprintf(end, "%s, %d ranks, %ld calls:", kind->name, size, calls);
  for (int i = 0; i < COUNTS; i++) end += snprintf(end, sizeof told / COUNTS, " %ld %s", here[i], COUNT_NAMES[i]);
  printf("%s\n", told);

  CHECK(here[ALLOCATIONS] == 0 && here[FREES] == 0, "%s", told);
  /* A call makes none of these by itself, but its lock may meet the watcher, which still hears how the ring formed. */
  CHECK(here[OTHERS] <= calls / STRAY, "%s", told);
  for (int i = 0; i < COUNTS; i++)
    CHECK(counts->elsewhere[i] <= calls / STRAY, "%s, and %ld beside the calls: %s", COUNT_NAMES[i],
          counts->elsewhere[i], told);
  if (kind->late) {
    CHECK(here[POLLS] <= here[MISSES], "%s", told);
    return;
  }
  CHECK(here[POLLS] == 0 && here[EARLY_READS] == 0, "%s", told);
  CHECK(here[CLOCK_READS] <= here[YIELDS], "%s", told);
  if (kind->count == LARGE) return;
  /* A flood's messages: in an even ring one a step, in an odd one a step and way. */
  long messages = calls * (size % 2 ? size - 1 : size / 2), neighbours = size == 2 ? 1 : 2;
  CHECK(here[SENDS] == messages, "not %ld sends: %s", messages, told);
  /* A neighbour's next message may come in the same read; that all has come is known without another. */
  CHECK(here[RECEIPTS] <= messages && here[REPEATS] == 0, "%s", told);
  /* Each turn looks once at each neighbour from which something is to come; a turn ends in a yield, or something moved
   * in it. */
  long turns = here[YIELDS] + here[SENDS] + here[RECEIPTS];
  CHECK(here[MISSES] <= turns * neighbours, "%s", told);
}

/* Rank 0 is awaited each time; it isn't counted. */
static void come_late(ring_group_t *group, const struct kind *kind, int32_t *array) {
  for (long k = 0; k < calls_of(kind); k++) {
    usleep(LATE_US);
    call(group, kind, array);
  }
}

static void count(ring_group_t *group, const struct kind *kind, int32_t *array) {
  char text[256];
  snprintf(text, sizeof text, "/no such file, begin %s", kind->name);
  mark(text);
  counts_start();
  for (long k = 0; k < calls_of(kind); k++) call(group, kind, array);
  struct counts counts = counts_since_start();
  /* A clock that stands isn't asked. */
  snprintf(text, sizeof text, "/no such file, end %s: sendmsg %ld recvfrom %ld sched_yield %ld poll %ld clock_gettime %ld",
           kind->name, counts.here[SENDS], counts.here[RECEIPTS] + counts.here[MISSES], counts.here[YIELDS],
           counts.here[POLLS], kind->late ? counts.here[CLOCK_READS] : 0);
  mark(text);
  check(kind, ring_group_size(group), &counts);
}

static void run(ring_group_t *group, const struct kind *kind, int32_t *array) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  for (int k = 0; k < WARM_UP; k++) {
    /* Each rank's first sleep. */
    if (kind->late && k % size == rank) usleep(VERY_LATE_US);
    call(group, kind, array);
  }
  if (kind->late && rank == 0) come_late(group, kind, array);
  else count(group, kind, array);
  /* Nobody goes on to something else, or leaves, while others are still counting. */
  OK(ring_barrier(group));
}

static void body(int rank, int size, const char *hosts, void *data) {
  static int32_t array[LARGE]; /* zeroes, however often they are summed */
  const struct kind kinds[] = {{"barrier", 0, false},
                               {"8 bytes", 2, false},
                               {"4 KiB", 1024, false},
                               {"2 MiB", LARGE, false},
                               {"8 bytes late", 2, true}};
  /* A stall warning that is never due costs nothing. */
  ring_config_t config = make_config(rank, hosts, 1);
  config.stall_warning_ms = 10000;
  ring_group_t *group = NULL;
  OK(ring_group_create(&config, &group));
  (void)size;
  (void)data;
  /* Before the first call: if a wait of it showed that the core is wanted, the group would sleep for a while. */
  stop_clock();
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (kinds[i].late) start_clock();
    run(group, &kinds[i], array);
  }
  ring_group_destroy(group);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2;
  if (argc > 2) small_calls = atoi(argv[2]);
  if (!counts_work()) {
    printf("skipped: what a library calls is counted with glibc only\n");
    return 77;
  }
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, NULL, 100, 0);
  free(hosts);
  return 0;
}
