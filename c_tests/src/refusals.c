/* Calls that their own rank refuses: every wrong argument of every collective but all_reduce, all_gather and barrier
 * (arguments.c has those), on all ranks alike, which harms nobody, and on one rank alone, which is a call ahead then. */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"

enum { ALONE_SIZE = 3, COUNT = 1000, AT_A_TIME = 12 };

struct refusals {
  ring_group_t *group;
  int which;      /* of the wrong calls; -1: all */
  int number;     /* of those seen so far */
  enum kind kind; /* of the last one made */
};

static bool is_meant(struct refusals *r, enum kind kind) {
  const bool meant = r->which < 0 || r->which == r->number;
  if (meant) r->kind = kind;
  r->number++;
  return meant;
}

/* A refusal names its call. */
#define GIVES(status, kind_, call)                                                          \
  do {                                                                                      \
    if (is_meant(r, kind_)) {                                                               \
      EXPECT(status, call);                                                                 \
      CHECK(strstr(last_error(), kind_name(kind_)), "%s", last_error());                    \
    }                                                                                       \
  } while (0)
#define REFUSED(kind, call) GIVES(RING_STATUS_INVALID_ARGUMENT, kind, call)

static void nothing(void *acc, const void *in, size_t count, void *user_data) {
  (void)acc, (void)in, (void)count, (void)user_data;
}

static const ring_dtype_t F32 = RING_DTYPE_FLOAT32;
static const ring_op_t SUM = RING_OP_SUM;

/* Two buffers far apart, of four floats a rank and more. */
static char memory[4096], *const in = memory, *const out = memory + 2048;

static void unknown_values(struct refusals *r, int rank, const size_t *fours) {
  ring_group_t *g = r->group;
  const int numbers[] = {-1, 14, INT_MAX, INT_MIN};
  for (int i = 0; i < 4; i++) {
    const int bad = numbers[i];
    REFUSED(REDUCE_SCATTER, ring_reduce_scatter(g, in, out, 4, bad, SUM));
    REFUSED(REDUCE_SCATTER, ring_reduce_scatter(g, in, out, 4, F32, bad));
    REFUSED(BROADCAST, ring_broadcast(g, in, 4, bad, 0));
    REFUSED(BROADCAST, ring_broadcast(g, in, 4, F32, bad));
    REFUSED(REDUCE, ring_reduce(g, in, out, 4, bad, SUM, 0));
    REFUSED(REDUCE, ring_reduce(g, in, out, 4, F32, bad, 0));
    REFUSED(REDUCE, ring_reduce(g, in, out, 4, F32, SUM, bad));
    REFUSED(GATHER, ring_gather(g, in, out, 4, bad, 0));
    REFUSED(GATHER, ring_gather(g, in, out, 4, F32, bad));
    REFUSED(SCATTER, ring_scatter(g, in, out, 4, bad, 0));
    REFUSED(SCATTER, ring_scatter(g, in, out, 4, F32, bad));
    REFUSED(ALL_TO_ALL, ring_all_to_all(g, in, out, 4, bad));
    REFUSED(ALL_GATHER_V, ring_all_gather_v(g, in, 4, out, fours, NULL, bad));
    REFUSED(REDUCE_SCATTER_V, ring_reduce_scatter_v(g, in, out, fours, bad, SUM));
    REFUSED(REDUCE_SCATTER_V, ring_reduce_scatter_v(g, in, out, fours, F32, bad));
    REFUSED(ALL_TO_ALL_V, ring_all_to_all_v(g, in, fours, NULL, out, fours, NULL, bad));
  }
  const int size = ring_group_size(g);
  REFUSED(BROADCAST, ring_broadcast(g, in, 4, F32, size));
  REFUSED(GATHER, ring_gather(g, NULL, NULL, 0, F32, size));
  GIVES(RING_STATUS_UNSUPPORTED, REDUCE_SCATTER, ring_reduce_scatter(g, in, out, 4, F32, RING_OP_BXOR));
  GIVES(RING_STATUS_UNSUPPORTED, REDUCE, ring_reduce(g, in, out, 4, RING_DTYPE_BOOL, RING_OP_MEAN, rank));
  GIVES(RING_STATUS_UNSUPPORTED, REDUCE_SCATTER_V, ring_reduce_scatter_v(g, in, out, fours, F32, RING_OP_BAND));
}

