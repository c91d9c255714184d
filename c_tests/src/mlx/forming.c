/* How a ring on MLX's wire forms: which connections are made, in which order, and not one too many; what goes over them;
 * and what a rank is told whose neighbours don't come. The neighbours are played here by sockets. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "member.h"

enum { QUIET_MS = 200, TIMEOUT_MS = 700 };

static int port_of(const char *hosts, int which) {
  const char *at = hosts;
  for (int i = 0; i <= which; i++) at = strchr(at, ':') + 1;
  return atoi(at);
}

static struct sockaddr_in address_of(int port) {
  return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
}

static int listen_at(int port) {
  struct sockaddr_in address = address_of(port);
  int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0, "port %d: %s", port, strerror(errno));
  CHECK(listen(listener, 0) == 0);
  return listener;
}

/* Returns -1 where nobody listens. */
static int try_connect(int port) {
  struct sockaddr_in address = address_of(port);
  int connection = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(connection, (struct sockaddr *)&address, sizeof address) == 0) return connection;
  CHECK(errno == ECONNREFUSED, "%s", strerror(errno));
  close(connection);
  return -1;
}

static int connect_to(int port) {
  double deadline = seconds() + 10;
  for (;;) {
    int connection = try_connect(port);
    if (connection >= 0) return connection;
    CHECK(seconds() < deadline, "nobody listens at port %d", port);
    usleep(2000);
  }
}

static int is_readable(int descriptor, int limit_ms) {
  struct pollfd entry = {.fd = descriptor, .events = POLLIN};
  return poll(&entry, 1, limit_ms) == 1;
}

static int accept_one(int listener) {
  CHECK(is_readable(listener, 10000), "nobody connects");
  int connection = accept(listener, NULL, NULL);
  CHECK(connection >= 0);
  return connection;
}

/* Nobody connects, nothing comes, nothing ends. */
static void expect_silence(const int *descriptors, int count, const char *when) {
  usleep(QUIET_MS * 1000);
  for (int i = 0; i < count; i++) CHECK(!is_readable(descriptors[i], 0), "descriptor %d %s", i, when);
}

static void expect_bytes(int connection, const void *bytes, size_t count) {
  char got[8192];
  CHECK(count <= sizeof got);
  for (size_t have = 0; have < count;) {
    CHECK(is_readable(connection, 10000), "%zu of %zu bytes", have, count);
    ssize_t some = read(connection, got + have, count - have);
    CHECK(some > 0, "%zu of %zu bytes, then the end", have, count);
    have += (size_t)some;
  }
  CHECK(memcmp(got, bytes, count) == 0, "other bytes");
}

static void put(int connection, const void *bytes, size_t count) {
  CHECK(write(connection, bytes, count) == (ssize_t)count);
}

/* What the library's rank does in a ring whose other rank is played. */
static void sum_and_send(int rank, const char *hosts) {
  ring_group_t *group = mlx_join(rank, hosts);
  float one = 1.5f, four[4] = {1, 2, 3, 4};
  unsigned char message[3000];
  usleep(2 * QUIET_MS * 1000); /* nothing goes over the connections before the first call */
  OK(ring_all_reduce(group, &one, &one, 1, RING_DTYPE_FLOAT32, RING_OP_SUM));
  CHECK(one == 12.0f, "%f", one);
  OK(ring_all_reduce(group, four, four, 4, RING_DTYPE_FLOAT32, RING_OP_SUM));
  CHECK(four[0] == 11 && four[1] == 22 && four[2] == 33 && four[3] == 44);
  for (int i = 0; i < 3000; i++) message[i] = (unsigned char)(i * 7);
  OK(ring_send(group, message, 3000, RING_DTYPE_UINT8, 1 - rank));
  OK(ring_send(group, message, 1025, RING_DTYPE_UINT8, 1 - rank));
  OK(ring_send(group, message, 1024, RING_DTYPE_UINT8, 1 - rank));
  OK(ring_barrier(group));
  ring_group_destroy(group);
}

static int library_rank;

static void library(int rank, int size, const char *hosts, void *data) {
  (void)rank, (void)size, (void)data;
  sum_and_send(library_rank, hosts);
}

/* The other rank of sum_and_send, byte for byte: `in` are the connections that the library's rank made, `out` those it
 * accepted. A call of one element goes right, one of two and more left. */
