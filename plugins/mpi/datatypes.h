/* Datatypes: those of MLX's arrays, and runs of them. */
#ifndef RING_MPI_DATATYPES_H
#define RING_MPI_DATATYPES_H

#include "abi.h"

#include <ring.h>
#include <stdbool.h>
#include <stdint.h>

struct datatype {
  /* Of what travels; OPAQUE ones as bytes. */
  ring_dtype_t dtype;
  size_t bytes;
  bool committed;
  /* Eight bytes of what a failed call leaves; see spoil. */
  uint64_t spoilt;
};

/* Numbers that have no type of their own: MLX's float16 is two bytes. */
enum { OPAQUE = -1 };

/* The type, or NULL if there is none of this handle or it isn't committed. */
struct datatype *usable_datatype(MPI_Datatype type);

/* What the library moves: count times the type as so many elements of a dtype of its own. */
typedef struct elements {
  size_t count;
  ring_dtype_t dtype;
} elements_t;
elements_t as_elements(const struct datatype *type, int count);

/* Writes what nobody takes for a result, so far as the type has it. */
void spoil(void *out, size_t count, const struct datatype *type);

#endif
