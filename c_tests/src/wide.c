/* RING_FLAG_WIDE_ACCUMULATION: sums and means of 16-bit floats are float32 from the first addition to the last and
 * rounded once, bit for bit, and bytes are what that takes; all else is as without it. Arguments: ranks,
 * connections. */
#include <string.h>

#include "calls.h"
#include "reference.h"

enum { TYPES = 2 };
static const ring_dtype_t NARROW[TYPES] = {RING_DTYPE_FLOAT16, RING_DTYPE_BFLOAT16};

static int connections;
static char *other_hosts; /* for a second group of the same ranks */

static ring_group_t *join_with(uint32_t flags, int rank, const char *hosts) {
  ring_config_t config = make_config(rank, hosts, connections);
  config.flags = flags;
  ring_group_t *group = NULL;
  OK(ring_group_create(&config, &group));
  return group;
}

/* Parts of different lengths, some of none, of about `count` elements in all. */
static struct call listed(ring_dtype_t dtype, ring_op_t op, int size, size_t count) {
  struct call call = {.kind = REDUCE_SCATTER_V, .dtype = dtype, .op = op};
  const size_t unit = count / (size_t)size;
  for (int rank = 0; rank < size; rank++) call.counts[0][rank] = unit * ((size_t)rank * 5 % 4) / 2 + (size_t)rank % 2;
  return call;
}

/* Every reduction of one type and op, of inputs of about `count` elements, some at odd addresses. */
static void reductions(ring_group_t *group, ring_dtype_t dtype, ring_op_t op, size_t count) {
  const int size = ring_group_size(group);
  const size_t shift = ((dtype == RING_DTYPE_FLOAT16) + (op == RING_OP_SUM) + count) % 2;
  struct call call = {.kind = ALL_REDUCE, .dtype = dtype, .op = op, .count = count};
  check_call(group, &call, shift);
  call.kind = REDUCE;
  call.root = (int)((count + (size_t)op) % (size_t)size);
  check_call(group, &call, shift);
  call.kind = REDUCE_SCATTER;
  call.count = count < 2 * (size_t)size ? count : count / (size_t)size;
  check_call(group, &call, shift);
  call = listed(dtype, op, size, count);
  check_call(group, &call, shift);
}

static void sums_and_means(ring_group_t *group, size_t count) {
  for (int t = 0; t < TYPES; t++) {
    reductions(group, NARROW[t], RING_OP_SUM, count);
    reductions(group, NARROW[t], RING_OP_MEAN, count);
  }
}

/* The flag says nothing about other types and ops. */
static void all_else(ring_group_t *group) {
  const size_t count = 1021;
  keep_sums_wide(false);
  for (ring_dtype_t dtype = RING_DTYPE_BOOL; dtype <= RING_DTYPE_COMPLEX64; dtype++) {
    const bool narrow = dtype == RING_DTYPE_FLOAT16 || dtype == RING_DTYPE_BFLOAT16;
    for (ring_op_t op = RING_OP_SUM; op <= RING_OP_BXOR; op++) {
      if (!is_supported(dtype, op) || (narrow && (op == RING_OP_SUM || op == RING_OP_MEAN))) continue;
      struct call call = {.kind = ALL_REDUCE, .dtype = dtype, .op = op, .count = count};
      check_call(group, &call, 0);
      call.kind = REDUCE_SCATTER;
      check_call(group, &call, 0);
    }
    /* And nothing about one addition. */
    if (narrow && ring_group_size(group) == 2) reductions(group, dtype, RING_OP_SUM, 20011);
  }
  keep_sums_wide(true);
}

/* The inputs tell the two ways apart: a sum of two alone is the same. */
static void differ(int size) {
  enum { COUNT = 1021 };
  static uint16_t rounded[COUNT], wide[COUNT];
  for (int t = 0; t < TYPES; t++) {
    keep_sums_wide(false);
    expect_all_reduce(NARROW[t], RING_OP_SUM, size, COUNT, rounded);
    keep_sums_wide(true);
    expect_all_reduce(NARROW[t], RING_OP_SUM, size, COUNT, wide);
    CHECK((first_difference(NARROW[t], COUNT, rounded, wide) < COUNT) == (size > 2));
  }
}

