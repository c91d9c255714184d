/* Every named type and operation, in place and not, and what is gathered. */
#include "loaded.h"
#include "ranks.h"
#include "subjects.h"

#include <stdlib.h>
#include <string.h>

static const int counts[] = {0, 1, 3, 4, 5, 1021, 70001};

/* Small enough that no sum of eight leaves int8; of bool both values occur. */
static int value(int type, int rank, int i) { return type == BOOL ? (i + rank) % 3 == 0 : (i * 7 + rank * 3) % 11 + 1; }

static int expected(int type, int op, int size, int i) {
  int result = value(type, 0, i);
  for (int rank = 1; rank < size; rank++) {
    int other = value(type, rank, i);
    if (op == SUM) result += other;
    else if (op == MAX ? other > result : other < result) result = other;
  }
  return type == BOOL ? result != 0 : result;
}

static void reduce_all(int rank, int size, int type, int count) {
  void *send = malloc((size_t)count * bytes_of(type) + 1), *recv = malloc((size_t)count * bytes_of(type) + 1);
  for (int op = 0; op < OPS; op++) {
    for (int in_place = 0; in_place < 2; in_place++) {
      void *from = in_place ? recv : send;
      memset(recv, 0x55, (size_t)count * bytes_of(type));
      for (int i = 0; i < count; i++) put(type, from, i, value(type, rank, i));
      CHECK(mpi.all_reduce(in_place ? IN_PLACE : send, recv, count, mpi.types[type], mpi.ops[op], mpi.world) == 0);
      for (int i = 0; i < count; i++) {
        double got = get(type, recv, i), right = expected(type, op, size, i);
        CHECK_SAYING(got == right, "type %d, op %d, element %d of %d is %g, not %g", type, op, i, count, got, right);
      }
    }
  }
  free(send);
  free(recv);
}

static void gather_all(int rank, int size, int type, int count) {
  void *send = malloc((size_t)count * bytes_of(type) + 1);
  char *recv = malloc((size_t)(count * size) * bytes_of(type) + 1);
  for (int in_place = 0; in_place < 2; in_place++) {
    void *from = in_place ? recv + (size_t)(rank * count) * bytes_of(type) : send;
    memset(recv, 0x55, (size_t)(count * size) * bytes_of(type));
    for (int i = 0; i < count; i++) put(type, from, i, value(type, rank, i));
    MPI_Datatype handle = mpi.types[type];
    CHECK(mpi.all_gather(in_place ? IN_PLACE : send, count, handle, recv, count, handle, mpi.world) == 0);
    for (int i = 0; i < count * size; i++) {
      int expected_value = value(type, i / count, i % count);
      CHECK_SAYING(get(type, recv, i) == expected_value, "type %d, element %d of %d", type, i, count);
    }
  }
  free(send);
  free(recv);
}

static void numbers(int rank, int size) {
  for (int type = 0; type < TYPES; type++) {
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
      reduce_all(rank, size, type, counts[i]);
      gather_all(rank, size, type, counts[i]);
    }
  }
}

void test_numbers(int size) {
  char version[256];
  int length = 0;
  CHECK(mpi.get_library_version(version, &length) == 0 && (size_t)length == strlen(version));
  CHECK_SAYING(strstr(version, "Open MPI") && strncmp(version, "libring_mpi ", 12) == 0, "%s", version);
  run_ranks(size, numbers, -1);
}
