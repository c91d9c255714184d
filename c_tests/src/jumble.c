/* Everything a group can do, jumbled: a sequence of calls that its seed alone decides, alike on all ranks, of which
 * each rank makes its own choice of blocking or not, in place or not, when to wait and how. Every result and every
 * byte around it is checked.
 *
 *   jumble SEED [ROUNDS]        rounds of SEED, SEED + 1, ...: rings of 1 to 8
 *   jumble SEED ROUNDS FAULT    with a fault at a random moment: kill, stop, pause, abort, destroy
 *
 * JUMBLE_RANKS limits the ring, JUMBLE_CALLS the sequence. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "reference.h"

enum {
  CALLS = 60,       /* of a round's first group */
  CHILD_CALLS = 12, /* of a group that is split off */
  MOST = 110,       /* requests in flight */
  MOST_CHILDREN = 8,
  DEPTH = 2,
  GUARD = 32,
  LIMIT_S = 60,
  TIMEOUT_MS = 20000,
  FAULT_TIMEOUT_MS = 1500,
  STRIKE_US = 250000, /* a fault comes within this time of the first call */
  GRACE_MS = 1000,    /* that a call may take longer than it promises */
};
static const unsigned char GUARD_BYTE = 0xa5;

enum fault { NONE, KILL, STOP, PAUSE, ABORT, DESTROY };
static const char *const FAULTS[] = {"none", "kill", "stop", "pause", "abort", "destroy"};

/* What all processes of a round share. */
struct round {
  uint64_t seed;
  int size, connections, calls, culprit, port;
  unsigned flags;
  enum fault fault;
  double struck; /* 0: not yet */
  int ready, splits_failed, failed;
};

/* One rank's part in a group's sequence. */
struct run {
  struct round *round;
  ring_group_t *group;
  int rank, size, depth;
  bool has_culprit; /* whether the one at fault is a member */
  int culprit;      /* its rank here */
  uint64_t seed;
  uint64_t done; /* collectives and messages that succeeded */
  bool failed;
  int in_flight;
  struct flight *flights[MOST];
  int members[MAX_RING]; /* their first ranks */
};

static unsigned pick(uint64_t *random, unsigned below) { return (unsigned)(next_random(random) % below); }

/* ---- data ---- */

static uint64_t value(uint64_t salt, int rank, size_t i) {
  uint64_t x = salt + (uint64_t)(rank + 1) * 0x9e3779b97f4a7c15u + i * 0xd1b54a32d192ed03u;
  x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
  return x ^ x >> 29;
}

/* Whole numbers, whose sums are exact wherever they are added: of narrow types so only in wide accumulation. */
static double number(ring_dtype_t dtype, uint64_t v, bool wide) {
  switch (dtype) {
    case RING_DTYPE_FLOAT16: return (double)(v % (wide ? 2048 : 128));
    case RING_DTYPE_BFLOAT16: return (double)(v % (wide ? 256 : 16));
    default: return (double)(v % 4096);
  }
}

static void put(ring_dtype_t dtype, double x, double y, void *out) {
  float parts[2] = {(float)x, (float)y};
  uint16_t narrow;
  switch (dtype) {
    case RING_DTYPE_FLOAT16:
    case RING_DTYPE_BFLOAT16: narrow = to_narrow(dtype, parts[0]); memcpy(out, &narrow, 2); break;
    case RING_DTYPE_FLOAT64: memcpy(out, &x, 8); break;
    default: memcpy(out, parts, ring_dtype_size(dtype));
  }
}

static bool is_floating(ring_dtype_t dtype) { return dtype >= RING_DTYPE_FLOAT16; }

/* Elements from `start` on of what a rank has. */
static void fill(const struct call *call, uint64_t salt, bool wide, int rank, struct span span, unsigned char *out) {
  const size_t element = element_bytes(call);
  for (size_t i = span.start; i < span.start + span.len; i++, out += element) {
    const uint64_t v = value(salt, rank, i);
    if (is_custom(call->kind)) {
      for (size_t b = 0; b < element; b++) out[b] = (unsigned char)(v >> b % 8 * 8) ^ (unsigned char)(b >> 3);
    } else if (is_floating(call->dtype)) {
      put(call->dtype, number(call->dtype, v, wide), number(call->dtype, v >> 32, wide), out);
    } else if (call->dtype == RING_DTYPE_BOOL) {
      *out = v & 1 ? (unsigned char)(v >> 8 | 1) : 0;
    } else {
      memcpy(out, &v, element);
    }
  }
}

