/* Reductions by functions of this program. Arguments: ranks, connections. */
#include <string.h>

#include "calls.h"

static int connections;

/* Both calls, by the sum of bytes. */
static void bytes(ring_group_t *group, size_t element, size_t count) {
  const int size = ring_group_size(group);
  struct adder adder = make_adder(group, element);
  struct call call = {
      .kind = ALL_REDUCE_CUSTOM,
      .element = element,
      .count = count,
      .function = add_bytes,
      .user_data = &adder,
  };
  for (size_t shift = 0; shift < 2; shift++) check_call(group, &call, shift);
  CHECK(size > 1 || adder.elements == 0, "called in a group of one");
  call.kind = REDUCE_SCATTER_V_CUSTOM;
  for (int rank = 0; rank < size; rank++) call.counts[0][rank] = count * (size_t)(rank * 5 % 3) / 2;
  for (size_t shift = 0; shift < 2; shift++) check_call(group, &call, shift);
  /* All on one rank. */
  for (int rank = 0; rank < size; rank++) call.counts[0][rank] = rank == size - 1 ? count : 0;
  check_call(group, &call, 3);
  /* This rank has added some of what it got. */
  CHECK(size == 1 || count < (size_t)size || adder.elements > 0, "%zu elements of %zu bytes", count, element);
}

/* A host's own type. */
struct extreme {
  double largest;
  int64_t sum;
  uint32_t holder, mixed; /* the lowest rank that has the largest */
};

static struct extreme extreme_of(int rank, size_t i, int size) {
  return (struct extreme){
      .largest = (double)((i * 7 + (size_t)rank * 3) % (size_t)(2 * size)),
      .sum = (int64_t)i - 1000 * rank,
      .holder = (uint32_t)rank,
      .mixed = (uint32_t)(i * 2654435761u) << rank,
  };
}

static void merge(struct extreme *a, const struct extreme *b) {
  if (b->largest > a->largest || (b->largest >= a->largest && b->holder < a->holder)) {
    a->largest = b->largest;
    a->holder = b->holder;
  }
  a->sum += b->sum;
  a->mixed ^= b->mixed;
}

static void merge_all(void *acc, const void *in, size_t count, void *user_data) {
  for (size_t i = 0; i < count; i++) merge((struct extreme *)acc + i, (const struct extreme *)in + i);
  *(size_t *)user_data += count;
}

static void structs(ring_group_t *group, size_t count) {
  const int rank = ring_group_rank(group), size = ring_group_size(group);
  struct extreme *mine = calloc(count, sizeof *mine), *all = calloc(count, sizeof *all);
  size_t merged = 0;
  CHECK(sizeof *mine == 24 && mine && all);
  for (size_t i = 0; i < count; i++) mine[i] = extreme_of(rank, i, size);
  OK(ring_all_reduce_custom(group, mine, all, count, sizeof *mine, merge_all, &merged));
  for (size_t i = 0; i < count; i++) {
    struct extreme right = extreme_of(0, i, size);
    for (int other = 1; other < size; other++) {
      const struct extreme next = extreme_of(other, i, size);
      merge(&right, &next);
    }
    CHECK(memcmp(&right, &all[i], sizeof right) == 0, "element %zu of %zu", i, count);
  }
  CHECK(size == 1 || count == 0 || merged > 0);
  free(mine);
  free(all);
}

static void body(int rank, int size, const char *hosts, void *data) {
  (void)data;
  ring_group_t *group = join(rank, hosts, connections);
  const size_t n = (size_t)size, counts[] = {0, 1, n - 1, n + 1, 1021, 20011};
  const size_t elements[] = {1, 3, 8, 16, 24, 48};
  for (int e = 0; e < 6; e++)
    for (int i = 0; i < 6; i++) bytes(group, elements[e], counts[i]);
  for (int i = 0; i < 6; i++) structs(group, counts[i]);
  /* Elements that no connection takes at once. */
  bytes(group, 300000, 1);
  bytes(group, 300000, n + 1);
  bytes(group, 1 << 20, 2);
  ring_group_destroy(group);
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2;
  connections = argc > 2 ? atoi(argv[2]) : 1;
  char *hosts = make_hosts(size, 1);
  run_ranks(size, hosts, body, NULL, 100, 0);
  free(hosts);
  return 0;
}
