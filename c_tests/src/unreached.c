/* Rank 0 can't reach rank 2 at the address that rank 1 has told: both ends of a message between them are told, and the
 * group goes on. Rank 1 reaches rank 2 through a relay of this program, which then refuses everyone, or accepts and
 * is silent; later it lets connections through again. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"

enum { SIZE = 4, SENDER = 0, BESIDE = 1, RECEIVER = 2, FAILED = 3, TIMEOUT_MS = 3000, HELD_MS = 250 };
enum mode { OPEN, REFUSE, SILENT };

struct run {
  enum mode trouble;
  int relay_port, receiver_port;
  int mode;              /* of the relay */
  int held, sent;        /* set by ranks: 1 and 3 may be stopped; the late message was sent */
  int told, goes_on;     /* the receiver has been told of all; the sender may go on */
  char hosts[2][256];    /* by whether it is rank 1's */
};

static struct sockaddr_in at(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

static void *pump(void *data) {
  int *ends = data;
  char bytes[65536];
  ssize_t got;
  while ((got = read(ends[0], bytes, sizeof bytes)) > 0) {
    for (ssize_t sent = 0, n; sent < got; sent += n)
      if ((n = send(ends[1], bytes + sent, (size_t)(got - sent), MSG_NOSIGNAL)) <= 0) return NULL;
  }
  shutdown(ends[1], SHUT_WR);
  return NULL;
}

static void join_ends(int from, int to) {
  int *ends = malloc(2 * sizeof *ends);
  pthread_t thread;
  ends[0] = from;
  ends[1] = to;
  CHECK(pthread_create(&thread, NULL, pump, ends) == 0);
  pthread_detach(thread);
}

/* Its connections live on, whatever the mode is later. */
static void *relay(void *data) {
  struct run *run = data;
  int listener = -1, on = 1;
  for (;;) {
    int mode = __atomic_load_n(&run->mode, __ATOMIC_ACQUIRE);
    if (mode == REFUSE && listener >= 0) close(listener), listener = -1;
    if (mode != REFUSE && listener < 0) {
      struct sockaddr_in own = at(run->relay_port);
      listener = socket(AF_INET, SOCK_STREAM, 0);
      setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      CHECK(bind(listener, (struct sockaddr *)&own, sizeof own) == 0 && listen(listener, 64) == 0);
    }
    struct pollfd entry = {listener, POLLIN, 0};
    if (poll(&entry, 1, 5) <= 0) continue;
    int visitor = accept(listener, NULL, NULL);
    if (mode == SILENT) continue;
    struct sockaddr_in peer = at(run->receiver_port);
    int onward = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(onward, (struct sockaddr *)&peer, sizeof peer) != 0) {
      close(visitor);
      close(onward);
      continue;
    }
    join_ends(visitor, onward);
    join_ends(onward, visitor);
  }
  return NULL;
}

static void check_sum(ring_group_t *group) {
  int one = 1, sum = 0;
  OK(ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(sum == SIZE);
}

static void check_reason(const struct run *run, uint32_t number) {
  char start[64], address[32];
  snprintf(start, sizeof start, "message(uint32, 1), call %u: ", number);
  snprintf(address, sizeof address, "127.0.0.1:%d: ", run->relay_port);
  CHECK(strstr(last_error(), start) == last_error(), "%s", last_error());
  CHECK(strstr(last_error(), "rank 0 can't reach rank 2: ") && strstr(last_error(), address), "%s", last_error());
  CHECK(strstr(last_error(), run->trouble == REFUSE ? "Connection refused" : "does not answer"), "%s", last_error());
}

static void set(int *flag, int value) { __atomic_store_n(flag, value, __ATOMIC_RELEASE); }
static void await(int *flag) {
  double end = seconds() + 20;
  while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) {
    CHECK(seconds() < end, "nobody sets the flag");
    usleep(500);
  }
}

static void healthy(ring_group_t *group) {
  ring_failure_t failure = {.struct_size = sizeof failure};
  OK(ring_group_failure(group, &failure));
  CHECK(failure.status == RING_STATUS_OK, "%s", group_error(group));
}

/* Messages 1 to FAILED and FAILED + 2 don't arrive, FAILED + 1 does. */
static void sender(struct run *run, ring_group_t *group) {
  double longest = run->trouble == REFUSE ? 1.0 : TIMEOUT_MS / 2000.0;
  for (uint32_t i = 1; i <= FAILED; i++) {
    double start = seconds();
    uint32_t got = 0, out = 100 + i;
    /* The half that can be done is done. */
    if (i == 1) EXPECT(RING_STATUS_CONNECT_FAILED, ring_send_recv(group, &i, 1, RECEIVER, &got, 1, BESIDE, RING_DTYPE_UINT32));
    else EXPECT(RING_STATUS_CONNECT_FAILED, ring_send(group, &i, 1, RING_DTYPE_UINT32, RECEIVER));
    check_reason(run, i);
    CHECK(i > 1 || got == 77, "%u", got);
    double took = seconds() - start;
    CHECK(took > longest - 0.3 && took < longest + 0.5, "%.3f s", took);
    OK(ring_send(group, &out, 1, RING_DTYPE_UINT32, BESIDE));
  }
  set(&run->mode, OPEN);
  usleep(50000);
  set(&run->held, 1);
  await(&run->goes_on);
}

