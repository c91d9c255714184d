#include "report.h"

#include "raise.h"

#include <stdio.h>

/* What stands before a text: NAME, the rank, the size and the call. */
enum { HEAD_BYTES = 128 };

#define NAME "libring_mpi: "

void say(const char *call, const char *text) { fprintf(stderr, NAME "%s: %s\n", call, text); }

call_t begin_call(const char *name, MPI_Comm comm, const void *caller) {
  return (call_t){.name = name, .comm = use_communicator(comm), .caller = caller};
}

void miss_turn(const call_t *call) {
  const ring_dtype_t unknown = -1;
  ring_status_t refused = ring_all_reduce(call->comm->group, NULL, NULL, 0, unknown, RING_OP_SUM);
  (void)refused;
}

static int code_of(ring_status_t status) {
  switch (status) {
    case RING_STATUS_OK: return MPI_SUCCESS;
    case RING_STATUS_INVALID_ARGUMENT: return MPI_ERR_ARG;
    case RING_STATUS_UNSUPPORTED: return MPI_ERR_OP;
    case RING_STATUS_OUT_OF_MEMORY: return MPI_ERR_NO_MEM;
    case RING_STATUS_INTERNAL: return MPI_ERR_INTERN;
    default: return MPI_ERR_OTHER;
  }
}

/* A loop that goes on in spite of its failures doesn't fill a disk: a communicator's first failure is
 * written, and its first refusal. Without a communicator, which no MLX program is, each is. */
static bool is_news(struct communicator *comm) {
  if (!comm) return true;
  ring_failure_t failure = {.struct_size = sizeof failure};
  bool failed = ring_group_failure(comm->group, &failure) == RING_STATUS_OK && failure.status != RING_STATUS_OK;
  bool *told = failed ? &comm->told_of_failure : &comm->told_of_refusal;
  return !__atomic_exchange_n(told, true, __ATOMIC_RELAXED);
}

static int end(call_t *call, int code, const char *text) {
  char line[HEAD_BYTES + TEXT_BYTES];
  if (call->comm) {
    snprintf(line, sizeof line, NAME "rank %d of %d: %s: %s", call->comm->rank, call->comm->size, call->name, text);
  } else {
    snprintf(line, sizeof line, NAME "%s: %s", call->name, text);
  }
  if (call->out && call->out_type) spoil(call->out, call->out_count, call->out_type);
  if (is_news(call->comm)) fprintf(stderr, "%s\n", line);
  if (call->comm) release_communicator(call->comm);
  if (call->caller) raise_in_mlx(call->caller, line);
  return code;
}

int finish(call_t *call, ring_status_t status) {
  if (status == RING_STATUS_OK) {
    release_communicator(call->comm);
    return MPI_SUCCESS;
  }
  char text[TEXT_BYTES];
  ring_last_error(text, sizeof text);
  return end(call, code_of(status), text);
}

int refuse(call_t *call, int code, const char *why) { return end(call, code, why); }
