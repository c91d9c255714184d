/* One rank of a ring whose hosts are network namespaces. The scripts beside this start it and do to its
 * network what they will; it does its calls, checks every number, and tells what came of them:
 *
 *   rank now                                   prints the time that its reports use
 *   rank BEHAVIOUR RANK HOSTS [NAME=VALUE...]  joins the ring, behaves, and exits with 0 if all was as it must be;
 *                                              with a size, HOSTS is a rendezvous
 *
 * A report is one line: "ready" when the fault may come, "failed TIME STATUS RANK TEXT" for a group's
 * failure, "unformed SECONDS STATUS TEXT" for a ring that didn't form, "unsent SECONDS TEXT" for a message whose
 * ends can't reach each other, "done SECONDS". */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

struct task {
  int rank;
  ring_config_t config;
  size_t count;  /* elements */
  size_t unread; /* elements of a message that nobody receives */
  int rounds;
  int pause_ms; /* between the calls of a rank that is late */
};

static void pause_ms(int ms) {
  usleep((useconds_t)ms * 1000);
}

static ring_group_t *enter(const struct task *task) {
  ring_group_t *group = NULL;
  OK(ring_group_create(&task->config, &group));
  return group;
}

static uint32_t *make_array(size_t count) {
  uint32_t *array = malloc(count * sizeof *array);
  CHECK(array);
  return array;
}

/* What rank `factor - 1` contributes, and with the sum of all factors what the sum must be. */
static uint32_t element(uint32_t factor, int round, size_t index) {
  return factor * ((uint32_t)index * 2654435761u + (uint32_t)round * 97u);
}

static void fill(uint32_t *array, size_t count, uint32_t factor, int round) {
  for (size_t i = 0; i < count; i++) array[i] = element(factor, round, i);
}

static void check(const uint32_t *array, size_t count, uint32_t factor, int round) {
  for (size_t i = 0; i < count; i++) {
    CHECK(array[i] == element(factor, round, i), "element %zu of round %d is %u", i, round, array[i]);
  }
}

/* One all-reduce in place; numbers that come with OK are right. */
static ring_status_t reduce(ring_group_t *group, uint32_t *array, size_t count, int round) {
  uint32_t rank = (uint32_t)ring_group_rank(group), size = (uint32_t)ring_group_size(group);
  fill(array, count, rank + 1, round);
  ring_status_t status = ring_all_reduce(group, array, array, count, RING_DTYPE_UINT32, RING_OP_SUM);
  if (status == RING_STATUS_OK) check(array, count, size * (size + 1) / 2, round);
  return status;
}

/* Tells the failure, and checks that it stays: the next calls fail with it at once. */
static void report_failure(ring_group_t *group, ring_status_t status, double when) {
  ring_failure_t failure = {.struct_size = sizeof failure};
  OK(ring_group_failure(group, &failure));
  CHECK(failure.status == status, "%s, but the call gave %s", ring_status_name(failure.status),
        ring_status_name(status));
  printf("failed %.3f %s %d %s\n", when, ring_status_name(status), failure.rank, group_error(group));
  uint32_t value = 0;
  double start = seconds();
  EXPECT(status, ring_barrier(group));
  EXPECT(status, ring_send(group, &value, 1, RING_DTYPE_UINT32, (ring_group_rank(group) + 1) % ring_group_size(group)));
  CHECK(seconds() - start < 0.1, "the next calls took %f s", seconds() - start);
}

/* A few calls, and a good end. */
static void sums(const struct task *task) {
  ring_group_t *group = enter(task);
  uint32_t *array = make_array(task->count);
  double start = seconds();
  for (int round = 0; round < task->rounds; round++) OK(reduce(group, array, task->count, round));
  printf("done %.3f\n", seconds() - start);
  ring_group_destroy(group);
  free(array);
}

