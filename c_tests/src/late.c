/* Ranks that start late, come again or never come; strangers by the thousand. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static void sum_is_right(ring_group_t *group) {
  int rank = ring_group_rank(group), size = ring_group_size(group), sum = -1;
  OK(ring_all_reduce(group, &rank, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(sum == size * (size - 1) / 2, "%d", sum);
}

static void plain(int rank, const char *hosts) {
  ring_group_t *group = join(rank, hosts, 1);
  sum_is_right(group);
  ring_group_destroy(group);
}

static void starts_late(int rank, int size, const char *hosts, void *data) {
  (void)size;
  if (rank == *(int *)data) sleep(1);
  plain(rank, hosts);
}

struct again {
  int victim;
  int killed; /* the last rank may come */
};

/* A rank is killed while the others still wait for the last one, and runs again. */
static void comes_again(int rank, int size, const char *hosts, void *data) {
  struct again *again = data;
  while (rank == size - 1 && !__atomic_load_n(&again->killed, __ATOMIC_ACQUIRE)) usleep(1000);
  if (rank == again->victim) {
    for (int run = 0; run < 3; run++) {
      pid_t old = fork();
      CHECK(old >= 0);
      if (old == 0) {
        plain(rank, hosts);
        _exit(9); /* the last rank hasn't come */
      }
      usleep(200000);
      kill(old, SIGKILL);
      int status;
      CHECK(waitpid(old, &status, 0) == old && WIFSIGNALED(status));
    }
    __atomic_store_n(&again->killed, 1, __ATOMIC_RELEASE);
  }
  plain(rank, hosts);
}

/* A rank gives up at a timeout of its own, which is shorter, and runs again. */
static void gives_up_first(int rank, int size, const char *hosts, void *data) {
  (void)data;
  if (rank == size - 1) sleep(1);
  if (rank == 0) {
    ring_config_t config = make_config(rank, hosts, 1);
    config.connect_timeout_ms = 400;
    ring_group_t *group = NULL;
    EXPECT(RING_STATUS_CONNECT_FAILED, ring_group_create(&config, &group));
  }
  plain(rank, hosts);
}

/* A rank destroys its group as soon as it has one: its goodbye, which others may find behind the last
 * words of the forming, isn't taken for one of these. */
static void leaves_at_once(int rank, int size, const char *hosts, void *data) {
  (void)data;
  (void)size;
  ring_group_t *group = join(rank, hosts, 1);
  if (rank != 0) {
    EXPECT(RING_STATUS_PEER_LOST, ring_barrier(group));
    CHECK(strstr(last_error(), "rank 0") && strstr(last_error(), "has destroyed its group after call 0"), "%s",
          last_error());
  }
  ring_group_destroy(group);
}

/* Some ranks never come: everyone knows which, as far as it can. */
struct absence {
  unsigned absent;
  const char *parts[8]; /* what each rank's text contains */
};

static void never_come(int rank, int size, const char *hosts, void *data) {
  const struct absence *absence = data;
  (void)size;
  if (absence->absent >> rank & 1) return;
  usleep((useconds_t)rank * 50000); /* so that their timeouts are one after the other, too */
  ring_config_t config = make_config(rank, hosts, 1);
  config.connect_timeout_ms = 1500;
  ring_group_t *group = NULL;
  double start = seconds();
  EXPECT(RING_STATUS_CONNECT_FAILED, ring_group_create(&config, &group));
  double took = seconds() - start;
  CHECK(took > 1.4 && took < 2.5, "rank %d took %f s", rank, took);
  CHECK(strstr(last_error(), absence->parts[rank]), "rank %d: %s lacks %s", rank, last_error(), absence->parts[rank]);
  CHECK(strstr(last_error(), "the ring did not form within 1500 ms: "), "rank %d: %s", rank, last_error());
}

/* A conflict of two ranks is told to those who aren't part of it, at once. */
static void conflict_of_others(int rank, int size, const char *hosts, void *data) {
  (void)data;
  ring_config_t config = make_config(rank, hosts, rank == 1 ? 2 : 1);
  ring_group_t *group = NULL;
  /* Ranks 1 and 2 meet when the others have long been connected. */
  if (rank == 1) usleep(500000);
  double start = seconds();
  EXPECT(RING_STATUS_CONNECT_FAILED, ring_group_create(&config, &group));
  CHECK(seconds() - start < 3, "rank %d of %d took %f s", rank, size, seconds() - start);
  CHECK(strstr(last_error(), "the number of connections (RING_CONNECTIONS"), "rank %d: %s", rank, last_error());
}

/* All start at the same time, and ranks that disagree have failed before others have connected with
 * them: these hear of it all the same. */
static void conflict_at_once(int rank, int size, const char *hosts, void *data) {
  ring_config_t config = make_config(rank, hosts, rank == *(int *)data ? 2 : 1);
  ring_group_t *group = NULL;
  double start = seconds();
  EXPECT(RING_STATUS_CONNECT_FAILED, ring_group_create(&config, &group));
  CHECK(seconds() - start < 5, "rank %d of %d took %f s", rank, size, seconds() - start);
  CHECK(strstr(last_error(), "the number of connections (RING_CONNECTIONS"), "rank %d: %s", rank, last_error());
}

static int connect_to(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return -1;
  (void)!connect(made, (struct sockaddr *)&address, sizeof address);
  return made;
}

/* What a stock MLX peer shows to a rank: as its right neighbour payload instead of a hello, as its left
 * one silence. */