static void play(const int *in, const int *out) {
  const float mine = 10.5f, theirs = 1.5f, sum = 12, zero = 0;
  int all[] = {in[0], in[1], out[0], out[1]};
  unsigned char message[3000];
  expect_silence(all, 4, "isn't silent before the first call");
  if (library_rank == 0) {
    /* Segment 0 is the library's own, 1 a zero. */
    put(out[0], &zero, 4);
    expect_bytes(in[0], &theirs, 4);
    put(out[0], &sum, 4);
    expect_bytes(in[0], &zero, 4);
  } else {
    put(out[0], &mine, 4);
    expect_bytes(in[0], &zero, 4);
    put(out[0], &zero, 4);
    expect_bytes(in[0], &sum, 4);
  }
  /* To the left: the library sends on what it accepted. Elements 0 and 1 are segment 0. */
  const float own[2][2] = {{1, 2}, {3, 4}}, others[2][2] = {{10, 20}, {30, 40}}, sums[2][2] = {{11, 22}, {33, 44}};
  int r = library_rank;
  expect_bytes(out[0], own[r], 8);
  put(in[0], others[1 - r], 8);
  expect_bytes(out[0], sums[1 - r], 8);
  put(in[0], sums[r], 8);
  for (int i = 0; i < 3000; i++) message[i] = (unsigned char)(i * 7);
  expect_bytes(in[0], message, 1500);
  expect_bytes(in[1], message + 1500, 1500);
  expect_bytes(in[0], message, 1024);
  expect_bytes(in[1], message + 1024, 1);
  expect_bytes(in[0], message, 1024);
  /* The barrier: its first step tells that no message left more. */
  const float one = 1, two = 2;
  if (r == 0) {
    expect_bytes(in[0], &one, 4);
    CHECK(!is_readable(in[0], QUIET_MS) && !is_readable(in[1], 0) && !is_readable(out[0], 0) && !is_readable(out[1], 0));
    put(out[0], &zero, 4);
    expect_bytes(in[0], &zero, 4);
    put(out[0], &two, 4);
  } else {
    expect_bytes(in[0], &zero, 4);
    CHECK(!is_readable(in[0], QUIET_MS) && !is_readable(in[1], 0) && !is_readable(out[0], 0) && !is_readable(out[1], 0));
    put(out[0], &one, 4);
    expect_bytes(in[0], &two, 4);
    put(out[0], &zero, 4);
  }
  /* Then the end, and nothing before it. */
  char byte;
  for (int i = 0; i < 4; i++) CHECK(is_readable(all[i], 2000) && read(all[i], &byte, 1) == 0, "connection %d", i);
  for (int i = 0; i < 4; i++) close(all[i]);
}

/* Rank 0 accepts at its addresses, once each, and connects then, to one address after the other. */
static void first_rank(void) {
  char *hosts = make_hosts(2, 2);
  library_rank = 0;
  struct ranks ranks = start_ranks(1, hosts, library, NULL);
  int in[2], out[2], listeners[2];
  listeners[0] = listen_at(port_of(hosts, 2));
  out[0] = connect_to(port_of(hosts, 0));
  usleep(20000);
  CHECK(try_connect(port_of(hosts, 0)) < 0, "a second connection to an address");
  expect_silence(listeners, 1, "saw a connection before all were accepted");
  out[1] = connect_to(port_of(hosts, 1));
  in[0] = accept_one(listeners[0]);
  CHECK(try_connect(port_of(hosts, 1)) < 0, "a second connection to an address");
  /* The second address opens late, as MLX's does. */
  expect_silence(listeners, 1, "saw a second connection");
  listeners[1] = listen_at(port_of(hosts, 3));
  in[1] = accept_one(listeners[1]);
  play(in, out);
  expect_silence(listeners, 2, "saw a connection too many");
  await_ranks(&ranks, 10, 0);
  close(listeners[0]), close(listeners[1]);
  free(hosts);
  release_ports();
}

/* The last rank connects first, one address after the other. */
static void last_rank(void) {
  char *hosts = make_hosts(2, 2);
  library_rank = 1;
  int in[2], out[2], listeners[2];
  listeners[0] = listen_at(port_of(hosts, 0));
  struct ranks ranks = start_ranks(1, hosts, library, NULL);
  in[0] = accept_one(listeners[0]);
  expect_silence(listeners, 1, "saw a second connection");
  listeners[1] = listen_at(port_of(hosts, 1));
  in[1] = accept_one(listeners[1]);
  for (int i = 0; i < 2; i++) out[i] = connect_to(port_of(hosts, 2 + i));
  usleep(20000);
  for (int i = 0; i < 2; i++) CHECK(try_connect(port_of(hosts, 2 + i)) < 0, "a second connection to an address");
  play(in, out);
  expect_silence(listeners, 2, "saw a connection too many");
  await_ranks(&ranks, 10, 0);
  close(listeners[0]), close(listeners[1]);
  free(hosts);
  release_ports();
}

static void sums(int rank, int size, const char *hosts, void *data) {
  ring_group_t *group;
  (void)size;
  if (data) usleep(((useconds_t *)data)[rank]);
  group = mlx_join(rank, hosts);
  for (size_t count = 1; count < 2000000; count *= 7) expect_sum(group, count);
  ring_group_destroy(group);
}

