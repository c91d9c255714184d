/* Calls that stand still for longer than stall_warning_ms put a line in the log which names the rank they wait for, and
 * end well all the same. Arguments: a scenario of the table below, ranks. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

enum { LINES = 8, LINE = 1024, LONG = 1 << 22 /* elements, more than links hold */ };
/* The warning's time and a roll's. */
#define COMES_S 1.0
/* A second line would come after twice as long: by then it is over. */
enum { WARNING_MS = 1000 };

struct seen {
  int lines; /* set with release */
  double entered, at[LINES];
  char text[LINES][LINE];
};

struct run {
  const struct scenario *scenario;
  int victim;
  int ready[MAX_RANKS];
  struct seen seen[MAX_RANKS];
};

typedef void scene(struct run *run, ring_group_t *group, int rank, int size);
struct scenario {
  const char *name;
  scene *scene;
  uint32_t warning_ms, timeout_ms;
  ring_wire_t wire;
  int stops;   /* the parent stops the victim once all are ready, and continues it when the others have warned */
  int without; /* 1: no log; 2: from the environment */
};

static void keep(ring_log_level_t level, const char *message, void *data) {
  struct seen *seen = data;
  if (level == RING_LOG_LEVEL_ERROR) return;
  CHECK(level == RING_LOG_LEVEL_WARN && strstr(message, " has waited "), "%s", message);
  CHECK(seen->lines < LINES, "one more line: %s", message);
  seen->at[seen->lines] = seconds();
  snprintf(seen->text[seen->lines], LINE, "%s", message);
  __atomic_fetch_add(&seen->lines, 1, __ATOMIC_RELEASE);
}

static int lines_of(struct run *run, int rank) { return __atomic_load_n(&run->seen[rank].lines, __ATOMIC_ACQUIRE); }

/* Until every rank but the victim has put so many lines in its log. */
static void await_lines(struct run *run, int size, int lines) {
  double limit = seconds() + 20;
  for (int rank = 0; rank < size; rank++) {
    if (rank == run->victim) continue;
    while (lines_of(run, rank) < lines) {
      CHECK(seconds() < limit, "rank %d of %d has put %d lines in its log, not %d", rank, size, lines_of(run, rank), lines);
      usleep(1000);
    }
  }
}

static const char *last_line(struct run *run, int rank) {
  int lines = lines_of(run, rank);
  return lines ? run->seen[rank].text[lines - 1] : "";
}

static void expect_part(const char *text, const char *part) { CHECK(strstr(text, part), "no \"%s\" in: %s", part, text); }

/* The last of so many lines came in time after the rank entered its call, and has this part. */
static void expect_line(struct run *run, int rank, int lines, const char *part) {
  struct seen *seen = &run->seen[rank];
  CHECK(lines_of(run, rank) == lines, "%d lines, not %d: %s", lines_of(run, rank), lines, last_line(run, rank));
  double took = seen->at[lines - 1] - seen->entered, from = run->scenario->warning_ms / 1000.0;
  CHECK(took > from && took < from + COMES_S, "it came after %.3f s: %s", took, last_line(run, rank));
  char begin[32];
  snprintf(begin, sizeof begin, "rank %d: ", rank);
  CHECK(strncmp(last_line(run, rank), begin, strlen(begin)) == 0, "%s", last_line(run, rank));
  expect_part(last_line(run, rank), part);
}

/* `rank 1`, `ranks 1 and 3`, `ranks 1, 2 and 3`: all but two. */
static void name_others(char *out, size_t room, int size, int one, int other) {
  int ranks[MAX_RANKS], count = 0;
  for (int rank = 0; rank < size; rank++)
    if (rank != one && rank != other) ranks[count++] = rank;
  int at = snprintf(out, room, count > 1 ? "ranks" : "rank");
  for (int i = 0; i < count; i++)
    at += snprintf(out + at, room - (size_t)at, "%s%d", i == 0 ? " " : i == count - 1 ? " and " : ", ", ranks[i]);
}

