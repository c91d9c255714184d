/* Strangers come to the ranks' ports, while the ring forms and after: it forms as fast as without them,
 * and its sums are right. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"

enum { SIZE = 3, CALLS_MS = 2500, LATE_US = 700000, ZEROS = 1 << 20, MAX_HELLO = 512 };

/* After the strangers have come the last rank needs this to be in the ring. */
#define FORMS_S 2.0

struct run {
  int ports[SIZE];
  int formed; /* ranks that are in the ring */
  int over;   /* strangers have come and gone */
  int after;  /* they come after the ring has formed */
  size_t hello_bytes;
  char hello[MAX_HELLO]; /* what a rank of the same ring says first */
};

static int connect_to(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(made >= 0);
  if (connect(made, (struct sockaddr *)&address, sizeof address) == 0) return made;
  close(made);
  return -1;
}

/* A stranger that says something and stays; one that has been refused says nothing. */
static void say(int port, const void *words, size_t bytes) {
  int stranger = connect_to(port);
  if (stranger < 0) return;
  const char *at = words, *end = at + bytes;
  double deadline = seconds() + 0.3;
  while (at < end && seconds() < deadline) {
    ssize_t sent = send(stranger, at, (size_t)(end - at), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) at += sent;
    else usleep(1000);
  }
}

static void all_kinds(struct run *run, int port) {
  static const char zeros[ZEROS], get[] = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
  static const char tls[] = "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03";
  for (int i = 0; i < 50; i++) {
    int stranger = connect_to(port);
    if (stranger >= 0) close(stranger);
  }
  say(port, "\x01\x02\x03", 3);
  say(port, get, sizeof get - 1);
  say(port, tls, sizeof tls - 1);
  say(port, zeros, sizeof zeros);
  say(port, run->hello, run->hello_bytes / 2);
  say(port, run->hello, 1);
  say(port, "", 0);
  /* Many at once: they stay silent. */
  for (int i = 0; i < 300; i++) (void)connect_to(port);
}

static void stranger(struct run *run) {
  if (!run->after) {
    int first, tries = 0;
    while ((first = connect_to(run->ports[0])) < 0 && tries++ < 400) usleep(10000);
    CHECK(first >= 0, "rank 0 doesn't listen");
    all_kinds(run, run->ports[0]);
  } else {
    while (__atomic_load_n(&run->formed, __ATOMIC_ACQUIRE) < SIZE) usleep(1000);
    for (int rank = 0; rank < SIZE; rank++) all_kinds(run, run->ports[rank]);
  }
  __atomic_store_n(&run->over, 1, __ATOMIC_RELEASE);
  usleep(CALLS_MS * 1000); /* what has been connected stays so */
}

static void rank_or_stranger(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  (void)size;
  if (rank == SIZE) {
    stranger(run);
    return;
  }
  if (!run->after && rank > 0) {
    /* Rank 0 has none but strangers for company until then. */
    usleep(LATE_US);
    while (!__atomic_load_n(&run->over, __ATOMIC_ACQUIRE)) usleep(1000);
  }
  double start = seconds();
  ring_group_t *group = join(rank, hosts, 2);
  double took = seconds() - start;
  if (run->after || rank > 0) CHECK(took < FORMS_S, "rank %d was in the ring after %.3f s", rank, took);
  __atomic_fetch_add(&run->formed, 1, __ATOMIC_RELEASE);
  /* Until a while after the strangers; rank 0 decides for all. */
  double end = seconds() + CALLS_MS / 1000.0;
  for (int32_t going = 1; going;) {
    int32_t in[2] = {rank + 1, rank == 0 && seconds() < end}, out[2];
    OK(ring_all_reduce(group, in, out, 2, RING_DTYPE_INT32, RING_OP_SUM));
    CHECK(out[0] == SIZE * (SIZE + 1) / 2, "the sum is %d", out[0]);
    going = out[1];
    usleep(2000);
  }
  CHECK(__atomic_load_n(&run->over, __ATOMIC_ACQUIRE), "the strangers were slower than the ring");
  ring_group_destroy(group);
}

/* A rank 0 that finds somebody else as rank 1. */
static void introduce(int rank, int size, const char *hosts, void *data) {
  (void)rank;
  (void)size;
  (void)data;
  ring_config_t config = make_config(0, hosts, 2);
  config.connect_timeout_ms = 500;
  ring_group_t *group = NULL;
  EXPECT(RING_STATUS_CONNECT_FAILED, ring_group_create(&config, &group));
}

/* Listens where rank 1 should, and takes down what rank 0 says. */
static size_t learn_hello(char *hello, size_t room) {
  char hosts[256];
  int port = free_port(), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 5) == 0);
  snprintf(hosts, sizeof hosts, "[\"127.0.0.1:%d\",\"127.0.0.1:%d\",\"127.0.0.1:%d\"]", free_port(), port, free_port());
  struct ranks ranks = start_ranks(1, hosts, introduce, NULL);
  int connection = accept(listener, NULL, NULL);
  CHECK(connection >= 0);
  ssize_t bytes = recv(connection, hello, room, 0);
  CHECK(bytes > 8, "a hello of %zd bytes", bytes);
  close(connection);
  close(listener);
  await_ranks(&ranks, 10, 0);
  return (size_t)bytes;
}

int main(void) {
  struct run *run = shared(sizeof *run);
  run->hello_bytes = learn_hello(run->hello, sizeof run->hello);
  for (run->after = 0; run->after < 2; run->after++) {
    char hosts[256];
    for (int rank = 0; rank < SIZE; rank++) run->ports[rank] = free_port();
    snprintf(hosts, sizeof hosts, "[\"127.0.0.1:%d\",\"127.0.0.1:%d\",\"127.0.0.1:%d\"]", run->ports[0], run->ports[1],
             run->ports[2]);
    run->formed = run->over = 0;
    run_ranks(SIZE + 1, hosts, rank_or_stranger, run, 40, 0);
  }
  return 0;
}