static uint64_t reduced(ring_op_t op, uint64_t a, uint64_t b, bool is_bool) {
  switch (op) {
    case RING_OP_MAX: return a > b ? a : b;
    case RING_OP_MIN: return a < b ? a : b;
    case RING_OP_BXOR: return a ^ b;
    default: return is_bool ? a | b : a + b;
  }
}

static double reduced_number(ring_op_t op, double a, double b) {
  switch (op) {
    case RING_OP_MAX: return a > b ? a : b;
    case RING_OP_MIN: return a < b ? a : b;
    default: return a + b;
  }
}

/* A part of all ranks' inputs, reduced. */
static void reduce(const struct call *call, uint64_t salt, bool wide, int size, struct span span, unsigned char *out) {
  const size_t element = element_bytes(call);
  const ring_dtype_t dtype = call->dtype;
  const bool is_bool = dtype == RING_DTYPE_BOOL;
  for (size_t i = span.start; i < span.start + span.len; i++, out += element) {
    if (is_custom(call->kind)) {
      for (size_t b = 0; b < element; b++) {
        out[b] = 0;
        for (int rank = 0; rank < size; rank++)
          out[b] += (unsigned char)((unsigned char)(value(salt, rank, i) >> b % 8 * 8) ^ (unsigned char)(b >> 3));
      }
    } else if (is_floating(dtype)) {
      double x = 0, y = 0;
      for (int rank = 0; rank < size; rank++) {
        const uint64_t v = value(salt, rank, i);
        const double a = number(dtype, v, wide), b = number(dtype, v >> 32, wide);
        x = rank == 0 ? a : reduced_number(call->op, x, a);
        y = rank == 0 ? b : reduced_number(call->op, y, b);
      }
      if (call->op == RING_OP_MEAN && dtype == RING_DTYPE_FLOAT64) {
        x /= size;
      } else if (call->op == RING_OP_MEAN) {
        x = (float)x / (float)size;
        y = (float)y / (float)size;
      }
      put(dtype, x, y, out);
    } else {
      const uint64_t mask = element == 8 ? UINT64_MAX : (UINT64_C(1) << element * 8) - 1;
      uint64_t x = 0;
      for (int rank = 0; rank < size; rank++) {
        const uint64_t v = value(salt, rank, i), a = is_bool ? v & 1 : v & mask;
        x = rank == 0 ? a : reduced(call->op, x, a, is_bool);
      }
      memcpy(out, &x, element);
    }
  }
}

static void add(void *acc, const void *in, size_t count, void *user_data) {
  unsigned char *a = acc;
  const unsigned char *b = in;
  for (size_t i = 0; i < count * *(const size_t *)user_data; i++) a[i] = (unsigned char)(a[i] + b[i]);
}

/* ---- a call under way ---- */

enum what { COLLECTIVE, SEND, RECV, SEND_RECV };

struct buffer {
  unsigned char *memory;
  size_t bytes, shift;
};

struct flight {
  enum what what;
  struct call call;
  uint64_t salt;
  bool wide, in_place;
  int src, dst, index;
  struct buffer send, recv; /* in place there is recv alone */
  size_t send_at, recv_at;  /* bytes, in the one buffer */
  ring_request_t *request;
  double started;
};

static struct buffer make_buffer(size_t bytes, size_t shift) {
  struct buffer buffer = {malloc(bytes + shift + 2 * GUARD), bytes, shift};
  CHECK(buffer.memory);
  memset(buffer.memory, GUARD_BYTE, bytes + shift + 2 * GUARD);
  return buffer;
}

static unsigned char *data_of(const struct buffer *buffer) { return buffer->memory + GUARD + buffer->shift; }

static size_t max_of(size_t a, size_t b) { return a > b ? a : b; }

