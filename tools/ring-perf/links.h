/* ring-perf --links: every edge of a ring by itself, and which are slow. */
#ifndef LINKS_H
#define LINKS_H

#include <ring.h>
#include <stdbool.h>

/* Tests the links of a ring with one address a rank, which `hosts`, a hostfile's text, names where it isn't NULL. Every rank
 * makes this call; rank 0 prints. Returns the exit status: 0 if no edge is slow. */
int test_links(ring_group_t *group, const char *hosts, bool json);

/* The same as a rank of the environment's ring, at each address of its hostfile in turn. */
int test_links_of_environment(bool json);

#endif
