#include "parts.h"

#include <stdint.h>

static size_t cut(size_t total, int index, int parts, split_t split) {
  uint64_t i = (uint64_t)index, n = (uint64_t)parts;
  /* In two steps, as total * i need not fit. */
  uint64_t weight = split == SPLIT_EVEN ? i : i * (i + 1), of = split == SPLIT_EVEN ? n : n * (n + 1);
  return (size_t)(total / of * weight + total % of * weight / of);
}

part_t part_of(size_t total, int index, int parts, split_t split) {
  size_t start = cut(total, index, parts, split);
  return (part_t){start, cut(total, index + 1, parts, split) - start};
}

size_t block_of(size_t total, int from, int to, int ranks, split_t split) {
  return part_of(total, (from + to) % ranks, ranks, split).count;
}