/* Each kind of call, one after the other; what they are called in the log. */
enum { CALLS = 7 };
static const char *call_names[CALLS] = {"all_reduce(int32, sum, 1000)", "barrier()", "all_gather(int32, 1000)", "all_reduce(int32, max, 1000)",
                                        "all_to_all(int32, 20000)", "split()", "all_reduce(int32, sum, 1000)"};

static void one_call(ring_group_t **group, int which, int size, int32_t *send, int32_t *recv) {
  ring_request_t *request = NULL;
  ring_group_t *child = NULL;
  int rank = ring_group_rank(*group);
  switch (which) {
    case 0: OK(ring_all_reduce(*group, send, recv, 1000, RING_DTYPE_INT32, RING_OP_SUM)); break;
    case 1: OK(ring_barrier(*group)); break;
    case 2: OK(ring_all_gather(*group, send, recv, 1000, RING_DTYPE_INT32)); break;
    case 3:
      OK(ring_all_reduce_async(*group, send, recv, 1000, RING_DTYPE_INT32, RING_OP_MAX, &request));
      OK(ring_request_wait(request, RING_TIMEOUT_INFINITE));
      ring_request_destroy(request);
      break;
    case 4: OK(ring_all_to_all(*group, send, recv, 20000, RING_DTYPE_INT32)); break;
    case 5:
      OK(ring_group_split(*group, 0, 0, &child));
      ring_group_destroy(*group);
      *group = child;
      break;
    default: OK(ring_all_reduce(*group, send, recv, 1000, RING_DTYPE_INT32, RING_OP_SUM));
  }
  if (which == 0 || which == CALLS - 1) CHECK(recv[999] == size * (999 + send[0]) - size * rank + size * (size - 1) / 2);
}

/* The victim enters each call when all others have warned of it. */
static void late(struct run *run, ring_group_t *group, int rank, int size) {
  int32_t *send = malloc((size_t)size * 20000 * sizeof *send), *recv = malloc((size_t)size * 20000 * sizeof *recv);
  CHECK(send && recv);
  for (int i = 0; i < size * 20000; i++) send[i] = rank + i;
  int number = 1; /* of the last call: the first barrier */
  for (int which = 0; which < CALLS; which++) {
    run->seen[rank].entered = seconds();
    if (rank == run->victim) await_lines(run, size, which + 1);
    one_call(&group, which, size, send, recv);
    number++;
    if (rank != run->victim) {
      char part[256];
      snprintf(part, sizeof part, "%s, call %d, has waited ", call_names[which], number);
      expect_line(run, rank, which + 1, part);
      snprintf(part, sizeof part, "s: rank %d (127.0.0.1:", run->victim);
      expect_part(last_line(run, rank), part);
      const char *others = "";
      char names[64], made[128] = "";
      if (size > 2) {
        name_others(names, sizeof names, size, rank, run->victim);
        snprintf(made, sizeof made, "; %s %s made it", names, size > 3 ? "have" : "has");
        others = made;
      }
      char last[40] = "yet";
      if (number > 1) snprintf(last, sizeof last, "since call %d", number - 1);
      snprintf(part, sizeof part, ") has made no call %s; it has not made call %d%s", last, number, others);
      expect_part(last_line(run, rank), part);
      CHECK(!strcmp(strstr(last_line(run, rank), ") has made"), part), "more than %s in: %s", part, last_line(run, rank));
    }
    if (which == 5) number = 0; /* of a new group's */
  }
  CHECK(lines_of(run, rank) == (rank == run->victim ? 0 : CALLS));
  ring_group_destroy(group);
  free(send);
  free(recv);
}

