#include "collective.h"

#include <stdlib.h>
#include <string.h>

/* ---- the calls ---- */

static ring_status_t all_reduce(const call_t *c) {
  return ring_all_reduce(c->group, c->send, c->recv, c->count, c->dtype, c->op);
}

static ring_status_t reduce_scatter(const call_t *c) {
  return ring_reduce_scatter(c->group, c->send, c->recv, c->count, c->dtype, c->op);
}

static ring_status_t all_gather(const call_t *c) {
  return ring_all_gather(c->group, c->send, c->recv, c->count, c->dtype);
}

static ring_status_t broadcast(const call_t *c) {
  return ring_broadcast(c->group, c->recv, c->count, c->dtype, ROOT);
}

static ring_status_t reduce(const call_t *c) {
  return ring_reduce(c->group, c->send, c->recv, c->count, c->dtype, c->op, ROOT);
}

static ring_status_t gather(const call_t *c) {
  return ring_gather(c->group, c->send, c->recv, c->count, c->dtype, ROOT);
}

static ring_status_t scatter(const call_t *c) {
  return ring_scatter(c->group, c->send, c->recv, c->count, c->dtype, ROOT);
}

static ring_status_t all_to_all(const call_t *c) {
  return ring_all_to_all(c->group, c->send, c->recv, c->count, c->dtype);
}

static ring_status_t all_gather_v(const call_t *c) {
  return ring_all_gather_v(c->group, c->send, c->recv_counts[c->rank], c->recv, c->recv_counts, NULL, c->dtype);
}

static ring_status_t reduce_scatter_v(const call_t *c) {
  return ring_reduce_scatter_v(c->group, c->send, c->recv, c->recv_counts, c->dtype, c->op);
}

static ring_status_t all_to_all_v(const call_t *c) {
  return ring_all_to_all_v(c->group, c->send, c->send_counts, NULL, c->recv, c->recv_counts, NULL, c->dtype);
}

static void add_floats(void *acc, const void *input, size_t count, void *user_data) {
  float *sum = acc;
  const float *term = input;
  (void)user_data;
  for (size_t i = 0; i < count; i++) sum[i] += term[i];
}

static ring_status_t all_reduce_custom(const call_t *c) {
  return ring_all_reduce_custom(c->group, c->send, c->recv, c->count, sizeof(float), add_floats, NULL);
}

static ring_status_t reduce_scatter_v_custom(const call_t *c) {
  return ring_reduce_scatter_v_custom(c->group, c->send, c->recv, c->recv_counts, sizeof(float), add_floats, NULL);
}

static int right_of(const call_t *c) { return (c->rank + 1) % c->size; }
static int left_of(const call_t *c) { return (c->rank + c->size - 1) % c->size; }

static ring_status_t send_recv(const call_t *c) {
  return ring_send_recv(c->group, c->send, c->count, right_of(c), c->recv, c->count, left_of(c), c->dtype);
}

static ring_status_t barrier(const call_t *c) { return ring_barrier(c->group); }

/* ---- what they are ---- */

/* Bytes that must cross each rank's link for each byte of the size, as nccl-tests derives them. */
static double twice_the_others(int size) { return 2.0 * (size - 1) / size; }
static double the_others(int size) { return (double)(size - 1) / size; }
static double once(int size) { return size > 1; }

static const collective_t COLLECTIVES[] = {
    {"all_reduce", WHOLE, WHOLE, REDUCED, .out_of_place = true, .in_place = true, .links = twice_the_others,
     .run = all_reduce},
    {"reduce_scatter", WHOLE, PART, REDUCED, .out_of_place = true, .in_place = true, .in_parts = true,
     .links = the_others, .run = reduce_scatter},
    {"all_gather", PART, WHOLE, EACH_RANKS, .out_of_place = true, .in_place = true, .in_parts = true,
     .links = the_others, .run = all_gather},
    {"broadcast", WHOLE, WHOLE, THE_ROOTS, .in_place = true, .links = once, .run = broadcast},
    {"reduce", WHOLE, WHOLE, REDUCED, .out_of_place = true, .in_place = true, .by_root = true, .links = once,
     .run = reduce},
    {"gather", PART, WHOLE, EACH_RANKS, .out_of_place = true, .in_place = true, .by_root = true, .in_parts = true,
     .links = the_others, .run = gather},
    {"scatter", WHOLE, PART, THE_ROOTS, .out_of_place = true, .in_place = true, .in_parts = true,
     .links = the_others, .run = scatter},
    {"all_to_all", WHOLE, WHOLE, EACH_RANKS, .out_of_place = true, .in_parts = true, .links = the_others,
     .run = all_to_all},
    {"all_gather_v", PART, WHOLE, EACH_RANKS, .out_of_place = true, .in_place = true, .varies = true,
     .links = the_others, .run = all_gather_v},
    {"reduce_scatter_v", WHOLE, PART, REDUCED, .out_of_place = true, .in_place = true, .varies = true,
     .links = the_others, .run = reduce_scatter_v},
    {"all_to_all_v", WHOLE, WHOLE, EACH_RANKS, .out_of_place = true, .varies = true, .links = the_others,
     .run = all_to_all_v},
    {"all_reduce_custom", WHOLE, WHOLE, REDUCED, .out_of_place = true, .in_place = true, .custom = true,
     .links = twice_the_others, .run = all_reduce_custom},
    {"reduce_scatter_v_custom", WHOLE, PART, REDUCED, .out_of_place = true, .in_place = true, .varies = true,
     .custom = true, .links = the_others, .run = reduce_scatter_v_custom},
    {"send_recv", WHOLE, WHOLE, THE_LEFT_RANKS, .out_of_place = true, .links = once, .run = send_recv},
    {"barrier", WHOLE, WHOLE, NOBODYS, .out_of_place = true, .links = once, .run = barrier},
};

