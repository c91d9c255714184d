/* Groups that come and go on the same ports, each ended as it should be or by the death of a rank:
 * the processes that live on keep no descriptor, no thread and no memory of them. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "harness.h"

enum {
  CYCLES = 200,
  WARM_UP = 20,       /* what is made once a process has been made */
  LARGE = 1 << 18,    /* elements: 1 MiB, which is no longer in one write */
  RSS_SLACK = 4096,   /* KiB that the allocator's arenas, one a thread, may still come to hold */
  HEAP_SLACK = 1024,  /* bytes: texts of errors differ in length; a leak of 8 bytes a cycle is more */
  SETTLES_S = 2,      /* a joined thread may stand in /proc for a moment */
  LIMIT_S = 200,      /* of a ring, on a loaded host */
};

/* What a process has. */
struct holdings {
  int descriptors, threads;
  long kib;
  size_t heap; /* bytes in use, where that can be asked: a leak may hide for long in pages that are there */
};

static struct holdings holdings(void) {
  struct holdings now = {entries("/proc/self/fd"), entries("/proc/self/task"), 0, 0};
  char line[256];
  FILE *file = fopen("/proc/self/status", "r");
  CHECK(file);
  while (fgets(line, sizeof line, file)) (void)sscanf(line, "VmRSS: %ld", &now.kib);
  fclose(file);
  CHECK(now.kib > 0);
#ifdef __GLIBC__
  now.heap = mallinfo2().uordblks;
#endif
  return now;
}

/* After each cycle, by a rank that lives on. */
static void account(int cycle, int rank, int size, struct holdings *at_first) {
  struct holdings now = holdings();
  if (cycle == WARM_UP) *at_first = now;
  if (cycle <= WARM_UP) return;
  double deadline = seconds() + SETTLES_S;
  while ((now.descriptors != at_first->descriptors || now.threads != at_first->threads) && seconds() < deadline) {
    usleep(1000);
    now = holdings();
  }
  CHECK(now.descriptors == at_first->descriptors, "rank %d of %d, cycle %d: %d descriptors, %d at first", rank, size,
        cycle, now.descriptors, at_first->descriptors);
  CHECK(now.threads == at_first->threads, "rank %d of %d, cycle %d: %d threads, %d at first", rank, size, cycle,
        now.threads, at_first->threads);
  CHECK(now.kib <= at_first->kib + RSS_SLACK, "rank %d of %d, cycle %d: %ld KiB, %ld at first", rank, size, cycle,
        now.kib, at_first->kib);
  CHECK(now.heap <= at_first->heap + HEAP_SLACK, "rank %d of %d, cycle %d: %zu bytes in use, %zu at first", rank, size,
        cycle, now.heap, at_first->heap);
}

static ring_group_t *enter(int rank, const char *hosts, int cycle) {
  ring_config_t config = make_config(rank, hosts, 1 + cycle % 2);
  ring_group_t *group = NULL;
  /* One for all cycles, as of a job that starts again. */
  config.job_id = "flat";
  OK(ring_group_create(&config, &group));
  return group;
}

static void sum_is_right(ring_group_t *group, int rank, int size) {
  int mine = rank + 1, sum = 0;
  OK(ring_all_reduce(group, &mine, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(sum == size * (size + 1) / 2, "%d", sum);
}

static void in_peace(int rank, int size, const char *hosts, void *data) {
  struct holdings at_first;
  float *array = calloc(LARGE, sizeof *array);
  (void)data;
  for (int cycle = 0; cycle < CYCLES; cycle++) {
    ring_group_t *group = enter(rank, hosts, cycle);
    sum_is_right(group, rank, size);
    OK(ring_all_reduce(group, array, array, LARGE, RING_DTYPE_FLOAT32, RING_OP_SUM));
    OK(ring_send_recv(group, &rank, 1, (rank + 1) % size, array, 1, (rank + size - 1) % size, RING_DTYPE_INT32));
    ring_group_destroy(group);
    account(cycle, rank, size, &at_first);
  }
  free(array);
}

static void dies(int rank, int size, const char *hosts, int cycle, int *ready) {
  ring_group_t *group = enter(rank, hosts, cycle);
  float *array = calloc(LARGE, sizeof *array);
  sum_is_right(group, rank, size);
  __atomic_store_n(ready, cycle + 1, __ATOMIC_SEQ_CST);
  /* Every other time around the ring it dies between calls. */
  if (cycle / size % 2) pause();
  while (ring_all_reduce(group, array, array, LARGE, RING_DTYPE_FLOAT32, RING_OP_SUM) == RING_STATUS_OK) continue;
  CHECK(0, "%s", last_error());
}

/* Makes a victim, and kills it once it is in the ring; it has then counted its cycle in ready. */
static void lose(int rank, int size, const char *hosts, int cycle, int *ready) {
  int status;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) dies(rank, size, hosts, cycle, ready);
  while (__atomic_load_n(ready, __ATOMIC_SEQ_CST) != cycle + 1) {
    CHECK(waitpid(child, &status, WNOHANG) == 0, "the victim of cycle %d ended by itself: %x", cycle, status);
    usleep(200);
  }
  usleep(1000);
  kill(child, SIGKILL);
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status), "the victim's status is %x", status);
}

static void survive(int rank, int size, const char *hosts, int cycle, int victim) {
  static float array[LARGE];
  ring_group_t *group = enter(rank, hosts, cycle);
  ring_failure_t failure = {.struct_size = sizeof failure};
  ring_status_t status;
  sum_is_right(group, rank, size);
  do status = ring_all_reduce(group, array, array, LARGE, RING_DTYPE_FLOAT32, RING_OP_SUM);
  while (status == RING_STATUS_OK);
  CHECK(status == RING_STATUS_PEER_LOST, "rank %d of %d, cycle %d: %s: %s", rank, size, cycle,
        ring_status_name(status), last_error());
  OK(ring_group_failure(group, &failure));
  CHECK(failure.rank == victim, "rank %d of %d, cycle %d: %s", rank, size, cycle, last_error());
  ring_group_destroy(group);
}

/* Each rank's turn comes to be played by a child, and to be killed. */
static void with_deaths(int rank, int size, const char *hosts, void *data) {
  struct holdings at_first;
  for (int cycle = 0; cycle < CYCLES; cycle++) {
    int victim = cycle % size;
    if (rank == victim) lose(rank, size, hosts, cycle, data);
    else survive(rank, size, hosts, cycle, victim);
    account(cycle, rank, size, &at_first);
  }
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2;
#ifdef __GLIBC__
  /* What malloc keeps at hand counts as in use: it shall keep nothing. It reads this when a program starts. */
  if (!getenv("GLIBC_TUNABLES")) {
    CHECK(setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1) == 0);
    execv("/proc/self/exe", argv);
    CHECK(0, "the program can't be started again");
  }
#endif
  char *hosts = make_hosts(size, 1);
  int *ready = shared(sizeof *ready);
  double start = seconds();
  run_ranks(size, hosts, in_peace, NULL, LIMIT_S, 0);
  printf("in peace: %.1f s\n", seconds() - start);
  start = seconds();
  run_ranks(size, hosts, with_deaths, ready, LIMIT_S, 0);
  printf("with deaths: %.1f s\n", seconds() - start);
  free(hosts);
  return 0;
}
