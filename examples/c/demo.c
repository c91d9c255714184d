/* Four processes on this host reduce arrays over TCP, show what they did, and lose one of them. */
#include <ring.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

enum { RANKS = 4, SAMPLES = 100000, FEATURES = 3, STEPS = 200, LARGE = 16 << 20, VICTIM = 2 };

static void must(ring_status_t status) {
  char text[1024];
  if (status == RING_STATUS_OK) return;
  ring_last_error(text, sizeof text);
  fprintf(stderr, "%s\n", text);
  _exit(1);
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double random_number(unsigned *state) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) / (double)(1 << 24) - 0.5;
}

/* Ranks speak one after the other. */
static void in_turn(ring_group_t *group, const char *text) {
  for (int turn = 0; turn < ring_group_size(group); turn++) {
    if (turn == ring_group_rank(group)) fputs(text, stdout), fflush(stdout);
    must(ring_barrier(group));
  }
}

/* Each rank holds a quarter of the samples; the mean of the gradients makes one model of all. */
static void fit(ring_group_t *group) {
  const double truth[FEATURES] = {2.0, -3.0, 0.5};
  int rank = ring_group_rank(group);
  unsigned state = 12345u + (unsigned)rank;
  double *x = malloc(sizeof(double) * SAMPLES * FEATURES), *y = malloc(sizeof(double) * SAMPLES);
  if (!x || !y) _exit(1);
  for (int i = 0; i < SAMPLES; i++) {
    y[i] = 0.01 * random_number(&state);
    for (int j = 0; j < FEATURES; j++) y[i] += truth[j] * (x[i * FEATURES + j] = random_number(&state));
  }
  double weights[FEATURES] = {0}, gradient[FEATURES];
  double start = seconds();
  for (int step = 0; step < STEPS; step++) {
    memset(gradient, 0, sizeof gradient);
    for (int i = 0; i < SAMPLES; i++) {
      double error = -y[i];
      for (int j = 0; j < FEATURES; j++) error += weights[j] * x[i * FEATURES + j];
      for (int j = 0; j < FEATURES; j++) gradient[j] += error * x[i * FEATURES + j] / SAMPLES;
    }
    must(ring_all_reduce(group, gradient, gradient, FEATURES, RING_DTYPE_FLOAT64, RING_OP_MEAN));
    for (int j = 0; j < FEATURES; j++) weights[j] -= 4.0 * gradient[j];
  }
  char text[256];
  snprintf(text, sizeof text, "  rank %d has %d samples; weights %.17g %.17g %.17g\n", rank, SAMPLES, weights[0],
           weights[1], weights[2]);
  if (rank == 0) {
    printf("1. A linear model, trained on 4 x %d samples with %d all-reduces of the gradient (%.2f s);\n"
           "   the weights that made the data are 2 -3 0.5:\n", SAMPLES, STEPS, seconds() - start);
    fflush(stdout);
  }
  in_turn(group, text);
  free(x);
  free(y);
}

/* A large array: every element is checked on every rank. */
static void reduce_large(ring_group_t *group) {
  int rank = ring_group_rank(group);
  float *array = malloc(sizeof(float) * LARGE);
  size_t wrong = 0;
  double best = 1e9;
  if (!array) _exit(1);
  for (int round = 0; round < 5; round++) {
    for (int i = 0; i < LARGE; i++) array[i] = (float)(i % 1000 * (rank + 1));
    must(ring_barrier(group));
    double start = seconds();
    must(ring_all_reduce(group, array, array, LARGE, RING_DTYPE_FLOAT32, RING_OP_SUM));
    double took = seconds() - start;
    if (took < best) best = took;
    for (int i = 0; i < LARGE; i++) wrong += array[i] != (float)(i % 1000 * 10);
  }
  char text[128];
  snprintf(text, sizeof text, "  rank %d: 64 MiB in %.0f ms, bus bandwidth %.2f GB/s, %zu wrong elements\n", rank,
           best * 1e3, 1.5 * sizeof(float) * LARGE / best / 1e9, wrong);
  if (rank == 0) printf("2. The sum of four arrays of 16 Mi floats, best of 5:\n"), fflush(stdout);
  in_turn(group, text);
  free(array);
}

/* A rank dies in the middle of a call: the others learn who, and live on. */
static void lose_one(ring_group_t *group) {
  int rank = ring_group_rank(group);
  static float array[1 << 20];
  if (rank == 0) printf("3. Rank %d kills itself between two calls; the others get an error:\n", VICTIM), fflush(stdout);
  must(ring_barrier(group));
  if (rank == VICTIM) raise(SIGKILL);
  double start = seconds();
  ring_status_t status = ring_all_reduce(group, array, array, 1 << 20, RING_DTYPE_FLOAT32, RING_OP_SUM);
  double took = seconds() - start;
  char text[1024];
  ring_last_error(text, sizeof text);
  printf("  rank %d, after %.0f ms: %s\n    %s\n", rank, took * 1e3, ring_status_name(status), text);
}

static int on_rank(int rank, const char *hosts, void *data) {
  ring_config_t config;
  ring_group_t *group = NULL;
  (void)data;
  ring_config_init(&config, sizeof config);
  config.rank = rank;
  config.hosts = hosts;
  must(ring_group_create(&config, &group));
  if (rank == 0) printf("Four processes form a ring over TCP: %s\n", hosts);
  fit(group);
  reduce_large(group);
  lose_one(group);
  ring_group_destroy(group);
  return 0;
}

int main(void) {
  printf("libring %s\n", ring_version_string());
  /* The victim's signal is part of the show. */
  int status = launch(RANKS, on_rank, NULL);
  return status == 1 ? 0 : 1;
}