/* While the victim is stopped, before it comes to the call. */
static void stopped(struct run *run, ring_group_t *group, int rank, int size) {
  int32_t value = rank, sum = -1;
  run->seen[rank].entered = seconds();
  if (rank == run->victim) await_lines(run, size, 1); /* and is stopped meanwhile */
  OK(ring_all_reduce(group, &value, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(sum == size * (size - 1) / 2);
  char part[64];
  snprintf(part, sizeof part, "s: rank %d (127.0.0.1:", run->victim);
  if (rank != run->victim) {
    expect_line(run, rank, 1, part);
    expect_part(last_line(run, rank), ") does not answer on its link");
    if (size > 2) expect_part(last_line(run, rank), " made it");
  }
  ring_group_destroy(group);
}

/* In the middle of calls that have it in them. */
static void stopped_inside(struct run *run, ring_group_t *group, int rank, int size) {
  enum { COUNT = 1 << 20 };
  int32_t *values = malloc(COUNT * sizeof *values);
  CHECK(values);
  /* Until this rank, or any other, has seen it: then all end in the same call. */
  for (int32_t over = 0, round = 0; !over; round++) {
    for (int i = 0; i < COUNT; i++) values[i] = rank + round + i;
    OK(ring_all_reduce(group, values, values, COUNT, RING_DTYPE_INT32, RING_OP_SUM));
    int32_t last = size * (round + COUNT - 1) + size * (size - 1) / 2;
    CHECK(values[COUNT - 1] == last, "%d, not %d", values[COUNT - 1], last);
    int32_t mine = lines_of(run, rank);
    OK(ring_all_reduce(group, &mine, &over, 1, RING_DTYPE_INT32, RING_OP_MAX));
  }
  if (rank != run->victim) {
    char part[64];
    snprintf(part, sizeof part, "s: rank %d (127.0.0.1:", run->victim);
    CHECK(lines_of(run, rank) == 1);
    expect_part(last_line(run, rank), part);
    expect_part(last_line(run, rank), ") does not answer");
  }
  free(values);
  ring_group_destroy(group);
}

/* Likewise while groups are made, links and all. */
static void stopped_splitting(struct run *run, ring_group_t *group, int rank, int size) {
  for (int32_t over = 0; !over;) {
    ring_group_t *child = NULL;
    OK(ring_group_split(group, 0, size - rank, &child));
    CHECK(ring_group_rank(child) == size - 1 - rank);
    ring_group_destroy(child);
    int32_t mine = lines_of(run, rank);
    OK(ring_all_reduce(group, &mine, &over, 1, RING_DTYPE_INT32, RING_OP_MAX));
  }
  if (rank != run->victim) {
    char part[64];
    snprintf(part, sizeof part, "rank %d (127.0.0.1:", run->victim);
    CHECK(lines_of(run, rank) == 1);
    expect_part(last_line(run, rank), part);
    expect_part(last_line(run, rank), ") does not answer");
  }
  ring_group_destroy(group);
}

/* Messages to and from the victim, near and far, blocking and not, which it comes to when they have warned. */
static void messages(struct run *run, ring_group_t *group, int rank, int size) {
  int victim = run->victim;
  int32_t *memory = calloc(2 * LONG, sizeof *memory), *other = memory + LONG;
  CHECK(memory);
  enum { ROUNDS = 4 };
  static const char *names[ROUNDS] = {"message(int32, 5) from", "message(int32, 4194304) to", "message(int32, 5) from",
                                      "message(int32, 5) from"};
  static const int numbers[ROUNDS] = {1, 1, 2, 3};
  for (int round = 0; round < ROUNDS; round++) {
    run->seen[rank].entered = seconds();
    if (rank == victim) {
      await_lines(run, size, round + 1);
      for (int peer = 0; peer < size; peer++) {
        if (peer == victim) continue;
        if (round == 1) OK(ring_recv(group, memory, LONG, RING_DTYPE_INT32, peer));
        else if (round == 3) OK(ring_send_recv(group, memory, 5, peer, other, 5, peer, RING_DTYPE_INT32));
        else OK(ring_send(group, memory, 5, RING_DTYPE_INT32, peer));
      }
    } else {
      ring_request_t *request = NULL;
      switch (round) {
        case 0: OK(ring_recv(group, memory, 5, RING_DTYPE_INT32, victim)); break;
        case 1: OK(ring_send(group, memory, LONG, RING_DTYPE_INT32, victim)); break;
        case 2:
          OK(ring_recv_async(group, memory, 5, RING_DTYPE_INT32, victim, &request));
          OK(ring_request_wait(request, RING_TIMEOUT_INFINITE));
          ring_request_destroy(request);
          break;
        default: OK(ring_send_recv(group, memory, 5, victim, other, 5, victim, RING_DTYPE_INT32));
      }
      char part[128];
      snprintf(part, sizeof part, "rank %d: %s rank %d, message %d, has waited ", rank, names[round], victim, numbers[round]);
      expect_line(run, rank, round + 1, part);
      snprintf(part, sizeof part, "s: rank %d (127.0.0.1:", victim);
      expect_part(last_line(run, rank), part);
      expect_part(last_line(run, rank), ") has made no call since call ");
      expect_part(last_line(run, rank), "; it has not come to this message");
    }
    OK(ring_barrier(group));
  }
  CHECK(lines_of(run, rank) == (rank == victim ? 0 : ROUNDS), "%s", last_line(run, rank));
  free(memory);
  ring_group_destroy(group);
}

/* Each rank waits for the next one's message, and the last one for nobody. */
static void chain(struct run *run, ring_group_t *group, int rank, int size) {
  int32_t value = -1, own = rank;
  run->seen[rank].entered = seconds();
  if (rank == run->victim) await_lines(run, size, 1);
  int left = (rank - 1 + size) % size, right = (rank + 1) % size;
  if (rank != run->victim) OK(ring_recv(group, &value, 1, RING_DTYPE_INT32, right));
  if (left != run->victim) OK(ring_send(group, &own, 1, RING_DTYPE_INT32, left));
  if (rank != run->victim) {
    char part[64];
    CHECK(value == right);
    snprintf(part, sizeof part, "s: rank %d (127.0.0.1:", right);
    expect_line(run, rank, 1, part);
    if (right != run->victim) {
      snprintf(part, sizeof part, ") waits in message(int32, 1) from rank %d; rank ", (right + 1) % size);
      expect_part(last_line(run, rank), part);
    }
    snprintf(part, sizeof part, "rank %d (127.0.0.1:", run->victim);
    expect_part(last_line(run, rank), part);
    expect_part(last_line(run, rank), ") has made no call since call 1; it has not come to this message");
  }
  ring_group_destroy(group);
}

enum { SLOW_BYTES = 1 << 12, SLOW_COUNT = 1000, SLOW_US = 2000 };
static void add_slowly(void *acc, const void *in, size_t count, void *data) {
  (void)data;
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < SLOW_BYTES / sizeof(int32_t); j++)
      ((int32_t *)acc)[i * SLOW_BYTES / sizeof(int32_t) + j] += ((const int32_t *)in)[i * SLOW_BYTES / sizeof(int32_t) + j];
    usleep(SLOW_US);
  }
}

