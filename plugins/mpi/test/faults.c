/* A rank is killed in a loop of sums: the others know who it was, at once, and get no numbers. */
#include "loaded.h"
#include "ranks.h"
#include "subjects.h"

#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 100003, VICTIM = 1, DIES_AFTER = 20, CALLS = 1000000 };

/* What the library promises. */
static const double NOTICED_S = 1, LATER_CALL_S = 0.01;

static void check_spoilt(int type, const char *array) {
  for (int i = 0; i < 11; i++) {
    const int element = type == DOUBLE ? 0 : i;
    double value = get(type, array, element);
    switch (type) {
      case BOOL: CHECK(value == 1); break;
      case INT8: CHECK(value == INT8_MIN); break;
      case INT16: CHECK(value == INT16_MIN); break;
      case INT32: CHECK(value == INT32_MIN); break;
      case INT64: CHECK(value == (double)INT64_MIN); break;
      case UINT8: CHECK(value == UINT8_MAX); break;
      case UINT16: CHECK(value == UINT16_MAX); break;
      case UINT32: CHECK(value == UINT32_MAX); break;
      case UINT64: CHECK(value == (double)UINT64_MAX); break;
      default: CHECK_SAYING(isnan(value), "type %d", type);
    }
  }
}

static void faults(int rank, int size) {
  float *values = malloc(COUNT * sizeof *values), *sums = malloc(COUNT * sizeof *sums);
  char name[16], array[11 * 8];
  for (int i = 0; i < COUNT; i++) values[i] = (float)rank;
  int code = 0;
  double before = 0;
  catch_errors();
  for (int call = 0; call < CALLS && code == 0; call++) {
    if (rank == VICTIM && call == DIES_AFTER) raise(SIGKILL);
    before = now_s();
    code = mpi.all_reduce(values, sums, COUNT, mpi.types[FLOAT], mpi.ops[SUM], mpi.world);
    for (int i = 0; i < COUNT && code == 0; i++) CHECK(sums[i] == (float)(size * (size - 1) / 2));
  }
  CHECK_SAYING(code != 0 && now_s() - before < NOTICED_S, "it took %g s", now_s() - before);
  for (int i = 0; i < COUNT; i++) CHECK_SAYING(isnan(sums[i]), "element %d is %g", i, (double)sums[i]);
  /* The quickest of them: a busy machine delays some. */
  double later_s = NOTICED_S;
  for (int type = 0; type < TYPES; type++) {
    memset(array, 0x33, sizeof array);
    before = now_s();
    CHECK(mpi.all_reduce(IN_PLACE, array, 11, mpi.types[type], mpi.ops[MAX], mpi.world) != 0);
    double took_s = now_s() - before;
    if (took_s < later_s) later_s = took_s;
    check_spoilt(type, array);
  }
  CHECK_SAYING(later_s < LATER_CALL_S, "it took %g s", later_s);
  memset(sums, 0, COUNT * sizeof *sums);
  CHECK(mpi.all_gather(values, 3, mpi.types[FLOAT], sums, 3, mpi.types[FLOAT], mpi.world) != 0);
  for (int i = 0; i < COUNT; i++) CHECK_SAYING(i < 3 * size ? isnan(sums[i]) : sums[i] == 0, "element %d", i);
  CHECK(mpi.recv(values, 1, mpi.types[FLOAT], VICTIM, 0, mpi.world, NULL) != 0 && isnan(values[0]));
  CHECK(mpi.send(values, 1, mpi.types[FLOAT], VICTIM, 0, mpi.world) != 0);
  MPI_Comm part = NULL;
  CHECK(mpi.split(mpi.world, 0, 0, &part) != 0);
  const char *said = caught_errors(1);
  snprintf(name, sizeof name, "rank %d of %d:", rank, size);
  CHECK_SAYING(strstr(said, name) && strstr(said, "libring_mpi: ") == said, "%s", said);
  CHECK_SAYING(strstr(said, "the process of rank 1"), "%s", said);
  free(values);
  free(sums);
}

void test_faults(int size) {
  if (size > VICTIM) run_ranks(size, faults, VICTIM);
}
