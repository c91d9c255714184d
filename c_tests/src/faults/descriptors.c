/* A host without free descriptors: a ring can't be formed, which is told and leaves nothing behind; one
 * that has formed works on, costs no core when strangers knock, and hears of a death. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "witness.h"

enum { SIZE = 3, POOR = 0, VICTIM = 2, STRANGERS = 50, WAIT_S = 2 };

struct run {
  int port; /* the poor rank's */
  struct witness witnesses[SIZE];
};

/* Leaves this process as many descriptors as it has, and `more`. */
static void limit(int more) {
  struct rlimit room;
  int lowest_free = dup(0);
  CHECK(lowest_free >= 0 && getrlimit(RLIMIT_NOFILE, &room) == 0);
  close(lowest_free);
  room.rlim_cur = (rlim_t)(lowest_free + more);
  CHECK(setrlimit(RLIMIT_NOFILE, &room) == 0);
}

static void unlimit(void) {
  struct rlimit room;
  CHECK(getrlimit(RLIMIT_NOFILE, &room) == 0);
  room.rlim_cur = room.rlim_max;
  CHECK(setrlimit(RLIMIT_NOFILE, &room) == 0);
}

/* However many descriptors there are short of what it takes. */
static void forms_without(int rank, int size, const char *hosts, void *data) {
  (void)rank;
  (void)size;
  (void)data;
  int before = entries("/proc/self/fd");
  for (int more = 0; more < 3; more++) {
    ring_config_t config = make_config(0, hosts, 8);
    config.connect_timeout_ms = 1000;
    ring_group_t *group = NULL;
    limit(more);
    ring_status_t status = ring_group_create(&config, &group);
    char text[1024];
    snprintf(text, sizeof text, "%s", last_error());
    unlimit();
    /* Not to be able to listen is CONNECT_FAILED, whatever the reason. */
    CHECK(status == RING_STATUS_SYSTEM || status == RING_STATUS_CONNECT_FAILED, "%d descriptors: %s: %s", more,
          ring_status_name(status), text);
    CHECK(strstr(text, "Too many open files"), "%s", text);
    CHECK(entries("/proc/self/fd") == before, "%d descriptors, then %d", before, entries("/proc/self/fd"));
  }
}

static void knock(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < STRANGERS; i++) {
    int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(stranger >= 0);
    (void)!connect(stranger, (struct sockaddr *)&address, sizeof address); /* stays open */
  }
}

static void works_without(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  struct witness *witness = &run->witnesses[rank];
  ring_group_t *group = join(rank, hosts, 1);
  OK(ring_barrier(group));
  if (rank == POOR) limit(0);
  OK(ring_barrier(group));
  if (rank == 1) knock(run->port);
  double start = seconds(), used = cpu_seconds();
  if (rank == 1) sleep(WAIT_S);
  OK(ring_barrier(group));
  double took = seconds() - start;
  used = cpu_seconds() - used;
  if (rank == POOR) CHECK(used < CPU_SHARE * took, "it used %.3f s of a core in %.3f s", used, took);
  int32_t one = rank, sum = 0;
  OK(ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(sum == size * (size - 1) / 2, "the sum is %d", sum);
  witness_ready(witness);
  witness_enter(witness);
  if (rank == VICTIM) pause();
  witness_failure(witness, group, ring_barrier(group));
  ring_group_destroy(group);
}

int main(void) {
  char hosts[256];
  int ports[SIZE];
  for (int rank = 0; rank < SIZE; rank++) ports[rank] = free_port();
  snprintf(hosts, sizeof hosts, "[\"127.0.0.1:%d\",\"127.0.0.1:%d\",\"127.0.0.1:%d\"]", ports[0], ports[1], ports[2]);
  run_ranks(1, hosts, forms_without, NULL, 20, 0);
  struct run *run = shared(sizeof *run);
  run->port = ports[POOR];
  struct ranks ranks = start_ranks(SIZE, hosts, works_without, run);
  await_ready(run->witnesses, SIZE, 0, 20);
  double killed = seconds();
  kill(ranks.pids[VICTIM], SIGKILL);
  await_ranks(&ranks, 20, 1u << VICTIM);
  struct verdict verdict = {
      .status = RING_STATUS_PEER_LOST, .rank = VICTIM, .part = "rank 2", .to = killed + HEARS_S};
  expect_verdict(run->witnesses, SIZE, 1u << VICTIM, &verdict);
  return 0;
}