/* What stands in a buffer when the call is made (`after` false) or is to stand there when it has succeeded. */
static void stand(const struct run *run, const struct flight *it, bool is_recv, bool after, unsigned char *data) {
  const struct call *call = &it->call;
  const size_t element = element_bytes(call);
  if (it->what != COLLECTIVE) {
    const struct span all = {0, call->count};
    if (!is_recv) fill(call, it->salt, it->wide, run->rank, all, data);
    if (is_recv && after && it->what != SEND) fill(call, it->salt, it->wide, it->src, all, data);
    return;
  }
  const struct span inputs = {0, send_elements(call, run->size, run->rank)};
  if (!is_recv || it->in_place) fill(call, it->salt, it->wide, run->rank, inputs, data + it->send_at);
  const bool is_source = call->kind == BROADCAST && run->rank == call->root;
  if (is_recv && is_source) fill(call, it->salt, it->wide, run->rank, (struct span){0, call->count}, data);
  if (!is_recv || !after) return;
  data += it->recv_at;
  if (is_reduction(call->kind)) {
    reduce(call, it->salt, it->wide, run->size, reduced_part(call, run->size, run->rank), data);
    return;
  }
  for (int from = 0; from < run->size; from++) {
    const struct span there = send_part(call, run->size, from, run->rank);
    fill(call, it->salt, it->wide, from, there, data + recv_part(call, run->size, run->rank, from).start * element);
  }
}

static void check_buffer(const struct run *run, const struct flight *it, bool is_recv) {
  const struct buffer *buffer = is_recv ? &it->recv : &it->send;
  if (!buffer->memory) return;
  struct buffer right = make_buffer(buffer->bytes, buffer->shift);
  stand(run, it, is_recv, true, data_of(&right));
  const size_t all = buffer->bytes + buffer->shift + 2 * GUARD;
  for (size_t i = 0; memcmp(right.memory, buffer->memory, all) != 0 && i < all; i++)
    CHECK(right.memory[i] == buffer->memory[i],
          "seed %llu, depth %d, rank %d of %d, call %d: %s%s of %zu %s, root %d%s: byte %zd of %zu in %s is %d, not %d",
          (unsigned long long)run->round->seed, run->depth, run->rank, run->size, it->index,
          it->what == COLLECTIVE ? kind_name(it->call.kind) : "message", it->request ? "_async" : "", it->call.count,
          ring_dtype_name(it->call.dtype), it->call.root, it->in_place ? ", in place" : "",
          (ssize_t)i - (ssize_t)(GUARD + buffer->shift), buffer->bytes, is_recv ? "recv" : "send", buffer->memory[i],
          right.memory[i]);
  free(right.memory);
}

static bool has_async(const struct flight *it) {
  if (it->what != COLLECTIVE) return it->what != SEND_RECV;
  return it->call.kind <= BROADCAST || it->call.kind == ALL_TO_ALL || it->call.kind == BARRIER;
}

static ring_status_t start_async(ring_group_t *group, struct flight *it, const void *send, void *recv) {
  const struct call *call = &it->call;
  const size_t count = call->count;
  const ring_dtype_t dtype = call->dtype;
  ring_request_t **out = &it->request;
  if (it->what == SEND) return ring_send_async(group, send, count, dtype, it->dst, out);
  if (it->what == RECV) return ring_recv_async(group, recv, count, dtype, it->src, out);
  switch (call->kind) {
    case ALL_REDUCE: return ring_all_reduce_async(group, send, recv, count, dtype, call->op, out);
    case REDUCE_SCATTER: return ring_reduce_scatter_async(group, send, recv, count, dtype, call->op, out);
    case ALL_GATHER: return ring_all_gather_async(group, send, recv, count, dtype, out);
    case BROADCAST: return ring_broadcast_async(group, recv, count, dtype, call->root, out);
    case ALL_TO_ALL: return ring_all_to_all_async(group, send, recv, count, dtype, out);
    default: return ring_barrier_async(group, out);
  }
}

