/* Four processes on this host show what a ring does: `make demo`. Each step is a function that every
 * process runs with its own rank. */
#include <ring.h>

#include "local_hosts.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 4, VICTIM = 2, TEXT_BYTES = 1024 };

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static _Noreturn void give_up(const char *what) {
  fprintf(stderr, "demo: %s\n", what);
  fflush(stderr);
  _exit(1);
}

/* Ends the process unless the call succeeded. */
static void must(ring_status_t status) {
  char text[TEXT_BYTES];
  ring_last_error(text, sizeof text);
  if (status != RING_STATUS_OK) give_up(text);
}

/* Prints a line of every rank, in the order of the ranks, each under the name that it had first. */
static void say(ring_group_t *group, int name, const char *format, ...) {
  for (int rank = 0; rank < ring_group_size(group); rank++) {
    if (rank == ring_group_rank(group)) {
      va_list arguments;
      va_start(arguments, format);
      printf("  rank %d  ", name);
      vprintf(format, arguments);
      va_end(arguments);
      fflush(stdout);
    }
    must(ring_barrier(group));
  }
}

/* Prints a title, once. */
static void title(ring_group_t *group, const char *text) {
  if (ring_group_rank(group) == 0) printf("\n%s\n", text);
  fflush(stdout);
  must(ring_barrier(group));
}

static ring_group_t *join(int rank, const char *hosts) {
  ring_config_t config;
  ring_config_init(&config, sizeof config);
  config.rank = rank;
  config.hosts = hosts;
  config.connect_timeout_ms = 20000;
  config.timeout_ms = 20000;
  ring_group_t *group;
  must(ring_group_create(&config, &group));
  return group;
}

/* ---- 1: a few numbers ---- */

static void add_a_few_numbers(ring_group_t *group) {
  title(group, "1. Every rank holds four numbers, and gets the sums (ring_all_reduce, float32, sum)");
  int rank = ring_group_rank(group);
  float held[4], sums[4];
  bool right = true;
  for (int i = 0; i < 4; i++) held[i] = (float)((rank + 1) * (i + 1));
  must(ring_all_reduce(group, held, sums, 4, RING_DTYPE_FLOAT32, RING_OP_SUM));
  /* 1 + 2 + ... + RANKS, times i + 1. */
  for (int i = 0; i < 4; i++) right = right && sums[i] == (float)(RANKS * (RANKS + 1) / 2 * (i + 1));
  say(group, rank, "held [%2g %2g %2g %2g]   got [%g %g %g %g]   %s\n", held[0], held[1], held[2], held[3], sums[0],
      sums[1], sums[2], sums[3], right ? "as computed locally" : "WRONG");
  if (!right) give_up("a sum is wrong");
}

/* ---- 2: a model trained on data that no rank has all of ---- */

enum { POINTS = 20000, STEPS = 400 };

/* Point `index` of y = 3x - 2, off by up to a half; rank r has those with x from r/4 to (r+1)/4. */
static void point(int rank, int index, double *x, double *y) {
  *x = (rank + (double)index / POINTS) / RANKS;
  double noise = (double)((unsigned)(rank * POINTS + index) * 2654435761u % 1000u) / 1000 - 0.5;
  *y = 3 * *x - 2 + noise;
}

/* The gradient of the squared error of y = model[0] x + model[1] on one rank's points. */
static void gradient_of(int rank, const double model[2], double gradient[2]) {
  gradient[0] = gradient[1] = 0;
  for (int i = 0; i < POINTS; i++) {
    double x, y;
    point(rank, i, &x, &y);
    double error = model[0] * x + model[1] - y;
    gradient[0] += 2 * error * x / POINTS;
    gradient[1] += 2 * error / POINTS;
  }
}

static void descend(double model[2], const double gradient[2]) {
  const double rate = 0.5;
  for (int i = 0; i < 2; i++) model[i] -= rate * gradient[i];
}

static void train_together(ring_group_t *group) {
  title(group, "2. Every rank holds a quarter of a data set (y = 3x - 2, noisy); gradients are averaged 400 times");
  int rank = ring_group_rank(group);
  double model[2] = {0, 0}, alone[2] = {0, 0}, gradient[2];
  for (int step = 0; step < STEPS; step++) {
    gradient_of(rank, alone, gradient);
    descend(alone, gradient);
    gradient_of(rank, model, gradient);
    must(ring_all_reduce(group, gradient, gradient, 2, RING_DTYPE_FLOAT64, RING_OP_MEAN));
    descend(model, gradient);
  }
  double everyones[RANKS][2];
  must(ring_all_gather(group, model, everyones, 2, RING_DTYPE_FLOAT64));
  bool same = true;
  for (int other = 0; other < RANKS; other++) same = same && memcmp(everyones[other], model, sizeof model) == 0;
  say(group, rank, "x from %.2f to %.2f   alone y = %6.3fx %+.3f   together y = %.3fx %+.3f   %s\n",
      rank / (double)RANKS, (rank + 1) / (double)RANKS, alone[0], alone[1], model[0], model[1],
      same ? "the same bits on all ranks" : "DIFFERENT on other ranks");
  if (!same || fabs(model[0] - 3) > 0.1 || fabs(model[1] + 2) > 0.1) give_up("the model is wrong");
}

/* ---- 3: a large array ---- */

