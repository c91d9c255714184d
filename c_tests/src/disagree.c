/* Each collective, made otherwise by one rank: nobody gets numbers, nobody stores what differs, and every rank is
 * told both calls. Or refused by one rank alone, which is a call ahead then. Argument: ranks. */
#include <string.h>

#include "calls.h"

enum { COUNT = 1000, MORE = 1 << 16 };

/* What buffers hold. Sums of COMMON stay far below ODD, so that a sum tells whose data is in it. */
#define COMMON 1.0f
#define ODD 1e6f
#define UNTOUCHED -5.0f

/* Ways in which a call differs. */
enum way { LESS, MUCH_MORE, NOTHING, DTYPE, OP, ROOT, KIND, PERMUTED, ELEMENT_BYTES, AHEAD, WAYS };
static const char *const WAY_NAMES[WAYS] = {"less", "much more", "nothing", "dtype",         "op",
                                            "root", "kind",      "counts",  "element bytes", "ahead"};

static struct call usual(enum kind kind, int size) {
  struct call call = plain_call(kind, size, COUNT);
  for (int from = 0; from < size; from++)
    for (int to = 0; to < size; to++) call.counts[from][to] += (size_t)(kind == ALL_TO_ALL_V ? 3 * from + 5 * to : 7 * to);
  return call;
}

/* Makes a call another, if there is such a way. `rank` makes it. */
static bool change(struct call *call, enum way way, int size, int rank) {
  /* The block that comes from the right neighbour, of an all_to_all_v. */
  size_t *counted = is_listed(call->kind) ? &call->counts[0][size - 1] : &call->count;
  if (call->kind == ALL_TO_ALL_V) counted = &call->counts[(rank + 1) % size][rank];
  switch (way) {
    case LESS: *counted -= 1; return call->kind != BARRIER;
    case MUCH_MORE: *counted = MORE; return call->kind != BARRIER;
    case NOTHING:
      call->count = 0;
      if (is_listed(call->kind)) memset(call->counts, 0, sizeof call->counts);
      return call->kind != BARRIER;
    case DTYPE: call->dtype = RING_DTYPE_INT32; return call->kind != BARRIER && !is_custom(call->kind);
    case OP: call->op = RING_OP_MAX; return is_reduction(call->kind) && !is_custom(call->kind);
    case ROOT: call->root = 0; return has_root(call->kind);
    case KIND:
      call->kind = call->kind == ALL_REDUCE || call->kind == BARRIER ? REDUCE : ALL_REDUCE;
      call->count = COUNT;
      return true;
    case PERMUTED: /* the total stays */
      call->counts[0][0] = COUNT + 7 * (size_t)(size - 1);
      call->counts[0][size - 1] = COUNT;
      return is_listed(call->kind) && call->kind != ALL_TO_ALL_V;
    case ELEMENT_BYTES: call->element /= 2; return is_custom(call->kind);
    case AHEAD: return true;
    default: return false;
  }
}

/* How texts begin to show the call. */
static void show(const struct call *call, int size, char *text, size_t len) {
  size_t total = call->kind == ALL_TO_ALL_V ? 0 : call->count;
  if (is_listed(call->kind) && call->kind != ALL_TO_ALL_V) total = 0;
  for (int rank = 0; is_listed(call->kind) && call->kind != ALL_TO_ALL_V && rank < size; rank++)
    total += call->counts[0][rank];
  if (call->kind == BARRIER) {
    snprintf(text, len, "barrier()");
  } else if (is_custom(call->kind)) {
    snprintf(text, len, "%s(elements of %zu bytes, %zu", kind_name(call->kind), call->element, total);
  } else if (call->kind == ALL_TO_ALL_V) {
    snprintf(text, len, "all_to_all_v(");
  } else {
    char root[32] = "";
    if (has_root(call->kind)) snprintf(root, sizeof root, ", root %d", call->root);
    snprintf(text, len, "%s(%s, %s%s%zu%s", kind_name(call->kind), ring_dtype_name(call->dtype),
             is_reduction(call->kind) ? ring_op_name(call->op) : "", is_reduction(call->kind) ? ", " : "", total, root);
  }
}

struct run {
  enum kind kind;
  enum way way;
  int odd;
};

/* Whose data may stand in a rank's output: its own side's, and in the odd one's its own alone. */
static void check_output(const struct run *run, int rank, const float *out, size_t floats) {
  for (size_t i = 0; i < floats; i++) {
    if (out[i] == UNTOUCHED) continue;
    int own = rank == run->odd ? out[i] == ODD : out[i] >= COMMON && out[i] < ODD;
    CHECK(own, "%s, %s: element %zu of rank %d is %f", kind_name(run->kind), WAY_NAMES[run->way], i, rank, out[i]);
  }
}