static ring_status_t call_now(ring_group_t *group, const struct flight *it, const void *send, void *recv) {
  const size_t count = it->call.count;
  const ring_dtype_t dtype = it->call.dtype;
  switch (it->what) {
    case SEND: return ring_send(group, send, count, dtype, it->dst);
    case RECV: return ring_recv(group, recv, count, dtype, it->src);
    case SEND_RECV: return ring_send_recv(group, send, count, it->dst, recv, count, it->src, dtype);
    default: return make_call(group, &it->call, send, recv);
  }
}

static bool is_expected(const struct round *round, ring_status_t status) {
  switch (round->fault) {
    case KILL:
    case DESTROY: return status == RING_STATUS_PEER_LOST || (round->fault == DESTROY && status == RING_STATUS_ABORTED);
    case STOP: return status == RING_STATUS_TIMEOUT;
    case ABORT: return status == RING_STATUS_ABORTED;
    default: return false;
  }
}

/* Takes note of how a call ended; whether its results count. */
static bool ended(struct run *run, const struct flight *it, ring_status_t status) {
  struct round *round = run->round;
  if (status == RING_STATUS_OK) {
    run->done += it->what == SEND_RECV ? (run->size == 1 ? 0 : 2) : 1;
    return true;
  }
  const double now = seconds(), struck = round->struck;
  const char *name = it->what == COLLECTIVE ? kind_name(it->call.kind) : "message";
  const char *text = last_error();
  /* A message whose peer has gone before there was a link. */
  if (round->fault == KILL && it->what != COLLECTIVE && status == RING_STATUS_CONNECT_FAILED && run->has_culprit)
    return false;
  /* Where a group's split failed on some ranks, the others' new group lacks those. */
  const bool lacks = run->depth > 0 && round->splits_failed && status == RING_STATUS_PEER_LOST;
  CHECK((is_expected(round, status) || lacks) && struck > 0, "seed %llu, depth %d, rank %d of %d, call %d, %s: %s: %s",
        (unsigned long long)round->seed, run->depth, run->rank, run->size, it->index, name, ring_status_name(status), text);
  CHECK(run->has_culprit || round->splits_failed, "seed %llu, depth %d, rank %d of %d, call %d, %s: %s: %s",
        (unsigned long long)round->seed, run->depth, run->rank, run->size, it->index, name, ring_status_name(status), text);
  CHECK(!((round->fault == ABORT || round->fault == DESTROY) && run->depth > 0 && !round->splits_failed),
        "seed %llu: a child failed with its parent: %s", (unsigned long long)round->seed, text);
  const double since = it->started > struck ? it->started : struck;
  /* A rank that comes to the call late, having waited elsewhere, is progress, after which the time counts anew. */
  const double limit_s = (GRACE_MS + (round->fault == STOP ? 2 * FAULT_TIMEOUT_MS : 0)) / 1e3;
  CHECK(run->failed || now - since <= limit_s,
        "seed %llu, depth %d, rank %d, call %d, %s%s: %.3f s, begun %.3f s after the fault: %s",
        (unsigned long long)round->seed, run->depth, run->rank, it->index, name, it->request ? "_async" : "", now - since,
        it->started - struck, text);
  run->failed = true;
  return false;
}

static void land(struct run *run, struct flight *it, ring_status_t status) {
  if (ended(run, it, status)) {
    check_buffer(run, it, true);
    check_buffer(run, it, false);
  }
  free(it->send.memory);
  free(it->recv.memory);
  free(it);
}

/* Waits for a request in one of all ways. */
static void await(struct run *run, struct flight *it, uint64_t *own) {
  ring_status_t status = RING_STATUS_PENDING;
  bool done = false;
  switch (pick(own, 4)) {
    case 0:
      while (status == RING_STATUS_PENDING) status = ring_request_wait(it->request, pick(own, 4));
      break;
    case 1:
      while (!done) {
        OK(ring_request_test(it->request, &done));
        if (!done) usleep(100);
      }
      status = ring_request_wait(it->request, 0);
      break;
    default: status = ring_request_wait(it->request, RING_TIMEOUT_INFINITE);
  }
  CHECK(status != RING_STATUS_PENDING);
  ring_request_destroy(it->request);
  land(run, it, status);
}