enum { LARGE_COUNT = 16 << 20, LARGE_CALLS = 5 };

/* Small integers, whose sums are exact in any order. */
static float element(int rank, size_t i) { return (float)((i * (size_t)(2 * rank + 1) + (size_t)rank) % 1000); }

static void reduce_a_large_array(ring_group_t *group) {
  title(group, "3. Every rank holds 64 MiB of float32 (16,777,216 elements), and gets the sums");
  int rank = ring_group_rank(group);
  float *held = malloc(LARGE_COUNT * sizeof *held), *sums = malloc(LARGE_COUNT * sizeof *sums);
  if (!held || !sums) give_up("no memory");
  for (size_t i = 0; i < LARGE_COUNT; i++) held[i] = element(rank, i);
  double best = INFINITY;
  for (int call = 0; call < LARGE_CALLS; call++) {
    must(ring_barrier(group));
    double start = now_s();
    must(ring_all_reduce(group, held, sums, LARGE_COUNT, RING_DTYPE_FLOAT32, RING_OP_SUM));
    best = fmin(best, now_s() - start);
  }
  must(ring_all_reduce(group, &best, &best, 1, RING_DTYPE_FLOAT64, RING_OP_MAX));
  size_t wrong = 0;
  for (size_t i = 0; i < LARGE_COUNT; i++) {
    float right = 0;
    for (int other = 0; other < RANKS; other++) right += element(other, i);
    wrong += sums[i] != right;
  }
  double bus = 2.0 * (RANKS - 1) / RANKS * LARGE_COUNT * sizeof *sums / best / 1e9;
  say(group, rank, "held %g %g %g ...   got %g %g %g ...   %zu of %d wrong\n", held[0], held[1], held[2], sums[0],
      sums[1], sums[2], wrong, LARGE_COUNT);
  if (rank == 0) printf("  %.0f ms on the slowest rank, bus bandwidth %.2f GB/s\n", best * 1e3, bus);
  free(held);
  free(sums);
  if (wrong) give_up("a sum is wrong");
}

/* ---- 4: a rank dies, the others go on ---- */

static void lose_a_rank(ring_group_t *group, const char *hosts_of_survivors) {
  title(group, "4. Rank 2 kills itself while the others wait for it; they are told, and form a ring of three");
  int rank = ring_group_rank(group);
  double value = rank + 1, sum = 0;
  if (rank == VICTIM) raise(SIGKILL);
  double start = now_s();
  ring_status_t status = ring_all_reduce(group, &value, &sum, 1, RING_DTYPE_FLOAT64, RING_OP_SUM);
  double took_ms = (now_s() - start) * 1e3;
  char text[TEXT_BYTES];
  ring_last_error(text, sizeof text);
  if (status != RING_STATUS_PEER_LOST) give_up("the loss of a rank went unnoticed");
  ring_group_destroy(group);

  ring_group_t *survivors = join(rank < VICTIM ? rank : rank - 1, hosts_of_survivors);
  say(survivors, rank, "after %.1f ms: %s\n          %s\n", took_ms, ring_status_name(status), text);
  must(ring_all_reduce(survivors, &value, &sum, 1, RING_DTYPE_FLOAT64, RING_OP_SUM));
  bool right = sum == RANKS * (RANKS + 1) / 2 - (VICTIM + 1);
  say(survivors, rank, "now rank %d of %d   held %g   got %g   %s\n", ring_group_rank(survivors),
      ring_group_size(survivors), value, sum, right ? "as computed locally" : "WRONG");
  ring_group_destroy(survivors);
  if (!right) give_up("a sum is wrong");
}

static void run_rank(int rank, const char *hosts, const char *hosts_of_survivors) {
  ring_group_t *group = join(rank, hosts);
  title(group, "Four processes on this host form a ring over TCP");
  say(group, rank, "process %ld, neighbours are ranks %d and %d\n", (long)getpid(),
      (rank + RANKS - 1) % RANKS, (rank + 1) % RANKS);
  add_a_few_numbers(group);
  train_together(group);
  reduce_a_large_array(group);
  lose_a_rank(group, hosts_of_survivors);
}

int main(void) {
  double start = now_s();
  char *hosts = local_hosts(2 * RANKS - 1);
  if (!hosts) give_up("no free ports on 127.0.0.1");
  /* The first four entries for the ring, the other three for the ring of those who survive. */
  char *cut = hosts;
  for (int entry = 0; entry < RANKS; entry++) cut = strchr(cut + 1, ',');
  char of_survivors[TEXT_BYTES];
  snprintf(of_survivors, sizeof of_survivors, "[%s", cut + 1);
  strcpy(cut, "]");

  pid_t ranks[RANKS];
  for (int rank = 0; rank < RANKS; rank++) {
    ranks[rank] = fork();
    if (ranks[rank] < 0) give_up("a process could not be started");
    if (ranks[rank] == 0) {
      run_rank(rank, hosts, of_survivors);
      _exit(0);
    }
  }
  int failed = 0;
  for (int rank = 0; rank < RANKS; rank++) {
    int status;
    waitpid(ranks[rank], &status, 0);
    bool as_planned = rank == VICTIM ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0;
    if (!as_planned) failed = 1;
  }
  free(hosts);
  printf("\n%s after %.1f s\n", failed ? "The demo FAILED" : "All as it should be,", now_s() - start);
  return failed;
}
