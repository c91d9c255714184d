#include "work.h"

#include <string.h>

/* Every 61st element changes from turn to turn, in each rank's part of it. */
enum { STRIDE = 61, WORDS = 2 };

static uint32_t element(size_t index, uint32_t turn) { return (uint32_t)index + (index % STRIDE ? 0 : 7 * turn); }

/* This rank's values of the turn: the first time all of them, then those that change. */
static void fill(struct desk *desk) {
  uint32_t factor = (uint32_t)desk->rank + 1;
  size_t step = desk->turn ? STRIDE : 1;
  for (size_t i = 0; i < desk->count; i += step) desk->send[i] = element(i, desk->turn) * factor;
}

static void check(struct desk *desk, size_t start, size_t count, size_t sent_from, uint32_t factor) {
  for (size_t i = 0; i < count; i++) {
    uint32_t right = element(sent_from + i, desk->turn) * factor, got = desk->recv[start + i];
    CHECK(got == right, "rank %d of %d, turn %u, element %zu is %u, not %u", desk->rank, desk->size, desk->turn,
          start + i, got, right);
  }
}

/* Elements of a custom reduction. */
struct pair {
  uint32_t words[WORDS];
};

static void add_pairs(void *acc, const void *in, size_t count, void *user_data) {
  (void)user_data;
  for (size_t i = 0; i < count * WORDS; i++) ((uint32_t *)acc)[i] += ((const uint32_t *)in)[i];
}

/* The collective of this turn: about as much as the buffers hold, and a root that changes. */
static struct call call_of(const struct desk *desk, enum kind kind) {
  struct call call = {
      .kind = kind,
      .dtype = RING_DTYPE_UINT32,
      .op = RING_OP_SUM,
      .root = (int)(desk->turn % (uint32_t)desk->size),
      .count = desk->count,
      .element = sizeof(struct pair),
      .function = add_pairs,
  };
  if (is_custom(kind)) call.count /= WORDS;
  const size_t part = call.count / (size_t)desk->size;
  /* Not all as long, and another length for each other `part`. */
  for (int to = 0; to < desk->size; to++) {
    for (int from = 0; from < desk->size; from++)
      call.counts[from][to] = kind == ALL_TO_ALL_V ? part - (size_t)((from + to) % 2) : part - part / 2 * (to % 2);
  }
  if (kind != ALL_REDUCE && kind != ALL_REDUCE_CUSTOM && kind != REDUCE && kind != BROADCAST) call.count = part;
  return call;
}

static ring_status_t collective(struct desk *desk, enum kind kind) {
  const struct call call = call_of(desk, kind);
  const int n = desk->size;
  const size_t words = is_custom(kind) ? WORDS : 1;
  if (kind == BROADCAST && desk->rank == call.root) memcpy(desk->recv, desk->send, call.count * sizeof *desk->recv);
  ring_status_t status = make_call(desk->group, &call, desk->send, desk->recv);
  if (status != RING_STATUS_OK || kind == BARRIER) return status;
  if (is_reduction(kind)) {
    const struct span part = reduced_part(&call, n, desk->rank);
    check(desk, 0, part.len * words, part.start * words, (uint32_t)(n * (n + 1) / 2));
    return status;
  }
  for (int from = 0; from < n; from++) {
    const struct span there = send_part(&call, n, from, desk->rank), here = recv_part(&call, n, desk->rank, from);
    check(desk, here.start, here.len, there.start, (uint32_t)from + 1);
  }
  return status;
}

/* Everyone to the right, then everyone to the left. */
static ring_status_t message(struct desk *desk) {
  int right = (desk->rank + 1) % desk->size, left = (desk->rank + desk->size - 1) % desk->size;
  int to = desk->turn % 2 ? right : left, from = desk->turn % 2 ? left : right;
  ring_status_t status =
      ring_send_recv(desk->group, desk->send, desk->count, to, desk->recv, desk->count, from, RING_DTYPE_UINT32);
  if (status == RING_STATUS_OK) check(desk, 0, desk->count, 0, (uint32_t)from + 1);
  return status;
}

const struct work WORKS[WORK_COUNT] = {
    {"all_reduce", ALL_REDUCE},
    {"all_gather", ALL_GATHER},
    {"barrier", BARRIER},
    {"message", KINDS},
    {"reduce_scatter", REDUCE_SCATTER},
    {"broadcast", BROADCAST},
    {"reduce", REDUCE},
    {"gather", GATHER},
    {"scatter", SCATTER},
    {"all_to_all", ALL_TO_ALL},
    {"all_gather_v", ALL_GATHER_V},
    {"reduce_scatter_v", REDUCE_SCATTER_V},
    {"all_to_all_v", ALL_TO_ALL_V},
    {"all_reduce_custom", ALL_REDUCE_CUSTOM},
    {"reduce_scatter_v_custom", REDUCE_SCATTER_V_CUSTOM},
};

ring_status_t do_work(const struct work *work, struct desk *desk) {
  if (work->kind != BARRIER) fill(desk);
  ring_status_t status = work->kind == KINDS ? message(desk) : collective(desk, work->kind);
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