static void body(int rank, int size, const char *unused, void *data) {
  struct run *run = data;
  ring_config_t config = make_config(rank, run->hosts[rank == BESIDE], 1);
  ring_group_t *group = NULL;
  uint32_t value = 0;
  (void)unused;
  (void)size;
  config.timeout_ms = TIMEOUT_MS;
  OK(ring_group_create(&config, &group));
  OK(ring_barrier(group));
  if (rank == BESIDE) set(&run->mode, run->trouble);
  usleep(100000);
  OK(ring_barrier(group));
  int descriptors = entries("/proc/self/fd");
  if (rank == SENDER) {
    sender(run, group);
    CHECK(entries("/proc/self/fd") == descriptors, "%d, not %d", entries("/proc/self/fd"), descriptors);
    value = FAILED + 1;
    OK(ring_send(group, &value, 1, RING_DTYPE_UINT32, RECEIVER));
    set(&run->sent, 1);
  } else if (rank == RECEIVER) {
    /* The first is waited for, of the others it is told later; the other way is open. */
    for (uint32_t i = 1; i <= FAILED; i++) {
      EXPECT(RING_STATUS_CONNECT_FAILED, ring_recv(group, &value, 1, RING_DTYPE_UINT32, SENDER));
      check_reason(run, i);
      if (i == 1) await(&run->held);
    }
    set(&run->told, 1);
    OK(ring_recv(group, &value, 1, RING_DTYPE_UINT32, SENDER));
    CHECK(value == FAILED + 1, "%u", value);
    OK(ring_send(group, &value, 1, RING_DTYPE_UINT32, SENDER));
  } else if (rank == BESIDE) {
    value = 77;
    OK(ring_send(group, &value, 1, RING_DTYPE_UINT32, SENDER));
    for (uint32_t i = 1; i <= FAILED; i++) {
      OK(ring_recv(group, &value, 1, RING_DTYPE_UINT32, SENDER));
      CHECK(value == 100 + i, "%u", value);
    }
  }
  await(&run->told);
  if (rank == SENDER) OK(ring_recv(group, &value, 1, RING_DTYPE_UINT32, RECEIVER));
  for (int i = 0; i < 3; i++) check_sum(group);
  healthy(group);
  ring_group_destroy(group);
}

/* The word of a message that failed comes after the connection for the next one: those who would pass it on are
 * stopped. The receiver still gets each under its number. */
static void overtaken(int rank, int size, const char *unused, void *data) {
  struct run *run = data;
  ring_config_t config = make_config(rank, run->hosts[rank == BESIDE], 1);
  ring_group_t *group = NULL;
  uint32_t value = 0;
  (void)unused;
  (void)size;
  OK(ring_group_create(&config, &group));
  OK(ring_barrier(group));
  if (rank == BESIDE) set(&run->mode, run->trouble);
  usleep(100000);
  OK(ring_barrier(group));
  if (rank == SENDER) {
    usleep(300000);
    set(&run->held, 1); /* until the message that can be sent has come */
    for (uint32_t i = 1; i <= FAILED; i++) {
      EXPECT(RING_STATUS_CONNECT_FAILED, ring_send(group, &i, 1, RING_DTYPE_UINT32, RECEIVER));
    }
    set(&run->mode, OPEN);
    usleep(50000);
    value = FAILED + 1;
    OK(ring_send(group, &value, 1, RING_DTYPE_UINT32, RECEIVER));
    value++;
    OK(ring_send(group, &value, 1, RING_DTYPE_UINT32, RECEIVER));
    set(&run->sent, 1);
  } else if (rank == RECEIVER) {
    for (uint32_t i = 1; i <= FAILED; i++) {
      /* Beside a half that is done all the same. */
      uint32_t out = i;
      EXPECT(RING_STATUS_CONNECT_FAILED, ring_send_recv(group, &out, 1, BESIDE, &value, 1, SENDER, RING_DTYPE_UINT32));
      check_reason(run, i);
      if (i == 1) CHECK(__atomic_load_n(&run->sent, __ATOMIC_ACQUIRE), "the word came before the message");
    }
    for (uint32_t i = FAILED + 1; i <= FAILED + 2; i++) {
      OK(ring_recv(group, &value, 1, RING_DTYPE_UINT32, SENDER));
      CHECK(value == i, "%u", value);
    }
  } else if (rank == BESIDE) {
    for (uint32_t i = 1; i <= FAILED; i++) {
      OK(ring_recv(group, &value, 1, RING_DTYPE_UINT32, RECEIVER));
      CHECK(value == i, "%u", value);
    }
  }
  await(&run->sent);
  check_sum(group);
  healthy(group);
  ring_group_destroy(group);
}

static void run_case(enum mode trouble, int late_word) {
  struct run *run = shared(sizeof *run);
  int ports[SIZE];
  pthread_t thread;
  run->trouble = trouble;
  for (int i = 0; i < SIZE; i++) ports[i] = free_port();
  run->relay_port = free_port();
  run->receiver_port = ports[RECEIVER];
  for (int i = 0; i < 2; i++) {
    snprintf(run->hosts[i], sizeof run->hosts[i],
             "[\"127.0.0.1:%d\",\"127.0.0.1:%d\",\"127.0.0.1:%d\",\"127.0.0.1:%d\"]", ports[0], ports[1],
             i ? run->relay_port : ports[2], ports[3]);
  }
  struct ranks ranks = start_ranks(SIZE, NULL, late_word ? overtaken : body, run);
  release_ports();
  CHECK(pthread_create(&thread, NULL, relay, run) == 0);
  if (late_word) {
    await(&run->held);
    kill(ranks.pids[1], SIGSTOP);
    kill(ranks.pids[3], SIGSTOP);
    await(&run->sent);
    usleep(HELD_MS * 1000);
    kill(ranks.pids[1], SIGCONT);
    kill(ranks.pids[3], SIGCONT);
  } else {
    await(&run->held);
    set(&run->goes_on, 1);
  }
  await_ranks(&ranks, 30, 0);
}

int main(void) {
  signal(SIGPIPE, SIG_IGN);
  run_case(REFUSE, 0);
  run_case(SILENT, 0);
  run_case(REFUSE, 1);
  return 0;
}
