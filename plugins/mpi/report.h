/* How a call begins and ends: the communicator is kept for as long as it runs, and a failure is told. */
#ifndef RING_MPI_REPORT_H
#define RING_MPI_REPORT_H

#include "communicators.h"
#include "datatypes.h"

typedef struct call {
  const char *name;
  /* NULL: there is none of the handle that was given. */
  struct communicator *comm;
  /* Where it returns to, if a failure may be raised there. */
  const void *caller;
  /* What a failure spoils. */
  void *out;
  size_t out_count;
  const struct datatype *out_type;
} call_t;

/* The library's longest texts name every rank of a large ring. */
enum { TEXT_BYTES = 4096 };

#define NO_COMMUNICATOR "there is no such communicator"
#define NO_DATATYPE "there is no such datatype, or it isn't committed"

/* MLX casts its counts. */
#define NEGATIVE_COUNT "the count is negative: 2^31 - 1 elements are the most that MPI counts"

/* In the exported function itself, since it looks at where that one returns to. */
#define begin(name, comm) begin_call(name, comm, __builtin_return_address(0))
/* Of calls that MLX makes where nothing catches an exception. */
#define begin_quietly(name, comm) begin_call(name, comm, NULL)
call_t begin_call(const char *name, MPI_Comm comm, const void *caller);

/* The collective is refused here, which the other ranks have to learn: it takes its number in the group. */
void miss_turn(const call_t *call);

/* The call's end, as the library has it. */
int finish(call_t *call, ring_status_t status);

/* Its end where it was not fit for the library. */
int refuse(call_t *call, int code, const char *why);

/* A line that has to do with no communicator. */
void say(const char *call, const char *text);

#endif
