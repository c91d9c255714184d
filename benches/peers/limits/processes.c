#include "processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A limit is the best of a few tries: what slows one of them down isn't the limit. */
enum { TRIES = 3, LONGEST_S = 60 };

void die(const char *what) {
  perror(what);
  exit(1);
}

double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void print_limit(const char *name, int ranks, double value, const char *unit) {
  printf("limit\t%s\t%d\t%.4g\t%s\n", name, ranks, value, unit);
  fflush(stdout);
}

void *shared_memory(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("mmap");
  return memory;
}

char *ready_memory(size_t bytes) {
  char *memory = aligned_alloc(64, bytes);
  if (!memory) die("aligned_alloc");
  memset(memory, 0, bytes);
  return memory;
}

void begin(shared_t *shared, int rank) {
  pthread_barrier_wait(&shared->start);
  shared->cpu_seconds[rank] = cpu();
  shared->seconds[rank] = now();
}

void end(shared_t *shared, int rank) {
  shared->seconds[rank] = now() - shared->seconds[rank];
  shared->cpu_seconds[rank] = cpu() - shared->cpu_seconds[rank];
}

static double run_once(const plan_t *plan, double *cpu_seconds) {
  shared_t *shared = shared_memory(sizeof *shared);
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->start, &attributes, (unsigned)plan->ranks);
  for (int rank = 0; rank < plan->ranks; rank++) {
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
      /* The sockets of a process that has failed stay open in the others, which would wait. */
      alarm(LONGEST_S);
      plan->body(plan, rank, shared);
      _exit(0);
    }
  }
  bool failed = false;
  for (int rank = 0; rank < plan->ranks; rank++) {
    int status;
    if (wait(&status) < 0 || status != 0) failed = true;
  }
  if (failed) {
    fputs("limits: a process failed\n", stderr);
    exit(1);
  }
  double slowest = 0, used = 0;
  for (int rank = 0; rank < plan->ranks; rank++) {
    if (shared->seconds[rank] > slowest) slowest = shared->seconds[rank];
    used += shared->cpu_seconds[rank];
  }
  munmap(shared, sizeof *shared);
  *cpu_seconds = used;
  return slowest;
}

double run(const plan_t *plan, double *cpu_seconds) {
  double best = 0;
  for (int i = 0; i < TRIES; i++) {
    double used, seconds = run_once(plan, &used);
    if (i > 0 && seconds >= best) continue;
    best = seconds;
    if (cpu_seconds) *cpu_seconds = used;
  }
  return best;
}