/* Calls without a pause, until one fails. */
static void busy(const struct task *task) {
  enum { SETTLED = 3 };
  ring_group_t *group = enter(task);
  uint32_t *array = make_array(task->count);
  ring_status_t status;
  for (int round = 0; (status = reduce(group, array, task->count, round)) == RING_STATUS_OK; round++) {
    if (round == SETTLED) printf("ready\n");
  }
  report_failure(group, status, seconds());
  ring_group_destroy(group);
  free(array);
}

/* No call at all: the group's failure shows by itself. */
static void idle(const struct task *task) {
  ring_group_t *group = enter(task);
  ring_failure_t failure = {.struct_size = sizeof failure};
  OK(ring_barrier(group));
  printf("ready\n");
  do {
    pause_ms(10);
    OK(ring_group_failure(group, &failure));
  } while (failure.status == RING_STATUS_OK);
  report_failure(group, failure.status, seconds());
  ring_group_destroy(group);
}

/* The ring can't form. */
static void unformed(const struct task *task) {
  ring_group_t *group = NULL;
  double start = seconds();
  ring_status_t status = ring_group_create(&task->config, &group);
  printf("unformed %.3f %s %s\n", seconds() - start, ring_status_name(status), last_error());
}

/* Rank 1 computes for long, while rank 0 has filled the connection to it with a message and every
 * other rank waits in a collective. */
static void late(const struct task *task) {
  ring_group_t *group = enter(task);
  uint32_t *array = make_array(task->count);
  OK(ring_barrier(group));
  double start = seconds();
  if (task->rank == 0) {
    fill(array, task->count, 1, 0);
    OK(ring_send(group, array, task->count, RING_DTYPE_UINT32, 1));
    CHECK(seconds() - start > task->pause_ms / 1000.0 - 1, "the message was sent before its receiver came");
  } else if (task->rank == 1) {
    pause_ms(task->pause_ms);
    OK(ring_recv(group, array, task->count, RING_DTYPE_UINT32, 0));
    check(array, task->count, 1, 0);
  }
  OK(reduce(group, array, task->count, 1));
  printf("done %.3f\n", seconds() - start);
  ring_group_destroy(group);
  free(array);
}

struct unread {
  ring_group_t *group;
  uint32_t *array;
  size_t count;
};

/* Sends what nobody receives: taken by the peer's host in part or in the end, or not at all. */
static void *send_unread(void *data) {
  struct unread *unread = data;
  ring_status_t status = ring_send(unread->group, unread->array, unread->count, RING_DTYPE_UINT32, 0);
  CHECK(status == RING_STATUS_OK || status == RING_STATUS_PEER_LOST, "%s", last_error());
  return NULL;
}

/* Rank 0 ends its group as soon as its last call has returned: a message, while one of rank 1's is unread.
 * Any other rank, whom nobody needs, has gone already. */
static void last_message(const struct task *task) {
  enum { ARRIVES_MS = 300 };
  ring_group_t *group = enter(task);
  uint32_t *array = make_array(task->count);
  OK(ring_barrier(group));
  double start = seconds();
  if (task->rank == 0) {
    fill(array, task->count, 1, 0);
    pause_ms(ARRIVES_MS);
    OK(ring_send(group, array, task->count, RING_DTYPE_UINT32, 1));
    printf("done %.3f\n", seconds() - start);
    ring_group_destroy(group);
  } else if (task->rank == 1) {
    struct unread unread = {group, make_array(task->unread), task->unread};
    fill(unread.array, unread.count, 2, 0);
    pthread_t sender;
    CHECK(pthread_create(&sender, NULL, send_unread, &unread) == 0);
    OK(ring_recv(group, array, task->count, RING_DTYPE_UINT32, 0));
    check(array, task->count, 1, 0);
    printf("done %.3f\n", seconds() - start);
    pthread_join(sender, NULL);
    ring_group_destroy(group);
    free(unread.array);
  } else {
    ring_group_destroy(group);
  }
  free(array);
}

