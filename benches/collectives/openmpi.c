/* Times MPI's collectives as ring-perf times libring's: `openmpi COLLECTIVE BYTES...` prints a line (tabs) a size:
 * bytes asked for, calls, average, median and p99 of a call on the slowest rank, and CPU time of a call on all ranks
 * together, all in us. The names, sizes and parts are ring-perf's (its --help). */
#include "parts.h"
#include "timing.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOT = 0 };
/* As many as ring-perf's. */
enum { WARMUP = 5 };

typedef struct call {
  int rank;
  int size;
  float *send;
  float *recv;
  int count;           /* the argument, of equal parts */
  int *send_counts;
  int *send_displs;
  int *recv_counts;    /* parts of those that vary, by rank */
  int *recv_displs;
  MPI_Op custom;
} call_t;

typedef struct collective {
  const char *name;
  bool in_parts;       /* the size is that of equal parts, one a rank */
  bool blocks;         /* parts are by pair of ranks */
  int (*run)(const call_t *call);
} collective_t;

static int all_reduce(const call_t *c) {
  return MPI_Allreduce(c->send, c->recv, c->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int all_reduce_custom(const call_t *c) {
  return MPI_Allreduce(c->send, c->recv, c->count, MPI_FLOAT, c->custom, MPI_COMM_WORLD);
}

static int reduce_scatter(const call_t *c) {
  return MPI_Reduce_scatter_block(c->send, c->recv, c->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int all_gather(const call_t *c) {
  return MPI_Allgather(c->send, c->count, MPI_FLOAT, c->recv, c->count, MPI_FLOAT, MPI_COMM_WORLD);
}

static int broadcast(const call_t *c) { return MPI_Bcast(c->recv, c->count, MPI_FLOAT, ROOT, MPI_COMM_WORLD); }

static int reduce(const call_t *c) {
  return MPI_Reduce(c->send, c->recv, c->count, MPI_FLOAT, MPI_SUM, ROOT, MPI_COMM_WORLD);
}

static int gather(const call_t *c) {
  return MPI_Gather(c->send, c->count, MPI_FLOAT, c->recv, c->count, MPI_FLOAT, ROOT, MPI_COMM_WORLD);
}

static int scatter(const call_t *c) {
  return MPI_Scatter(c->send, c->count, MPI_FLOAT, c->recv, c->count, MPI_FLOAT, ROOT, MPI_COMM_WORLD);
}

static int all_to_all(const call_t *c) {
  return MPI_Alltoall(c->send, c->count, MPI_FLOAT, c->recv, c->count, MPI_FLOAT, MPI_COMM_WORLD);
}

static int all_gather_v(const call_t *c) {
  return MPI_Allgatherv(c->send, c->recv_counts[c->rank], MPI_FLOAT, c->recv, c->recv_counts, c->recv_displs, MPI_FLOAT,
                        MPI_COMM_WORLD);
}

static int reduce_scatter_v(const call_t *c) {
  return MPI_Reduce_scatter(c->send, c->recv, c->recv_counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static int reduce_scatter_v_custom(const call_t *c) {
  return MPI_Reduce_scatter(c->send, c->recv, c->recv_counts, MPI_FLOAT, c->custom, MPI_COMM_WORLD);
}

static int all_to_all_v(const call_t *c) {
  return MPI_Alltoallv(c->send, c->send_counts, c->send_displs, MPI_FLOAT, c->recv, c->recv_counts, c->recv_displs,
                       MPI_FLOAT, MPI_COMM_WORLD);
}

static int send_recv(const call_t *c) {
  enum { TAG = 0 };
  int right = (c->rank + 1) % c->size, left = (c->rank + c->size - 1) % c->size;
  return MPI_Sendrecv(c->send, c->count, MPI_FLOAT, right, TAG, c->recv, c->count, MPI_FLOAT, left, TAG, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE);
}

static int barrier(const call_t *c) {
  (void)c;
  return MPI_Barrier(MPI_COMM_WORLD);
}

static const collective_t COLLECTIVES[] = {
    {"all_reduce", .run = all_reduce},
    {"reduce_scatter", .in_parts = true, .run = reduce_scatter},
    {"all_gather", .in_parts = true, .run = all_gather},
    {"broadcast", .run = broadcast},
    {"reduce", .run = reduce},
    {"gather", .in_parts = true, .run = gather},
    {"scatter", .in_parts = true, .run = scatter},
    {"all_to_all", .in_parts = true, .run = all_to_all},
    {"all_gather_v", .run = all_gather_v},
    {"reduce_scatter_v", .run = reduce_scatter_v},
    {"all_to_all_v", .blocks = true, .run = all_to_all_v},
    {"all_reduce_custom", .run = all_reduce_custom},
    {"reduce_scatter_v_custom", .run = reduce_scatter_v_custom},
    {"send_recv", .run = send_recv},
    {"barrier", .run = barrier},
};

static void add_floats(void *input, void *acc, int *count, MPI_Datatype *dtype) {
  const float *term = input;
  float *sum = acc;
  (void)dtype;
  for (int i = 0; i < *count; i++) sum[i] += term[i];
}

/* ---- the timed subject ---- */

typedef struct work {
  const collective_t *collective;
  call_t call;
} work_t;

static int run_call(void *data) {
  const work_t *work = data;
  return work->collective->run(&work->call);
}

static int run_barrier(void *data) {
  (void)data;
  return MPI_Barrier(MPI_COMM_WORLD);
}

static int largest(void *data, double *values, int count) {
  (void)data;
  return MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static int sum(void *data, double *values, int count) {
  (void)data;
  return MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* ---- sizes ---- */

/* Ends all ranks. Errors of MPI end them by themselves. */
static void fail(const char *what) {
  fprintf(stderr, "openmpi: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *array(size_t elements, size_t bytes) {
  void *memory = calloc(elements ? elements : 1, bytes);
  if (!memory) fail("no memory");
  return memory;
}

/* Elements from one rank for another. */
static int block(const collective_t *collective, size_t total, int from, int to, int part, int size) {
  if (collective->blocks) return (int)block_of(total, from, to, size, SPLIT_UNEVEN);
  return (int)part_of(total, part, size, SPLIT_UNEVEN).count;
}

static void measure(const collective_t *collective, size_t bytes, int rank, int size, MPI_Op custom) {
  size_t elements = bytes / sizeof(float), parts = (size_t)size;
  if (elements == 0) elements = 1;
  size_t count = collective->in_parts ? elements / parts : elements;
  if (count == 0) count = 1;
  size_t total = collective->in_parts ? count * parts : count;
  if (total > INT_MAX) fail("MPI counts no more elements than an int does");
  call_t call = {.rank = rank, .size = size, .count = (int)count, .custom = custom};
  call.send = array(total, sizeof(float));
  call.recv = array(total, sizeof(float));
  int **lists[] = {&call.send_counts, &call.send_displs, &call.recv_counts, &call.recv_displs};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) *lists[i] = array(parts, sizeof(int));
  for (int other = 0; other < size; other++) {
    call.send_counts[other] = block(collective, total, rank, other, other, size);
    call.recv_counts[other] = block(collective, total, other, rank, other, size);
    if (other == 0) continue;
    call.send_displs[other] = call.send_displs[other - 1] + call.send_counts[other - 1];
    call.recv_displs[other] = call.recv_displs[other - 1] + call.recv_counts[other - 1];
  }
  /* Memory that was written is memory of its own, not the system's page of zeros. */
  memset(call.send, 0, total * sizeof(float));
  work_t work = {collective, call};
  subject_t subject = {&work, run_call, run_barrier, largest, sum};
  timing_t timing;
  if (time_calls(&subject, WARMUP, 0, &timing) != MPI_SUCCESS) fail("a call failed");
  if (rank == 0) {
    printf("%zu\t%d\t%.2f\t%.2f\t%.2f\t%.2f\n", bytes, timing.iterations, timing.time_us, timing.median_us, timing.p99_us,
           timing.cpu_us);
    fflush(stdout);
  }
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) free(*lists[i]);
  free(call.send);
  free(call.recv);
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const collective_t *collective = NULL;
  for (size_t i = 0; argc > 1 && i < sizeof COLLECTIVES / sizeof *COLLECTIVES; i++) {
    if (strcmp(COLLECTIVES[i].name, argv[1]) == 0) collective = &COLLECTIVES[i];
  }
  if (!collective) fail("usage: openmpi COLLECTIVE BYTES...");
  MPI_Op custom;
  MPI_Op_create(add_floats, 1, &custom);
  for (int i = 2; collective && i < argc; i++) measure(collective, strtoull(argv[i], NULL, 10), rank, size, custom);
  MPI_Op_free(&custom);
  MPI_Finalize();
  return 0;
}
