#include "witness.h"

#include <string.h>
#include <unistd.h>

static void set(int *flag) { __atomic_store_n(flag, 1, __ATOMIC_RELEASE); }
static int is_set(int *flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }

void witness_ready(struct witness *witness) { set(&witness->ready); }

void witness_enter(struct witness *witness) {
  witness->used_s = cpu_seconds();
  witness->entered = seconds();
}

/* FAULTS_SHOW in the environment: what each rank says. */
static void show(const struct witness *witness, ring_group_t *group) {
  if (!getenv("FAULTS_SHOW")) return;
  fprintf(stderr, "rank %d of %d: %s: %s\n", ring_group_rank(group), ring_group_size(group),
          ring_status_name(witness->status), witness->text);
}

void witness_failure(struct witness *witness, ring_group_t *group, ring_status_t status) {
  witness->failed = seconds();
  witness->used_s = cpu_seconds() - witness->used_s;
  witness->status = status;
  snprintf(witness->text, sizeof witness->text, "%s", last_error());
  witness->failure = (ring_failure_t){.struct_size = sizeof witness->failure};
  OK(ring_group_failure(group, &witness->failure));
  CHECK(status == witness->failure.status, "the call: %s (%s); the group: %s", ring_status_name(status), witness->text,
        ring_status_name(witness->failure.status));
  CHECK(strcmp(witness->text, group_error(group)) == 0, "the call: %s; the group: %s", witness->text,
        group_error(group));
  CHECK(!strchr(witness->text, '\n'), "more than one line: %s", witness->text);
  double start = seconds();
  EXPECT(status, ring_barrier(group));
  witness->next_s = seconds() - start;
  CHECK(strcmp(last_error(), witness->text) == 0, "%s; then: %s", witness->text, last_error());
  show(witness, group);
  set(&witness->told);
}

void witness_idle(struct witness *witness, ring_group_t *group, double limit_s) {
  double deadline = seconds() + limit_s;
  ring_failure_t failure = {.struct_size = sizeof failure};
  witness_enter(witness);
  for (;;) {
    OK(ring_group_failure(group, &failure));
    if (failure.status != RING_STATUS_OK || seconds() > deadline) break;
    usleep(2000);
  }
  witness->failed = seconds();
  witness->status = failure.status;
  witness->failure = failure;
  snprintf(witness->text, sizeof witness->text, "%s", group_error(group));
  if (failure.status != RING_STATUS_OK) {
    double start = seconds();
    EXPECT(failure.status, ring_barrier(group));
    witness->next_s = seconds() - start;
  }
  show(witness, group);
  set(&witness->told);
}

static void await_flags(struct witness *witnesses, int size, unsigned except, double limit_s, int told) {
  double deadline = seconds() + limit_s;
  for (int rank = 0; rank < size; rank++) {
    if (except >> rank & 1) continue;
    while (!is_set(told ? &witnesses[rank].told : &witnesses[rank].ready)) {
      CHECK(seconds() < deadline, "rank %d of %d is not %s after %.1f s", rank, size, told ? "told" : "ready", limit_s);
      usleep(500);
    }
  }
}

void await_ready(struct witness *witnesses, int size, unsigned except, double limit_s) {
  await_flags(witnesses, size, except, limit_s, 0);
}

void await_told(struct witness *witnesses, int size, unsigned except, double limit_s) {
  await_flags(witnesses, size, except, limit_s, 1);
}

void expect_verdict(const struct witness *witnesses, int size, unsigned except, const struct verdict *verdict) {
  const struct witness *first = NULL;
  for (int rank = 0; rank < size; rank++) {
    const struct witness *w = &witnesses[rank];
    if (except >> rank & 1) continue;
    if (!first) first = w;
    char who[32];
    snprintf(who, sizeof who, "rank %d of %d", rank, size);
    CHECK(w->status == verdict->status, "%s: %s, not %s: %s", who, ring_status_name(w->status),
          ring_status_name(verdict->status), w->text);
    CHECK(w->failure.rank == verdict->rank, "%s blames %d, not %d: %s", who, w->failure.rank, verdict->rank, w->text);
    CHECK(!verdict->part || strstr(w->text, verdict->part), "%s: no \"%s\" in: %s", who, verdict->part, w->text);
    CHECK(verdict->from <= 0 || w->failed >= verdict->from, "%s: %.3f s too early: %s", who,
          verdict->from - w->failed, w->text);
    CHECK(verdict->to <= 0 || w->failed <= verdict->to, "%s: %.3f s too late: %s", who, w->failed - verdict->to,
          w->text);
    CHECK(!verdict->same_text || strcmp(w->text, first->text) == 0, "%s: %s; another: %s", who, w->text, first->text);
    CHECK(w->next_s < NEXT_CALL_S, "%s: the next call took %.3f s", who, w->next_s);
  }
}
