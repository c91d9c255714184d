/* Arguments that can't be: a code, never a crash, and no rank goes on with wrong numbers. */
#include "loaded.h"
#include "ranks.h"
#include "subjects.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
  ERR_BUFFER = 1,
  ERR_COUNT = 2,
  ERR_TYPE = 3,
  ERR_TAG = 4,
  ERR_COMM = 5,
  ERR_RANK = 6,
  ERR_OP = 10,
  ERR_ARG = 13
};

static void adds(void *in, void *inout, int *length, MPI_Datatype *type) {
  (void)in, (void)inout, (void)length, (void)type;
}

/* What never was a handle. */
static char stray[64];

static void types_and_operations(void) {
  MPI_Datatype type = NULL, bytes = mpi.types[UINT8];
  MPI_Op op = NULL;
  catch_errors();
  CHECK(mpi.type_contiguous(0, bytes, &type) == ERR_COUNT && mpi.type_contiguous(-2, bytes, &type) == ERR_COUNT);
  CHECK(mpi.type_contiguous(2, stray, &type) == ERR_TYPE && mpi.type_contiguous(2, NULL, &type) == ERR_TYPE);
  CHECK(mpi.type_contiguous(2, bytes, NULL) == ERR_ARG);
  CHECK(mpi.type_contiguous(0x7fffffff, mpi.types[INT64], &type) == ERR_COUNT);
  type = stray;
  CHECK(mpi.type_commit(&type) == ERR_TYPE && mpi.type_commit(NULL) == ERR_TYPE);
  CHECK(mpi.op_create(NULL, 1, &op) == ERR_ARG && mpi.op_create(adds, 1, NULL) == ERR_ARG);
  CHECK(mpi.op_create(adds, 0, &op) == ERR_OP);
  caught_errors(11);
  CHECK(mpi.get_library_version(NULL, NULL) == ERR_ARG);
}

/* All ranks alike: each call is refused on all, and the next good one is good. */
static void on_all_ranks(int size) {
  float one = 1, two[2] = {1, 1}, sum = 5, all[2 * 8];
  MPI_Datatype real = mpi.types[FLOAT], uncommitted = NULL, pair = NULL;
  MPI_Op add = mpi.ops[SUM];
  CHECK(mpi.type_contiguous(4, mpi.types[UINT8], &uncommitted) == 0);
  CHECK(mpi.type_contiguous(2, mpi.types[FLOAT], &pair) == 0 && mpi.type_commit(&pair) == 0);
  catch_errors();
  CHECK(mpi.all_reduce(&one, &sum, 1, real, add, NULL) == ERR_COMM);
  CHECK(mpi.all_reduce(&one, &sum, 1, real, add, stray) == ERR_COMM);
  /* The communicator's first refusal is written, the rest aren't. */
  caught_errors(2);
  catch_errors();
  CHECK(mpi.all_reduce(&one, &sum, -1, real, add, mpi.world) == ERR_COUNT && sum == 5);
  CHECK(mpi.all_reduce(&one, &sum, 1, NULL, add, mpi.world) == ERR_TYPE && sum == 5);
  CHECK(mpi.all_reduce(&one, &sum, 1, stray, add, mpi.world) == ERR_TYPE);
  CHECK(mpi.all_reduce(&one, &sum, 1, uncommitted, add, mpi.world) == ERR_TYPE);
  CHECK(mpi.all_reduce(&one, &sum, 1, real, NULL, mpi.world) == ERR_OP && isnan(sum));
  sum = 5;
  CHECK(mpi.all_reduce(&one, &sum, 1, real, stray, mpi.world) == ERR_OP && isnan(sum));
  CHECK(mpi.all_reduce(two, all, 1, pair, add, mpi.world) == ERR_OP);
  CHECK(mpi.all_reduce(NULL, &sum, 1, real, add, mpi.world) == ERR_ARG);
  CHECK(mpi.all_reduce(&one, NULL, 1, real, add, mpi.world) == ERR_ARG);
  CHECK(mpi.all_reduce(&one, IN_PLACE, 1, real, add, mpi.world) == ERR_BUFFER);
  CHECK(mpi.all_reduce(IN_PLACE, NULL, 1, real, add, mpi.world) == ERR_ARG);
  CHECK(mpi.all_gather(&one, 1, real, all, 2, real, mpi.world) == ERR_TYPE && isnan(all[2 * size - 1]));
  CHECK(mpi.all_gather(&one, 1, mpi.types[INT32], all, 1, real, mpi.world) == ERR_TYPE);
  CHECK(mpi.all_gather(&one, -1, real, all, -1, real, mpi.world) == ERR_COUNT);
  CHECK(mpi.all_gather(&one, 1, real, NULL, 1, real, mpi.world) == ERR_ARG);
  CHECK(mpi.all_gather(IN_PLACE, 1, real, NULL, 1, real, mpi.world) == ERR_ARG);
  CHECK(mpi.all_gather(&one, 1, real, IN_PLACE, 1, real, mpi.world) == ERR_BUFFER);
  CHECK(mpi.split(mpi.world, 0, 0, NULL) == ERR_ARG && mpi.split(stray, 0, 0, NULL) == ERR_COMM);
  caught_errors(2);
  CHECK_SAYING(mpi.all_reduce(&one, &sum, 1, real, add, mpi.world) == 0 && sum == (float)size, "%g", (double)sum);
}

