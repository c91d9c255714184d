#include "sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ring.h"

static const char *const KIND_NAMES[] = {"tcp", "unix"};
static const char *const WAITING_NAMES[] = {"blocking", "yielding", "busy poll"};

static void connect_pair(kind_t kind, int ends[2]) {
  if (kind == UNIX) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) die("socketpair");
    return;
  }
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
      getsockname(listener, (struct sockaddr *)&address, &length)) {
    die("listen");
  }
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(ends[0], (struct sockaddr *)&address, length)) die("connect");
  ends[1] = accept(listener, NULL, NULL);
  if (ends[1] < 0) die("accept");
  close(listener);
  const int on = 1;
  for (int i = 0; i < 2; i++) setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void connect_ring(plan_t *plan, kind_t kind) {
  for (int rank = 0; rank < plan->ranks; rank++) connect_pair(kind, plan->links[rank]);
}

static void close_ring(const plan_t *plan) {
  for (int rank = 0; rank < plan->ranks; rank++) {
    close(plan->links[rank][0]);
    close(plan->links[rank][1]);
  }
}

static int to_right(const plan_t *plan, int rank) { return plan->links[rank][0]; }
static int to_left(const plan_t *plan, int rank) { return plan->links[(rank + plan->ranks - 1) % plan->ranks][1]; }

static void write_all(int socket, const char *bytes, size_t count) {
  while (count > 0) {
    ssize_t written = write(socket, bytes, count);
    if (written <= 0) die("write");
    bytes += written;
    count -= (size_t)written;
  }
}

static void read_all(int socket, char *bytes, size_t count, waiting_t waiting) {
  while (count > 0) {
    ssize_t got = recv(socket, bytes, count, waiting == BLOCKING ? 0 : MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) {
      if (waiting == YIELDING) sched_yield();
      continue;
    }
    if (got <= 0) die("recv");
    bytes += got;
    count -= (size_t)got;
  }
}

/* ---- One writer and one reader ---- */

static void stream_body(const plan_t *plan, int rank, shared_t *shared) {
  char *bytes = ready_memory(MIB);
  begin(shared, rank);
  for (size_t moved = 0; moved < plan->amount; moved += MIB) {
    if (rank == 0) write_all(to_right(plan, 0), bytes, MIB);
    else read_all(to_left(plan, 1), bytes, MIB, BLOCKING);
  }
  end(shared, rank);
}

static void stream(kind_t kind) {
  plan_t plan = {.body = stream_body, .ranks = 2, .amount = 1024 * MIB};
  connect_ring(&plan, kind);
  double seconds = run(&plan, NULL);
  close_ring(&plan);
  char name[NAME_BYTES];
  snprintf(name, sizeof name, "%s stream, one way", KIND_NAMES[kind]);
  print_limit(name, 2, (double)plan.amount / seconds / 1e9, "GB/s");
}

/* ---- Small messages ---- */

enum { SMALL_BYTES = 8 };

static void round_trip_body(const plan_t *plan, int rank, shared_t *shared) {
  char bytes[SMALL_BYTES] = {0};
  begin(shared, rank);
  for (size_t i = 0; i < plan->amount; i++) {
    if (rank == 0) write_all(to_right(plan, 0), bytes, sizeof bytes);
    read_all(rank == 0 ? to_right(plan, 0) : to_left(plan, 1), bytes, sizeof bytes, plan->waiting);
    if (rank == 1) write_all(to_left(plan, 1), bytes, sizeof bytes);
  }
  end(shared, rank);
}

/* What a small all-reduce in a ring can't do without: floor(n/2) steps, which reach the other side. Where ranks are even
 * in number a step is a message to one neighbour and one from it, turn and turn about; else to and from both. */
