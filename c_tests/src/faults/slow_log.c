/* A rank whose log callback is slow has more strangers to log than it can: it is alive all the same, so that who
 * holds the others up is the rank that doesn't call, and destroy doesn't wait for the log of them all. */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "witness.h"

enum { SIZE = 3, SLOW = 1, ABSENT = 2, TIMEOUT_MS = 2000, LINE_US = 100000, STRANGERS = 80 };

static void log_slowly(ring_log_level_t level, const char *message, void *data) {
  (void)level;
  (void)message;
  (void)data;
  usleep(LINE_US);
}

static void body(int rank, int size, const char *hosts, void *data) {
  struct witness *witness = (struct witness *)data + rank;
  (void)size;
  if (rank == SLOW) OK(ring_set_log_callback(log_slowly, NULL, RING_LOG_LEVEL_INFO));
  ring_group_t *group = join(rank, hosts, 1);
  OK(ring_barrier(group));
  OK(ring_group_set_timeout(group, rank == SLOW ? RING_TIMEOUT_INFINITE : TIMEOUT_MS));
  witness_ready(witness);
  if (rank == ABSENT) {
    witness_idle(witness, group, 20);
  } else {
    witness_enter(witness);
    witness_failure(witness, group, ring_barrier(group));
  }
  double start = seconds();
  ring_group_destroy(group);
  CHECK(seconds() - start < 1, "rank %d took %.3f s to destroy a failed group", rank, seconds() - start);
}

static int port_of(const char *hosts, int rank) {
  for (int i = 0; i <= rank; i++) hosts = strchr(hosts, ':') + 1;
  return atoi(hosts);
}

static void knock(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  address.sin_port = htons((uint16_t)port);
  int stranger = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(connect(stranger, (struct sockaddr *)&address, sizeof address) == 0);
  CHECK(send(stranger, "GET /", 5, MSG_NOSIGNAL) == 5);
  close(stranger);
}

int main(void) {
  struct witness *witnesses = shared(SIZE * sizeof *witnesses);
  char *hosts = make_hosts(SIZE, 1);
  struct ranks ranks = start_ranks(SIZE, hosts, body, witnesses);
  await_ready(witnesses, SIZE, 0, 20);
  double start = seconds();
  for (int i = 0; i < STRANGERS; i++) knock(port_of(hosts, SLOW));
  await_ranks(&ranks, 30, 0);
  struct verdict verdict = {
      .status = RING_STATUS_TIMEOUT,
      .rank = ABSENT,
      .part = "has made no call since",
      .to = start + TIMEOUT_MS / 1000.0 + 2 * HEARS_S,
  };
  expect_verdict(witnesses, SIZE, 0, &verdict);
  free(hosts);
  return 0;
}
