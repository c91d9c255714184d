/* Where the ranks run. */
#ifndef MEMBER_H
#define MEMBER_H

#include <ring.h>
#include <stdint.h>

enum { HOST_BYTES = 64 };

typedef struct member {
  int64_t pid;
  char host[HOST_BYTES];
} member_t;

/* Fills `members`, zeroed and one a rank, on every rank. */
ring_status_t gather_members(ring_group_t *group, member_t *members);

#endif
