#include "launch.h"

#include "local_hosts.h"
#include "say.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* After one rank has failed the library ends the others' calls; a rank that is still there after this
 * long is ended. */
enum { GRACE_MS = 10000, LOOK_EVERY_MS = 10 };

static pid_t start(int rank, rank_body *body, const char *hosts, const void *data) {
  pid_t parent = getpid();
  pid_t child = fork();
  if (child != 0) return child;
#ifdef __linux__
  /* A parent that is killed can't end its ranks. */
  prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
  if (getppid() != parent) _exit(1);
  int status = body(rank, hosts, data);
  _exit(written(status));
}

static int rank_of(pid_t child, const pid_t *children, int ranks) {
  for (int rank = 0; rank < ranks; rank++) {
    if (children[rank] == child) return rank;
  }
  return -1;
}

static void kill_all(const pid_t *children, int ranks) {
  for (int rank = 0; rank < ranks; rank++) {
    if (children[rank] > 0) kill(children[rank], SIGKILL);
  }
}

static void sleep_ms(int ms) {
  struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
  nanosleep(&time, NULL);
}

/* Waits for every child that was started. */
static int wait_for_all(pid_t *children, int ranks, int failed) {
  int running = 0;
  for (int rank = 0; rank < ranks; rank++) running += children[rank] > 0;
  int grace_ms = GRACE_MS;
  while (running > 0) {
    int status;
    pid_t child = waitpid(-1, &status, failed ? WNOHANG : 0);
    if (child < 0 && errno == EINTR) continue;
    if (child < 0) return 1;
    if (child == 0) {
      if (grace_ms == 0) {
        fprintf(stderr, "ring-perf: ending the ranks that are still there %d ms after the first failure\n", GRACE_MS);
        kill_all(children, ranks);
      }
      grace_ms -= LOOK_EVERY_MS;
      sleep_ms(LOOK_EVERY_MS);
      continue;
    }
    int rank = rank_of(child, children, ranks);
    if (rank < 0) continue;
    children[rank] = 0;
    running--;
    if (WIFSIGNALED(status)) {
      fprintf(stderr, "ring-perf: rank %d (pid %ld) was ended by signal %d (%s)\n", rank, (long)child,
              WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    /* A rank that exits has said why. */
    if (status != 0) failed = 1;
  }
  return failed;
}

int launch(int ranks, rank_body *body, const void *data) {
  char *hosts = local_hosts(ranks);
  pid_t *children = calloc((size_t)ranks, sizeof *children);
  if (!hosts || !children) {
    fprintf(stderr, "ring-perf: %s\n", hosts ? "no memory" : "no free ports on 127.0.0.1");
    free(hosts);
    free(children);
    return 1;
  }
  fflush(NULL);
  int failed = 0;
  for (int rank = 0; rank < ranks && !failed; rank++) {
    children[rank] = start(rank, body, hosts, data);
    if (children[rank] < 0) {
      fprintf(stderr, "ring-perf: starting rank %d: %s\n", rank, strerror(errno));
      failed = 1;
    }
  }
  if (failed) kill_all(children, ranks);
  failed = wait_for_all(children, ranks, failed);
  free(children);
  free(hosts);
  return failed;
}
