#include "harness.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_PORT = 10000, PORTS = 20000 };

void check_failed(const char *file, int line, const char *condition, const char *format, ...) {
  char text[8192];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "%s:%d: %s:%s\n", file, line, condition, text);
  exit(1);
}

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

void release_ports(void) {
  while (reservations > 0) close(reserved[--reservations]);
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

double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int entries(const char *folder) {
  int count = 0;
  DIR *directory = opendir(folder);
  CHECK(directory, "%s", folder);
  while (readdir(directory)) count++;
  closedir(directory);
  return count;
}

uint64_t next_random(uint64_t *state) { /* splitmix64: any seed is a good one */
  uint64_t x = *state += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

struct ranks start_ranks(int size, const char *hosts, rank_body *body, void *data) {
  struct ranks ranks = {.size = size};
  CHECK(size <= MAX_RANKS);
  fflush(NULL);
  for (int rank = 0; rank < size; rank++) {
    ranks.pids[rank] = fork();
    CHECK(ranks.pids[rank] >= 0);
    if (ranks.pids[rank] == 0) {
#ifdef __linux__
      prctl(PR_SET_PDEATHSIG, SIGKILL); /* a stopped rank would outlive a failed test for ever */
#endif
      /* The ranks' descriptors are their own; the reservations live on in this process's parent. */
      release_ports();
      body(rank, size, hosts, data);
      exit(0);
    }
  }
  return ranks;
}

void await_ranks(struct ranks *ranks, int limit_s, unsigned may_die) {
  double deadline = seconds() + limit_s;
  int running = 0, failed = 0;
  for (int rank = 0; rank < ranks->size; rank++) running += ranks->pids[rank] != 0;
  while (running > 0) {
    for (int rank = 0; rank < ranks->size; rank++) {
      int status;
      if (ranks->pids[rank] == 0 || waitpid(ranks->pids[rank], &status, WNOHANG) == 0) continue;
      ranks->pids[rank] = 0;
      running--;
      if (status != 0 && !(may_die >> rank & 1)) {
        fprintf(stderr, "rank %d of %d: %s %d\n", rank, ranks->size, WIFSIGNALED(status) ? "signal" : "exit status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        failed = 1;
      }
    }
    if (running > 0 && seconds() > deadline) {
      for (int rank = 0; rank < ranks->size; rank++) {
        if (ranks->pids[rank] == 0) continue;
        fprintf(stderr, "rank %d of %d is still running after %d s\n", rank, ranks->size, limit_s);
        kill(ranks->pids[rank], SIGKILL);
        waitpid(ranks->pids[rank], NULL, 0);
      }
      exit(1);
    }
    if (running > 0) usleep(1000);
  }
  if (failed) exit(1);
}

void run_ranks(int size, const char *hosts, rank_body *body, void *data, int limit_s, unsigned may_die) {
  struct ranks ranks = start_ranks(size, hosts, body, data);
  await_ranks(&ranks, limit_s, may_die);
}
