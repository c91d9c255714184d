/* Parts cover what they divide, in the proportions that they have, and blocks meet at both ends. */
#include "check.h"
#include "parts.h"

#include <stdint.h>

enum { MOST_PARTS = 9 };

static void parts_cover(size_t total, int parts, split_t split) {
  size_t at = 0;
  for (int i = 0; i < parts; i++) {
    part_t part = part_of(total, i, parts, split);
    CHECK(part.start == at);
    at += part.count;
  }
  CHECK(at == total);
}

static void every_rank_sends_and_receives_all(size_t total, int ranks, split_t split) {
  for (int rank = 0; rank < ranks; rank++) {
    size_t sent = 0, received = 0;
    for (int other = 0; other < ranks; other++) {
      sent += block_of(total, rank, other, ranks, split);
      received += block_of(total, other, rank, ranks, split);
    }
    CHECK(sent == total && received == total);
  }
}

int main(void) {
  const size_t totals[] = {0, 1, 7, 1000, 1000003, (size_t)1 << 40, SIZE_MAX / 2};
  for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
    for (int parts = 1; parts <= MOST_PARTS; parts++) {
      for (int split = SPLIT_EVEN; split <= SPLIT_UNEVEN; split++) {
        parts_cover(totals[i], parts, (split_t)split);
        every_rank_sends_and_receives_all(totals[i], parts, (split_t)split);
      }
    }
  }
  for (int i = 0; i < 4; i++) {
    CHECK(part_of(1000, i, 4, SPLIT_EVEN).count == 250);
    CHECK(part_of(1000, i, 4, SPLIT_UNEVEN).count == 100 * (size_t)(i + 1));
  }
  return 0;
}
