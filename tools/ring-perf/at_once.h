/* All edges of a ring busy both ways, as a large all-reduce keeps them: what edges share shows then. */
#ifndef AT_ONCE_H
#define AT_ONCE_H

#include "edge.h"

enum { AT_ONCE_TEXT_BYTES = 1024 };

/* Measures what the edges carry at once; those of all links, by edge, have been measured alone. Every rank makes this call, and
 * all have the numbers then. `text` is why it failed. */
ring_status_t measure_at_once(const run_t *run, edge_t *edges, char text[AT_ONCE_TEXT_BYTES]);

#endif
