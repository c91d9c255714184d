/* A failure is an exception for an MLX that catches it, and a code for everybody else. */
#include "loaded.h"
#include "ranks.h"
#include "subjects.h"

#include <string.h>

typedef int send_function(const void *, int, MPI_Datatype, int, int, MPI_Comm);
int run_in_mlx(send_function *send, MPI_Datatype type, MPI_Comm comm, char *text, size_t bytes);
int run_beside_mlx(send_function *send, MPI_Datatype type, MPI_Comm comm, char *text, size_t bytes);

enum { ERR_TYPE = 3, RAISED = -1 };

static void raised(int rank, int size) {
  (void)rank, (void)size;
  char text[512] = "";
  catch_errors();
  CHECK(run_in_mlx(mpi.send, NULL, mpi.world, text, sizeof text) == RAISED);
  const char *right = "libring_mpi: rank 0 of 1: MPI_Send: there is no such datatype, or it isn't committed";
  CHECK_SAYING(strcmp(text, right) == 0, "%s", text);
  /* Again, with the runtime's memory of the first one freed. */
  CHECK(run_in_mlx(mpi.send, NULL, mpi.world, text, sizeof text) == RAISED);
  text[0] = '\0';
  CHECK(run_beside_mlx(mpi.send, NULL, mpi.world, text, sizeof text) == ERR_TYPE && text[0] == '\0');
  CHECK(mpi.send(text, 1, NULL, 0, 0, mpi.world) == ERR_TYPE);
  caught_errors(1);
}

void test_raised(int size) { run_ranks(size, raised, -1); }
