/* All collectives in one form, so that tests go through them in loops: what is called, where its parts lie, and
 * what is right. */
#ifndef CALLS_H
#define CALLS_H

#include "harness.h"

#include <stdbool.h>

enum { MAX_RING = 8 };

enum kind {
  ALL_REDUCE,
  REDUCE_SCATTER,
  ALL_GATHER,
  BROADCAST,
  REDUCE,
  GATHER,
  SCATTER,
  ALL_TO_ALL,
  BARRIER,
  ALL_GATHER_V,
  REDUCE_SCATTER_V,
  ALL_TO_ALL_V,
  ALL_REDUCE_CUSTOM,
  REDUCE_SCATTER_V_CUSTOM,
  KINDS
};

/* The function's name without ring_. */
const char *kind_name(enum kind kind);

/* Whether a call that differs from others' fails itself, at the latest; otherwise the next one does. */
bool is_strict(enum kind kind);
bool is_reduction(enum kind kind);
bool is_custom(enum kind kind);
bool has_root(enum kind kind);
/* Whether counts are told in arrays. */
bool is_listed(enum kind kind);

struct call {
  enum kind kind;
  ring_dtype_t dtype;
  ring_op_t op;
  int root;
  size_t count; /* of kinds whose counts aren't told in arrays */
  /* Of all_to_all_v from rank to rank; counts[0] is that of the other kinds with one array. */
  size_t counts[MAX_RING][MAX_RING];
  bool gaps; /* displacements: parts in the reverse order, and something between them */
  /* Of the host program's own elements. */
  size_t element;
  ring_reduce_fn function;
  void *user_data;
};

struct span {
  size_t start, len; /* elements */
};

/* Sums of so many float32, or elements of 8 bytes, with each rank's part as long; the last rank is the root. */
struct call plain_call(enum kind kind, int size, size_t count);

size_t element_bytes(const struct call *call);
/* Where rank `from` has what rank `to` gets, and where that lies with `to`; a reduction's inputs have none. */
struct span send_part(const struct call *call, int size, int from, int to);
struct span recv_part(const struct call *call, int size, int to, int from);
/* Which elements of all inputs a rank gets reduced. */
struct span reduced_part(const struct call *call, int size, int rank);
/* Elements of a rank's buffers; a broadcast has recv alone. */
size_t send_elements(const struct call *call, int size, int rank);
size_t recv_elements(const struct call *call, int size, int rank);

/* Where send and recv start in the one buffer of a call in place, if it has such a form on this rank. */
bool in_place_form(const struct call *call, int size, int rank, size_t *send, size_t *recv);

/* Makes the call. */
ring_status_t make_call(ring_group_t *group, const struct call *call, const void *send, void *recv);

/* Makes the call with inputs of all ranks, once apart and once in place if it has such a form: the results are
 * right, and nothing else is written. `shift` moves the buffers from an aligned address. */
void check_call(ring_group_t *group, const struct call *call, size_t shift);

/* A collective that any kind of call may be followed by, and that finds whatever was wrong before it. */
ring_status_t next_call(ring_group_t *group);

/* Adds bytes, and checks what a reduce function may rely on; its user_data. */
struct adder {
  size_t element;
  ring_group_t *group;
  pid_t thread;
  int inside;      /* calls under way */
  size_t elements; /* so far */
};
void add_bytes(void *acc, const void *in, size_t count, void *user_data);
struct adder make_adder(ring_group_t *group, size_t element);

#endif
