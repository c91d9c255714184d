#include "operations.h"
#include "report.h"

/* Of recv. */
static const char NOT_IN_PLACE[] = "it is send that may be MPI_IN_PLACE";

/* A collective that is refused before the library has seen it. */
static int refuse_collective(call_t *call, int code, const char *why) {
  miss_turn(call);
  return refuse(call, code, why);
}

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  call_t call = begin("MPI_Allreduce", comm);
  if (!call.comm) return refuse(&call, MPI_ERR_COMM, NO_COMMUNICATOR);
  struct datatype *known = usable_datatype(type);
  if (!known) return refuse_collective(&call, MPI_ERR_TYPE, NO_DATATYPE);
  if (count < 0) return refuse_collective(&call, MPI_ERR_COUNT, NEGATIVE_COUNT);
  if (recv == MPI_IN_PLACE) return refuse_collective(&call, MPI_ERR_BUFFER, NOT_IN_PLACE);
  call.out = recv, call.out_count = (size_t)count, call.out_type = known;
  struct operation *operation = known_operation(op);
  if (!operation) return refuse_collective(&call, MPI_ERR_OP, "there is no such operation");
  if (!is_defined(operation, known)) {
    return refuse_collective(&call, MPI_ERR_OP, "the operation isn't defined for a datatype that the program has made");
  }
  return finish(&call, reduce(call.comm->group, send == MPI_IN_PLACE ? recv : send, recv, count, known, operation));
}

int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                  MPI_Datatype recv_type, MPI_Comm comm) {
  call_t call = begin("MPI_Allgather", comm);
  if (!call.comm) return refuse(&call, MPI_ERR_COMM, NO_COMMUNICATOR);
  struct datatype *known = usable_datatype(recv_type);
  if (!known) return refuse_collective(&call, MPI_ERR_TYPE, NO_DATATYPE);
  if (recv_count < 0) return refuse_collective(&call, MPI_ERR_COUNT, NEGATIVE_COUNT);
  if (recv == MPI_IN_PLACE) return refuse_collective(&call, MPI_ERR_BUFFER, NOT_IN_PLACE);
  call.out = recv, call.out_count = (size_t)recv_count * (size_t)call.comm->size, call.out_type = known;
  elements_t part = as_elements(known, recv_count);
  if (send == MPI_IN_PLACE) {
    size_t part_bytes = (size_t)recv_count * known->bytes;
    send = recv ? (unsigned char *)recv + (size_t)call.comm->rank * part_bytes : NULL;
  } else if (send_type != recv_type || send_count != recv_count) {
    return refuse_collective(&call, MPI_ERR_TYPE, "what is sent and what is received differ in count or datatype");
  }
  return finish(&call, ring_all_gather(call.comm->group, send, recv, part.count, part.dtype));
}