static void land_one(struct run *run, uint64_t *own) {
  const int i = (int)pick(own, (unsigned)run->in_flight);
  struct flight *it = run->flights[i];
  run->flights[i] = run->flights[--run->in_flight];
  await(run, it, own);
}

static void launch(struct run *run, struct flight *it, uint64_t *own) {
  const struct call *call = &it->call;
  const size_t element = element_bytes(call);
  size_t sent = call->count, received = call->count, send_at = 0, recv_at = 0;
  if (it->what == COLLECTIVE) {
    sent = send_elements(call, run->size, run->rank);
    received = recv_elements(call, run->size, run->rank);
    it->in_place = pick(own, 3) == 0 && in_place_form(call, run->size, run->rank, &send_at, &recv_at);
  }
  it->wide = (run->round->flags & RING_FLAG_WIDE_ACCUMULATION) != 0;
  it->send_at = send_at * element;
  it->recv_at = recv_at * element;
  if (it->in_place) {
    it->recv = make_buffer(max_of(sent + send_at, received + recv_at) * element, pick(own, 17));
    it->recv_at = recv_at * element;
  } else {
    it->send_at = it->recv_at = 0;
    it->send = make_buffer(sent * element, pick(own, 17));
    it->recv = make_buffer(received * element, pick(own, 17));
    stand(run, it, false, false, data_of(&it->send));
  }
  stand(run, it, true, false, data_of(&it->recv));
  const void *send = it->in_place ? data_of(&it->recv) + it->send_at : data_of(&it->send);
  void *recv = data_of(&it->recv) + it->recv_at;
  it->started = seconds();
  if (has_async(it) && pick(own, 3) > 0) {
    const ring_status_t status = start_async(run->group, it, send, recv);
    if (status != RING_STATUS_OK) {
      land(run, it, status);
    } else if (run->in_flight < MOST) {
      run->flights[run->in_flight++] = it;
    } else {
      await(run, it, own);
    }
  } else {
    land(run, it, call_now(run->group, it, send, recv));
  }
}

/* ---- sequences ---- */

static size_t some_bytes(uint64_t *common, int size) {
  switch (pick(common, 10)) {
    case 0: return 0;
    case 1: return (size_t)(size - 1 + (int)pick(common, 3));
    case 2: return pick(common, 64);
    case 3: return 65536 - 40 + pick(common, 80);
    case 4: return (32768 << pick(common, 3)) - 9 + pick(common, 18);
    case 5: return pick(common, 4) == 0 ? pick(common, 3 << 20) : pick(common, 300000);
    default: return pick(common, 6000);
  }
}

static struct call some_call(uint64_t *common, int size) {
  static const ring_dtype_t dtypes[] = {RING_DTYPE_UINT8,   RING_DTYPE_UINT32,   RING_DTYPE_UINT64,  RING_DTYPE_FLOAT32,
                                        RING_DTYPE_FLOAT16, RING_DTYPE_BFLOAT16, RING_DTYPE_FLOAT64, RING_DTYPE_COMPLEX64,
                                        RING_DTYPE_BOOL,    RING_DTYPE_UINT16};
  static const ring_op_t ops[] = {RING_OP_SUM, RING_OP_SUM, RING_OP_MAX, RING_OP_MIN};
  static size_t elements[] = {1, 3, 12, 16, 640, 300001};
  struct call call = {.kind = (enum kind)pick(common, KINDS)};
  call.dtype = dtypes[pick(common, 10)];
  call.op = ops[pick(common, 4)];
  if (pick(common, 4) == 0) call.op = is_floating(call.dtype) ? RING_OP_MEAN : RING_OP_BXOR;
  if (call.dtype == RING_DTYPE_COMPLEX64 && call.op != RING_OP_MEAN) call.op = RING_OP_SUM;
  if (call.dtype == RING_DTYPE_BOOL && call.op != RING_OP_BXOR) call.op = RING_OP_SUM;
  call.root = (int)pick(common, (unsigned)size);
  call.gaps = pick(common, 2);
  call.element = elements[pick(common, 6)];
  call.user_data = &elements[0];
  for (size_t i = 0; i < 6; i++)
    if (elements[i] == call.element) call.user_data = &elements[i];
  call.function = add;
  const bool whole = call.kind == ALL_REDUCE || call.kind == BROADCAST || call.kind == REDUCE;
  size_t count = some_bytes(common, size) / (whole ? 1 : (size_t)size) / element_bytes(&call);
  if (is_custom(call.kind) && call.element > 1000) count = pick(common, 4);
  call.count = count;
  for (int from = 0; from < size; from++)
    for (int to = 0; to < size; to++)
      call.counts[from][to] = pick(common, 4) == 0 ? 0 : count - (count ? pick(common, (unsigned)count) / 2 : 0) + pick(common, 3);
  return call;
}