/* The same with a collective, whose data rank 0 has sent but the others haven't got yet. */
static void last_gather(const struct task *task) {
  ring_group_t *group = enter(task);
  size_t count = task->count, size = (size_t)ring_group_size(group);
  uint32_t *own = make_array(count), *all = make_array(count * size);
  OK(ring_barrier(group));
  double start = seconds();
  fill(own, count, (uint32_t)task->rank + 1, 0);
  OK(ring_all_gather(group, own, all, count, RING_DTYPE_UINT32));
  printf("done %.3f\n", seconds() - start);
  if (task->rank == 0) ring_group_destroy(group);
  for (size_t rank = 0; rank < size; rank++) check(all + rank * count, count, (uint32_t)rank + 1, 0);
  if (task->rank != 0) ring_group_destroy(group);
  free(own);
  free(all);
}

/* Elements that one rank sends to another in an exchange of blocks; large enough to want direct links. */
static size_t block(int from, int to) { return (size_t)(9001 * (from + 1) + 377 * to); }

static uint32_t block_value(int from, int to, size_t i) { return (uint32_t)(from * 1000003 + to * 4099) + (uint32_t)i; }

/* All ranks exchange blocks, of the same length or not; the result of a call in which `odd`, if it is a rank, expects
 * too much of the rank before the one before it. */
static ring_status_t exchange(ring_group_t *group, bool even, int odd) {
  enum { RANKS = 4 };
  int rank = ring_group_rank(group);
  size_t sends[RANKS], recvs[RANKS], out = 0, into = 0;
  for (int peer = 0; peer < RANKS; peer++) {
    sends[peer] = even ? block(0, 0) : block(rank, peer);
    recvs[peer] = even ? block(0, 0) : block(peer, rank);
    if (rank == odd && peer == (rank + 2) % RANKS) recvs[peer]++;
    out += sends[peer], into += recvs[peer];
  }
  uint32_t *send = make_array(out), *recv = make_array(into), *at = send;
  for (int to = 0; to < RANKS; at += sends[to++])
    for (size_t i = 0; i < sends[to]; i++) at[i] = block_value(rank, to, i);
  ring_status_t status = even ? ring_all_to_all(group, send, recv, sends[0], RING_DTYPE_UINT32)
                              : ring_all_to_all_v(group, send, sends, NULL, recv, recvs, NULL, RING_DTYPE_UINT32);
  at = recv;
  for (int from = 0; from < RANKS && status == RING_STATUS_OK; at += recvs[from++])
    for (size_t i = 0; i < recvs[from]; i++)
      CHECK(at[i] == block_value(from, rank, i), "element %zu of rank %d's block for rank %d", i, from, rank);
  free(send);
  free(recv);
  return status;
}

/* Rank 0 can't reach rank 2, which has no other effect: blocks for it take the ring. */
static void far(const struct task *task) {
  ring_group_t *group = enter(task);
  uint32_t *array = make_array(task->count);
  int peer = (task->rank + 2) % 4;
  OK(ring_barrier(group));
  double start = seconds();
  if (task->rank % 2 == 0) {
    EXPECT(RING_STATUS_CONNECT_FAILED, task->rank == 0
                                           ? ring_send(group, array, task->count, RING_DTYPE_UINT32, peer)
                                           : ring_recv(group, array, task->count, RING_DTYPE_UINT32, peer));
    printf("unsent %.3f %s\n", seconds() - start, last_error());
  } else {
    fill(array, task->count, (uint32_t)task->rank, 0);
    OK(ring_send(group, array, task->count, RING_DTYPE_UINT32, peer));
    OK(ring_recv(group, array, task->count, RING_DTYPE_UINT32, peer));
    check(array, task->count, (uint32_t)peer, 0);
  }
  for (int round = 0; round < task->rounds; round++) {
    OK(exchange(group, round % 2 == 0, -1));
    OK(exchange(group, round % 2 == 1, -1));
    OK(reduce(group, array, task->count, round));
  }
  ring_failure_t failure = {.struct_size = sizeof failure};
  OK(ring_group_failure(group, &failure));
  CHECK(failure.status == RING_STATUS_OK, "%s", group_error(group));
  /* All hear of two ranks whose counts differ, neighbours of theirs or not. */
  EXPECT(RING_STATUS_MISMATCH, exchange(group, false, 3));
  CHECK(strstr(last_error(), "rank 1 called all_to_all_v(uint32, a block of ") && strstr(last_error(), "; rank 3 called"),
        "%s", last_error());
  ring_group_destroy(group);
  free(array);
}

