/* Which edges of a ring are slow, beside the others. */
#ifndef VERDICT_H
#define VERDICT_H

#include <stdbool.h>
#include <stddef.h>

/* An edge's two directions: to the right, from rank r to rank r+1, and back. */
typedef enum way { WAY_RIGHT, WAY_LEFT, WAYS } way_t;

/* What was measured of an edge at one address. */
typedef struct edge {
  double least_us;          /* round trips: the link's own, to which busy hosts only add */
  double median_us;
  double p99_us;
  double most_us;
  double gb_s[WAYS];        /* one way at a time, on this edge alone */
  double at_once_gb_s[WAYS]; /* while all edges are busy both ways; 0: not measured */
} edge_t;

/* In what an edge is slow. */
enum { SLOW_RIGHT = 1 << WAY_RIGHT, SLOW_LEFT = 1 << WAY_LEFT, SLOW_ROUND_TRIP = 1 << WAYS };

/* An edge carries little where the median carries over this many times as much. What halves an edge must be found with
 * noise on both sides (one of two bonded cables, a step down in Ethernet's speeds, one direction's retransmissions);
 * healthy connections of like hosts differ by less. */
#define BANDWIDTH_RATIO 1.5

/* An edge's least round trip is long at this multiple of the edges' median and this much more: where others want the cores,
 * ranks sleep while they wait, which has added up to 150 us to any. */
#define ROUND_TRIP_RATIO 2.0
#define ROUND_TRIP_MARGIN_US 300.0

typedef struct link {
  int left;                 /* the ranks at its ends */
  int right;
  int address;              /* of the right rank's, by number */
  bool inside_host;
  bool measured;
  edge_t edge;
  unsigned slow;            /* of SLOW_...; by judge */
} link_t;

/* What the edges of a ring have in common. Medians are, of an even number, the better of the two in the middle, so that of two the
 * worse is seen. */
typedef struct common {
  bool between_hosts;       /* of the edges between hosts alone: what stays inside one is memory, and no measure for them */
  double round_trip_us;     /* of the least ones */
  double gb_s;              /* of both ways of all edges */
  double at_once;           /* of what each way carries at once, as a part of what it carries alone; 0: not measured */
  double least_gb_s;        /* the worst of all */
  double most_round_trip_us;
  int slow;                 /* links */
} common_t;

/* Keeps the better of each number of two measurements of one edge: what passes isn't the edge's. */
void keep_better(edge_t *edge, const edge_t *again);

/* Finds what is common to the links that were measured, and of each in what it is slow. False without memory. */
bool judge(link_t *links, size_t count, common_t *common);

#endif
