/* Two processes that claim one rank, and two jobs on one hostfile: never a ring made of both. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"

enum { RANKS = 3 };

/* What two jobs of three ranks do; the first three processes are the first job's. */
struct jobs {
  int start_ms[2 * RANKS]; /* after the processes were made */
  const char *ids[2];
  int formed; /* ranks that computed their own job's sum */
};

static ring_status_t create(int rank, const char *hosts, const char *job_id, int timeout_ms, ring_group_t **group) {
  ring_config_t config = make_config(rank, hosts, 1);
  config.job_id = job_id;
  config.connect_timeout_ms = (uint32_t)timeout_ms;
  return ring_group_create(&config, group);
}

/* The sum tells the jobs apart: the first job's ranks give 1, the other's 100. */
static void job_rank(int process, int processes, const char *hosts, void *data) {
  struct jobs *jobs = data;
  int job = process / RANKS, rank = process % RANKS, value = job ? 100 : 1, sum = -1;
  (void)processes;
  usleep((useconds_t)jobs->start_ms[process] * 1000);
  ring_group_t *group = NULL;
  ring_status_t status = create(rank, hosts, jobs->ids[job], 2000, &group);
  if (status == RING_STATUS_OK) {
    status = ring_all_reduce(group, &value, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM);
    CHECK(status != RING_STATUS_OK || sum == RANKS * value, "a sum of two jobs: %d", sum);
    if (status == RING_STATUS_OK) __atomic_fetch_add(&jobs->formed, 1, __ATOMIC_SEQ_CST);
    ring_group_destroy(group);
  } else {
    CHECK(status == RING_STATUS_CONNECT_FAILED, "%s: %s", ring_status_name(status), last_error());
    CHECK(strlen(last_error()) > 0);
  }
}

static int two_jobs(const int *start_ms, const char *first, const char *second) {
  struct jobs *jobs = shared(sizeof *jobs);
  memcpy(jobs->start_ms, start_ms, sizeof jobs->start_ms);
  jobs->ids[0] = first;
  jobs->ids[1] = second;
  char *hosts = make_hosts(RANKS, 1);
  run_ranks(2 * RANKS, hosts, job_rank, jobs, 30, 0);
  free(hosts);
  return jobs->formed;
}

/* Ranks 0 to 2 of four wait for the last one, when a second process of rank 1 comes: all hear of it. */
struct second {
  int failed;
};

static void second_of_a_rank(int process, int processes, const char *hosts, void *data) {
  (void)processes;
  struct second *second = data;
  if (process == 3) usleep(500000);
  ring_group_t *group = NULL;
  int rank = process == 3 ? 1 : process;
  double start = seconds();
  EXPECT(RING_STATUS_CONNECT_FAILED, create(rank, hosts, "job", 10000, &group));
  CHECK(seconds() - start < 4, "process %d took %f s", process, seconds() - start);
  CHECK(strstr(last_error(), "two processes claim to be rank 1"), "process %d: %s", process, last_error());
  __atomic_fetch_add(&second->failed, 1, __ATOMIC_SEQ_CST);
}

/* Where the occupant is of another job, or claims something else, only the newcomer fails. */
struct occupied {
  const char *job, *part;
  int rank;
};

static void newcomer(int process, int processes, const char *hosts, void *data) {
  const struct occupied *occupied = data;
  (void)processes;
  ring_group_t *group = NULL;
  if (process < 2) {
    /* The second one starts late, so that the first is still forming. */
    if (process == 1) usleep(1300000);
    OK(create(process, hosts, "job", 10000, &group));
    OK(ring_barrier(group));
    ring_group_destroy(group);
    return;
  }
  usleep(400000);
  char swapped[256], first[64], second[64];
  const char *used = hosts;
  if (occupied->rank == 1) {
    /* A hostfile that disagrees: rank 0's address is rank 1's. */
    CHECK(sscanf(hosts, "[[%63[^]]],[%63[^]]]]", first, second) == 2);
    snprintf(swapped, sizeof swapped, "[[%s],[%s]]", second, first);
    used = swapped;
  }
  double start = seconds();
  EXPECT(RING_STATUS_CONNECT_FAILED, create(occupied->rank, used, occupied->job, 10000, &group));
  CHECK(seconds() - start < 1, "it took %f s", seconds() - start);
  CHECK(strstr(last_error(), occupied->part), "%s", last_error());
}

int main(void) {
  const int at_once[6] = {0}, interleaved[6] = {0, 30, 0, 30, 0, 30}, mixed[6] = {0, 60, 30, 30, 0, 90};
  const int late[6] = {0, 0, 0, 100, 100, 100}, losers_first[6] = {50, 50, 50, 0, 0, 0};
  const int *starts[] = {at_once, interleaved, mixed, late, losers_first};
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 5; i++) two_jobs(starts[i], NULL, NULL);
  }
  /* With ids one of them may work, and the other's ranks know why they don't. */
  for (int i = 0; i < 5; i++) two_jobs(starts[i], "one", "another");
  CHECK(two_jobs(late, "one", "another") >= RANKS, "the job that came first works");

  struct second *second = shared(sizeof *second);
  char *hosts = make_hosts(4, 1);
  run_ranks(4, hosts, second_of_a_rank, second, 30, 0);
  CHECK(second->failed == 4);
  free(hosts);

  struct occupied other_job = {"other", "job id \"job\" there, job id \"other\" here", 0};
  struct occupied disagrees = {"job", "rank is 0 there, 1 here", 1};
  struct occupied *cases[] = {&other_job, &disagrees};
  for (int i = 0; i < 2; i++) {
    hosts = make_hosts(2, 1);
    run_ranks(3, hosts, newcomer, cases[i], 30, 0);
    free(hosts);
  }
  return 0;
}