/* The ranks meet at a rendezvous instead. */
static void meet(ring_config_t *config, const char *rendezvous, unsigned size) {
  config->hosts = NULL;
  config->rendezvous = rendezvous;
  config->size = (int32_t)size;
}

/* Ranks 0 and 2 can't reach each other: a split that wants them in one group makes none, and says why to all. */
static void split(const struct task *task) {
  ring_group_t *group = enter(task), *child = NULL, *none = NULL;
  uint32_t *array = make_array(task->count);
  OK(ring_group_split(group, task->rank / 2, 0, &child));
  CHECK(ring_group_size(child) == 2);
  for (int tries = 0; tries < 2; tries++) {
    double start = seconds();
    /* The third rank's links are good, and the fourth has none to make. */
    int color = task->rank == 3 ? -1 : 5;
    EXPECT(RING_STATUS_CONNECT_FAILED, ring_group_split(group, color, tries * task->rank, &none));
    if (tries == 0) printf("unsent %.3f %s\n", seconds() - start, last_error());
    for (int round = 0; round < task->rounds; round++) OK(reduce(group, array, task->count, round));
  }
  CHECK(!none);
  for (int round = 0; round < task->rounds; round++) OK(reduce(child, array, task->count, round));
  ring_failure_t failure = {.struct_size = sizeof failure};
  OK(ring_group_failure(group, &failure));
  CHECK(failure.status == RING_STATUS_OK, "%s", group_error(group));
  OK(ring_barrier(child));
  ring_group_destroy(child);
  OK(ring_barrier(group));
  ring_group_destroy(group);
  free(array);
}

static const struct {
  const char *name;
  void (*run)(const struct task *);
} behaviours[] = {{"sums", sums}, {"busy", busy},           {"idle", idle},
                  {"late", late}, {"unformed", unformed}, {"last_message", last_message},
                  {"last_gather", last_gather}, {"far", far},
                  {"split", split}};

int main(int arguments, char **argument) {
  if (arguments == 2 && strcmp(argument[1], "now") == 0) {
    printf("%.3f\n", seconds());
    return 0;
  }
  CHECK(arguments >= 4, "usage: rank now | BEHAVIOUR RANK HOSTS [NAME=VALUE...]");
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  struct task task = {.rank = atoi(argument[2]), .count = 1 << 10, .unread = 1 << 10, .rounds = 3};
  task.config = make_config(task.rank, argument[3], 1);
  unsigned limit_s = 30;
  for (int i = 4; i < arguments; i++) {
    char name[32];
    unsigned value;
    CHECK(sscanf(argument[i], "%31[^=]=%u", name, &value) == 2, "%s", argument[i]);
    if (strcmp(name, "count") == 0) task.count = value;
    else if (strcmp(name, "unread") == 0) task.unread = value;
    else if (strcmp(name, "rounds") == 0) task.rounds = (int)value;
    else if (strcmp(name, "pause_ms") == 0) task.pause_ms = (int)value;
    else if (strcmp(name, "timeout_ms") == 0) task.config.timeout_ms = value;
    else if (strcmp(name, "connect_timeout_ms") == 0) task.config.connect_timeout_ms = value;
    else if (strcmp(name, "limit_s") == 0) limit_s = value;
    else if (strcmp(name, "size") == 0) meet(&task.config, argument[3], value);
    else CHECK(0, "%s", argument[i]);
  }
  /* Whoever hangs ends here, by a signal that the script sees. */
  alarm(limit_s);
  for (size_t i = 0; i < sizeof behaviours / sizeof *behaviours; i++) {
    if (strcmp(argument[1], behaviours[i].name) == 0) {
      behaviours[i].run(&task);
      return 0;
    }
  }
  CHECK(0, "no behaviour is called %s", argument[1]);
}
