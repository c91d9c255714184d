/* What ring-perf is asked to do. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <ring.h>
#include <stdbool.h>
#include <stddef.h>

struct options {
  int ranks; /* 0: join a ring from the environment */
  int connections;
  size_t min_bytes, max_bytes, factor;
  ring_dtype_t dtype;
  ring_op_t op;
  int iterations, warmup; /* 0: as many as a size needs */
  bool check, json;
};

/* Reads the command line; prints and exits for --help, --version and what it doesn't understand. */
struct options read_options(int argc, char **argv);

#endif