static void requests(ring_group_t *group, ring_dtype_t dtype, ring_op_t op, size_t count) {
  const int rank = ring_group_rank(group), size = ring_group_size(group);
  const size_t all = count * (size_t)size;
  uint16_t *send = malloc(all * sizeof *send), *whole = malloc(all * sizeof *whole);
  uint16_t *part = malloc(count * sizeof *part), *right = malloc(all * sizeof *right);
  ring_request_t *first = NULL, *second = NULL;
  CHECK(send && whole && part && right);
  fill_input(dtype, rank, all, send);
  OK(ring_all_reduce_async(group, send, whole, all, dtype, op, &first));
  OK(ring_reduce_scatter_async(group, send, part, count, dtype, op, &second));
  OK(ring_request_wait(second, RING_TIMEOUT_INFINITE));
  OK(ring_request_wait(first, RING_TIMEOUT_INFINITE));
  expect_all_reduce(dtype, op, size, all, right);
  CHECK(first_difference(dtype, all, whole, right) == all);
  /* The blocking call is checked elsewhere. */
  OK(ring_reduce_scatter(group, send, right, count, dtype, op));
  CHECK(first_difference(dtype, count, part, right) == count);
  ring_request_destroy(first);
  ring_request_destroy(second);
  free(send), free(whole), free(part), free(right);
}

/* ---- results known by hand ---- */

/* What ranks 0, 1, 2 and all others have, and what comes out in any order, by bits. */
struct known {
  ring_dtype_t dtype;
  ring_op_t op;
  uint16_t values[4], result;
};

enum { HALF = RING_DTYPE_FLOAT16, BFLOAT = RING_DTYPE_BFLOAT16, SUM = RING_OP_SUM, MEAN = RING_OP_MEAN };

static const struct known KNOWN[] = {
    {HALF, SUM, {0x6800, 0x3c00, 0x3c00, 0}, 0x6801},         /* 2048 + 1 + 1 */
    {HALF, SUM, {0x6800, 0x3800, 0x3800, 0}, 0x6800},         /* 2048 + 0.5 + 0.5: halfway, down to even */
    {HALF, SUM, {0x6801, 0x3800, 0x3800, 0}, 0x6802},         /* 2050 + 0.5 + 0.5: halfway, up to even */
    {HALF, SUM, {0x3c00, 0x1000, 0x0010, 0}, 0x3c01},         /* 1 + 2^-11 + 2^-20: more than halfway */
    {HALF, SUM, {0x7b53, 0x7b53, 0xfb53, 0}, 0x7b53},         /* 60000 + 60000 - 60000 */
    {HALF, SUM, {0x7bff, 0x4800, 0x4700, 0}, 0x7bff},         /* 65504 + 8 + 7: less than halfway beyond */
    {HALF, SUM, {0x7bff, 0x4800, 0x4800, 0}, 0x7c00},         /* 65504 + 8 + 8: infinity */
    {HALF, SUM, {0xfbff, 0xfbff, 0xfbff, 0xfbff}, 0xfc00},    /* minus infinity */
    {HALF, MEAN, {0x7bff, 0x7bff, 0x7bff, 0x7bff}, 0x7bff},   /* the largest: its sum is more */
    {HALF, SUM, {0x0001, 0x0001, 0x0001, 0}, 0x0003},         /* subnormal */
    {HALF, MEAN, {0x0001, 0x0001, 0x0001, 0x0001}, 0x0001},
    {HALF, SUM, {0x8000, 0x8000, 0x8000, 0x8000}, 0x8000},    /* -0 */
    {HALF, SUM, {0x7c00, 0x3c00, 0x3c00, 0x3c00}, 0x7c00},
    {HALF, MEAN, {0x3c00, 0xfc00, 0x3c00, 0x3c00}, 0xfc00},
    {HALF, SUM, {0x7c00, 0xfc00, 0x3c00, 0x3c00}, 0x7e00},
    {HALF, MEAN, {0x3c00, 0x3c00, 0x7e01, 0x3c00}, 0x7e00},
    {BFLOAT, SUM, {0x4380, 0x3f80, 0x3f80, 0}, 0x4381},       /* 256 + 1 + 1 */
    {BFLOAT, SUM, {0x7f7f, 0x7a80, 0, 0}, 0x7f7f},            /* the largest + 2^118: less than halfway beyond */
    {BFLOAT, SUM, {0x7f7f, 0x7a80, 0x7a80, 0}, 0x7f80},       /* + 2^119: infinity */
    {BFLOAT, MEAN, {0x7f7f, 0x7f7f, 0x7f7f, 0x7f7f}, 0x7f80}, /* float32's sum is infinite, too */
    {BFLOAT, MEAN, {0x3f81, 0x3f81, 0x3f81, 0x3f81}, 0x3f81},
    {BFLOAT, SUM, {0x0001, 0x0001, 0x0001, 0}, 0x0003},
    {BFLOAT, SUM, {0x0040, 0x0040, 0x0040, 0}, 0x00c0},       /* subnormal ones make a normal one */
    {BFLOAT, MEAN, {0x0001, 0x0001, 0x0001, 0x0001}, 0x0001},
    {BFLOAT, SUM, {0x7f80, 0xff80, 0x3f80, 0x3f80}, 0x7fc0},
    {BFLOAT, SUM, {0x3f80, 0x7fc1, 0x3f80, 0x3f80}, 0x7fc0},
};