/* A visitor that leaves while the ring forms, or a neighbour that comes again, makes room for the next. */
static void visitors(void) {
  for (int rank = 0; rank < 3; rank++) {
    char *hosts = make_hosts(3, 2);
    useconds_t late[3] = {500000, 500000, 500000};
    late[rank] = 0;
    struct ranks ranks = start_ranks(3, hosts, sums, late);
    for (int i = 0; i < 5; i++) {
      int visitor = connect_to(port_of(hosts, 2 * rank + i % 2));
      if (i == 2) shutdown(visitor, SHUT_WR);
      usleep(20000);
      close(visitor);
      usleep(20000);
    }
    await_ranks(&ranks, 20, 0);
    free(hosts);
    release_ports();
  }
}

/* A right neighbour that is left over from another run takes the connection and ends: the next one is tried. */
static void left_over(void) {
  char *hosts = make_hosts(2, 1);
  useconds_t late[2] = {600000, 0};
  struct ranks ranks = start_ranks(2, hosts, sums, late);
  int listener = listen_at(port_of(hosts, 0));
  int connection = accept_one(listener);
  close(listener);
  usleep(100000);
  close(connection);
  await_ranks(&ranks, 20, 0);
  free(hosts);
  release_ports();
}

/* Who comes when doesn't matter. */
static void orders(void) {
  for (int round = 0; round < 6; round++) {
    int size = 2 + round % 4;
    char *hosts = make_hosts(size, 1 + round % 2);
    useconds_t late[5];
    for (int rank = 0; rank < size; rank++)
      late[rank] = 150000 * (useconds_t)(round < 3 ? rank : round < 5 ? size - rank : rank * 3 % size);
    run_ranks(size, hosts, sums, late, 20, 0);
    /* At once again, on the same ports. */
    for (int again = 0; again < 5; again++) run_ranks(size, hosts, sums, NULL, 20, 0);
    free(hosts);
    release_ports();
  }
}

static void expect_refusal(int rank, const char *hosts, double from, double to, const char *first, const char *second) {
  ring_config_t config = mlx_config(rank, hosts);
  ring_group_t *group = NULL;
  config.connect_timeout_ms = TIMEOUT_MS;
  int open = entries("/proc/self/fd");
  double start = seconds(), used = cpu_seconds();
  EXPECT(RING_STATUS_CONNECT_FAILED, ring_group_create(&config, &group));
  double took = seconds() - start;
  CHECK(took >= from && took <= to, "%.3f s: %s", took, last_error());
  CHECK(cpu_seconds() - used < 0.05, "%.3f s of a core", cpu_seconds() - used);
  CHECK(strstr(last_error(), first) && strstr(last_error(), second), "no \"%s\" and \"%s\" in: %s", first, second, last_error());
  CHECK(group == NULL && entries("/proc/self/fd") == open);
}

/* Who doesn't come is named, with the address, when the time is over. */
static void absent(void) {
  const double limit = TIMEOUT_MS / 1000.0;
  char *hosts = make_hosts(3, 2), address[64], named[64];
  /* Nobody has come to rank 0: it hasn't tried to connect yet. */
  snprintf(address, sizeof address, "127.0.0.1:%d", port_of(hosts, 0));
  expect_refusal(0, hosts, limit, limit + 0.5, "rank 2 (left neighbour) has not connected", address);
  CHECK(!strstr(last_error(), "rank 1"), "%s", last_error());
  /* The left one has come to one address. */
  snprintf(address, sizeof address, "connected to 127.0.0.1:%d", port_of(hosts, 1));
  struct ranks visitor = {.size = 0};
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    int connection = connect_to(port_of(hosts, 0));
    while (is_readable(connection, 10000) == 0) continue;
    _exit(0);
  }
  visitor.size = 1;
  visitor.pids[0] = child;
  expect_refusal(0, hosts, limit, limit + 0.5, "rank 2 (left neighbour)", address);
  await_ranks(&visitor, 10, 0);
  /* Rank 2 connects first, and nobody is there. */
  snprintf(address, sizeof address, "127.0.0.1:%d: Connection refused", port_of(hosts, 0));
  expect_refusal(2, hosts, limit, limit + 0.5, "rank 0 (right neighbour)", address);
  snprintf(named, sizeof named, "127.0.0.1:%d", port_of(hosts, 4));
  CHECK(strstr(last_error(), "rank 1 (left neighbour)") && strstr(last_error(), named), "%s", last_error());
  /* The port is taken: by somebody who listens and lets nobody in beside. */
  int listener = listen_at(port_of(hosts, 0));
  snprintf(address, sizeof address, "127.0.0.1:%d", port_of(hosts, 0));
  expect_refusal(0, hosts, 0, 1 + 0.5, address, "Address already in use");
  close(listener);
  free(hosts);
  release_ports();
}

int main(void) {
  first_rank();
  last_rank();
  visitors();
  left_over();
  orders();
  absent();
  return 0;
}
