#include "calls.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "reference.h"

enum { GUARD = 32, GAP = 3, PLAIN_ELEMENT = 8, TWO_PARTS_FROM_BYTES = 65536 };
static const unsigned char GUARD_BYTE = 0xa5;

static const struct {
  const char *name;
  bool strict, reduction, root, listed;
} TRAITS[KINDS] = {
    [ALL_REDUCE] = {"all_reduce", true, true, false, false},
    [REDUCE_SCATTER] = {"reduce_scatter", true, true, false, false},
    [ALL_GATHER] = {"all_gather", true, false, false, false},
    [BROADCAST] = {"broadcast", false, false, true, false},
    [REDUCE] = {"reduce", false, true, true, false},
    [GATHER] = {"gather", false, false, true, false},
    [SCATTER] = {"scatter", false, false, true, false},
    [ALL_TO_ALL] = {"all_to_all", true, false, false, false},
    [BARRIER] = {"barrier", true, false, false, false},
    [ALL_GATHER_V] = {"all_gather_v", false, false, false, true},
    [REDUCE_SCATTER_V] = {"reduce_scatter_v", false, true, false, true},
    [ALL_TO_ALL_V] = {"all_to_all_v", false, false, false, true},
    [ALL_REDUCE_CUSTOM] = {"all_reduce_custom", false, true, false, false},
    [REDUCE_SCATTER_V_CUSTOM] = {"reduce_scatter_v_custom", false, true, false, true},
};

/* The function of plain calls; user_data isn't used. */
static void add_floats(void *acc, const void *in, size_t count, void *user_data) {
  (void)user_data;
  for (size_t i = 0; i < count * PLAIN_ELEMENT / sizeof(float); i++) ((float *)acc)[i] += ((const float *)in)[i];
}

const char *kind_name(enum kind kind) { return TRAITS[kind].name; }
bool is_strict(enum kind kind) { return TRAITS[kind].strict; }
bool is_reduction(enum kind kind) { return TRAITS[kind].reduction; }
bool is_custom(enum kind kind) { return kind == ALL_REDUCE_CUSTOM || kind == REDUCE_SCATTER_V_CUSTOM; }
bool has_root(enum kind kind) { return TRAITS[kind].root; }
bool is_listed(enum kind kind) { return TRAITS[kind].listed; }

struct call plain_call(enum kind kind, int size, size_t count) {
  struct call call = {.kind = kind, .dtype = RING_DTYPE_FLOAT32, .op = RING_OP_SUM, .count = count, .root = size - 1};
  for (int from = 0; from < size; from++)
    for (int to = 0; to < size; to++) call.counts[from][to] = count;
  call.element = PLAIN_ELEMENT;
  call.function = add_floats;
  return call;
}

size_t element_bytes(const struct call *call) {
  return is_custom(call->kind) ? call->element : ring_dtype_size(call->dtype);
}

/* Part `index` of parts of these lengths, packed or with gaps. */
static struct span listed(const size_t *lens, int size, int index, bool gaps) {
  struct span span = {gaps ? GAP : 0, lens[index]};
  if (gaps) {
    for (int i = index + 1; i < size; i++) span.start += lens[i] + GAP;
  } else {
    for (int i = 0; i < index; i++) span.start += lens[i];
  }
  return span;
}

static size_t listed_elements(const size_t *lens, int size, bool gaps) {
  size_t sum = gaps ? GAP * (size_t)size : 0;
  for (int i = 0; i < size; i++) sum += lens[i];
  return sum;
}

/* What a rank of an all_to_all_v gets from each. */
static void received_counts(const struct call *call, int size, int rank, size_t *counts) {
  for (int from = 0; from < size; from++) counts[from] = call->counts[from][rank];
}

struct span send_part(const struct call *call, int size, int from, int to) {
  const size_t count = call->count;
  switch (call->kind) {
    case BROADCAST: return (struct span){0, from == call->root ? count : 0};
    case GATHER: return (struct span){0, to == call->root ? count : 0};
    case SCATTER: return (struct span){(size_t)to * count, from == call->root ? count : 0};
    case ALL_GATHER: return (struct span){0, count};
    case ALL_TO_ALL: return (struct span){(size_t)to * count, count};
    case ALL_GATHER_V: return (struct span){0, call->counts[0][from]};
    case ALL_TO_ALL_V: return listed(call->counts[from], size, to, call->gaps);
    default: return (struct span){0, 0};
  }
}

struct span recv_part(const struct call *call, int size, int to, int from) {
  struct span span = {0, send_part(call, size, from, to).len};
  size_t counts[MAX_RING];
  switch (call->kind) {
    case GATHER:
    case ALL_GATHER:
    case ALL_TO_ALL: span.start = (size_t)from * call->count; break;
    case ALL_GATHER_V: return listed(call->counts[0], size, from, call->gaps);
    case ALL_TO_ALL_V: received_counts(call, size, to, counts); return listed(counts, size, from, call->gaps);
    default: break;
  }
  return span;
}

