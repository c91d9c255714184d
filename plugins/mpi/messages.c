#include "report.h"

/* Messages from one rank to another arrive in the order of their calls, and carry no tag. */
static const char OTHER_TAG[] = "tags other than 0 don't exist here";

int MPI_Send(const void *buf, int count, MPI_Datatype type, int dst, int tag, MPI_Comm comm) {
  call_t call = begin("MPI_Send", comm);
  if (!call.comm) return refuse(&call, MPI_ERR_COMM, NO_COMMUNICATOR);
  const struct datatype *known = usable_datatype(type);
  if (!known) return refuse(&call, MPI_ERR_TYPE, NO_DATATYPE);
  if (count < 0) return refuse(&call, MPI_ERR_COUNT, NEGATIVE_COUNT);
  if (tag != 0) return refuse(&call, MPI_ERR_TAG, OTHER_TAG);
  elements_t all = as_elements(known, count);
  return finish(&call, ring_send(call.comm->group, buf, all.count, all.dtype, dst));
}

int MPI_Recv(void *buf, int count, MPI_Datatype type, int src, int tag, MPI_Comm comm, MPI_Status *status) {
  call_t call = begin("MPI_Recv", comm);
  if (!call.comm) return refuse(&call, MPI_ERR_COMM, NO_COMMUNICATOR);
  const struct datatype *known = usable_datatype(type);
  if (!known) return refuse(&call, MPI_ERR_TYPE, NO_DATATYPE);
  if (count < 0) return refuse(&call, MPI_ERR_COUNT, NEGATIVE_COUNT);
  call.out = buf, call.out_count = (size_t)count, call.out_type = known;
  if (tag != 0 && tag != MPI_ANY_TAG) return refuse(&call, MPI_ERR_TAG, OTHER_TAG);
  if (src == MPI_ANY_SOURCE) return refuse(&call, MPI_ERR_RANK, "a message is received from one rank, not from any");
  elements_t all = as_elements(known, count);
  ring_status_t received = ring_recv(call.comm->group, buf, all.count, all.dtype, src);
  if (received == RING_STATUS_OK && status) {
    *status = (MPI_Status){.MPI_SOURCE = src, .received_bytes = (size_t)count * known->bytes};
  }
  return finish(&call, received);
}
