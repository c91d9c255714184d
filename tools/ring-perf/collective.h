/* The collectives that can be measured: how each is called, and what must have arrived then. */
#ifndef COLLECTIVE_H
#define COLLECTIVE_H

#include "data.h"
#include "parts.h"

#include <ring.h>
#include <stdbool.h>

/* What of the size an array holds. */
typedef enum extent { WHOLE, PART } extent_t;

/* Whose values arrive. */
typedef enum origin { NOBODYS, REDUCED, EACH_RANKS, THE_ROOTS, THE_LEFT_RANKS } origin_t;

/* A call with its arguments. */
typedef struct call call_t;

typedef struct collective {
  const char *name;
  extent_t send;
  extent_t recv;
  origin_t origin;
  bool out_of_place;   /* the forms that there are */
  bool in_place;
  bool by_root;        /* the root alone has the whole */
  bool in_parts;       /* the size is that of equal parts, one a rank */
  bool varies;         /* parts have lengths of their own */
  bool custom;         /* reduced by a function of this program */
  double (*links)(int size);   /* bus bandwidth as a multiple of the algorithm's */
  ring_status_t (*run)(const call_t *call);
} collective_t;

struct call {
  const collective_t *collective;
  ring_group_t *group;
  int rank;
  int size;
  void *send;
  void *recv;
  size_t total;        /* elements of the size */
  size_t count;        /* the argument; of parts that vary all together */
  ring_dtype_t dtype;
  ring_op_t op;
  split_t split;
  size_t *send_counts; /* by rank, where parts vary */
  size_t *recv_counts;
};

/* The rank that has or gets all where one does. */
enum { ROOT = 0 };

/* The collective of this name; NULL if there is none. */
const collective_t *find_collective(const char *name);

/* The names, by index; NULL after the last. */
const char *collective_name(int index);

/* Whether it has an op. */
bool reduces(const collective_t *collective);

/* Elements of a call for which so many were asked. */
size_t whole_of(const collective_t *collective, size_t elements, int size);

/* A call of `total` elements on memory for as many: from `send` to `recv`, or, where they are the same, in
 * place. The counts are the caller's to free by end_call. False without memory. */
bool begin_call(call_t *call, void *send, void *recv);
void end_call(call_t *call);

/* Fills what the call sends, and nothing else, with this rank's values. */
void fill_send(const call_t *call);

/* How many of the elements that a call has brought are wrong. */
size_t count_wrong_arrivals(const call_t *call);

#endif