static void null_buffers(struct refusals *r, int rank, const size_t *fours) {
  ring_group_t *g = r->group;
  REFUSED(REDUCE_SCATTER, ring_reduce_scatter(g, NULL, out, 4, F32, SUM));
  REFUSED(REDUCE_SCATTER, ring_reduce_scatter(g, in, NULL, 4, F32, SUM));
  REFUSED(BROADCAST, ring_broadcast(g, NULL, 4, F32, 0));
  REFUSED(REDUCE, ring_reduce(g, NULL, out, 4, F32, SUM, 0));
  REFUSED(REDUCE, ring_reduce(g, in, NULL, 4, F32, SUM, rank));
  REFUSED(GATHER, ring_gather(g, NULL, out, 4, F32, 0));
  REFUSED(GATHER, ring_gather(g, in, NULL, 4, F32, rank));
  REFUSED(SCATTER, ring_scatter(g, NULL, out, 4, F32, rank));
  REFUSED(SCATTER, ring_scatter(g, in, NULL, 4, F32, 0));
  REFUSED(ALL_TO_ALL, ring_all_to_all(g, NULL, out, 4, F32));
  REFUSED(ALL_TO_ALL, ring_all_to_all(g, in, NULL, 4, F32));
  REFUSED(ALL_GATHER_V, ring_all_gather_v(g, NULL, 4, out, fours, NULL, F32));
  REFUSED(ALL_GATHER_V, ring_all_gather_v(g, in, 4, NULL, fours, NULL, F32));
  REFUSED(REDUCE_SCATTER_V, ring_reduce_scatter_v(g, NULL, out, fours, F32, SUM));
  REFUSED(REDUCE_SCATTER_V, ring_reduce_scatter_v(g, in, NULL, fours, F32, SUM));
  REFUSED(ALL_TO_ALL_V, ring_all_to_all_v(g, NULL, fours, NULL, out, fours, NULL, F32));
  REFUSED(ALL_TO_ALL_V, ring_all_to_all_v(g, in, fours, NULL, NULL, fours, NULL, F32));
  REFUSED(ALL_REDUCE_CUSTOM, ring_all_reduce_custom(g, NULL, out, 4, 8, nothing, NULL));
  REFUSED(ALL_REDUCE_CUSTOM, ring_all_reduce_custom(g, in, NULL, 4, 8, nothing, NULL));
  REFUSED(ALL_REDUCE_CUSTOM, ring_all_reduce_custom(g, in, out, 4, 8, NULL, NULL));
  REFUSED(ALL_REDUCE_CUSTOM, ring_all_reduce_custom(g, NULL, NULL, 0, 8, NULL, NULL));
  REFUSED(REDUCE_SCATTER_V_CUSTOM, ring_reduce_scatter_v_custom(g, NULL, out, fours, 8, nothing, NULL));
  REFUSED(REDUCE_SCATTER_V_CUSTOM, ring_reduce_scatter_v_custom(g, in, NULL, fours, 8, nothing, NULL));
  REFUSED(REDUCE_SCATTER_V_CUSTOM, ring_reduce_scatter_v_custom(g, in, out, fours, 8, NULL, NULL));
  /* The arrays. */
  REFUSED(ALL_GATHER_V, ring_all_gather_v(g, in, 4, out, NULL, NULL, F32));
  REFUSED(REDUCE_SCATTER_V, ring_reduce_scatter_v(g, in, out, NULL, F32, SUM));
  REFUSED(REDUCE_SCATTER_V_CUSTOM, ring_reduce_scatter_v_custom(g, in, out, NULL, 8, nothing, NULL));
  REFUSED(ALL_TO_ALL_V, ring_all_to_all_v(g, in, NULL, NULL, out, fours, NULL, F32));
  REFUSED(ALL_TO_ALL_V, ring_all_to_all_v(g, in, fours, NULL, out, NULL, NULL, F32));
}