static void mlx_neighbours(void) {
  int port = free_port(), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 0) == 0);
  for (int talks = 0; talks < 2; talks++) {
    int own = free_port();
    char hosts[128];
    snprintf(hosts, sizeof hosts, "[\"127.0.0.1:%d\",\"127.0.0.1:%d\"]", own, port);
    pid_t peer = fork();
    CHECK(peer >= 0);
    if (peer == 0) {
      int accepted = accept(listener, NULL, NULL), dialled = -1;
      float payload[64] = {1, 2, 3};
      while (dialled < 0) usleep(10000), dialled = connect_to(own);
      if (talks) (void)!send(accepted, payload, sizeof payload, MSG_NOSIGNAL);
      sleep(3);
      _exit(0);
    }
    ring_config_t config = make_config(0, hosts, 1);
    config.connect_timeout_ms = 1000;
    ring_group_t *group = NULL;
    double start = seconds();
    EXPECT(RING_STATUS_CONNECT_FAILED, ring_group_create(&config, &group));
    const char *text = last_error();
    if (talks) CHECK(strstr(text, "the stock MLX ring") && seconds() - start < 0.9, "%s", text);
    else CHECK(strstr(text, "protocol: 1, from 127.0.0.1 (a stock MLX ring") && strstr(text, "does not answer"), "%s", text);
    kill(peer, SIGKILL);
    waitpid(peer, NULL, 0);
  }
  close(listener);
}

struct crowd {
  int port, limit, formed;
};

/* The last process is a crowd at rank 1's port, silent, talkative and gone; the ring forms. */
static void crowded(int process, int processes, const char *hosts, void *data) {
  enum { CROWD = 5000 };
  static int crowd[CROWD];
  struct crowd *at = data;
  if (process < processes - 1) {
    if (process == 1 && at->limit) {
      /* Fewer descriptors than the handshakes that may be open. */
      struct rlimit few = {(rlim_t)at->limit, (rlim_t)at->limit};
      CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    }
    if (process != 1) usleep(500000);
    double start = seconds();
    ring_group_t *group = join(process, hosts, 1);
    double took = seconds() - start;
    CHECK(process == 1 || took < 4, "process %d took %f s", process, took);
    sum_is_right(group);
    ring_group_destroy(group);
    __atomic_fetch_add(&at->formed, 1, __ATOMIC_SEQ_CST);
    return;
  }
  struct rlimit all;
  CHECK(getrlimit(RLIMIT_NOFILE, &all) == 0);
  all.rlim_cur = all.rlim_max;
  setrlimit(RLIMIT_NOFILE, &all);
  usleep(300000);
  const char *said[] = {"\x01\x02\x03", "GET / HTTP/1.1\r\n\r\n", "\x93LIBRING\x01", "\x16\x03\x01\x02", "", ""};
  for (int i = 0; i < CROWD; i++) crowd[i] = connect_to(at->port);
  double end = seconds() + 10;
  for (int i = 0; at->formed < processes - 1 && seconds() < end; i = (i + 1) % CROWD) {
    if (crowd[i] < 0) continue;
    const char *words = said[i % 6];
    (void)!send(crowd[i], words, strlen(words), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (i % 10 == 9) close(crowd[i]), crowd[i] = connect_to(at->port);
    if (i % 50 == 49) usleep(1000);
  }
}

int main(void) {
  for (int size = 2; size <= 4; size++) {
    for (int rank = 0; rank < size; rank += 2) {
      char *hosts = make_hosts(size, 1);
      run_ranks(size, hosts, starts_late, &rank, 20, 0);
      free(hosts);
    }
  }
  struct again *again = shared(sizeof *again);
  for (int victim = 0; victim < 3; victim++) {
    char *hosts = make_hosts(4, 1);
    *again = (struct again){.victim = victim};
    run_ranks(4, hosts, comes_again, again, 20, 0);
    free(hosts);
  }
  char *hosts = make_hosts(3, 1);
  run_ranks(3, hosts, gives_up_first, NULL, 20, 0);
  free(hosts);

  hosts = make_hosts(3, 1);
  for (int i = 0; i < 30; i++) run_ranks(3, hosts, leaves_at_once, NULL, 20, 0);
  free(hosts);

  struct absence two = {1u << 2,
                        {"rank 2 is missing (rank 1 could not reach it at 127.0.0.1", "rank 2 (right neighbour)", NULL,
                         "rank 2 (left neighbour)", "it has not connected to rank 3"}};
  hosts = make_hosts(5, 1);
  run_ranks(5, hosts, never_come, &two, 20, 0);
  free(hosts);
  struct absence three = {7u << 3,
                          {"rank 5 (left neighbour)", "nothing was heard of rank 4", "Connection refused", NULL, NULL, NULL}};
  hosts = make_hosts(6, 1);
  run_ranks(6, hosts, never_come, &three, 20, 0);
  free(hosts);

  hosts = make_hosts(5, 1);
  run_ranks(5, hosts, conflict_of_others, NULL, 20, 0);
  free(hosts);
  for (int odd = 0; odd < 6; odd++) {
    hosts = make_hosts(6, 1);
    run_ranks(6, hosts, conflict_at_once, &odd, 20, 0);
    free(hosts);
  }

  mlx_neighbours();

  struct crowd *crowd = shared(sizeof *crowd);
  for (int few = 0; few < 2; few++) {
    crowd->port = free_port();
    crowd->formed = 0;
    crowd->limit = few ? 60 : 0;
    char text[128];
    snprintf(text, sizeof text, "[\"127.0.0.1:%d\",\"127.0.0.1:%d\",\"127.0.0.1:%d\"]", free_port(), crowd->port,
             free_port());
    run_ranks(4, text, crowded, crowd, 30, 0);
    CHECK(crowd->formed == 3);
  }
  return 0;
}