static void known(ring_group_t *group, size_t count) {
  const int rank = ring_group_rank(group);
  uint16_t *own = malloc(count * sizeof *own), *right = malloc(count * sizeof *right);
  CHECK(own && right);
  for (size_t k = 0; k < sizeof KNOWN / sizeof *KNOWN; k++) {
    const struct known *it = &KNOWN[k];
    for (size_t i = 0; i < count; i++) {
      own[i] = it->values[rank < 3 ? rank : 3];
      right[i] = it->result;
    }
    OK(ring_all_reduce(group, own, own, count, it->dtype, it->op));
    const size_t at = first_difference(it->dtype, count, own, right);
    CHECK(at == count, "result %zu: element %zu of %zu is %#x, not %#x", k, at, count, own[at], right[at]);
  }
  free(own), free(right);
}

/* ---- bytes ---- */

enum { NARROW_BYTES = 2, MORE_BYTES = 2 /* of a float32 */, HEADER_BYTES = 48 };

/* Payload and call headers that this rank sends in a call. */
static uint64_t sent(ring_group_t *group, const struct call *call) {
  const int rank = ring_group_rank(group), size = ring_group_size(group);
  void *send = calloc(send_elements(call, size, rank) + 1, NARROW_BYTES);
  void *recv = calloc(recv_elements(call, size, rank) + 1, NARROW_BYTES);
  ring_stats_t before = {.struct_size = sizeof before}, after = before;
  CHECK(send && recv);
  OK(ring_group_stats(group, &before));
  OK(make_call(group, call, send, recv));
  OK(ring_group_stats(group, &after));
  free(send), free(recv);
  return after.bytes_sent - before.bytes_sent;
}

static size_t segment(size_t length, int index, int size) {
  const size_t i = (size_t)((index % size + size) % size), n = (size_t)size;
  return (i + 1) * length / n - i * length / n;
}

/* Elements that a rank sends as partial sums: neither its own values nor results. */
static size_t sums(const struct call *call, int rank, int size) {
  const size_t right = call->count / 2, left = call->count - right;
  size_t elements = 0;
  switch (call->kind) {
    case ALL_REDUCE:
      for (int hop = 1; hop < size - 1; hop++)
        elements += segment(right, rank - hop, size) + segment(left, rank + hop, size);
      return elements;
    case REDUCE_SCATTER: return call->count * (size_t)(size - 2);
    default: /* a chain's first rank has no sum yet, and the root keeps it */
      if ((rank - call->root + size) % size > 1) elements += right;
      if ((call->root - rank + size) % size > 1) elements += left;
      return elements;
  }
}

