/* What a function that reduces is: MLX brings its own for types that MPI lacks, and the library has the same
 * ones, quicker and with one rule for NaN. */
#ifndef RING_MPI_RECOGNISE_H
#define RING_MPI_RECOGNISE_H

#include "datatypes.h"

typedef struct meaning {
  /* Whether the function is the library's op on dtype. */
  bool known;
  ring_dtype_t dtype;
  ring_op_t op;
} meaning_t;

/* Tries the function on values of the type. */
meaning_t recognise(MPI_User_function *function, struct datatype *type);

#endif