struct span reduced_part(const struct call *call, int size, int rank) {
  switch (call->kind) {
    case ALL_REDUCE:
    case ALL_REDUCE_CUSTOM: return (struct span){0, call->count};
    case REDUCE: return (struct span){0, rank == call->root ? call->count : 0};
    case REDUCE_SCATTER: return (struct span){(size_t)rank * call->count, call->count};
    case REDUCE_SCATTER_V:
    case REDUCE_SCATTER_V_CUSTOM: return listed(call->counts[0], size, rank, false);
    default: return (struct span){0, 0};
  }
}

size_t send_elements(const struct call *call, int size, int rank) {
  const size_t n = (size_t)size;
  switch (call->kind) {
    case BARRIER:
    case BROADCAST: return 0;
    case REDUCE_SCATTER:
    case ALL_TO_ALL: return n * call->count;
    case SCATTER: return rank == call->root ? n * call->count : 0;
    case ALL_GATHER_V: return call->counts[0][rank];
    case REDUCE_SCATTER_V:
    case REDUCE_SCATTER_V_CUSTOM: return listed_elements(call->counts[0], size, false);
    case ALL_TO_ALL_V: return listed_elements(call->counts[rank], size, call->gaps);
    default: return call->count;
  }
}

size_t recv_elements(const struct call *call, int size, int rank) {
  const size_t n = (size_t)size;
  size_t counts[MAX_RING];
  switch (call->kind) {
    case BARRIER: return 0;
    case ALL_GATHER:
    case ALL_TO_ALL: return n * call->count;
    case GATHER: return rank == call->root ? n * call->count : 0;
    case REDUCE: return rank == call->root ? call->count : 0;
    case ALL_GATHER_V: return listed_elements(call->counts[0], size, call->gaps);
    case REDUCE_SCATTER_V:
    case REDUCE_SCATTER_V_CUSTOM: return call->counts[0][rank];
    case ALL_TO_ALL_V: received_counts(call, size, rank, counts); return listed_elements(counts, size, call->gaps);
    default: return call->count;
  }
}

ring_status_t make_call(ring_group_t *group, const struct call *call, const void *send, void *recv) {
  const int rank = ring_group_rank(group), size = ring_group_size(group);
  const size_t count = call->count, *list = call->counts[0];
  const ring_dtype_t dtype = call->dtype;
  size_t out[MAX_RING], into[MAX_RING], counts[MAX_RING];
  for (int other = 0; other < size; other++) {
    out[other] = send_part(call, size, rank, other).start;
    into[other] = recv_part(call, size, rank, other).start;
  }
  const size_t *send_displs = call->gaps ? out : NULL, *recv_displs = call->gaps ? into : NULL;
  switch (call->kind) {
    case ALL_REDUCE: return ring_all_reduce(group, send, recv, count, dtype, call->op);
    case REDUCE_SCATTER: return ring_reduce_scatter(group, send, recv, count, dtype, call->op);
    case ALL_GATHER: return ring_all_gather(group, send, recv, count, dtype);
    case BROADCAST: return ring_broadcast(group, recv, count, dtype, call->root);
    case REDUCE: return ring_reduce(group, send, recv, count, dtype, call->op, call->root);
    case GATHER: return ring_gather(group, send, recv, count, dtype, call->root);
    case SCATTER: return ring_scatter(group, send, recv, count, dtype, call->root);
    case ALL_TO_ALL: return ring_all_to_all(group, send, recv, count, dtype);
    case BARRIER: return ring_barrier(group);
    case ALL_GATHER_V: return ring_all_gather_v(group, send, list[rank], recv, list, recv_displs, dtype);
    case REDUCE_SCATTER_V: return ring_reduce_scatter_v(group, send, recv, list, dtype, call->op);
    case ALL_TO_ALL_V:
      received_counts(call, size, rank, counts);
      return ring_all_to_all_v(group, send, call->counts[rank], send_displs, recv, counts, recv_displs, dtype);
    case ALL_REDUCE_CUSTOM:
      return ring_all_reduce_custom(group, send, recv, count, call->element, call->function, call->user_data);
    case REDUCE_SCATTER_V_CUSTOM:
      return ring_reduce_scatter_v_custom(group, send, recv, list, call->element, call->function, call->user_data);
    default: CHECK(0, "no such kind"); return RING_STATUS_OK;
  }
}

/* ---- what is right ---- */