/* What an all-reduce without the flag sends: each segment but one, twice. */
static size_t least(const struct call *call, int rank, int size) {
  const size_t right = call->count / 2, left = call->count - right;
  size_t elements = 0;
  for (int step = 0; step < 2 * (size - 1); step++)
    elements += segment(right, rank - step, size) + segment(left, rank + step, size);
  return elements * NARROW_BYTES;
}

static void bytes(ring_group_t *wide, int rank, int size) {
  enum { LARGE = 600011, SMALL = 1021, ALONE = 1 };
  const enum kind kinds[] = {ALL_REDUCE, REDUCE_SCATTER, REDUCE};
  const uint64_t headers = size > 2 ? 2 * HEADER_BYTES : HEADER_BYTES;
  ring_group_t *plain = join_with(0, rank, other_hosts);
  for (int i = 0; i < 3; i++) {
    struct call call = {.kind = kinds[i], .dtype = RING_DTYPE_BFLOAT16, .op = RING_OP_SUM, .count = LARGE};
    call.root = size / 2;
    uint64_t without = sent(plain, &call), with = sent(wide, &call);
    uint64_t more = size > ALONE ? MORE_BYTES * sums(&call, rank, size) : 0;
    CHECK(with - without == more, "%s: rank %d of %d sends %llu bytes, %llu without the flag, and not %llu more",
          kind_name(call.kind), rank, size, (unsigned long long)with, (unsigned long long)without,
          (unsigned long long)more);
    if (call.kind == ALL_REDUCE && size > ALONE) {
      CHECK(without == least(&call, rank, size) + headers, "%llu bytes", (unsigned long long)without);
      CHECK((with - headers) * 2 <= (without - headers) * 3);
    }
    /* The partial sums of small calls don't travel; other types have none. */
    call.count = size > 2 ? SMALL / (size_t)size : SMALL;
    CHECK(sent(plain, &call) == sent(wide, &call), "%s of few elements", kind_name(call.kind));
    call.count = LARGE;
    call.op = RING_OP_MAX;
    CHECK(sent(plain, &call) == sent(wide, &call), "%s of maxima", kind_name(call.kind));
  }
  ring_group_destroy(plain);
}

/* ---- */

/* Groups that are split off have the flag, or don't, as their parent. */
static void children(ring_group_t *group) {
  const int rank = ring_group_rank(group);
  ring_group_t *child = NULL;
  OK(ring_group_split(group, 0, -rank, &child));
  sums_and_means(child, 1021);
  ring_group_destroy(child);
}

static void body(int rank, int size, const char *hosts, void *data) {
  /* In each ring the second is several blocks a segment, and more than a pass's window holds. */
  enum { MANY = 300007, MOST = 800011 };
  const size_t n = (size_t)size, counts[] = {0, 1, n - 1, n + 1, 1021, 20011, 40010};
  (void)data;
  keep_sums_wide(true);
  ring_group_t *group = join_with(RING_FLAG_WIDE_ACCUMULATION, rank, hosts);
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) sums_and_means(group, counts[i]);
  reductions(group, RING_DTYPE_FLOAT16, RING_OP_MEAN, MANY);
  reductions(group, RING_DTYPE_BFLOAT16, RING_OP_SUM, MOST);
  all_else(group);
  differ(size);
  requests(group, RING_DTYPE_FLOAT16, RING_OP_MEAN, 7);
  requests(group, RING_DTYPE_BFLOAT16, RING_OP_SUM, 20011);
  if (size > 2) known(group, 5), known(group, 20011);
  bytes(group, rank, size);
  children(group);
  ring_group_destroy(group);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2;
  connections = argc > 2 ? atoi(argv[2]) : 1;
  char *hosts = make_hosts(size, 1);
  other_hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, NULL, 160, 0);
  free(hosts);
  free(other_hosts);
  return 0;
}
