/* Communicators that are split off. */
#include "loaded.h"
#include "ranks.h"
#include "subjects.h"

#include <dirent.h>

/* As many as show that each gives back what it took. */
enum { ROUNDS = 30, ERR_COMM = 5 };

static int sum_over(MPI_Comm comm, int value) {
  int sum = -1;
  CHECK(mpi.all_reduce(&value, &sum, 1, mpi.types[INT32], mpi.ops[SUM], comm) == 0);
  return sum;
}

static void check_place(MPI_Comm comm, int rank, int size) {
  int got_rank = -1, got_size = -1;
  CHECK_SAYING(mpi.rank(comm, &got_rank) == 0 && got_rank == rank, "rank %d, not %d", got_rank, rank);
  CHECK_SAYING(mpi.size(comm, &got_size) == 0 && got_size == size, "size %d, not %d", got_size, size);
}

/* Even and odd ranks, the last first. */
static void halves(int rank, int size) {
  MPI_Comm half = NULL;
  CHECK(mpi.split(mpi.world, rank % 2, size - rank, &half) == 0);
  int members = (size - rank % 2 + 1) / 2, expected = 0;
  check_place(half, members - 1 - rank / 2, members);
  for (int r = rank % 2; r < size; r += 2) expected += r + 1;
  CHECK(sum_over(half, rank + 1) == expected);
  /* Both go on side by side. */
  CHECK(sum_over(mpi.world, 1) == size);
  CHECK(sum_over(half, 1) == members);
  MPI_Comm freed = half;
  CHECK(mpi.free(&half) == 0 && half != freed);
  int unused = 0;
  catch_errors();
  CHECK(mpi.rank(freed, &unused) == ERR_COMM && mpi.rank(half, &unused) == ERR_COMM);
  CHECK(mpi.all_reduce(&unused, &unused, 1, mpi.types[INT32], mpi.ops[SUM], half) == ERR_COMM);
  CHECK(mpi.free(&half) == ERR_COMM);
  caught_errors(3);
}

/* The last rank stays out. */
static void without_last(int rank, int size) {
  MPI_Comm rest = NULL;
  bool is_out = rank == size - 1;
  CHECK(mpi.split(mpi.world, is_out ? UNDEFINED : 4, 0, &rest) == 0);
  if (is_out) {
    int unused = 7, sum = 7;
    catch_errors();
    CHECK(rest && mpi.rank(rest, &unused) == ERR_COMM && unused == 7);
    CHECK(mpi.all_reduce(&unused, &sum, 1, mpi.types[INT32], mpi.ops[SUM], rest) == ERR_COMM);
    caught_errors(2);
  } else {
    check_place(rest, rank, size - 1);
    CHECK(sum_over(rest, 2) == 2 * (size - 1));
    CHECK(mpi.free(&rest) == 0);
  }
}

/* -1 where there is no such folder. */
static int open_descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  int count = folder ? 0 : -1;
  while (folder && readdir(folder)) count++;
  if (folder) closedir(folder);
  return count;
}

static void splits(int rank, int size) {
  halves(rank, size);
  without_last(rank, size);
  int before = open_descriptors();
  for (int round = 0; round < ROUNDS; round++) {
    MPI_Comm all = NULL, part = NULL;
    CHECK(mpi.split(mpi.world, 0, rank, &all) == 0 && mpi.split(all, rank / 2, rank, &part) == 0);
    CHECK(sum_over(part, rank) == (rank / 2 * 2 + 1 < size ? rank / 2 * 4 + 1 : rank));
    CHECK(mpi.free(&all) == 0 && mpi.free(&part) == 0);
  }
  CHECK(open_descriptors() == before);
  /* What is left open is closed with the world. */
  MPI_Comm left = NULL;
  CHECK(mpi.split(mpi.world, 0, 0, &left) == 0);
}

void test_splits(int size) { run_ranks(size, splits, -1); }