/* A byte of what a rank sends where nothing is computed with it, or only sums of bytes. */
static unsigned char plain_byte(int rank, size_t index) {
  return (unsigned char)((index * 2654435761u >> 11) + (unsigned)rank * 41u);
}

static void fill_plain(int rank, size_t start, size_t bytes, unsigned char *out) {
  for (size_t i = 0; i < bytes; i++) out[i] = plain_byte(rank, start + i);
}

static void fill_send(const struct call *call, int rank, size_t count, unsigned char *out) {
  if (is_reduction(call->kind) && !is_custom(call->kind)) {
    fill_input(call->dtype, rank, count, out);
  } else {
    fill_plain(rank, 0, count * element_bytes(call), out);
  }
}

/* A part of the ranks' inputs, reduced for a rank that the chains end at. */
static void expect_part(const struct call *call, int size, int end, struct span part, size_t whole, void *out) {
  const size_t element = element_bytes(call);
  const size_t right = whole * element < TWO_PARTS_FROM_BYTES ? part.len : part.len / 2;
  expect_chain(call->dtype, call->op, size, (end + 1) % size, 1, part.start, right, out);
  expect_chain(call->dtype, call->op, size, (end + size - 1) % size, -1, part.start + right, part.len - right,
               (char *)out + right * element);
}

static void expect_sum(const struct call *call, int size, struct span part, unsigned char *out) {
  const size_t element = element_bytes(call);
  memset(out, 0, part.len * element);
  for (int rank = 0; rank < size; rank++)
    for (size_t i = 0; i < part.len * element; i++) out[i] = (unsigned char)(out[i] + plain_byte(rank, part.start * element + i));
}

/* Writes what a rank must get into its output. */
static void expect_output(const struct call *call, int size, int rank, unsigned char *recv) {
  const size_t element = element_bytes(call);
  if (is_reduction(call->kind)) {
    const struct span part = reduced_part(call, size, rank);
    if (is_custom(call->kind)) {
      expect_sum(call, size, part, recv);
    } else if (call->kind == ALL_REDUCE) {
      expect_all_reduce(call->dtype, call->op, size, part.len, recv);
    } else {
      expect_part(call, size, rank, part, send_elements(call, size, rank), recv);
    }
    return;
  }
  for (int from = 0; from < size; from++) {
    const struct span there = send_part(call, size, from, rank), here = recv_part(call, size, rank, from);
    CHECK(there.len == here.len);
    fill_plain(from, there.start * element, here.len * element, recv + here.start * element);
  }
}

/* ---- a call with its buffers ---- */

struct buffer {
  unsigned char *memory, *before; /* with guards */
  size_t all, shift;
};

static struct buffer make_buffer(size_t bytes, size_t shift) {
  struct buffer buffer = {.all = bytes + 2 * GUARD + shift, .shift = shift};
  buffer.memory = aligned_alloc(64, (buffer.all + 63) / 64 * 64);
  buffer.before = malloc(buffer.all);
  CHECK(buffer.memory && buffer.before);
  memset(buffer.memory, GUARD_BYTE, buffer.all);
  return buffer;
}

static unsigned char *data_of(const struct buffer *buffer) { return buffer->memory + GUARD + buffer->shift; }
static unsigned char *before_of(const struct buffer *buffer) { return buffer->before + GUARD + buffer->shift; }

static void keep(struct buffer *buffer) { memcpy(buffer->before, buffer->memory, buffer->all); }

static void free_buffer(struct buffer *buffer) {
  free(buffer->memory);
  free(buffer->before);
}

/* The buffer is as it was kept, where expected results stand by now. */
static void check_buffer(const struct buffer *buffer, const struct call *call, const char *what) {
  for (size_t i = 0; i < buffer->all; i++) {
    CHECK(buffer->memory[i] == buffer->before[i], "%s of %zu elements of %zu bytes, root %d, %s: byte %zd is %d, not %d",
          kind_name(call->kind), call->count, element_bytes(call), call->root, what,
          (ssize_t)i - (ssize_t)(GUARD + buffer->shift), buffer->memory[i], buffer->before[i]);
    if (memcmp(buffer->memory + i, buffer->before + i, buffer->all - i) == 0) return;
  }
}

/* Puts the right results into what is kept of the buffer; any NaN is as right as another. */
static void expect_results(const struct call *call, int size, int rank, const unsigned char *got, unsigned char *kept) {
  expect_output(call, size, rank, kept);
  if (!is_reduction(call->kind) || is_custom(call->kind)) return;
  const size_t count = reduced_part(call, size, rank).len;
  const size_t at = first_difference(call->dtype, count, got, kept);
  CHECK(at == count, "%s(%s, %s) of %zu elements, root %d: rank %d of %d differs at %zu", kind_name(call->kind),
        ring_dtype_name(call->dtype), ring_op_name(call->op), count, call->root, rank, size, at);
  memcpy(kept, got, count * element_bytes(call));
}

