/* What each rank saw of its group's one failure, in memory that the processes of a test share. */
#ifndef WITNESS_H
#define WITNESS_H

#include "harness.h"

/* Promises of the library. */
#define HEARS_S 1.0      /* from a death to the error on the last rank; and from a deadline, too */
#define NEXT_CALL_S 0.1  /* 10 ms; the rest is for a machine with more processes than cores */
#define CPU_SHARE 0.05   /* of a core, while waiting */

struct witness {
  int ready, told;         /* set with release when what comes before them is there */
  double entered, failed;  /* of the call that failed; by seconds(), alike in all processes */
  double used_s;           /* seconds of a core used in that call */
  ring_status_t status;    /* what it returned */
  char text[2048];         /* and said */
  ring_failure_t failure;  /* the group's */
  double next_s;           /* what the next call took to fail alike */
};

/* In a rank. */

/* The rank is in the ring and about to start. */
void witness_ready(struct witness *witness);
/* Before each call that may be the one. */
void witness_enter(struct witness *witness);
/* After it: checks that the group tells the same, and the next call. */
void witness_failure(struct witness *witness, ring_group_t *group, ring_status_t status);
/* Instead of calls: looks at the group until it has failed, for at most limit_s. */
void witness_idle(struct witness *witness, ring_group_t *group, double limit_s);

/* In the parent; the ranks in the mask `except` don't count. */

/* Waits until the ranks have set `ready` or `told`. */
void await_ready(struct witness *witnesses, int size, unsigned except, double limit_s);
void await_told(struct witness *witnesses, int size, unsigned except, double limit_s);

/* What every rank must have seen. */
struct verdict {
  ring_status_t status;
  int rank;          /* at fault, or -1 */
  const char *part;  /* of each text; NULL: any */
  double from, to;   /* when the errors came; 0: any time */
  int same_text;
};

/* Ends this process unless each rank saw that. */
void expect_verdict(const struct witness *witnesses, int size, unsigned except, const struct verdict *verdict);

#endif
