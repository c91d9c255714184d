#include "ranks.h"

#include "loaded.h"
#include "local_hosts.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Longer than any of the tests takes on a busy machine. */
enum { LIMIT_S = 90, MAX_RANKS = 8, TEXT_BYTES = 4096 };

void check_failed(const char *file, int line, const char *condition, const char *format, ...) {
  char text[TEXT_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const char *rank = getenv("MLX_RANK");
  fprintf(stderr, "%s:%d: rank %s: %s: %s\n", file, line, rank ? rank : "?", condition, text);
  _exit(1);
}

void run_processes(int size, rank_body *body, int may_die) {
  char path[] = "/tmp/ring-mpi-hosts-XXXXXX";
  char *hosts = local_hosts(size);
  int file = mkstemp(path);
  CHECK(hosts && file >= 0 && write(file, hosts, strlen(hosts)) == (ssize_t)strlen(hosts));
  close(file);
  pid_t pids[MAX_RANKS];
  for (int rank = 0; rank < size; rank++) {
    pids[rank] = fork();
    CHECK(pids[rank] >= 0);
    if (pids[rank] > 0) continue;
    char number[16];
    snprintf(number, sizeof number, "%d", rank);
    alarm(LIMIT_S);
    setenv("MLX_RANK", number, 1);
    setenv("MLX_HOSTFILE", path, 1);
    setenv("RING_CONNECT_TIMEOUT_MS", "30000", 1);
    setenv("RING_TIMEOUT_MS", "30000", 1);
    free(hosts);
    body(rank, size);
    exit(0);
  }
  int failed = 0;
  for (int rank = 0; rank < size; rank++) {
    int status;
    CHECK(waitpid(pids[rank], &status, 0) == pids[rank]);
    if (rank == may_die && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) continue;
    if (status != 0) fprintf(stderr, "rank %d of %d ended with status %x\n", rank, size, (unsigned)status);
    failed += status != 0;
  }
  unlink(path);
  free(hosts);
  if (failed) exit(1);
}

double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static rank_body *inner;

static void in_world(int rank, int size) {
  int got_rank = -1, got_size = -1;
  CHECK(mpi.init(NULL, NULL) == 0);
  CHECK(mpi.rank(mpi.world, &got_rank) == 0 && got_rank == rank);
  CHECK(mpi.size(mpi.world, &got_size) == 0 && got_size == size);
  inner(rank, size);
  CHECK(mpi.finalize() == 0);
}

void run_ranks(int size, rank_body *body, int may_die) {
  inner = body;
  run_processes(size, in_world, may_die);
}

static FILE *caught;
static int true_stderr;

void catch_errors(void) {
  caught = tmpfile();
  fflush(stderr);
  true_stderr = dup(STDERR_FILENO);
  CHECK(caught && true_stderr >= 0 && dup2(fileno(caught), STDERR_FILENO) >= 0);
}

const char *caught_errors(int lines) {
  static char text[4 * TEXT_BYTES];
  fflush(stderr);
  CHECK(dup2(true_stderr, STDERR_FILENO) >= 0);
  close(true_stderr);
  rewind(caught);
  size_t length = fread(text, 1, sizeof text - 1, caught);
  text[length] = '\0';
  fclose(caught);
  int found = 0;
  for (const char *at = text; (at = strchr(at, '\n')); at++) found++;
  CHECK_SAYING(found == lines, "%d lines were written, not %d: %s", found, lines, text);
  return text;
}