/* Blocks of an all_to_all_v are checked one by one: those are stored that two ranks agree on, and no other. */
static void check_blocks(const struct run *run, const struct call *call, int rank, int size, const float *out) {
  const bool odd = rank == run->odd;
  const int peer = odd ? (rank + 1) % size : run->odd;
  if (!odd && run->way != NOTHING) return;
  const struct span block = recv_part(call, size, rank, peer);
  for (size_t i = 0; i < block.len; i++)
    CHECK(out[block.start + i] == UNTOUCHED, "%s: element %zu of rank %d's block is %f", WAY_NAMES[run->way], i, peer,
          out[block.start + i]);
}

static void body(int rank, int size, const char *hosts, void *data) {
  const struct run *run = data;
  const bool odd = rank == run->odd, ahead = run->way == AHEAD;
  struct call common = usual(run->kind, size), other = common, *call = odd ? &other : &common;
  if (!change(&other, run->way, size, run->odd)) return;
  ring_group_t *group = join(rank, hosts, 2);
  const size_t floats = (size_t)MAX_RING * (MORE + 100);
  float *in = malloc(floats * sizeof *in), *out = malloc(floats * sizeof *out);
  CHECK(in && out);
  for (size_t i = 0; i < floats; i++) in[i] = odd ? ODD : COMMON, out[i] = UNTOUCHED;
  /* A broadcast's root has its data there. */
  const bool from_here = call->kind == BROADCAST && call->root == rank;
  if (from_here) memcpy(out, in, floats * sizeof *out);
  OK(next_call(group));
  const char *who = kind_name(run->kind), *how = WAY_NAMES[run->way];
  if (odd && ahead) EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_broadcast(group, NULL, 1, RING_DTYPE_INT8, 0));
  ring_status_t got = make_call(group, call, in, out);
  if (got == RING_STATUS_OK) {
    /* A call that moves nothing may be over before the difference is known, and one that needs nobody. */
    const bool nothing = call->count == 0 && call->kind != BARRIER;
    CHECK(!is_strict(call->kind) || nothing, "%s, %s: rank %d of %d got OK", who, how, rank, size);
    got = next_call(group);
  }
  char text[2048], shown[128];
  snprintf(text, sizeof text, "%s", last_error());
  CHECK(got == RING_STATUS_MISMATCH, "%s, %s: rank %d of %d got %s: %s", who, how, rank, size, ring_status_name(got),
        text);
  show(&common, size, shown, sizeof shown);
  CHECK(strstr(text, shown), "%s, %s: no \"%s\" in: %s", who, how, shown, text);
  show(&other, size, shown, sizeof shown);
  CHECK(strstr(text, shown), "%s, %s: no \"%s\" in: %s", who, how, shown, text);
  CHECK(!ahead || (strstr(text, "as call 3") && strstr(text, "RING_STATUS_INVALID_ARGUMENT")), "%s: %s", who, text);
  if (call->kind == ALL_TO_ALL_V && (run->way == LESS || run->way == MUCH_MORE || run->way == NOTHING)) {
    check_blocks(run, call, rank, size, out);
  } else if (!from_here) {
    check_output(run, rank, out, floats);
  }
  EXPECT(RING_STATUS_MISMATCH, next_call(group));
  EXPECT(RING_STATUS_MISMATCH, make_call(group, call, in, out));
  ring_failure_t failure = {.struct_size = sizeof failure};
  OK(ring_group_failure(group, &failure));
  CHECK(failure.status == RING_STATUS_MISMATCH && failure.rank == -1, "it blames %d", failure.rank);
  ring_group_destroy(group);
  free(in);
  free(out);
}

/* Each takes its time to wait for the others, so that all ways of a kind are tried at the same time. */
struct attempt {
  struct run run;
  struct ranks ranks;
};

static void attempt(struct attempt *attempts, int *count, int size, struct run run) {
  char *hosts = make_hosts(size, 1);
  attempts[*count].run = run;
  attempts[*count].ranks = start_ranks(size, hosts, body, &attempts[*count].run);
  ++*count;
  free(hosts);
}

int main(int argc, char **argv) {
  const int size = argc > 1 ? atoi(argv[1]) : 3;
  int odd = 0;
  for (int kind = 0; kind < KINDS; kind++) {
    static struct attempt attempts[2 * WAYS];
    int count = 0;
    for (int way = 0; way < WAYS; way++) {
      struct run run = {kind, way, odd};
      struct call call = usual(run.kind, size);
      if (!change(&call, run.way, size, odd)) continue;
      /* Positions take turns, and the root has its own. */
      odd = (odd + 1) % size;
      attempt(attempts, &count, size, run);
      run.odd = size - 1;
      if (has_root(run.kind) && odd != 0) attempt(attempts, &count, size, run);
    }
    for (int i = 0; i < count; i++) await_ranks(&attempts[i].ranks, 30, 0);
    release_ports();
  }
  return 0;
}