/* A call that is long and goes on is nothing to warn of, nor are many short ones. */
static void moves(struct run *run, ring_group_t *group, int rank, int size) {
  int32_t *values = calloc(SLOW_COUNT, SLOW_BYTES);
  CHECK(values);
  double start = seconds();
  values[0] = rank;
  OK(ring_all_reduce_custom(group, values, values, SLOW_COUNT, SLOW_BYTES, add_slowly, NULL));
  CHECK(values[0] == size * (size - 1) / 2);
  CHECK(seconds() - start > run->scenario->warning_ms / 1000.0, "%.3f s", seconds() - start);
  /* Longer than a warning waits in all, and each waits for a moment. */
  for (int i = 0; i < 30; i++) {
    usleep((useconds_t)(20000 * (rank == i % size)));
    OK(ring_barrier(group));
  }
  free(values);
  CHECK(lines_of(run, rank) == 0, "%s", last_line(run, rank));
  ring_group_destroy(group);
}

/* One line after each doubling. */
static void lasts(struct run *run, ring_group_t *group, int rank, int size) {
  enum { TIMES = 4 };
  struct seen *seen = &run->seen[rank];
  seen->entered = seconds();
  if (rank == run->victim) await_lines(run, size, TIMES);
  OK(ring_barrier(group));
  for (int i = 0; rank != run->victim && i < lines_of(run, rank); i++) {
    double took = seen->at[i] - seen->entered;
    CHECK(took > run->scenario->warning_ms / 1000.0 * (1 << i), "line %d came after %.3f s", i, took);
    if (i > 0) CHECK(took > 2 * (seen->at[i - 1] - seen->entered) - 0.1, "line %d came after %.3f s", i, took);
  }
  ring_group_destroy(group);
}

