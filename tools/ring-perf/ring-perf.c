/* Measures all-reduce in the columns of nccl-tests. */
#include <ring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"
#include "options.h"
#include "values.h"

/* Without -n, a size is repeated for about this long. */
static const double SECONDS_PER_SIZE = 0.25;
enum { MOST_ITERATIONS = 20000, LEAST_ITERATIONS = 3 };

/* One row's half: out of place or in place. */
struct measured {
  double us; /* of one call, of the slowest rank */
  uint64_t wrong;
};

static _Noreturn void fail(void) {
  char text[2048];
  ring_last_error(text, sizeof text);
  fprintf(stderr, "ring-perf: %s\n", text);
  /* _exit: the other ranks learn it from the connections' end. */
  _exit(1);
}

static void must(ring_status_t status) {
  if (status != RING_STATUS_OK) fail();
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The slowest rank's value, on every rank. */
static double slowest(ring_group_t *group, double value) {
  must(ring_all_reduce(group, &value, &value, 1, RING_DTYPE_FLOAT64, RING_OP_MAX));
  return value;
}

static double run(ring_group_t *group, const struct options *options, const void *send, void *recv, size_t count,
                  int iterations) {
  must(ring_barrier(group));
  double start = now_us();
  for (int i = 0; i < iterations; i++) must(ring_all_reduce(group, send, recv, count, options->dtype, options->op));
  return slowest(group, (now_us() - start) / iterations);
}

static struct measured measure(ring_group_t *group, const struct options *options, char *send, char *recv,
                               size_t count) {
  struct measured measured = {0, 0};
  size_t bytes = count * ring_dtype_size(options->dtype);
  fill(send, count, options->dtype, options->op, ring_group_rank(group));
  must(ring_all_reduce(group, send, recv, count, options->dtype, options->op));
  if (options->check) {
    measured.wrong = count_wrong(recv, count, options->dtype, options->op, ring_group_size(group));
    must(ring_all_reduce(group, &measured.wrong, &measured.wrong, 1, RING_DTYPE_UINT64, RING_OP_SUM));
  }
  /* Zeros stay zeros in place, however often they are reduced. */
  memset(send, 0, bytes);
  int iterations = options->iterations, warmup = options->warmup;
  if (iterations == 0) {
    double fit = SECONDS_PER_SIZE * 1e6 / (run(group, options, send, recv, count, 2) + 1);
    iterations = fit > MOST_ITERATIONS ? MOST_ITERATIONS : fit < LEAST_ITERATIONS ? LEAST_ITERATIONS : (int)fit;
  }
  if (warmup < 0) warmup = iterations / 10 + 1;
  if (warmup > 0) run(group, options, send, recv, count, warmup);
  measured.us = run(group, options, send, recv, count, iterations);
  return measured;
}

static void print_heading(const struct options *options, int size) {
  printf("# ring-perf %s: all-reduce, %d ranks, %d connection%s per neighbour\n", ring_version_string(), size,
         options->connections, options->connections == 1 ? "" : "s");
  printf("# busbw = algbw * 2(n-1)/n; times are of the slowest rank\n#\n");
  printf("# %33s %33s %34s\n", "", "out-of-place", "in-place");
  printf("# %11s %11s %9s %5s %11s %8s %8s %6s %11s %8s %8s %6s\n", "size", "count", "type", "redop", "time", "algbw",
         "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
  printf("# %11s %11s %9s %5s %11s %8s %8s %6s %11s %8s %8s %6s\n", "(B)", "(elements)", "", "", "(us)", "(GB/s)",
         "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
}

static double bus_factor(int size) { return 2.0 * (size - 1) / size; }

static void print_row(const struct options *options, int size, size_t count, const struct measured half[2],
                      const char *separator) {
  size_t bytes = count * ring_dtype_size(options->dtype);
  const char *type = ring_dtype_name(options->dtype), *op = ring_op_name(options->op);
  double algbw[2], busbw[2];
  for (int i = 0; i < 2; i++) {
    algbw[i] = (double)bytes / half[i].us / 1e3;
    busbw[i] = algbw[i] * bus_factor(size);
  }
  if (!options->json) {
    printf("  %11zu %11zu %9s %5s", bytes, count, type, op);
    for (int i = 0; i < 2; i++) {
      printf(" %11.2f %8.3f %8.3f", half[i].us, algbw[i], busbw[i]);
      if (options->check) printf(" %6llu", (unsigned long long)half[i].wrong);
      else printf(" %6s", "N/A");
    }
    printf("\n");
  } else {
    const char *names[2] = {"out_of_place", "in_place"};
    printf("%s\n    {\"bytes\": %zu, \"count\": %zu", separator, bytes, count);
    for (int i = 0; i < 2; i++) {
      printf(", \"%s\": {\"time_us\": %.3f, \"algbw_gbps\": %.4f, \"busbw_gbps\": %.4f, \"wrong\": ", names[i],
             half[i].us, algbw[i], busbw[i]);
      if (options->check) printf("%llu}", (unsigned long long)half[i].wrong);
      else printf("null}");
    }
    printf("}");
  }
  fflush(stdout);
}

/* Where a person watches a table grow, says what is being measured. */
static void progress(const struct options *options, size_t bytes) {
  if (!isatty(STDERR_FILENO) || (options->json && isatty(STDOUT_FILENO))) return;
  if (bytes) fprintf(stderr, "\r  measuring %zu bytes ...", bytes);
  else fprintf(stderr, "\r%40s\r", "");
}

static int measure_all(ring_group_t *group, const struct options *options) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  size_t element = ring_dtype_size(options->dtype);
  char *send = malloc(options->max_bytes + element), *recv = malloc(options->max_bytes + element);
  if (!send || !recv) {
    fprintf(stderr, "ring-perf: no memory for two arrays of %zu bytes\n", options->max_bytes);
    _exit(1);
  }
  /* Memory is slow the first time it is touched. */
  memset(send, 0, options->max_bytes);
  memset(recv, 0, options->max_bytes);
  if (rank == 0 && !options->json) print_heading(options, size);
  if (rank == 0 && options->json) {
    printf("{\n  \"version\": \"%s\", \"collective\": \"all_reduce\", \"ranks\": %d, \"connections\": %d,\n"
           "  \"datatype\": \"%s\", \"op\": \"%s\",\n  \"results\": [",
           ring_version_string(), size, options->connections, ring_dtype_name(options->dtype),
           ring_op_name(options->op));
  }
  double bandwidth = 0;
  uint64_t wrong = 0;
  int rows = 0;
  for (size_t bytes = options->min_bytes; bytes <= options->max_bytes; bytes *= options->factor) {
    size_t count = bytes / element ? bytes / element : 1;
    if (rank == 0) progress(options, bytes);
    struct measured half[2];
    half[0] = measure(group, options, send, recv, count);
    half[1] = measure(group, options, send, send, count);
    if (rank == 0) progress(options, 0);
    if (rank == 0) print_row(options, size, count, half, rows ? "," : "");
    for (int i = 0; i < 2; i++) {
      bandwidth += (double)(count * element) / half[i].us / 1e3 * bus_factor(size);
      wrong += half[i].wrong;
    }
    rows++;
    if (bytes > options->max_bytes / options->factor) break;
  }
  if (rank == 0 && options->json) printf("\n  ]\n}\n");
  if (rank == 0 && !options->json) printf("# Avg bus bandwidth: %.4f GB/s\n", bandwidth / (2 * rows));
  if (rank == 0 && wrong) fprintf(stderr, "ring-perf: %llu elements are wrong\n", (unsigned long long)wrong);
  free(send);
  free(recv);
  return wrong ? 1 : 0;
}

static int on_rank(int rank, const char *hosts, void *data) {
  const struct options *options = data;
  ring_group_t *group = NULL;
  if (hosts) {
    ring_config_t config;
    ring_config_init(&config, sizeof config);
    config.rank = rank;
    config.hosts = hosts;
    config.connections = (uint32_t)options->connections;
    must(ring_group_create(&config, &group));
  } else {
    must(ring_group_create_from_env(&group));
  }
  int status = measure_all(group, options);
  ring_group_destroy(group);
  return status;
}

int main(int argc, char **argv) {
  struct options options = read_options(argc, argv);
  if (options.ranks) return launch(options.ranks, on_rank, &options);
  const char *connections = getenv("RING_CONNECTIONS");
  if (connections) options.connections = atoi(connections);
  return on_rank(0, NULL, &options);
}
