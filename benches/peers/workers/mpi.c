/* MPI_Allreduce, in place. Built twice, for Open MPI and for MPICH. */
#include "worker.h"

#include <mpi.h>

static const char *all_reduce(float *data, size_t count) {
  static char text[MPI_MAX_ERROR_STRING];
  int status = MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD), length;
  if (status == MPI_SUCCESS) return NULL;
  MPI_Error_string(status, text, &length);
  return text;
}

int main(int argc, char **argv) {
  int rank, world;
  MPI_Init(&argc, &argv);
  if (getenv("ERRORS_RETURN")) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  int status = work(rank, world, argc, argv);
  MPI_Finalize();
  return status;
}
