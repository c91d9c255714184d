/* Beginnings and ends: several of them, none, in a forked child, at exit, and beside a call that runs. */
#include "loaded.h"
#include "ranks.h"
#include "subjects.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int sum_of_ones(void) {
  int one = 1, sum = -1;
  return mpi.all_reduce(&one, &sum, 1, mpi.types[INT32], mpi.ops[SUM], mpi.world) == 0 ? sum : -1;
}

/* A world for each of two users, and another after both have gone. */
static void again(int rank, int size) {
  (void)rank;
  for (int life = 0; life < 3; life++) {
    CHECK(mpi.init(NULL, NULL) == 0 && mpi.init(NULL, NULL) == 0);
    CHECK(sum_of_ones() == size);
    CHECK(mpi.finalize() == 0 && sum_of_ones() == size);
    CHECK(mpi.finalize() == 0);
    catch_errors();
    CHECK(mpi.finalize() != 0 && sum_of_ones() == -1);
    caught_errors(1);
  }
}

static void finalize_at_exit(void) {
  if (mpi.finalize() != 0) _exit(9);
}

static void in_child(int rank, int size) {
  int got = -1, unused;
  float one = 1, sum = 5;
  MPI_Comm half;
  catch_errors();
  CHECK(mpi.rank(mpi.world, &got) == 0 && got == rank && mpi.size(mpi.world, &got) == 0 && got == size);
  CHECK(mpi.all_reduce(&one, &sum, 1, mpi.types[FLOAT], mpi.ops[SUM], mpi.world) != 0 && isnan(sum));
  CHECK(mpi.split(mpi.world, 0, 0, &half) != 0);
  CHECK(mpi.init(NULL, NULL) != 0);
  caught_errors(2);
  /* What it is to end as its parent does changes nothing. */
  CHECK(mpi.finalize() == 0 && mpi.rank(mpi.world, &unused) == 0);
}

static void forks(int rank, int size) {
  CHECK(mpi.init(NULL, NULL) == 0);
  atexit(finalize_at_exit);
  MPI_Comm half = NULL;
  CHECK(mpi.split(mpi.world, 0, rank, &half) == 0);
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    in_child(rank, size);
    CHECK(mpi.free(&half) == 0);
    exit(0);
  }
  CHECK_SAYING(waitpid(child, &status, 0) == child && status == 0, "the child ended with %x", (unsigned)status);
  CHECK(sum_of_ones() == size);
}

static int started[2];

/* Tells that a trial of it is under way, and gives the fork time to fall into it. */
static void slow_sum(void *in, void *inout, int *length, MPI_Datatype *type) {
  static bool told;
  const float *from = in;
  float *to = inout;
  (void)type;
  if (!told) {
    told = true;
    CHECK(write(started[1], "", 1) == 1);
    usleep(100000);
  }
  for (int i = 0; i < 2 * *length; i++) to[i] += from[i];
}

static void *sums(void *op) {
  float one[2] = {1, 2}, sum[2];
  CHECK(mpi.all_reduce(one, sum, 1, mpi.types[COMPLEX], op, mpi.world) == 0);
  return NULL;
}

/* Another thread's operation is being looked at as the process forks. */
static void forks_in_a_trial(int rank, int size) {
  char byte;
  int status = -1;
  MPI_Op op;
  pthread_t thread;
  (void)rank;
  CHECK(mpi.init(NULL, NULL) == 0 && pipe(started) == 0 && mpi.op_create(slow_sum, 1, &op) == 0);
  CHECK(pthread_create(&thread, NULL, sums, op) == 0);
  CHECK(read(started[0], &byte, 1) == 1);
  pid_t child = fork();
  if (child == 0) {
    float one[2] = {1, 2}, sum[2];
    alarm(10);
    catch_errors();
    CHECK(mpi.all_reduce(one, sum, 1, mpi.types[COMPLEX], op, mpi.world) != 0 && isnan(sum[0]));
    caught_errors(1);
    _exit(0);
  }
  CHECK_SAYING(waitpid(child, &status, 0) == child && status == 0, "the child ended with %x", (unsigned)status);
  CHECK(pthread_join(thread, NULL) == 0 && sum_of_ones() == size && mpi.finalize() == 0);
}

/* An aborted call returns within 100 ms, and a failed group doesn't linger. */
static const double ENDED_S = 2;

/* A byte in it: the thread is there. */
static int entered[2];

static void *waits_for_ever(void *unused) {
  float got = 5;
  (void)unused;
  CHECK(write(entered[1], "", 1) == 1);
  CHECK(mpi.recv(&got, 1, mpi.types[FLOAT], 0, ANY_TAG, mpi.world, NULL) != 0 && isnan(got));
  return NULL;
}

/* Rank 1 waits for a message that rank 0 never sends, and ends meanwhile. */
static void ends_in_a_call(int rank, int size) {
  (void)size;
  CHECK(mpi.init(NULL, NULL) == 0 && sum_of_ones() == size);
  catch_errors();
  if (rank == 1) {
    pthread_t thread;
    char byte;
    CHECK(pipe(entered) == 0 && pthread_create(&thread, NULL, waits_for_ever, NULL) == 0);
    CHECK(read(entered[0], &byte, 1) == 1);
    /* Either side of the call's start is to end well; this makes it likely to have begun. */
    usleep(50000);
    double start = now_s();
    CHECK(mpi.finalize() == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(now_s() - start < ENDED_S);
  } else {
    CHECK(sum_of_ones() == -1 && mpi.finalize() == 0);
  }
  caught_errors(1);
}

/* Nothing was said about ranks: no word. Something was, and it doesn't do: one line. */
static void without_launcher(void) {
  catch_errors();
  CHECK(mpi.init(NULL, NULL) != 0 && mpi.init(NULL, NULL) != 0 && mpi.finalize() != 0);
  caught_errors(0);
  setenv("MLX_RANK", "1", 1);
  catch_errors();
  CHECK(mpi.init(NULL, NULL) != 0);
  const char *said = caught_errors(1);
  CHECK_SAYING(strstr(said, "libring_mpi: MPI_Init: ") == said && strstr(said, "RING_HOSTFILE"), "%s", said);
  unsetenv("MLX_RANK");
}

void test_lives(int size) {
  without_launcher();
  run_processes(size, again, -1);
  run_processes(size, forks, -1);
  run_processes(size, forks_in_a_trial, -1);
  if (size > 1) run_processes(size, ends_in_a_call, -1);
}
