/* Functions of the program's own on types of its own: those that the library has are left to it, and all give
 * the right numbers. Which are recognised on what is recognise_test.c's. */
#include "loaded.h"
#include "narrow.h"
#include "ranks.h"
#include "subjects.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 5003 };

static int calls;

#define NARROW_FUNCTION(name, dtype, expression)                                    \
  static void name(void *in, void *inout, int *length, MPI_Datatype *type) {        \
    (void)type;                                                                     \
    calls++;                                                                        \
    for (int i = 0; i < *length; i++) {                                             \
      double a = from_narrow(dtype, ((uint16_t *)inout)[i]);                        \
      double b = from_narrow(dtype, ((uint16_t *)in)[i]);                           \
      double result = (expression);                                                 \
      uint16_t *out = (uint16_t *)inout + i;                                        \
      /* The tests' conversion knows no infinities and NaNs. */                     \
      if (result != result) *out = 0x7fff;                                          \
      else if (result > largest(dtype)) *out = infinity(dtype);                     \
      else if (result < -largest(dtype)) *out = 0x8000 | infinity(dtype);           \
      else *out = to_narrow(dtype, result);                                         \
    }                                                                               \
  }

/* What still rounds to the largest finite number. */
static double largest(ring_dtype_t dtype) { return dtype == RING_DTYPE_FLOAT16 ? 65519.99 : 0x1.feffffp127; }
static uint16_t infinity(ring_dtype_t dtype) { return dtype == RING_DTYPE_FLOAT16 ? 0x7c00 : 0x7f80; }

NARROW_FUNCTION(sum_f16, RING_DTYPE_FLOAT16, (float)a + (float)b)
NARROW_FUNCTION(sum_bf16, RING_DTYPE_BFLOAT16, (float)a + (float)b)
NARROW_FUNCTION(product_f16, RING_DTYPE_FLOAT16, a * b)

static void xor_of(void *in, void *inout, int *length, MPI_Datatype *type) {
  (void)type;
  calls++;
  for (int i = 0; i < *length; i++) ((uint16_t *)inout)[i] ^= ((uint16_t *)in)[i];
}

/* The largest of three bytes' first, with its other two: a type that no array has. */
static void largest_of_three(void *in, void *inout, int *length, MPI_Datatype *type) {
  (void)type;
  calls++;
  for (int i = 0; i < *length; i++) {
    unsigned char *a = (unsigned char *)inout + 3 * i, *b = (unsigned char *)in + 3 * i;
    if (b[0] > a[0]) memcpy(a, b, 3);
  }
}

static MPI_Datatype run_of_bytes(int bytes) {
  MPI_Datatype type = NULL;
  CHECK(mpi.type_contiguous(bytes, mpi.types[UINT8], &type) == 0 && mpi.type_commit(&type) == 0);
  return type;
}

static MPI_Op made(user_function *function) {
  MPI_Op op = NULL;
  CHECK(mpi.op_create(function, 1, &op) == 0);
  return op;
}

/* Values of up to 8 ranks whose sum and product both types hold without rounding. */
static void narrow_one(int rank, int size, ring_dtype_t dtype, user_function *function, bool is_product, bool is_ours) {
  uint16_t values[COUNT], results[COUNT];
  MPI_Datatype type = run_of_bytes(2);
  MPI_Op op = made(function);
  for (int i = 0; i < COUNT; i++) values[i] = to_narrow(dtype, (i + rank) % 3 + (is_product ? 1 : rank));
  for (int round = 0; round < 2; round++) {
    if (round == 1) calls = 0;
    CHECK(mpi.all_reduce(round ? values : (memcpy(results, values, sizeof values), IN_PLACE), results, COUNT, type, op,
                         mpi.world) == 0);
    for (int i = 0; i < COUNT; i++) {
      double expected = is_product;
      for (int r = 0; r < size; r++) {
        double value = (i + r) % 3 + (is_product ? 1 : r);
        expected = is_product ? expected * value : expected + value;
      }
      double got = from_narrow(dtype, results[i]);
      CHECK_SAYING(got == expected, "element %d is %g, not %g", i, got, expected);
    }
  }
  /* Once it is known to be the library's, the function itself has nothing to do. */
  CHECK_SAYING(size == 1 || (calls == 0) == is_ours, "%d calls", calls);
}