static void run_calls(struct run *run, int calls);

static struct run child_of(const struct run *run, ring_group_t *group, uint64_t seed, const int *colors, const int *keys) {
  struct run child = {.round = run->round, .group = group, .depth = run->depth + 1, .seed = seed, .culprit = -1};
  child.rank = ring_group_rank(group);
  child.size = ring_group_size(group);
  int at = 0, order[MAX_RING];
  for (int i = 0; i < run->size; i++)
    if (colors[i] == colors[run->rank]) order[at++] = i;
  CHECK(at == child.size, "%d ranks have the color, the group has %d", at, child.size);
  for (int i = 0; i < at; i++)
    for (int j = i + 1; j < at; j++)
      if (keys[order[j]] < keys[order[i]] || (keys[order[j]] == keys[order[i]] && order[j] < order[i])) {
        const int other = order[i];
        order[i] = order[j];
        order[j] = other;
      }
  for (int i = 0; i < at; i++) {
    child.members[i] = run->members[order[i]];
    if (child.members[i] == run->round->culprit) child.has_culprit = true, child.culprit = i;
  }
  CHECK(child.members[child.rank] == run->members[run->rank], "a split gave another rank");
  return child;
}

static void *child_thread(void *data) {
  struct run *child = data;
  run_calls(child, CHILD_CALLS);
  ring_group_destroy(child->group);
  return NULL;
}

struct children {
  int count;
  pthread_t threads[MOST_CHILDREN];
  struct run runs[MOST_CHILDREN];
};

static void split(struct run *run, uint64_t *common, int index, struct children *children) {
  int colors[MAX_RING], keys[MAX_RING];
  const uint64_t seed = next_random(common);
  const unsigned sorts = 1 + pick(common, 3);
  const bool beside = pick(common, 2);
  for (int i = 0; i < run->size; i++) {
    colors[i] = (int)pick(common, sorts + 1) - (pick(common, 4) == 0);
    keys[i] = (int)pick(common, 5) - 2;
  }
  struct flight it = {.index = index, .started = seconds(), .call = {.kind = BARRIER}};
  ring_group_t *group = NULL;
  const ring_status_t status = ring_group_split(run->group, colors[run->rank], keys[run->rank], &group);
  if (status != RING_STATUS_OK) __atomic_add_fetch(&run->round->splits_failed, 1, __ATOMIC_SEQ_CST);
  if (status == RING_STATUS_CONNECT_FAILED && (run->round->fault == KILL || run->round->fault == STOP)) return;
  if (!ended(run, &it, status)) return;
  CHECK((group != NULL) == (colors[run->rank] >= 0));
  if (!group) return;
  struct run child = child_of(run, group, seed + (uint64_t)colors[run->rank], colors, keys);
  if (beside && children->count < MOST_CHILDREN) {
    children->runs[children->count] = child;
    CHECK(pthread_create(&children->threads[children->count], NULL, child_thread, &children->runs[children->count]) == 0);
    children->count++;
  } else {
    child_thread(&child);
  }
}

