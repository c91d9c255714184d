/* What the command line asks for. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "collective.h"
#include "model.h"

#include <ring.h>
#include <stdbool.h>

/* The collective that the model is of. */
#define MODEL_COLLECTIVE "all_reduce"

typedef struct options {
  const collective_t *collective;
  split_t split;     /* of parts that vary */
  int ranks;         /* to start on this host, or to predict; 0: a rank of the environment's ring, or many rings */
  int connections;   /* per neighbour; 0: the default */
  size_t min_bytes;
  size_t max_bytes;
  size_t factor;
  ring_dtype_t dtype;
  ring_op_t op;
  int iterations;    /* 0: as many as make a measurement long enough */
  int warmup;
  bool check;
  bool out_of_place;
  bool in_place;
  bool json;
  bool predict;      /* by the model, without a ring */
  model_t model;
  bool links;        /* test them instead of a collective */
} options_t;

/* Reads the command line. Prints what -h, --version or an error calls for and ends the process
 * then. */
options_t parse_options(int argc, char **argv);

#endif