/* A request that waits for its message warns while collectives of the same thread go on. */
static void beside(struct run *run, ring_group_t *group, int rank, int size) {
  int32_t value = -1, own = rank, sum, over = 0;
  ring_request_t *waits = NULL, *request;
  run->seen[rank].entered = seconds();
  if (rank != run->victim) OK(ring_recv_async(group, &value, 1, RING_DTYPE_INT32, run->victim, &waits));
  for (int i = 0; i < 500 || !over; i++) {
    int32_t mine[2] = {rank + i, lines_of(run, rank) > 0 || rank == run->victim};
    int32_t all[2] = {-1, -1};
    OK(ring_all_reduce_async(group, &mine[0], &all[0], 1, RING_DTYPE_INT32, RING_OP_SUM, &request));
    OK(ring_request_wait(request, RING_TIMEOUT_INFINITE));
    ring_request_destroy(request);
    sum = all[0];
    CHECK(sum == size * i + size * (size - 1) / 2);
    OK(ring_all_reduce(group, &mine[1], &all[1], 1, RING_DTYPE_INT32, RING_OP_MIN));
    over = all[1];
  }
  if (rank == run->victim) {
    for (int peer = 0; peer < size; peer++)
      if (peer != rank) OK(ring_send(group, &own, 1, RING_DTYPE_INT32, peer));
  } else {
    OK(ring_request_wait(waits, RING_TIMEOUT_INFINITE));
    ring_request_destroy(waits);
    CHECK(value == run->victim);
    for (int i = 0; i < lines_of(run, rank); i++) expect_part(run->seen[rank].text[i], "message(int32, 1) from rank ");
  }
  OK(ring_barrier(group));
  ring_group_destroy(group);
}

/* A deadline that comes first is all that there is. */
static void deadline(struct run *run, ring_group_t *group, int rank, int size) {
  (void)size;
  if (rank != run->victim) EXPECT(RING_STATUS_TIMEOUT, ring_barrier(group));
  ring_failure_t failure = {.struct_size = sizeof failure};
  do OK(ring_group_failure(group, &failure));
  while (failure.status == RING_STATUS_OK && usleep(1000) == 0);
  CHECK(lines_of(run, rank) == 0, "%s", last_line(run, rank));
  ring_group_destroy(group);
}

/* Nobody reads it. */
static void unread(struct run *run, ring_group_t *group, int rank, int size) {
  (void)size;
  if (rank == run->victim) usleep(run->scenario->warning_ms * 3000);
  OK(ring_barrier(group));
  CHECK(lines_of(run, rank) == 0);
  ring_group_destroy(group);
}

