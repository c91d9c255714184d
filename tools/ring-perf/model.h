/* What an all-reduce costs in theory: docs/cost-model.md. */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>

enum { MODEL_MAX_RANKS = 1024 };

/* The most that any rank does in one call. */
typedef struct cost {
  bool flood;
  int parts;         /* of the ring */
  int steps;         /* one after the other */
  size_t right;      /* bytes sent to the right neighbour */
  size_t left;
  size_t in_turn;    /* bytes sent to both, where they are served one after the other; 0: both at once */
  size_t reduced;    /* bytes */
} cost_t;

typedef struct model {
  double alpha;      /* us a step */
  double beta;       /* GB/s (10^9 bytes) that a link carries one way, both ways at once */
  double gamma;      /* GB/s that a rank reduces; 0: the reduction costs nothing */
  int links;         /* of a rank: 1 to both neighbours together, or 2, one to each */
} model_t;

/* The cost for rings of 2 to MODEL_MAX_RANKS. */
cost_t cost_of_all_reduce(int ranks, size_t count, size_t element_bytes);

double model_time_us(const model_t *model, const cost_t *cost);

/* Sums over measured calls, from which the model that fits them best is found; zero at first. */
typedef struct fit {
  double steps_steps, steps_sent, sent_sent, steps, sent;
} fit_t;

void fit_add(fit_t *fit, const cost_t *cost, double time_us);

/* The model of one link, the reduction's time being part of the link's, that has the least squares of
 * relative errors. False where the calls are too alike to tell a step from a byte. */
bool fit_solve(const fit_t *fit, model_t *model);

#endif
