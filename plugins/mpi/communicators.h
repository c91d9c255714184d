/* Communicators: those that exist, who uses them, and what has been said about them. */
#ifndef RING_MPI_COMMUNICATORS_H
#define RING_MPI_COMMUNICATORS_H

#include "abi.h"

#include <ring.h>
#include <stdbool.h>

struct communicator {
  ring_group_t *group;
  int rank, size;
  /* Calls that run on it. */
  unsigned users;
  /* Not to be used any more; the last user destroys it. */
  bool freed;
  /* A line about each has been written; see report.c. */
  bool told_of_refusal, told_of_failure;
  struct communicator *next;
};

/* The communicator, kept alive until release_communicator; NULL if there is none of this handle. */
struct communicator *use_communicator(MPI_Comm comm);
void release_communicator(struct communicator *comm);

/* Makes the group the world. */
void open_world(ring_group_t *group);

/* Ends all communicators. Calls that still run on them fail. */
void close_communicators(void);

/* Whether this process is a forked child of one that had a world, or was making one. */
bool inherited_world(void);

/* A world is being made, until open_world or this with false. */
void forming_world(bool forming);

#endif
