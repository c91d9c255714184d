/* What MLX's wire can't carry is refused where it is called, alone or on all ranks; nothing moves, and the ring goes on
 * working. Argument: ranks, or many. */
#include <pthread.h>
#include <string.h>

#include "member.h"

enum { COUNT = 4 };

/* Two buffers of COUNT floats for up to 8 ranks. */
static float in[8 * COUNT], out[8 * COUNT];
static const ring_dtype_t F32 = RING_DTYPE_FLOAT32, I32 = RING_DTYPE_INT32;

static void add(void *acc, const void *received, size_t count, void *data) {
  (void)acc, (void)received, (void)count, (void)data;
  CHECK(0, "a reduce function was called");
}

struct refusals {
  ring_group_t *group;
  int only, number; /* which of them is made; -1: all. How many there are */
};

/* After each refusal the group is healthy. */
#define REFUSED(part, call)                                                           \
  do {                                                                                \
    if (r->only < 0 || r->only == r->number) {                                        \
      EXPECT(RING_STATUS_UNSUPPORTED, call);                                          \
      CHECK(strstr(last_error(), part), "\"%s\" lacks \"%s\"", last_error(), part);   \
      ring_failure_t failure_ = {.struct_size = sizeof failure_};                     \
      OK(ring_group_failure(r->group, &failure_));                                    \
      CHECK(failure_.status == RING_STATUS_OK, "%s", group_error(r->group));          \
    }                                                                                 \
    r->number++;                                                                      \
  } while (0)

static void refuse(struct refusals *r) {
  ring_group_t *g = r->group, *child = NULL;
  ring_request_t *request = NULL;
  int rank = ring_group_rank(g), size = ring_group_size(g);
  size_t counts[8];
  for (int i = 0; i < 8; i++) counts[i] = COUNT;
  r->number = 0;

  REFUSED("split", ring_group_split(g, 0, 0, &child));
  REFUSED("split", ring_group_split(g, -1, 0, &child));
  REFUSED("reduce_scatter", ring_reduce_scatter(g, in, out, COUNT, F32, RING_OP_SUM));
  REFUSED("broadcast", ring_broadcast(g, in, COUNT, F32, 0));
  REFUSED("reduce", ring_reduce(g, in, out, COUNT, F32, RING_OP_SUM, 0));
  REFUSED("gather", ring_gather(g, in, out, COUNT, F32, 0));
  REFUSED("scatter", ring_scatter(g, in, out, COUNT, F32, 0));
  REFUSED("all_to_all", ring_all_to_all(g, in, out, COUNT, F32));
  REFUSED("all_gather_v", ring_all_gather_v(g, in, COUNT, out, counts, NULL, F32));
  REFUSED("reduce_scatter_v", ring_reduce_scatter_v(g, in, out, counts, F32, RING_OP_SUM));
  REFUSED("all_to_all_v", ring_all_to_all_v(g, in, counts, NULL, out, counts, NULL, F32));
  REFUSED("all_reduce_custom", ring_all_reduce_custom(g, in, out, COUNT, 4, add, NULL));
  REFUSED("reduce_scatter_v_custom", ring_reduce_scatter_v_custom(g, in, out, counts, 4, add, NULL));
  REFUSED("reduce_scatter", ring_reduce_scatter_async(g, in, out, COUNT, F32, RING_OP_SUM, &request));
  REFUSED("broadcast", ring_broadcast_async(g, in, COUNT, F32, 0, &request));
  REFUSED("all_to_all", ring_all_to_all_async(g, in, out, COUNT, F32, &request));
  /* Nothing to move is no excuse. */
  REFUSED("broadcast", ring_broadcast(g, NULL, 0, F32, 0));
  REFUSED("prod", ring_all_reduce(g, NULL, NULL, 0, F32, RING_OP_PROD));

  REFUSED("prod", ring_all_reduce(g, in, out, COUNT, F32, RING_OP_PROD));
  REFUSED("prod", ring_all_reduce_async(g, in, out, COUNT, F32, RING_OP_PROD, &request));
  REFUSED("band", ring_all_reduce(g, in, out, COUNT, I32, RING_OP_BAND));
  REFUSED("bor", ring_all_reduce(g, in, out, COUNT, I32, RING_OP_BOR));
  REFUSED("bxor", ring_all_reduce(g, in, out, COUNT, I32, RING_OP_BXOR));
  REFUSED("prod", ring_all_reduce(g, in, out, COUNT, RING_DTYPE_BOOL, RING_OP_PROD));
  REFUSED("mean", ring_all_reduce(g, in, out, COUNT, I32, RING_OP_MEAN));
  REFUSED("mean", ring_all_reduce(g, in, out, COUNT, RING_DTYPE_BOOL, RING_OP_MEAN));

  for (int far = 0; far < size; far++) {
    if (far == rank || far == right_of(rank, size) || far == left_of(rank, size)) continue;
    REFUSED("no neighbour", ring_send(g, in, COUNT, F32, far));
    REFUSED("no neighbour", ring_recv(g, out, COUNT, F32, far));
    REFUSED("no neighbour", ring_send_async(g, in, COUNT, F32, far, &request));
    REFUSED("no neighbour", ring_recv_async(g, out, COUNT, F32, far, &request));
    REFUSED("no neighbour", ring_send_recv(g, in, COUNT, far, out, COUNT, far, F32));
    REFUSED("no neighbour", ring_send_recv(g, in, COUNT, right_of(rank, size), out, COUNT, far, F32));
    REFUSED("no neighbour", ring_send_recv(g, in, COUNT, far, out, COUNT, -1, F32));
  }
  CHECK(child == NULL && request == NULL);
}