static void apart(ring_group_t *group, const struct call *call, size_t shift) {
  const int rank = ring_group_rank(group), size = ring_group_size(group);
  const size_t element = element_bytes(call), sent = send_elements(call, size, rank);
  const size_t received = recv_elements(call, size, rank);
  struct buffer send = make_buffer(sent * element, shift), recv = make_buffer(received * element, shift);
  fill_send(call, rank, sent, data_of(&send));
  if (call->kind == BROADCAST && rank == call->root) fill_plain(rank, 0, received * element, data_of(&recv));
  keep(&send);
  keep(&recv);
  /* What doesn't matter may be anything. */
  void *anything[] = {NULL, (void *)1, data_of(&send), data_of(&recv)};
  const bool off = has_root(call->kind) && rank != call->root;
  const void *from = off && call->kind == SCATTER ? anything[call->count % 4] : data_of(&send);
  void *to = off && (call->kind == REDUCE || call->kind == GATHER) ? anything[call->count % 4] : data_of(&recv);
  OK(make_call(group, call, from, to));
  expect_results(call, size, rank, data_of(&recv), before_of(&recv));
  check_buffer(&send, call, "send");
  check_buffer(&recv, call, "recv");
  free_buffer(&send);
  free_buffer(&recv);
}

bool in_place_form(const struct call *call, int size, int rank, size_t *send, size_t *recv) {
  *send = *recv = 0;
  if (has_root(call->kind) && rank != call->root) return call->kind != BROADCAST;
  switch (call->kind) {
    case ALL_REDUCE:
    case ALL_REDUCE_CUSTOM:
    case REDUCE: return true;
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_V:
    case REDUCE_SCATTER_V_CUSTOM: *recv = reduced_part(call, size, rank).start; return true;
    case ALL_GATHER:
    case ALL_GATHER_V:
    case GATHER: *send = recv_part(call, size, rank, rank).start; return true;
    case SCATTER: *recv = send_part(call, size, rank, rank).start; return true;
    default: return false;
  }
}

static void in_place(ring_group_t *group, const struct call *call, size_t shift) {
  const int rank = ring_group_rank(group), size = ring_group_size(group);
  const size_t element = element_bytes(call), sent = send_elements(call, size, rank);
  const size_t received = recv_elements(call, size, rank), most = sent > received ? sent : received;
  size_t send, recv;
  if (!in_place_form(call, size, rank, &send, &recv)) return;
  struct buffer both = make_buffer(most * element, shift);
  fill_send(call, rank, sent, data_of(&both) + send * element);
  keep(&both);
  OK(make_call(group, call, data_of(&both) + send * element, data_of(&both) + recv * element));
  expect_results(call, size, rank, data_of(&both) + recv * element, before_of(&both) + recv * element);
  check_buffer(&both, call, "in place");
  free_buffer(&both);
}

void check_call(ring_group_t *group, const struct call *call, size_t shift) {
  apart(group, call, shift);
  in_place(group, call, shift);
}

ring_status_t next_call(ring_group_t *group) {
  int one = 1, sum;
  return ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM);
}

/* ---- a reduce function ---- */

struct adder make_adder(ring_group_t *group, size_t element) {
  return (struct adder){.element = element, .group = group, .thread = (pid_t)syscall(SYS_gettid)};
}

void add_bytes(void *acc, const void *in, size_t count, void *user_data) {
  struct adder *adder = user_data;
  const size_t bytes = count * adder->element;
  const size_t lowest = adder->element & -adder->element, alignment = lowest < 16 ? lowest : 16;
  unsigned char *a = acc;
  const unsigned char *b = in;
  CHECK(__atomic_add_fetch(&adder->inside, 1, __ATOMIC_SEQ_CST) == 1, "two calls at a time");
  CHECK((pid_t)syscall(SYS_gettid) == adder->thread, "on another thread");
  CHECK((uintptr_t)a % alignment == 0 && (uintptr_t)b % alignment == 0, "acc %p, in %p", acc, in);
  CHECK(count > 0 && (a + bytes <= b || b + bytes <= a));
  for (size_t i = 0; i < bytes; i++) a[i] = (unsigned char)(a[i] + b[i]);
  if (adder->elements == 0) {
    int value = 0;
    EXPECT(RING_STATUS_INVALID_STATE, ring_barrier(adder->group));
    EXPECT(RING_STATUS_INVALID_STATE, ring_broadcast(adder->group, &value, 1, RING_DTYPE_INT32, 0));
    ring_group_destroy(adder->group);
  }
  adder->elements += count;
  __atomic_sub_fetch(&adder->inside, 1, __ATOMIC_SEQ_CST);
}
