/* Calls that ranks repeat while faults strike them. Every result is checked to the bit. */
#ifndef WORK_H
#define WORK_H

#include "calls.h"

struct desk {
  ring_group_t *group;
  int rank, size;
  size_t count;          /* elements of the largest buffer: every work takes about as many bytes */
  uint32_t turn;         /* of the calls so far: the data differs by turn, too */
  uint32_t *send, *recv; /* count elements each */
};

struct work {
  const char *name; /* as texts name the call */
  enum kind kind;   /* KINDS: messages to and from the neighbours */
};

/* all_reduce, all_gather, barrier and message, then the other collectives. */
enum { WORK_COUNT = KINDS + 1 };
extern const struct work WORKS[WORK_COUNT];

/* The work of that name, or the end of this process. */
const struct work *find_work(const char *name);

/* One call, a turn of the desk. */
ring_status_t do_work(const struct work *work, struct desk *desk);

struct desk open_desk(ring_group_t *group, size_t count);
void close_desk(struct desk *desk);

#endif
