/* What this process asks of libc, counted. A program that has counts.c in it has functions of its own before libc's:
 * libring calls those. Only with glibc; elsewhere `counts_work` says that nothing is counted. */
#ifndef COUNTS_H
#define COUNTS_H

#include <stdbool.h>

enum count {
  ALLOCATIONS,   /* malloc and its kin, realloc included */
  FREES,
  SENDS,         /* sendmsg */
  RECEIPTS,      /* recv that gave something */
  MISSES,        /* recv that gave nothing */
  REPEATS,       /* those that came just after one from the same socket that gave something */
  YIELDS,        /* sched_yield */
  CLOCK_READS,   /* clock_gettime */
  EARLY_READS,   /* those that no sched_yield came just before */
  POLLS,         /* poll */
  OTHERS,        /* read, write and syscall, with which Rust's library makes futex calls */
  COUNTS,
};

extern const char *const COUNT_NAMES[COUNTS];

/* False where libring calls libc itself. */
bool counts_work(void);

/* Counts of this thread and of all others, between two moments. */
struct counts {
  long here[COUNTS], elsewhere[COUNTS];
};

void counts_start(void);
struct counts counts_since_start(void);

/* In this thread the clock stands still, so that no time is ever over. */
void stop_clock(void);
void start_clock(void);

#endif
