#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_PORT = 10000, PORTS = 20000, MAX_RANKS = 16 };

const char *last_error(void) {
  static _Thread_local char text[4096];
  ring_last_error(text, sizeof text);
  return text;
}

const char *group_error(const ring_group_t *group) {
  static _Thread_local char text[4096];
  ring_group_last_error(group, text, sizeof text);
  return text;
}

double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Test programs run side by side. A port is kept from the others by a socket that is bound to it and
 * doesn't listen: their probes, without SO_REUSEADDR, fail there, and a rank's listener, with it,
 * doesn't. */
static int reserved[4096], reservations;

int free_port(void) {
  static int next = -1, on = 1;
  if (next < 0) next = (int)((unsigned)getpid() * 61u % PORTS);
  for (int tries = 0; tries < PORTS; tries++) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    int port = FIRST_PORT + next;
    next = (next + 1) % PORTS;
    address.sin_port = htons((uint16_t)port);
    int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(probe, (struct sockaddr *)&address, sizeof address) == 0) {
      CHECK(reservations < (int)(sizeof reserved / sizeof *reserved));
      setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      reserved[reservations++] = probe;
      return port;
    }
    close(probe);
  }
  CHECK(0, "no free port");
  return 0;
}

char *make_hosts(int size, int addresses) {
  char *text = malloc((size_t)(size * addresses) * 32 + 16), *end = text;
  CHECK(text);
  for (int i = 0; i < size * addresses; i++) {
    const char *opening = i == 0 ? "[[" : i % addresses == 0 ? "],[" : ",";
    end += sprintf(end, "%s\"127.0.0.1:%d\"", opening, free_port());
  }
  strcpy(end, "]]");
  return text;
}

ring_config_t make_config(int rank, const char *hosts, int connections) {
  ring_config_t config;
  ring_config_init(&config, sizeof config);
  config.rank = rank;
  config.hosts = hosts;
  config.job_id = "test"; /* without one a ring takes longer to form */
  config.connections = (uint32_t)connections;
  config.connect_timeout_ms = 20000;
  config.timeout_ms = 20000;
  return config;
}

ring_group_t *join(int rank, const char *hosts, int connections) {
  ring_config_t config = make_config(rank, hosts, connections);
  ring_group_t *group = NULL;
  OK(ring_group_create(&config, &group));
  return group;
}

void *shared(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  return memory;
}

void run_ranks(int size, const char *hosts, rank_body *body, void *data, int limit_s, unsigned may_die) {
  pid_t ranks[MAX_RANKS];
  CHECK(size <= MAX_RANKS);
  fflush(NULL);
  for (int rank = 0; rank < size; rank++) {
    ranks[rank] = fork();
    CHECK(ranks[rank] >= 0);
    if (ranks[rank] == 0) {
      /* The ranks' descriptors are their own; the reservations live on in this process's parent. */
      while (reservations > 0) close(reserved[--reservations]);
      body(rank, size, hosts, data);
      exit(0);
    }
  }
  double deadline = seconds() + limit_s;
  int running = size, failed = 0;
  while (running > 0) {
    for (int rank = 0; rank < size; rank++) {
      int status;
      if (ranks[rank] == 0 || waitpid(ranks[rank], &status, WNOHANG) == 0) continue;
      ranks[rank] = 0;
      running--;
      if (status != 0 && !(may_die >> rank & 1)) {
        fprintf(stderr, "rank %d of %d: %s %d\n", rank, size, WIFSIGNALED(status) ? "signal" : "exit status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        failed = 1;
      }
    }
    if (running > 0 && seconds() > deadline) {
      for (int rank = 0; rank < size; rank++) {
        if (ranks[rank] == 0) continue;
        fprintf(stderr, "rank %d of %d is still running after %d s\n", rank, size, limit_s);
        kill(ranks[rank], SIGKILL);
        waitpid(ranks[rank], NULL, 0);
      }
      exit(1);
    }
    usleep(1000);
  }
  if (failed) exit(1);
}