static void message(struct run *run, uint64_t *common, uint64_t *own, int index) {
  struct flight base = {.index = index, .src = -1, .dst = -1};
  int order[MAX_RING];
  base.call.kind = KINDS - 1 == ALL_REDUCE ? BARRIER : ALL_TO_ALL; /* whose elements are of dtype */
  base.call.dtype = pick(common, 2) ? RING_DTYPE_UINT8 : RING_DTYPE_UINT32;
  base.call.count = some_bytes(common, run->size) / ring_dtype_size(base.call.dtype);
  base.salt = next_random(common);
  for (int i = 0; i < run->size; i++) order[i] = i;
  for (int i = run->size - 1; i > 0; i--) {
    const int j = (int)pick(common, (unsigned)i + 1), other = order[i];
    order[i] = order[j];
    order[j] = other;
  }
  const bool rotates = pick(common, 3) == 0;
  const int pairs = 1 + (int)pick(common, 3);
  if (run->size == 1) return;
  if (rotates) {
    struct flight *it = malloc(sizeof *it);
    *it = base;
    it->what = SEND_RECV;
    for (int i = 0; i < run->size; i++) {
      if (order[i] != run->rank) continue;
      it->dst = order[(i + 1) % run->size];
      it->src = order[(i + run->size - 1) % run->size];
    }
    launch(run, it, own);
    return;
  }
  for (int i = 0; i + 1 < run->size && i < pairs && !run->failed; i++) {
    struct flight *it = malloc(sizeof *it);
    *it = base;
    it->src = order[i];
    it->dst = order[i + 1];
    it->what = it->src == run->rank ? SEND : RECV;
    if (it->src == run->rank || it->dst == run->rank) {
      launch(run, it, own);
    } else {
      free(it);
    }
  }
}

static void check_stats(const struct run *run) {
  ring_stats_t stats = {.struct_size = sizeof stats};
  OK(ring_group_stats(run->group, &stats));
  CHECK(stats.operations == run->done, "seed %llu, depth %d, rank %d: counted %llu of %llu",
        (unsigned long long)run->round->seed, run->depth, run->rank, (unsigned long long)stats.operations,
        (unsigned long long)run->done);
}

struct aborter {
  struct run *run;
  useconds_t delay;
};

static void *abort_later(void *data) {
  struct aborter *aborter = data;
  usleep(aborter->delay);
  aborter->run->round->struck = seconds();
  OK(ring_group_abort(aborter->run->group));
  return NULL;
}

static void run_calls(struct run *run, int calls) {
  uint64_t common = run->seed, own = run->seed * 31 + (uint64_t)run->members[run->rank] + 1;
  struct children children = {.count = 0};
  struct round *round = run->round;
  const int first = run->members[run->rank];
  const bool destroys = round->fault == DESTROY && run->depth == 0 && first == round->culprit;
  const int last = destroys ? (int)pick(&own, (unsigned)calls) : calls;
  pthread_t thread;
  struct aborter aborter = {run, pick(&own, STRIKE_US)};
  const bool aborts = round->fault == ABORT && run->depth == 0 && first == round->culprit;
  if (aborts) CHECK(pthread_create(&thread, NULL, abort_later, &aborter) == 0);
  for (int i = 0; i < last && !run->failed; i++) {
    const unsigned what = pick(&common, 20);
    if (what == 0 && run->depth < DEPTH) {
      split(run, &common, i, &children);
    } else if (what < 6) {
      message(run, &common, &own, i);
    } else {
      struct flight *it = calloc(1, sizeof *it);
      it->call = some_call(&common, run->size);
      it->salt = next_random(&common);
      it->index = i;
      launch(run, it, &own);
    }
    if (pick(&own, 8) == 0) usleep(pick(&own, 1000));
    if (pick(&own, 8) == 0 && round->fault == NONE) OK(ring_group_set_timeout(run->group, TIMEOUT_MS + pick(&own, 5)));
    for (unsigned n = pick(&own, 3); n > 0 && run->in_flight > 0 && pick(&own, 4) == 0; n--) land_one(run, &own);
  }
  if (aborts) pthread_join(thread, NULL);
  if (destroys) {
    round->struck = seconds();
    ring_group_destroy(run->group);
    run->group = NULL;
  }
  while (run->in_flight > 0) land_one(run, &own);
  for (int i = 0; i < children.count; i++) pthread_join(children.threads[i], NULL);
  if (run->failed && run->group) {
    const double start = seconds();
    CHECK(next_call(run->group) != RING_STATUS_OK);
    CHECK(seconds() - start < 0.2, "the next call took %.3f s", seconds() - start);
  } else if (run->group) {
    check_stats(run);
  }
}

