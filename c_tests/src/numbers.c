/* Values whose results depend on rules and order: a NaN among ranks, and a sum that rounds. */
#include <string.h>

#include "harness.h"

/* ---- 1, NaN, 3 and 4 over four ranks ---- */

enum { NAN_RANKS = 4, WIDTH = 67 };

struct type {
  ring_dtype_t dtype;
  uint64_t one, three, four, nan; /* bits; the values are 1, 3, 4 and a quiet NaN */
};

static const struct type TYPES[] = {
    {RING_DTYPE_FLOAT16, 0x3c00, 0x4200, 0x4400, 0x7e00},
    {RING_DTYPE_BFLOAT16, 0x3f80, 0x4040, 0x4080, 0x7fc0},
    {RING_DTYPE_FLOAT32, 0x3f800000, 0x40400000, 0x40800000, 0x7fc00000},
    {RING_DTYPE_FLOAT64, 0x3ff0000000000000, 0x4008000000000000, 0x4010000000000000, 0x7ff8000000000000},
};

/* An exponent of ones and a fraction that isn't zero. */
static int is_nan(const struct type *type, uint64_t bits) {
  uint64_t fraction = 0, exponent = type->nan;
  switch (type->dtype) {
    case RING_DTYPE_FLOAT16: fraction = 0x3ff; break;
    case RING_DTYPE_BFLOAT16: fraction = 0x7f; break;
    case RING_DTYPE_FLOAT32: fraction = 0x7fffff; break;
    default: fraction = 0xfffffffffffff;
  }
  exponent &= ~fraction;
  return (bits & exponent) == exponent && (bits & fraction) != 0;
}

static void check_nan(ring_group_t *group, const struct type *type, int rotation, int position) {
  /* At the position the values with the NaN, elsewhere 3 in its place. */
  const uint64_t values[NAN_RANKS] = {type->one, type->nan, type->three, type->four};
  size_t bytes = ring_dtype_size(type->dtype);
  unsigned char in[WIDTH * 8], out[WIDTH * 8];
  for (int i = 0; i < WIDTH; i++) {
    uint64_t value = values[(ring_group_rank(group) + rotation) % NAN_RANKS];
    if (i != position && value == type->nan) value = type->three;
    memcpy(in + (size_t)i * bytes, &value, bytes); /* little-endian, as Linux and macOS hosts are */
  }
  for (ring_op_t op = RING_OP_SUM; op <= RING_OP_MIN; op++) {
    OK(ring_all_reduce(group, in, out, WIDTH, type->dtype, op));
    for (int i = 0; i < WIDTH; i++) {
      uint64_t got = 0;
      memcpy(&got, out + (size_t)i * bytes, bytes);
      int right = i == position ? is_nan(type, got)
                  : op == RING_OP_MAX ? got == type->four
                  : op == RING_OP_MIN ? got == type->one
                                      : !is_nan(type, got);
      CHECK(right, "%s %s, rotation %d, NaN at %d: element %d is %llx", ring_dtype_name(type->dtype), ring_op_name(op),
            rotation, position, i, (unsigned long long)got);
    }
  }
}

static void with_nan(int rank, int size, const char *hosts, void *data) {
  (void)size;
  (void)data;
  ring_group_t *group = join(rank, hosts, 1);
  for (size_t t = 0; t < sizeof TYPES / sizeof *TYPES; t++)
    for (int rotation = 0; rotation < NAN_RANKS; rotation++)
      for (int position = 0; position < WIDTH; position++) check_nan(group, &TYPES[t], rotation, position);
  ring_group_destroy(group);
}

/* ---- one 256 and eight 1s in bfloat16 ---- */

enum { SUM_RANKS = 9, MANY = 40000, TWO_PARTS_BYTES = 64 << 10 };

/* bfloat16 has whole numbers up to 256, and every second one up to 512: ties go to the multiple of 4. */
static int add(int a, int b) {
  int sum = a + b;
  if (sum <= 256 || sum % 2 == 0) return sum;
  return (sum + 1) % 4 == 0 ? sum + 1 : sum - 1;
}

static uint16_t whole(int value) {
  float single = (float)value;
  uint32_t bits;
  memcpy(&bits, &single, 4);
  return (uint16_t)(bits >> 16);
}

/* The sum at an index, in the documented order. */
static int sum_at(size_t index, size_t count, int holder) {
  int leftwards = 0;
  size_t start = 0, length = count;
  if (count * 2 >= TWO_PARTS_BYTES) {
    leftwards = index >= count / 2;
    start = leftwards ? count / 2 : 0;
    length = leftwards ? count - count / 2 : count / 2;
  }
  int rank = 0;
  while (index - start >= (size_t)(rank + 1) * length / SUM_RANKS) rank++;
  int sum = rank == holder ? 256 : 1;
  for (int step = 1; step < SUM_RANKS; step++) {
    rank = (rank + (leftwards ? SUM_RANKS - 1 : 1)) % SUM_RANKS;
    sum = add(sum, rank == holder ? 256 : 1);
  }
  return sum;
}

static void rounding(int rank, int size, const char *hosts, void *data) {
  (void)size;
  (void)data;
  const size_t counts[] = {1, 9, 1021, MANY};
  ring_group_t *group = join(rank, hosts, 2);
  uint16_t *in = malloc(MANY * sizeof *in), *out = malloc(MANY * sizeof *out);
  CHECK(in && out);
  for (int i = 0; i < 4; i++) {
    for (int holder = 0; holder < SUM_RANKS; holder++) {
      for (size_t j = 0; j < counts[i]; j++) in[j] = whole(rank == holder ? 256 : 1);
      OK(ring_all_reduce(group, in, out, counts[i], RING_DTYPE_BFLOAT16, RING_OP_SUM));
      for (size_t j = 0; j < counts[i]; j++)
        CHECK(out[j] == whole(sum_at(j, counts[i], holder)), "256 on rank %d: element %zu of %zu is %x, not %d", holder,
              j, counts[i], out[j], sum_at(j, counts[i], holder));
    }
  }
  free(in);
  free(out);
  ring_group_destroy(group);
}

int main(void) {
  char *hosts = make_hosts(NAN_RANKS, 1);
  run_ranks(NAN_RANKS, hosts, with_nan, NULL, 60, 0);
  free(hosts);
  hosts = make_hosts(SUM_RANKS, 1);
  run_ranks(SUM_RANKS, hosts, rounding, NULL, 60, 0);
  free(hosts);
  return 0;
}
