/* Two jobs share a hostfile by mistake, without job ids: no rank reduces with the other job's and goes
 * on. One job works, or ranks are told that there are two of them. Argument: loaded, for a machine whose
 * cores are busy. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

enum { SIZE = 3, PROCESSES = 2 * SIZE, WORK_MS = 1500, CONNECT_MS = 6000, CALL_MS = 3000, REPEATS = 3, COUNT = 16 };

/* Which of the six starts when; process p is rank p % SIZE of job p / SIZE. */
struct order {
  const char *name;
  int start_ms[PROCESSES];
  int strict; /* not even one sum may be mixed: the second of a port came in time to stop the first */
};

static const struct order ORDERS[] = {
    {"at once", {0, 0, 0, 0, 0, 0}, 1},
    {"one job after the other", {0, 0, 0, 30, 30, 30}, 1},
    {"one job long after the other", {0, 0, 0, 300, 300, 300}, 0},
    {"interleaved", {0, 20, 40, 10, 30, 50}, 1},
    {"winners first by 0 ms", {0, 1, 0, 1, 0, 1}, 1},
    {"winners first by 50 ms", {0, 50, 0, 50, 0, 50}, 1},
    {"winners first by 300 ms", {0, 300, 0, 300, 0, 300}, 0},
    {"other winners first by 300 ms", {300, 0, 0, 0, 300, 300}, 0},
};
enum { ORDERS_COUNT = sizeof ORDERS / sizeof *ORDERS };

struct outcome {
  int created, right, mixed, works; /* works: until the end of its time */
  ring_status_t status;
  char text[1024];
};

struct run {
  const struct order *order;
  double start;
  struct outcome outcomes[PROCESSES];
};

static void fail(struct outcome *outcome, ring_status_t status) {
  outcome->status = status;
  snprintf(outcome->text, sizeof outcome->text, "%s", last_error());
}

static void process(int index, int processes, const char *hosts, void *data) {
  struct run *run = data;
  struct outcome *outcome = &run->outcomes[index];
  int rank = index % SIZE, job = index / SIZE;
  (void)processes;
  double wait = run->start + run->order->start_ms[index] / 1000.0 - seconds();
  if (wait > 0) usleep((useconds_t)(wait * 1e6));
  ring_config_t config = make_config(rank, hosts, 1);
  config.connect_timeout_ms = CONNECT_MS;
  config.timeout_ms = CALL_MS;
  config.job_id = NULL;
  ring_group_t *group = NULL;
  ring_status_t status = ring_group_create(&config, &group);
  if (status != RING_STATUS_OK) {
    fail(outcome, status);
    return;
  }
  outcome->created = 1;
  /* Every digit tells whose values a sum has: ones are job 0's, hundreds job 1's. */
  const int32_t unit = job ? 100 : 1;
  double end = seconds() + WORK_MS / 1000.0;
  for (;;) {
    int32_t in[COUNT], out[COUNT], going = seconds() < end;
    for (int i = 0; i < COUNT; i++) in[i] = unit << rank;
    status = ring_all_reduce(group, in, out, COUNT, RING_DTYPE_INT32, RING_OP_SUM);
    if (status == RING_STATUS_OK && out[0] == 7 * unit) outcome->right++;
    else if (status == RING_STATUS_OK) outcome->mixed++;
    /* All go on until the last wants to stop. */
    if (status == RING_STATUS_OK)
      status = ring_all_reduce(group, &going, &going, 1, RING_DTYPE_INT32, RING_OP_MAX);
    if (status != RING_STATUS_OK) {
      fail(outcome, status);
      break;
    }
    if (!going) {
      outcome->works = 1;
      break;
    }
    usleep(5000);
  }
  ring_group_destroy(group);
}

/* That there were two of a rank, or who held a port. */
static int tells_of_two(const char *text) {
  const char *words[] = {"two processes", "two of", "claim", "in use"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strstr(text, words[i])) return 1;
  return 0;
}

static void check(const struct run *run) {
  int works[2] = {0, 0}, told = 0;
  char story[8192], *end = story;
  for (int p = 0; p < PROCESSES; p++) {
    const struct outcome *o = &run->outcomes[p];
    works[p / SIZE] += o->works;
    told += tells_of_two(o->text);
    end += sprintf(end, "\n  job %d rank %d: created %d, %d right, %d mixed, to the end %d, %s %.600s", p / SIZE,
                   p % SIZE, o->created, o->right, o->mixed, o->works, ring_status_name(o->status), o->text);
  }
  const char *name = run->order->name;
  for (int p = 0; p < PROCESSES; p++) {
    const struct outcome *o = &run->outcomes[p];
    CHECK(!(o->mixed && o->works), "%s: a mixed ring works:%s", name, story);
    CHECK(!o->mixed || !run->order->strict, "%s: a mixed sum:%s", name, story);
    if (!o->works) CHECK(o->status != RING_STATUS_OK && *o->text, "%s: no error:%s", name, story);
  }
  CHECK(!(works[0] && works[1]), "%s: both work on one set of ports:%s", name, story);
  CHECK(works[0] == 0 || works[0] == SIZE, "%s: a part of a job works:%s", name, story);
  CHECK(works[1] == 0 || works[1] == SIZE, "%s: a part of a job works:%s", name, story);
  CHECK(told > 0, "%s: no text tells of two:%s", name, story);
}

static void one_case(int index, int cases, const char *unused, void *data) {
  (void)cases;
  (void)unused;
  (void)data;
  struct run *run = shared(sizeof *run);
  run->order = &ORDERS[index];
  char *hosts = make_hosts(SIZE, 1);
  run->start = seconds() + 0.1;
  run_ranks(PROCESSES, hosts, process, run, 30, 0);
  check(run);
  free(hosts);
}

static void burn(int index, int count, const char *unused, void *data) {
  (void)index;
  (void)count;
  (void)unused;
  (void)data;
  for (volatile unsigned i = 0;; i++) {}
}

int main(int argc, char **argv) {
  int loaded = argc > 1 && !strcmp(argv[1], "loaded"), burners = loaded ? (int)sysconf(_SC_NPROCESSORS_ONLN) : 0;
  struct ranks load = start_ranks(burners, NULL, burn, NULL);
  for (int i = 0; i < REPEATS; i++) run_ranks(ORDERS_COUNT, NULL, one_case, NULL, 60, 0);
  for (int i = 0; i < burners; i++) kill(load.pids[i], SIGKILL);
  await_ranks(&load, 10, ~0u);
  return 0;
}