static void of_messages(int rank, int size) {
  float one = 1, got = 5;
  MPI_Datatype real = mpi.types[FLOAT];
  int peer = (rank + 1) % size;
  CHECK(mpi.send(&one, 1, real, size, 0, mpi.world) != 0 && mpi.send(&one, 1, real, -1, 0, mpi.world) != 0);
  CHECK(mpi.send(&one, 1, real, rank, 0, mpi.world) != 0 && mpi.recv(&got, 1, real, rank, 0, mpi.world, NULL) != 0);
  CHECK(mpi.send(&one, 1, real, peer, 3, mpi.world) == ERR_TAG);
  CHECK(mpi.send(&one, 1, real, peer, ANY_TAG, mpi.world) == ERR_TAG);
  CHECK(mpi.send(&one, -1, real, peer, 0, mpi.world) == ERR_COUNT);
  CHECK(mpi.send(&one, 1, stray, peer, 0, mpi.world) == ERR_TYPE);
  CHECK(mpi.send(&one, 1, real, peer, 0, stray) == ERR_COMM && mpi.send(NULL, 1, real, 0, 0, mpi.world) != 0);
  got = 5;
  CHECK(mpi.recv(&got, 1, real, ANY_SOURCE, 0, mpi.world, NULL) == ERR_RANK && isnan(got));
  CHECK(mpi.recv(&got, 1, real, peer, 3, mpi.world, NULL) == ERR_TAG);
  CHECK(mpi.recv(&got, 1, real, size, 0, mpi.world, NULL) != 0);
  CHECK(mpi.recv(&got, -1, real, peer, 0, mpi.world, NULL) == ERR_COUNT);
  CHECK(mpi.recv(&got, 1, NULL, peer, 0, mpi.world, NULL) == ERR_TYPE);
  CHECK(mpi.recv(NULL, 1, real, peer, 0, mpi.world, NULL) != 0);
  CHECK(mpi.recv(&got, 1, real, peer, 0, NULL, NULL) == ERR_COMM);
  int unused;
  CHECK(mpi.rank(mpi.world, NULL) == ERR_ARG);
  CHECK(mpi.size(mpi.world, NULL) == ERR_ARG);
  CHECK(mpi.size(stray, &unused) == ERR_COMM);
  MPI_Comm world = mpi.world;
  CHECK(mpi.free(NULL) == ERR_COMM && mpi.free(&world) == ERR_COMM && world == mpi.world);
}

/* Rank 0's call is refused: what the others get next to it is an error. */
static void on_one_rank(int rank, int size) {
  float one = 1, sum = 5;
  int code = mpi.all_reduce(&one, &sum, 1, rank == 0 ? stray : mpi.types[FLOAT], mpi.ops[SUM], mpi.world);
  if (size == 1) return;
  if (rank == 0) code = mpi.all_reduce(&one, &sum, 1, mpi.types[FLOAT], mpi.ops[SUM], mpi.world);
  CHECK_SAYING(code != 0 && isnan(sum), "code %d, sum %g", code, (double)sum);
}

static void refusals(int rank, int size) {
  types_and_operations();
  on_all_ranks(size);
  catch_errors();
  of_messages(rank, size);
  on_one_rank(rank, size);
  /* The two calls without a communicator; size's; and the world's failure, where there is another rank. */
  const char *said = caught_errors(size > 1 ? 4 : 3);
  CHECK_SAYING(size == 1 || strstr(said, "MPI_Allreduce"), "%s", said);
}

void test_refusals(int size) { run_ranks(size, refusals, -1); }