static void counts(struct refusals *r, int rank, const size_t *fours) {
  ring_group_t *g = r->group;
  const size_t size = (size_t)ring_group_size(g), most = PTRDIFF_MAX / sizeof(float), many = most / size + 1;
  size_t list[MAX_RING], displs[MAX_RING];
  REFUSED(REDUCE_SCATTER, ring_reduce_scatter(g, in, out, many, F32, SUM));
  REFUSED(REDUCE_SCATTER, ring_reduce_scatter(g, in, out, SIZE_MAX, F32, SUM));
  REFUSED(BROADCAST, ring_broadcast(g, in, most + 1, F32, 0));
  REFUSED(REDUCE, ring_reduce(g, in, out, most + 1, F32, SUM, 0));
  REFUSED(GATHER, ring_gather(g, in, out, many, F32, 0));
  REFUSED(SCATTER, ring_scatter(g, in, out, many, F32, 0));
  REFUSED(ALL_TO_ALL, ring_all_to_all(g, in, out, many, F32));
  REFUSED(ALL_REDUCE_CUSTOM, ring_all_reduce_custom(g, in, out, PTRDIFF_MAX / 8 + 1, 8, nothing, NULL));
  REFUSED(ALL_REDUCE_CUSTOM, ring_all_reduce_custom(g, in, out, 2, SIZE_MAX, nothing, NULL));
  REFUSED(ALL_REDUCE_CUSTOM, ring_all_reduce_custom(g, in, out, 4, 0, nothing, NULL));
  REFUSED(REDUCE_SCATTER_V_CUSTOM, ring_reduce_scatter_v_custom(g, in, out, fours, 0, nothing, NULL));
  REFUSED(REDUCE_SCATTER_V_CUSTOM, ring_reduce_scatter_v_custom(g, in, out, fours, SIZE_MAX / 2, nothing, NULL));
  REFUSED(ALL_GATHER_V, ring_all_gather_v(g, in, 3, out, fours, NULL, F32));
  REFUSED(ALL_GATHER_V, ring_all_gather_v(g, in, 0, out, fours, NULL, F32));
  for (size_t i = 0; i < size; i++) list[i] = many, displs[i] = i * 4;
  REFUSED(ALL_GATHER_V, ring_all_gather_v(g, in, many, out, list, NULL, F32));
  REFUSED(REDUCE_SCATTER_V, ring_reduce_scatter_v(g, in, out, list, F32, SUM));
  REFUSED(ALL_TO_ALL_V, ring_all_to_all_v(g, in, list, NULL, out, list, NULL, F32));
  displs[size - 1] = most - 3;
  REFUSED(ALL_GATHER_V, ring_all_gather_v(g, in, 4, out, fours, displs, F32));
  REFUSED(ALL_TO_ALL_V, ring_all_to_all_v(g, in, fours, NULL, out, fours, displs, F32));
  REFUSED(ALL_TO_ALL_V, ring_all_to_all_v(g, in, fours, displs, out, fours, NULL, F32));
  displs[size - 1] = SIZE_MAX;
  REFUSED(ALL_GATHER_V, ring_all_gather_v(g, in, 4, out, fours, displs, F32));
  memcpy(list, fours, sizeof list);
  list[rank] = 3;
  REFUSED(ALL_TO_ALL_V, ring_all_to_all_v(g, in, list, NULL, out, fours, NULL, F32));
  REFUSED(ALL_TO_ALL_V, ring_all_to_all_v(g, in, fours, NULL, out, list, NULL, F32));
}

static void overlaps(struct refusals *r, int rank, const size_t *fours) {
  ring_group_t *g = r->group;
  const int size = ring_group_size(g);
  char *own = out + 4 * 4 * rank, *beyond = out + 4 * 4 * size;
  size_t displs[MAX_RING];
  REFUSED(REDUCE_SCATTER, ring_reduce_scatter(g, out, own + 1, 4, F32, SUM));
  REFUSED(REDUCE_SCATTER, ring_reduce_scatter(g, out, beyond - 1, 4, F32, SUM));
  REFUSED(REDUCE, ring_reduce(g, out + 4, out, 4, F32, SUM, rank));
  REFUSED(GATHER, ring_gather(g, own + 1, out, 4, F32, rank));
  REFUSED(GATHER, ring_gather(g, out - 1, out, 4, F32, rank));
  REFUSED(SCATTER, ring_scatter(g, out, own - 1, 4, F32, rank));
  REFUSED(ALL_TO_ALL, ring_all_to_all(g, out, out, 4, F32));
  REFUSED(ALL_TO_ALL, ring_all_to_all(g, out, beyond - 1, 4, F32));
  REFUSED(ALL_GATHER_V, ring_all_gather_v(g, own - 1, 4, out, fours, NULL, F32));
  REFUSED(REDUCE_SCATTER_V, ring_reduce_scatter_v(g, out, own + 1, fours, F32, SUM));
  REFUSED(REDUCE_SCATTER_V_CUSTOM, ring_reduce_scatter_v_custom(g, out, own + 1, fours, 4, nothing, NULL));
  REFUSED(ALL_REDUCE_CUSTOM, ring_all_reduce_custom(g, out, out + 1, 4, 3, nothing, NULL));
  REFUSED(ALL_TO_ALL_V, ring_all_to_all_v(g, out, fours, NULL, out, fours, NULL, F32));
  REFUSED(ALL_TO_ALL_V, ring_all_to_all_v(g, beyond - 1, fours, NULL, out, fours, NULL, F32));
  if (size > 1) {
    char *others = out + 4 * 4 * ((rank + 1) % size);
    REFUSED(REDUCE_SCATTER, ring_reduce_scatter(g, out, others, 4, F32, SUM));
    REFUSED(GATHER, ring_gather(g, others, out, 4, F32, rank));
    REFUSED(SCATTER, ring_scatter(g, out, others, 4, F32, rank));
    REFUSED(ALL_GATHER_V, ring_all_gather_v(g, others, 4, out, fours, NULL, F32));
    /* Parts of recv that overlap each other. */
    for (int i = 0; i < size; i++) displs[i] = (size_t)(size - 1 - i) * 4;
    displs[0] -= 1;
    REFUSED(ALL_GATHER_V, ring_all_gather_v(g, in, 4, out, fours, displs, F32));
    REFUSED(ALL_TO_ALL_V, ring_all_to_all_v(g, in, fours, NULL, out, fours, displs, F32));
  }
}