static void others(int rank, int size) {
  uint16_t bits[COUNT], result[COUNT];
  for (int i = 0; i < COUNT; i++) bits[i] = (uint16_t)(i * 31 + rank * 977);
  CHECK(mpi.all_reduce(bits, result, COUNT, run_of_bytes(2), made(xor_of), mpi.world) == 0);
  for (int i = 0; i < COUNT; i++) {
    uint16_t expected = 0;
    for (int r = 0; r < size; r++) expected ^= (uint16_t)(i * 31 + r * 977);
    CHECK_SAYING(result[i] == expected, "element %d", i);
  }
  unsigned char triples[COUNT][3], largest_triples[COUNT][3];
  for (int i = 0; i < COUNT; i++) {
    triples[i][0] = (unsigned char)(rank == i % size ? 200 : rank);
    triples[i][1] = (unsigned char)(rank + 7);
    triples[i][2] = (unsigned char)i;
  }
  CHECK(mpi.all_reduce(triples, largest_triples, COUNT, run_of_bytes(3), made(largest_of_three), mpi.world) == 0);
  for (int i = 0; i < COUNT; i++) {
    const unsigned char *got = largest_triples[i];
    CHECK(got[0] == 200 && got[1] == i % size + 7 && got[2] == (unsigned char)i);
  }
}

/* MLX's complex max, and gathered values of a type of the program's own. */
static void larger_complex(void *in, void *inout, int *length, MPI_Datatype *type) {
  (void)type;
  calls++;
  for (int i = 0; i < *length; i++) {
    float *a = (float *)inout + 2 * i, *b = (float *)in + 2 * i;
    if (a[0] < b[0] || (a[0] == b[0] && a[1] < b[1])) memcpy(a, b, 2 * sizeof *a);
  }
}

static void complexes(int rank, int size) {
  float values[COUNT][2], results[COUNT][2];
  MPI_Op op = made(larger_complex);
  for (int i = 0; i < COUNT; i++) {
    values[i][0] = (float)(i % 5);
    values[i][1] = (float)((i + rank) % size);
  }
  CHECK(mpi.all_reduce(values, results, COUNT, mpi.types[COMPLEX], op, mpi.world) == 0);
  calls = 0;
  CHECK(mpi.all_reduce(values, results, COUNT, mpi.types[COMPLEX], op, mpi.world) == 0 && calls == 0);
  for (int i = 0; i < COUNT; i++) CHECK(results[i][0] == (float)(i % 5) && results[i][1] == (float)(size - 1));
}

static void gathered(int rank, int size) {
  uint16_t own[3] = {(uint16_t)rank, (uint16_t)(rank * 300), 0x7e00}, all[3 * 8];
  MPI_Datatype type = run_of_bytes(2);
  CHECK(mpi.all_gather(own, 3, type, all, 3, type, mpi.world) == 0);
  for (int r = 0; r < size; r++) CHECK(all[3 * r] == r && all[3 * r + 1] == r * 300 && all[3 * r + 2] == 0x7e00);
}

static void custom(int rank, int size) {
  narrow_one(rank, size, RING_DTYPE_FLOAT16, sum_f16, false, true);
  narrow_one(rank, size, RING_DTYPE_BFLOAT16, sum_bf16, false, true);
  narrow_one(rank, size, RING_DTYPE_FLOAT16, product_f16, true, false);
  others(rank, size);
  complexes(rank, size);
  gathered(rank, size);
}

/* Rank 0's function is one of the library's, and the others' isn't: programs that differ get no numbers. */
static void mixed(int rank, int size) {
  uint16_t bits[COUNT], result[COUNT];
  for (int i = 0; i < COUNT; i++) bits[i] = to_narrow(RING_DTYPE_FLOAT16, (i + rank) % 9);
  catch_errors();
  int code = mpi.all_reduce(bits, result, COUNT, run_of_bytes(2), made(rank == 0 ? sum_f16 : product_f16), mpi.world);
  /* Nothing but NaNs. */
  for (int i = 0; i < COUNT; i++) CHECK(result[i] == 0xffff);
  CHECK(code != 0 && mpi.all_reduce(IN_PLACE, bits, 1, mpi.types[UINT16], mpi.ops[SUM], mpi.world) != 0);
  caught_errors(1);
  (void)size;
}

void test_custom(int size) {
  run_ranks(size, custom, -1);
  if (size > 1) run_ranks(size, mixed, -1);
}