const char *collective_name(int index) {
  return (size_t)index < sizeof COLLECTIVES / sizeof *COLLECTIVES ? COLLECTIVES[index].name : NULL;
}

const collective_t *find_collective(const char *name) {
  for (int i = 0; collective_name(i); i++) {
    if (strcmp(collective_name(i), name) == 0) return &COLLECTIVES[i];
  }
  return NULL;
}

bool reduces(const collective_t *collective) { return collective->origin == REDUCED; }

/* ---- where what lies ---- */

size_t whole_of(const collective_t *collective, size_t elements, int size) {
  if (collective->origin == NOBODYS) return 0;
  if (!collective->in_parts) return elements;
  size_t part = elements / (size_t)size;
  return (part ? part : 1) * (size_t)size;
}

/* Elements from one rank for another. */
static size_t block(const call_t *c, int from, int to) {
  if (c->collective->send == WHOLE && c->collective->recv == WHOLE) {
    return block_of(c->total, from, to, c->size, c->split);
  }
  int rank = c->collective->send == PART ? from : to;
  return part_of(c->total, rank, c->size, c->split).count;
}

static part_t own_part(const call_t *c) { return part_of(c->total, c->rank, c->size, c->split); }

static part_t extent_of(const call_t *c, extent_t extent) {
  return extent == PART ? own_part(c) : (part_t){0, c->total};
}

bool begin_call(call_t *c, void *send, void *recv) {
  const collective_t *collective = c->collective;
  size_t bytes = ring_dtype_size(c->dtype);
  c->send = send;
  c->recv = recv;
  /* In place the part lies in the whole. */
  if (send == recv) {
    c->send = (uint8_t *)send + extent_of(c, collective->send).start * bytes;
    c->recv = (uint8_t *)recv + extent_of(c, collective->recv).start * bytes;
  }
  c->count = collective->in_parts ? c->total / (size_t)c->size : c->total;
  c->send_counts = calloc((size_t)c->size, sizeof *c->send_counts);
  c->recv_counts = calloc((size_t)c->size, sizeof *c->recv_counts);
  if (!c->send_counts || !c->recv_counts) return false;
  for (int rank = 0; rank < c->size; rank++) {
    c->send_counts[rank] = block(c, c->rank, rank);
    /* Where ranks have parts, all of them know all. */
    c->recv_counts[rank] = collective->recv == PART ? block(c, c->rank, rank) : block(c, rank, c->rank);
  }
  return true;
}

void end_call(call_t *c) {
  free(c->send_counts);
  free(c->recv_counts);
}

/* ---- what must have arrived ---- */

/* Values that don't meet any op are those of a sum. */
static values_t values(const call_t *c) {
  ring_op_t op = reduces(c->collective) ? c->op : RING_OP_SUM;
  return (values_t){.dtype = c->dtype, .op = op, .size = c->size};
}

void fill_send(const call_t *c) {
  const collective_t *collective = c->collective;
  if (collective->origin == THE_ROOTS && c->rank != ROOT) return;
  values_t own = values(c);
  fill(c->send, extent_of(c, collective->send).count, own.dtype, own.op, c->rank, c->size);
}

/* Of the elements that each rank has sent here. */
static size_t count_wrong_of_each(const call_t *c) {
  size_t wrong = 0, at = 0, bytes = ring_dtype_size(c->dtype);
  for (int from = 0; from < c->size; from++) {
    size_t first = 0, count = block(c, from, c->rank);
    for (int to = 0; c->collective->send == WHOLE && to < c->rank; to++) first += block(c, from, to);
    values_t theirs = values(c);
    wrong += count_wrong_of(&theirs, from, first, (const uint8_t *)c->recv + at * bytes, count);
    at += count;
  }
  return wrong;
}

size_t count_wrong_arrivals(const call_t *c) {
  const collective_t *collective = c->collective;
  if (collective->by_root && c->rank != ROOT) return 0;
  part_t arrived = extent_of(c, collective->recv);
  values_t expected = values(c);
  switch (collective->origin) {
    case REDUCED: return count_wrong_of(&expected, ALL_RANKS, arrived.start, c->recv, arrived.count);
    case THE_ROOTS: return count_wrong_of(&expected, ROOT, arrived.start, c->recv, arrived.count);
    case THE_LEFT_RANKS: return count_wrong_of(&expected, left_of(c), 0, c->recv, arrived.count);
    case EACH_RANKS: return count_wrong_of_each(c);
    default: return 0;
  }
}
