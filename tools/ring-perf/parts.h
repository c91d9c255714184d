/* How a size is divided among ranks. */
#ifndef PARTS_H
#define PARTS_H

#include <stddef.h>

/* Uneven parts are in proportion to 1, 2, 3, ...: the last of four is four times the first. */
typedef enum split { SPLIT_EVEN, SPLIT_UNEVEN } split_t;

typedef struct part {
  size_t start;
  size_t count;
} part_t;

/* Part `index` of `parts`, elements of `total`. */
part_t part_of(size_t total, int index, int parts, split_t split);

/* The lengths of blocks of an all-to-all: by the sum of the two ranks, so that every rank sends, and
 * receives, all parts of `total`. */
size_t block_of(size_t total, int from, int to, int ranks, split_t split);

#endif