static void body(int rank, int size, const char *hosts, void *data) {
  struct round *round = data;
  char rendezvous[64];
  const int descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  ring_config_t config = make_config(rank, hosts, round->connections);
  if (round->port) {
    snprintf(rendezvous, sizeof rendezvous, "127.0.0.1:%d", round->port);
    config.hosts = NULL;
    config.rendezvous = rendezvous;
    config.size = size;
  }
  config.flags = round->flags;
  config.timeout_ms = round->fault == NONE || round->fault == PAUSE ? TIMEOUT_MS : FAULT_TIMEOUT_MS;
  if (getenv("JUMBLE_TIMEOUT_MS")) config.timeout_ms = (uint32_t)atoi(getenv("JUMBLE_TIMEOUT_MS"));
  struct run run = {.round = round, .rank = rank, .size = size, .seed = round->seed, .has_culprit = true};
  run.culprit = round->culprit;
  for (int i = 0; i < size; i++) run.members[i] = i;
  OK(ring_group_create(&config, &run.group));
  __atomic_add_fetch(&round->ready, 1, __ATOMIC_SEQ_CST);
  run_calls(&run, round->calls);
  ring_group_destroy(run.group);
  for (int tries = 0; tries < 300; tries++) {
    if (entries("/proc/self/fd") == descriptors && entries("/proc/self/task") == threads) return;
    usleep(1000);
  }
  CHECK(0, "seed %llu: %d descriptors of %d, %d threads of %d", (unsigned long long)round->seed, entries("/proc/self/fd"),
        descriptors, entries("/proc/self/task"), threads);
}

static int limit_of(const char *name, int usual) { return getenv(name) ? atoi(getenv(name)) : usual; }

static void run_round(uint64_t seed, enum fault fault) {
  struct round *round = shared(sizeof *round);
  uint64_t random = seed ^ 0x5eed;
  memset(round, 0, sizeof *round);
  round->seed = seed;
  round->fault = fault;
  round->size = 1 + (int)pick(&random, MAX_RING);
  if (fault != NONE && round->size == 1) round->size = 3;
  round->size = limit_of("JUMBLE_RANKS", round->size);
  round->connections = 1 + (int)pick(&random, 3);
  round->flags = pick(&random, 3) == 0 ? RING_FLAG_WIDE_ACCUMULATION : 0;
  round->culprit = (int)pick(&random, (unsigned)round->size);
  round->calls = limit_of("JUMBLE_CALLS", CALLS);
  const useconds_t delay = pick(&random, STRIKE_US);
  const bool meets = pick(&random, 3) == 0;
  char *hosts = make_hosts(round->size, 1);
  if (meets) round->port = free_port();
  struct ranks ranks = start_ranks(round->size, hosts, body, round);
  const pid_t culprit = ranks.pids[round->culprit];
  unsigned may_die = 0;
  if (fault == KILL || fault == STOP || fault == PAUSE) {
    while (round->ready < round->size) usleep(200);
    usleep(delay);
    kill(culprit, fault == KILL ? SIGKILL : SIGSTOP);
    round->struck = seconds();
    if (fault == PAUSE) usleep(400000), kill(culprit, SIGCONT);
    if (fault != PAUSE) may_die = 1u << round->culprit;
    if (fault == STOP) ranks.pids[round->culprit] = 0; /* seen to below */
  }
  await_ranks(&ranks, limit_of("JUMBLE_LIMIT_S", LIMIT_S), may_die);
  if (fault == STOP) kill(culprit, SIGKILL), waitpid(culprit, NULL, 0);
  release_ports();
  free(hosts);
}

int main(int argc, char **argv) {
  const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
  const int rounds = argc > 2 ? atoi(argv[2]) : 1;
  enum fault fault = NONE;
  for (int i = 0; argc > 3 && i <= DESTROY; i++)
    if (strcmp(argv[3], FAULTS[i]) == 0) fault = (enum fault)i;
  for (int i = 0; i < rounds; i++) {
    if (getenv("JUMBLE_SAY")) fprintf(stderr, "seed %llu\n", (unsigned long long)seed + (unsigned long long)i);
    run_round(seed + (uint64_t)i, fault);
  }
  return 0;
}
