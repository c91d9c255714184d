/* Messages between any two ranks. */
#include "loaded.h"
#include "ranks.h"
#include "subjects.h"

#include <stdint.h>
#include <stdlib.h>

enum { COUNT = 3001 };

static int value(int src, int dst, int i) { return i * 64 + src * 8 + dst; }

static void one(int rank, int src, int dst) {
  int32_t *array = malloc(COUNT * sizeof *array);
  status_t status = {-5, -5, -5, -5, 0};
  if (rank == src) {
    for (int i = 0; i < COUNT; i++) array[i] = value(src, dst, i);
    CHECK(mpi.send(array, COUNT, mpi.types[INT32], dst, 0, mpi.world) == 0);
  } else if (rank == dst) {
    CHECK(mpi.recv(array, COUNT, mpi.types[INT32], src, ANY_TAG, mpi.world, &status) == 0);
    for (int i = 0; i < COUNT; i++) CHECK_SAYING(array[i] == value(src, dst, i), "element %d", i);
    CHECK(status.source == src && status.tag == 0 && status.error == 0);
    CHECK(status.received_bytes == COUNT * sizeof *array);
  }
  free(array);
}

static void messages(int rank, int size) {
  for (int src = 0; src < size; src++) {
    for (int dst = 0; dst < size; dst++) {
      if (src != dst) one(rank, src, dst);
    }
  }
  /* A type of the program's own, to the left, without a status. */
  uint16_t own[2] = {(uint16_t)(rank + 1), 0x7fff}, got[2] = {0, 0};
  MPI_Datatype two_bytes = NULL;
  CHECK(mpi.type_contiguous(2, mpi.types[UINT8], &two_bytes) == 0 && mpi.type_commit(&two_bytes) == 0);
  if (size == 1) return;
  CHECK(mpi.send(own, 2, two_bytes, (rank + size - 1) % size, 0, mpi.world) == 0);
  CHECK(mpi.recv(got, 2, two_bytes, (rank + 1) % size, 0, mpi.world, NULL) == 0);
  CHECK(got[0] == (rank + 1) % size + 1 && got[1] == 0x7fff);
}

void test_messages(int size) { run_ranks(size, messages, -1); }