static void exchange_body(const plan_t *plan, int rank, shared_t *shared) {
  char bytes[SMALL_BYTES] = {0};
  bool both = plan->ranks % 2 == 1;
  begin(shared, rank);
  for (size_t i = 0; i < plan->amount; i++) {
    for (int step = 0; step < plan->ranks / 2; step++) {
      bool right_first = (rank + step) % 2 == 0;
      int first = right_first ? to_right(plan, rank) : to_left(plan, rank);
      int second = right_first ? to_left(plan, rank) : to_right(plan, rank);
      write_all(first, bytes, sizeof bytes);
      if (both) write_all(second, bytes, sizeof bytes);
      read_all(first, bytes, sizeof bytes, plan->waiting);
      if (both) read_all(second, bytes, sizeof bytes, plan->waiting);
    }
  }
  end(shared, rank);
}

/* Microseconds of one call. */
static void small(body_t *body, const char *what, kind_t kind, waiting_t waiting, int ranks, size_t calls) {
  plan_t plan = {.body = body, .waiting = waiting, .ranks = ranks, .amount = calls};
  connect_ring(&plan, kind);
  double us = run(&plan, NULL) / (double)calls * 1e6;
  close_ring(&plan);
  char name[NAME_BYTES];
  snprintf(name, sizeof name, "%s %s, %s", KIND_NAMES[kind], what, WAITING_NAMES[waiting]);
  print_limit(name, ranks, us, "us");
}

/* ---- A ring ---- */

/* One thread and poll. */
static void ring_body(const plan_t *plan, int rank, shared_t *shared) {
  int right = to_right(plan, rank), left = to_left(plan, rank);
  const char *source = ready_memory(SPAN);
  char *array = ready_memory(SPAN), *scratch = ready_memory(MIB);
  if (fcntl(right, F_SETFL, O_NONBLOCK) || fcntl(left, F_SETFL, O_NONBLOCK)) die("fcntl");
  size_t sent = 0, got = 0;
  begin(shared, rank);
  while (sent < plan->amount || got < plan->amount) {
    bool idle = true;
    if (got < plan->amount) {
      bool adds = plan->adds && got / MIB % 2 == 1;
      size_t in_piece = got % MIB;
      ssize_t count = recv(left, adds ? scratch + in_piece : array + got % SPAN, MIB - in_piece, 0);
      if (count == 0 || (count < 0 && errno != EAGAIN)) die("recv");
      if (count > 0) {
        /* Whole elements, also of those that came in two pieces. */
        size_t first = in_piece / sizeof(float), last = (in_piece + (size_t)count) / sizeof(float);
        float *piece = (float *)(void *)(array + (got - in_piece) % SPAN);
        if (adds) add(piece + first, (const float *)(const void *)scratch + first, last - first);
        got += (size_t)count;
        idle = false;
      }
    }
    if (sent < plan->amount) {
      ssize_t count = send(right, source + sent % SPAN, MIB - sent % MIB, MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN) die("send");
      if (count > 0) {
        sent += (size_t)count;
        idle = false;
      }
    }
    if (idle) {
      struct pollfd wanted[2] = {{.fd = left, .events = got < plan->amount ? POLLIN : 0},
                                 {.fd = right, .events = sent < plan->amount ? POLLOUT : 0}};
      poll(wanted, 2, -1);
    }
  }
  end(shared, rank);
}

static void ring(kind_t kind, int ranks, bool adds) {
  plan_t plan = ring_plan(ring_body, ranks, adds);
  connect_ring(&plan, kind);
  measure_ring(&plan, KIND_NAMES[kind]);
  close_ring(&plan);
}

void measure_sockets(kind_t kind) {
  enum { CALLS = 20000, CALLS_OF_FOUR = 5000 };
  stream(kind);
  for (int adds = 0; adds < 2; adds++) {
    ring(kind, 2, adds);
    ring(kind, 4, adds);
  }
  for (waiting_t waiting = BLOCKING; waiting <= SPINNING; waiting++) {
    small(round_trip_body, "8 B round trip", kind, waiting, 2, CALLS);
    small(exchange_body, "8 B exchange", kind, waiting, 2, CALLS);
    /* Four that spin on fewer cores measure the scheduler's tick. */
    bool crowded = sysconf(_SC_NPROCESSORS_ONLN) < 4;
    if (waiting != SPINNING || !crowded) small(exchange_body, "8 B exchange", kind, waiting, 4, CALLS_OF_FOUR);
  }
}