/* On MLX's wire nobody can be asked: named is the neighbour. */
static void mlx(struct run *run, ring_group_t *group, int rank, int size) {
  int32_t value = rank, sum = -1;
  for (int round = 0; round < 2; round++) {
    run->seen[rank].entered = seconds();
    if (rank == run->victim) {
      int named = 0;
      char name[32];
      snprintf(name, sizeof name, "from rank %d (", run->victim);
      await_lines(run, size, round + 1);
      for (int other = 0; other < size; other++) named += strstr(last_line(run, other), name) != NULL;
      CHECK(named > 0, "nobody waits to receive %s: %s", name, last_line(run, (rank + 1) % size));
    }
    if (round == 0) OK(ring_all_reduce(group, &value, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
    else OK(ring_barrier(group));
    CHECK(sum == size * (size - 1) / 2);
    if (rank == run->victim) continue;
    char part[64];
    snprintf(part, sizeof part, "s: rank %d waits to receive from rank ", rank);
    expect_line(run, rank, round + 1, part);
    CHECK(!strstr(last_line(run, rank), "made"), "%s", last_line(run, rank));
  }
  ring_group_destroy(group);
}

static const struct scenario scenarios[] = {
    {"late", late, WARNING_MS, 0, RING_WIRE_NATIVE, 0, 0},
    {"late_env", late, WARNING_MS, 0, RING_WIRE_NATIVE, 0, 2},
    {"stopped", stopped, WARNING_MS, 0, RING_WIRE_NATIVE, 1, 0},
    {"stopped_inside", stopped_inside, WARNING_MS, 0, RING_WIRE_NATIVE, 1, 0},
    {"stopped_splitting", stopped_splitting, WARNING_MS, 0, RING_WIRE_NATIVE, 1, 0},
    {"messages", messages, WARNING_MS, 0, RING_WIRE_NATIVE, 0, 0},
    {"chain", chain, WARNING_MS, 0, RING_WIRE_NATIVE, 0, 0},
    {"moves", moves, 500, 0, RING_WIRE_NATIVE, 0, 0},
    {"lasts", lasts, 200, 0, RING_WIRE_NATIVE, 0, 0},
    {"beside", beside, 200, 0, RING_WIRE_NATIVE, 0, 0},
    {"deadline", deadline, 600, 600, RING_WIRE_NATIVE, 0, 0},
    {"unread", unread, 100, 0, RING_WIRE_NATIVE, 0, 1},
    {"mlx", mlx, WARNING_MS, 0, RING_WIRE_MLX, 0, 0},
};

static ring_group_t *open_group(const struct scenario *scenario, int rank, const char *hosts) {
  ring_group_t *group = NULL;
  if (scenario->without == 2) {
    char path[] = "/tmp/ring-stall-XXXXXX", number[16];
    int file = mkstemp(path);
    CHECK(file >= 0 && write(file, hosts, strlen(hosts)) == (ssize_t)strlen(hosts) && close(file) == 0);
    setenv("RING_HOSTFILE", path, 1);
    snprintf(number, sizeof number, "%d", rank);
    setenv("RING_RANK", number, 1);
    snprintf(number, sizeof number, "%u", scenario->warning_ms);
    setenv("RING_STALL_WARNING_MS", number, 1);
    OK(ring_group_create_from_env(&group));
    unlink(path);
    return group;
  }
  ring_config_t config = make_config(rank, hosts, 1);
  config.stall_warning_ms = scenario->warning_ms;
  if (scenario->timeout_ms) config.timeout_ms = scenario->timeout_ms;
  config.wire = scenario->wire;
  if (scenario->wire == RING_WIRE_MLX) config.job_id = NULL, config.connections = 0;
  OK(ring_group_create(&config, &group));
  return group;
}

static void body(int rank, int size, const char *hosts, void *data) {
  struct run *run = data;
  if (run->scenario->without != 1) OK(ring_set_log_callback(keep, &run->seen[rank], RING_LOG_LEVEL_WARN));
  ring_group_t *group = open_group(run->scenario, rank, hosts);
  OK(ring_barrier(group));
  __atomic_store_n(&run->ready[rank], 1, __ATOMIC_RELEASE);
  run->scenario->scene(run, group, rank, size);
}

/* A ring in which one of two positions is the victim's: one at the end, one in the middle, at the same time, since
 * mostly they wait. */
enum { POSITIONS = 2 };
struct play {
  const struct scenario *scenario;
  int size;
};

static void play(int position, int positions, const char *unused, void *data) {
  const struct scenario *scenario = ((struct play *)data)->scenario;
  int size = ((struct play *)data)->size, victim = position * (size / positions);
  (void)unused;
  struct run *run = shared(sizeof *run);
  *run = (struct run){.scenario = scenario, .victim = victim};
  char *hosts = make_hosts(size, 1);
  struct ranks ranks = start_ranks(size, hosts, body, run);
  if (scenario->stops) {
    for (int rank = 0; rank < size; rank++)
      while (!__atomic_load_n(&run->ready[rank], __ATOMIC_ACQUIRE)) usleep(1000);
    usleep(20000);
    kill(ranks.pids[victim], SIGSTOP);
    await_lines(run, size, 1);
    kill(ranks.pids[victim], SIGCONT);
  }
  await_ranks(&ranks, 80, 0);
  free(hosts);
}

int main(int argc, char **argv) {
  CHECK(argc == 3, "arguments: scenario, ranks");
  int size = atoi(argv[2]);
  for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
    if (strcmp(scenarios[i].name, argv[1])) continue;
    struct play both = {&scenarios[i], size};
    run_ranks(POSITIONS, NULL, play, &both, 90, 0);
    return 0;
  }
  CHECK(0, "no scenario %s", argv[1]);
}