/* Arguments that are wrong on any wire are told as such. */
static void wrong_arguments(ring_group_t *g) {
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_all_reduce(g, NULL, out, COUNT, F32, RING_OP_SUM));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_all_reduce(g, in, out, COUNT, 99, RING_OP_SUM));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_all_reduce(g, in, out, COUNT, F32, 99));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_broadcast(g, NULL, COUNT, F32, 0));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_send(g, in, COUNT, F32, ring_group_rank(g)));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_send(g, in, COUNT, F32, ring_group_size(g)));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_recv(g, out, COUNT, F32, -1));
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_recv(g, NULL, COUNT, F32, right_of(ring_group_rank(g), ring_group_size(g))));
}

static void body(int rank, int size, const char *hosts, void *data) {
  (void)data;
  struct refusals r = {.group = mlx_join(rank, hosts), .only = -1};
  refuse(&r);
  wrong_arguments(r.group);
  expect_sum(r.group, 1000);
  /* Each on one rank alone, in turn; the others don't notice. */
  int count = r.number;
  CHECK(count >= 26 && (size < 4 || count >= 33), "%d", count);
  for (r.only = 0; r.only < count; r.only++) {
    if (r.only % size == rank) refuse(&r);
    expect_sum(r.group, (size_t)r.only);
  }
  /* What needs no wire. */
  float copied[COUNT] = {0};
  for (int i = 0; i < COUNT; i++) in[i] = (float)i;
  OK(ring_send_recv(r.group, in, COUNT, rank, copied, COUNT, rank, F32));
  CHECK(memcmp(in, copied, sizeof copied) == 0);
  OK(ring_send_recv(r.group, NULL, 0, -1, NULL, 0, -1, F32));
  expect_sum(r.group, 10);
  ring_group_destroy(r.group);
}

/* Ranks enough that fewer elements than ranks have no room; threads, since they are many. */
enum { MANY = 129 };

static char *many_hosts;

static void *one_of_many(void *data) {
  ring_group_t *g = mlx_join((int)(intptr_t)data, many_hosts);
  double values[MANY];
  for (int i = 0; i < MANY; i++) values[i] = 1;
  /* 129 elements of 8 bytes are more than 1024 bytes. */
  for (size_t count = 0; count < MANY; count += 64) {
    EXPECT(RING_STATUS_UNSUPPORTED, ring_all_reduce(g, values, values, count, RING_DTYPE_FLOAT64, RING_OP_SUM));
    CHECK(strstr(last_error(), "129 ranks") && strstr(last_error(), "1032 bytes"), "%s", last_error());
  }
  OK(ring_all_reduce(g, values, values, 1, F32, RING_OP_MAX));
  OK(ring_barrier(g));
  for (int i = 0; i < MANY; i++) values[i] = 1;
  OK(ring_all_reduce(g, values, values, MANY, RING_DTYPE_FLOAT64, RING_OP_SUM));
  CHECK(values[0] == MANY && values[MANY - 1] == MANY);
  ring_group_destroy(g);
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 2, "arguments: ranks, or many");
  if (strcmp(argv[1], "many")) {
    int size = atoi(argv[1]);
    /* Static, since valgrind asks the ranks for what was theirs. */
    static char hosts[1024];
    char *made = make_hosts(size, 1 + size % 2);
    snprintf(hosts, sizeof hosts, "%s", made);
    free(made);
    run_ranks(size, hosts, body, NULL, 60, 0);
    release_ports();
    return 0;
  }
  pthread_t threads[MANY];
  many_hosts = make_hosts(MANY, 1);
  for (intptr_t rank = 0; rank < MANY; rank++) CHECK(pthread_create(&threads[rank], NULL, one_of_many, (void *)rank) == 0);
  for (int rank = 0; rank < MANY; rank++) pthread_join(threads[rank], NULL);
  free(many_hosts);
  return 0;
}