/* Makes the wrong calls that are meant; how many there are. */
static int make_wrong_calls(struct refusals *r) {
  const int rank = ring_group_rank(r->group);
  size_t fours[MAX_RING];
  r->number = 0;
  for (int i = 0; i < MAX_RING; i++) fours[i] = 4;
  unknown_values(r, rank, fours);
  null_buffers(r, rank, fours);
  counts(r, rank, fours);
  overlaps(r, rank, fours);
  return r->number;
}

static void alike(int rank, int size, const char *hosts, void *data) {
  struct refusals refusals = {.group = join(rank, hosts, 1), .which = -1};
  (void)size;
  *(int *)data = make_wrong_calls(&refusals);
  for (size_t i = 0; i < sizeof memory; i++) CHECK(memory[i] == 0, "a refused call wrote");
  for (int kind = 0; kind < KINDS; kind++) {
    const struct call call = plain_call(kind, size, 4);
    OK(make_call(refusals.group, &call, in, out));
  }
  OK(next_call(refusals.group));
  ring_group_destroy(refusals.group);
}

struct alone {
  int which, odd;
  enum kind kind; /* of the call that is refused */
  struct ranks ranks;
};

static void alone(int rank, int size, const char *hosts, void *data) {
  struct alone *alone = data;
  ring_group_t *group = join(rank, hosts, 1);
  struct refusals refusals = {.group = group, .which = alone->which};
  float *send = calloc((size_t)size * COUNT, 8), *recv = calloc((size_t)size * COUNT, 8);
  CHECK(send && recv);
  OK(next_call(group));
  ring_status_t got = RING_STATUS_OK;
  if (rank == alone->odd) {
    make_wrong_calls(&refusals);
    alone->kind = refusals.kind;
    ring_failure_t failure = {.struct_size = sizeof failure};
    OK(ring_group_failure(group, &failure));
    CHECK(failure.status == RING_STATUS_OK, "%s", group_error(group));
    __atomic_store_n(&alone->which, -2, __ATOMIC_RELEASE);
  } else {
    /* The others make that call rightly. */
    while (__atomic_load_n(&alone->which, __ATOMIC_ACQUIRE) != -2) usleep(500);
    const struct call call = plain_call(alone->kind, size, COUNT);
    got = make_call(group, &call, send, recv);
    CHECK(got != RING_STATUS_OK || !is_strict(alone->kind), "%s: rank %d got OK", kind_name(alone->kind), rank);
  }
  if (got == RING_STATUS_OK) got = next_call(group);
  CHECK(got == RING_STATUS_MISMATCH, "%s: rank %d got %s: %s", kind_name(alone->kind), rank, ring_status_name(got),
        last_error());
  CHECK(strstr(last_error(), "refused its call 2 with RING_STATUS_"), "%s", last_error());
  EXPECT(RING_STATUS_MISMATCH, next_call(group));
  ring_group_destroy(group);
  free(send);
  free(recv);
}

int main(void) {
  int *number = shared(sizeof *number);
  for (int size = 1; size <= 4; size++) {
    char *hosts = make_hosts(size, 1);
    run_ranks(size, hosts, alike, number, 20, 0);
    free(hosts);
    if (size != ALONE_SIZE) continue;
    for (int which = 0; which < *number;) {
      struct alone *attempts = shared(AT_A_TIME * sizeof *attempts);
      int count = 0;
      for (; count < AT_A_TIME && which < *number; count++, which++) {
        hosts = make_hosts(size, 1);
        attempts[count].which = which;
        attempts[count].odd = which % size;
        attempts[count].ranks = start_ranks(size, hosts, alone, &attempts[count]);
        free(hosts);
      }
      for (int i = 0; i < count; i++) await_ranks(&attempts[i].ranks, 30, 0);
      release_ports();
    }
  }
  return 0;
}
