/* What the C and C++ workers share: modes, timing and checking (../README.md describes them). A worker defines
 * all_reduce and calls work. */
#ifndef WORKER_H
#define WORKER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Sums `count` floats over all ranks, in place. Returns NULL, or what went wrong. */
static const char *all_reduce(float *data, size_t count);

/* Ends the process without destructors, as some would wait for peers that are gone. */
static void fail(const char *what) {
  printf("ERR %s\n", what);
  fflush(stdout);
  _exit(1);
}

/* Unused where a launcher tells the ranks. */
__attribute__((unused)) static const char *variable(const char *name) {
  const char *value = getenv(name);
  if (!value) fail(name);
  return value;
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* User and system time of all threads of this process. */
static double cpu_us(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void reduce(float *data, size_t count) {
  const char *error = all_reduce(data, count);
  if (error) fail(error);
}

/* How many of the elements, which were all 1, are the sum. */
static size_t count_right(const float *data, size_t count, int world) {
  size_t right = 0;
  for (size_t i = 0; i < count; i++) right += data[i] == (float)world;
  return right;
}

static void bench(int rank, int world, size_t bytes, int iterations) {
  enum { PERIOD = 7 };
  size_t count = bytes / sizeof(float);
  float *data = (float *)malloc(bytes);
  double *times = (double *)malloc((size_t)iterations * sizeof *times);
  if (!data || !times) fail("no memory");
  for (size_t i = 0; i < count; i++) data[i] = (float)(rank + 1 + (int)(i % PERIOD));
  reduce(data, count);
  for (size_t i = 0; i < count; i++) {
    if (data[i] != (float)(world * (world + 1) / 2 + world * (int)(i % PERIOD))) fail("wrong sum");
  }

  /* Zeros stay zeros: in place, other sums would end in infinities. */
  memset(data, 0, bytes);
  for (int i = 0; i < iterations / 10 + 1; i++) reduce(data, count);
  double cpu = cpu_us(), start = now_us();
  for (int i = 0; i < iterations; i++) {
    double called = now_us();
    reduce(data, count);
    times[i] = now_us() - called;
  }
  double mean = (now_us() - start) / iterations;
  cpu = (cpu_us() - cpu) / iterations;
  qsort(times, (size_t)iterations, sizeof *times, by_value);
  printf("R\t%d\tfloat32\t%zu\t%.2f\t%.2f\t%.2f\t%.2f\n", rank, bytes, times[iterations / 2],
         times[(int)(iterations * 0.99)], mean, cpu);
  fflush(stdout);
  free(times);
  free(data);
}

static void loop(size_t count) {
  float *data = (float *)calloc(count, sizeof *data);
  if (!data) fail("no memory");
  for (long call = 0;; call++) {
    reduce(data, count);
    printf("it %ld\n", call);
    fflush(stdout);
  }
}

static void mismatch(int rank, int world) {
  enum { FIRST = 1000, OTHERS = 2000, EQUAL = 500 };
  float data[OTHERS];
  size_t count = rank == 0 ? FIRST : OTHERS;
  for (size_t i = 0; i < OTHERS; i++) data[i] = 1;
  reduce(data, count);
  printf("returned without error: %zu of %zu elements are the sum\n", count_right(data, count, world), count);
  /* Is the group still in step? */
  for (size_t i = 0; i < OTHERS; i++) data[i] = 1;
  reduce(data, EQUAL);
  printf("next (equal) call: %zu of %d elements are the sum\n", count_right(data, EQUAL, world), EQUAL);
  fflush(stdout);
}

static int work(int rank, int world, int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  if (getenv("PAUSE")) sleep((unsigned)atoi(getenv("PAUSE")));
  if (!strcmp(mode, "bench") && argc > 2 && !strcmp(argv[2], "float32")) {
    for (int i = 3; i < argc; i++) {
      size_t bytes;
      int iterations;
      if (sscanf(argv[i], "%zu:%d", &bytes, &iterations) != 2 || iterations < 1) fail("usage: BYTES:ITERATIONS");
      bench(rank, world, bytes, iterations);
    }
  } else if (!strcmp(mode, "loop") && argc > 2) {
    loop(strtoull(argv[2], NULL, 10) / sizeof(float));
  } else if (!strcmp(mode, "mismatch")) {
    mismatch(rank, world);
  } else {
    fail("usage: bench float32 BYTES:ITERATIONS... | loop BYTES | mismatch");
  }
  return 0;
}

#endif
