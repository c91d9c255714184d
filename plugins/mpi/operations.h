/* Reductions: the library's own, and functions of the host program. */
#ifndef RING_MPI_OPERATIONS_H
#define RING_MPI_OPERATIONS_H

#include "datatypes.h"
#include "recognise.h"

struct operation {
  /* NULL for the named ones, each of which is an op of the library. */
  MPI_User_function *function;
  ring_op_t op;
  /* What the function has turned out to be on elements of this type; NULL: not looked at yet. */
  const struct datatype *looked_at;
  meaning_t meaning;
};

/* The operation, or NULL if there is none of this handle. */
struct operation *known_operation(MPI_Op op);

/* Whether the operation is one of this type: the named ones go with the named types. */
bool is_defined(const struct operation *operation, const struct datatype *type);

/* Reduces over the group; the operation is defined for the type. */
ring_status_t reduce(ring_group_t *group, const void *send, void *recv, int count, struct datatype *type,
                     struct operation *operation);

#endif
