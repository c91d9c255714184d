#include "work.h"

#include <string.h>

/* Every 61st element changes from turn to turn, in each rank's part of it. */
enum { STRIDE = 61 };

static uint32_t element(size_t index, uint32_t turn) { return (uint32_t)index + (index % STRIDE ? 0 : 7 * turn); }

/* This rank's values of the turn: the first time all of them, then those that change. */
static void fill(struct desk *desk) {
  uint32_t factor = (uint32_t)desk->rank + 1;
  size_t step = desk->turn ? STRIDE : 1;
  for (size_t i = 0; i < desk->count; i += step) desk->send[i] = element(i, desk->turn) * factor;
}

static void check(struct desk *desk, size_t start, size_t count, uint32_t factor) {
  for (size_t i = 0; i < count; i++) {
    uint32_t right = element(i, desk->turn) * factor, got = desk->recv[start + i];
    CHECK(got == right, "rank %d of %d, turn %u, element %zu is %u, not %u", desk->rank, desk->size, desk->turn,
          start + i, got, right);
  }
}

static ring_status_t all_reduce(struct desk *desk) {
  uint32_t n = (uint32_t)desk->size;
  ring_status_t status =
      ring_all_reduce(desk->group, desk->send, desk->recv, desk->count, RING_DTYPE_UINT32, RING_OP_SUM);
  if (status == RING_STATUS_OK) check(desk, 0, desk->count, n * (n + 1) / 2);
  return status;
}

static ring_status_t all_gather(struct desk *desk) {
  size_t part = desk->count / (size_t)desk->size;
  ring_status_t status = ring_all_gather(desk->group, desk->send, desk->recv, part, RING_DTYPE_UINT32);
  for (int rank = 0; status == RING_STATUS_OK && rank < desk->size; rank++)
    check(desk, (size_t)rank * part, part, (uint32_t)rank + 1);
  return status;
}

static ring_status_t barrier(struct desk *desk) { return ring_barrier(desk->group); }

/* Everyone to the left, then to the second on the left, and so on all the way round. */
static ring_status_t message(struct desk *desk) {
  int step = 1 + (int)(desk->turn % ((uint32_t)desk->size - 1));
  int to = (desk->rank + desk->size - step) % desk->size, from = (desk->rank + step) % desk->size;
  ring_status_t status =
      ring_send_recv(desk->group, desk->send, desk->count, to, desk->recv, desk->count, from, RING_DTYPE_UINT32);
  if (status == RING_STATUS_OK) check(desk, 0, desk->count, (uint32_t)from + 1);
  return status;
}

const struct work WORKS[4] = {
    {"all_reduce", all_reduce},
    {"all_gather", all_gather},
    {"barrier", barrier},
    {"message", message},
};

ring_status_t do_work(const struct work *work, struct desk *desk) {
  if (work->call != barrier) fill(desk);
  ring_status_t status = work->call(desk);
  desk->turn++;
  return status;
}

const struct work *find_work(const char *name) {
  for (size_t i = 0; i < sizeof WORKS / sizeof *WORKS; i++)
    if (!strcmp(WORKS[i].name, name)) return &WORKS[i];
  CHECK(0, "no work is called %s", name);
  return NULL;
}

struct desk open_desk(ring_group_t *group, size_t count) {
  struct desk desk = {.group = group, .rank = ring_group_rank(group), .size = ring_group_size(group), .count = count};
  desk.send = malloc(count * sizeof *desk.send);
  desk.recv = malloc(count * sizeof *desk.recv);
  CHECK(desk.send && desk.recv);
  return desk;
}

void close_desk(struct desk *desk) {
  free(desk->send);
  free(desk->recv);
}
