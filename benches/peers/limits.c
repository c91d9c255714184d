/* What this machine allows, with no library in the way: `limits [tcp] [unix] [shm]`, tcp unless told. Prints lines (tabs):
 *   limit NAME RANKS VALUE UNIT */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const size_t KIB = 1 << 10, MIB = 1 << 20;

/* A limit is the best of a few tries: what slows one of them down isn't the limit. */
enum { TRIES = 3, LONGEST_S = 60 };

enum { MOST_RANKS = 8, NAME_BYTES = 80 };

typedef enum { TCP, UNIX, SHM, KINDS } kind_t;
static const char *const KIND_NAMES[KINDS] = {"tcp", "unix", "shm"};

/* What a process does while nothing arrives. */
typedef enum { BLOCKING, YIELDING, SPINNING } waiting_t;
static const char *const WAITING_NAMES[] = {"blocking", "yielding", "busy poll"};

/* How long each rank took and what it used, and the line that all start from. */
typedef struct {
  pthread_barrier_t start;
  double seconds[MOST_RANKS];
  double cpu_seconds[MOST_RANKS];
} shared_t;

static void die(const char *what) {
  perror(what);
  exit(1);
}

static double now(void) {
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

static void print_limit(const char *name, int ranks, double value, const char *unit) {
  printf("limit\t%s\t%d\t%.4g\t%s\n", name, ranks, value, unit);
  fflush(stdout);
}

static void *shared_memory(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("mmap");
  return memory;
}

/* Memory that has been touched. */
static char *ready_memory(size_t bytes) {
  char *memory = aligned_alloc(64, bytes);
  if (!memory) die("aligned_alloc");
  memset(memory, 0, bytes);
  return memory;
}

/* ---- Processes that start together ---- */

typedef struct plan plan_t;
typedef void body_t(const plan_t *plan, int rank, shared_t *shared);
struct plan {
  body_t *body;
  kind_t kind;
  waiting_t waiting;
  int ranks;
  size_t amount; /* bytes or calls */
  bool adds;
  int links[MOST_RANKS][2]; /* of each rank, to the right: its own end and that of the right neighbour */
  void *memory;
};

/* Each body calls this when its memory is ready, and the next when it is done. */
static void begin(shared_t *shared, int rank) {
  pthread_barrier_wait(&shared->start);
  shared->cpu_seconds[rank] = cpu();
  shared->seconds[rank] = now();
}

static void end(shared_t *shared, int rank) {
  shared->seconds[rank] = now() - shared->seconds[rank];
  shared->cpu_seconds[rank] = cpu() - shared->cpu_seconds[rank];
}

/* Runs the body as processes. Returns the slowest one's seconds, and what all used together. */
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

static double run(const plan_t *plan, double *cpu_seconds) {
  double best = 0;
  for (int i = 0; i < TRIES; i++) {
    double used, seconds = run_once(plan, &used);
    if (i > 0 && seconds >= best) continue;
    best = seconds;
    if (cpu_seconds) *cpu_seconds = used;
  }
  return best;
}

/* ---- Sockets ---- */

static void connect_pair(kind_t kind, int ends[2]) {
  if (kind == UNIX) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) die("socketpair");
    return;
  }
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
      getsockname(listener, (struct sockaddr *)&address, &length)) {
    die("listen");
  }
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(ends[0], (struct sockaddr *)&address, length)) die("connect");
  ends[1] = accept(listener, NULL, NULL);
  if (ends[1] < 0) die("accept");
  close(listener);
  const int on = 1;
  for (int i = 0; i < 2; i++) setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void connect_ring(plan_t *plan) {
  for (int rank = 0; rank < plan->ranks; rank++) connect_pair(plan->kind, plan->links[rank]);
}

static void close_ring(const plan_t *plan) {
  for (int rank = 0; rank < plan->ranks; rank++) {
    close(plan->links[rank][0]);
    close(plan->links[rank][1]);
  }
}

static int to_right(const plan_t *plan, int rank) { return plan->links[rank][0]; }
static int to_left(const plan_t *plan, int rank) { return plan->links[(rank + plan->ranks - 1) % plan->ranks][1]; }

static void write_all(int socket, const char *bytes, size_t count) {
  while (count > 0) {
    ssize_t written = write(socket, bytes, count);
    if (written <= 0) die("write");
    bytes += written;
    count -= (size_t)written;
  }
}

static void read_all(int socket, char *bytes, size_t count, waiting_t waiting) {
  while (count > 0) {
    ssize_t got = recv(socket, bytes, count, waiting == BLOCKING ? 0 : MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) {
      if (waiting == YIELDING) sched_yield();
      continue;
    }
    if (got <= 0) die("recv");
    bytes += got;
    count -= (size_t)got;
  }
}

/* ---- One writer and one reader ---- */

static void stream_body(const plan_t *plan, int rank, shared_t *shared) {
  char *bytes = ready_memory(MIB);
  begin(shared, rank);
  for (size_t moved = 0; moved < plan->amount; moved += MIB) {
    if (rank == 0) write_all(to_right(plan, 0), bytes, MIB);
    else read_all(to_left(plan, 1), bytes, MIB, BLOCKING);
  }
  end(shared, rank);
}

static void stream(kind_t kind) {
  plan_t plan = {.body = stream_body, .kind = kind, .ranks = 2, .amount = 1024 * MIB};
  connect_ring(&plan);
  double seconds = run(&plan, NULL);
  close_ring(&plan);
  char name[NAME_BYTES];
  snprintf(name, sizeof name, "%s stream, one way", KIND_NAMES[kind]);
  print_limit(name, 2, (double)plan.amount / seconds / 1e9, "GB/s");
}

/* ---- Small messages ---- */

enum { SMALL_BYTES = 8 };

static void round_trip_body(const plan_t *plan, int rank, shared_t *shared) {
  char bytes[SMALL_BYTES] = {0};
  begin(shared, rank);
  for (size_t i = 0; i < plan->amount; i++) {
    if (rank == 0) write_all(to_right(plan, 0), bytes, sizeof bytes);
    read_all(rank == 0 ? to_right(plan, 0) : to_left(plan, 1), bytes, sizeof bytes, plan->waiting);
    if (rank == 1) write_all(to_left(plan, 1), bytes, sizeof bytes);
  }
  end(shared, rank);
}

/* What a small all-reduce can't do without: in floor(n/2) steps, which reach the other side of the ring, a
 * message to each neighbour process and one from it. */
static void exchange_body(const plan_t *plan, int rank, shared_t *shared) {
  char bytes[SMALL_BYTES] = {0};
  bool two_neighbours = plan->ranks > 2;
  /* In a ring of two both links join the same pair, and one will do. */
  int right = rank == 0 || two_neighbours ? to_right(plan, rank) : to_left(plan, rank);
  begin(shared, rank);
  for (size_t i = 0; i < plan->amount; i++) {
    for (int step = 0; step < plan->ranks / 2; step++) {
      write_all(right, bytes, sizeof bytes);
      if (two_neighbours) write_all(to_left(plan, rank), bytes, sizeof bytes);
      read_all(right, bytes, sizeof bytes, plan->waiting);
      if (two_neighbours) read_all(to_left(plan, rank), bytes, sizeof bytes, plan->waiting);
    }
  }
  end(shared, rank);
}

/* Microseconds of one call. */
static void small(body_t *body, const char *what, kind_t kind, waiting_t waiting, int ranks, size_t calls) {
  plan_t plan = {.body = body, .kind = kind, .waiting = waiting, .ranks = ranks, .amount = calls};
  connect_ring(&plan);
  double us = run(&plan, NULL) / (double)calls * 1e6;
  close_ring(&plan);
  char name[NAME_BYTES];
  snprintf(name, sizeof name, "%s %s, %s", KIND_NAMES[kind], what, WAITING_NAMES[waiting]);
  print_limit(name, ranks, us, "us");
}

/* ---- A ring that moves what an all-reduce moves ---- */

/* Ranks walk through memory as through a real array. */
static const size_t SPAN = 32 << 20;

static void add(float *restrict to, const float *restrict from, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] += from[i];
}

/* Each rank sends to the right while it receives from the left, with one thread and poll. Every other MiB that
 * arrives is added where the plan says so: the half of an all-reduce that reduces. */
static void ring_body(const plan_t *plan, int rank, shared_t *shared) {
  int right = to_right(plan, rank), left = to_left(plan, rank);
  const char *source = ready_memory(SPAN);
  char *array = ready_memory(SPAN), *scratch = ready_memory(MIB);
  if (fcntl(right, F_SETFL, O_NONBLOCK) || fcntl(left, F_SETFL, O_NONBLOCK)) die("fcntl");
  size_t sent = 0, got = 0;
  begin(shared, rank);
  while (sent < plan->amount || got < plan->amount) {
    bool idle = true;
    if (got < plan->amount) {
      bool adds = plan->adds && got / MIB % 2 == 1;
      size_t in_piece = got % MIB;
      ssize_t count = recv(left, adds ? scratch + in_piece : array + got % SPAN, MIB - in_piece, 0);
      if (count == 0 || (count < 0 && errno != EAGAIN)) die("recv");
      if (count > 0) {
        /* Whole elements, also of those that came in two pieces. */
        size_t first = in_piece / sizeof(float), last = (in_piece + (size_t)count) / sizeof(float);
        float *piece = (float *)(void *)(array + (got - in_piece) % SPAN);
        if (adds) add(piece + first, (const float *)(const void *)scratch + first, last - first);
        got += (size_t)count;
        idle = false;
      }
    }
    if (sent < plan->amount) {
      ssize_t count = send(right, source + sent % SPAN, MIB - sent % MIB, MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN) die("send");
      if (count > 0) {
        sent += (size_t)count;
        idle = false;
      }
    }
    if (idle) {
      struct pollfd wanted[2] = {{.fd = left, .events = got < plan->amount ? POLLIN : 0},
                                 {.fd = right, .events = sent < plan->amount ? POLLOUT : 0}};
      poll(wanted, 2, -1);
    }
  }
  end(shared, rank);
}

/* The same through shared memory: a queue a link with one writer and one reader. */
enum { SLOTS = 16, SLOT_BYTES = 64 << 10 };

typedef struct {
  _Alignas(64) _Atomic size_t written;
  _Alignas(64) _Atomic size_t taken;
  _Alignas(64) char slots[SLOTS][SLOT_BYTES];
} queue_t;

static void memory_ring_body(const plan_t *plan, int rank, shared_t *shared) {
  queue_t *queues = plan->memory;
  queue_t *right = &queues[rank], *left = &queues[(rank + plan->ranks - 1) % plan->ranks];
  const char *source = ready_memory(SPAN);
  char *array = ready_memory(SPAN);
  size_t slots = plan->amount / SLOT_BYTES, sent = 0, got = 0;
  atomic_store(&right->written, 0);
  atomic_store(&right->taken, 0);
  begin(shared, rank);
  while (sent < slots || got < slots) {
    bool idle = true;
    if (got < slots && atomic_load_explicit(&left->written, memory_order_acquire) > got) {
      char *to = array + got * SLOT_BYTES % SPAN;
      const char *from = left->slots[got % SLOTS];
      bool adds = plan->adds && got * SLOT_BYTES / MIB % 2 == 1;
      if (adds) add((float *)(void *)to, (const float *)(const void *)from, SLOT_BYTES / sizeof(float));
      else memcpy(to, from, SLOT_BYTES);
      atomic_store_explicit(&left->taken, ++got, memory_order_release);
      idle = false;
    }
    if (sent < slots && sent - atomic_load_explicit(&right->taken, memory_order_acquire) < SLOTS) {
      memcpy(right->slots[sent % SLOTS], source + sent * SLOT_BYTES % SPAN, SLOT_BYTES);
      atomic_store_explicit(&right->written, ++sent, memory_order_release);
      idle = false;
    }
    if (idle) sched_yield();
  }
  end(shared, rank);
}

/* tables.py looks for the names of the TCP rings. */
static void ring(kind_t kind, int ranks, bool adds) {
  plan_t plan = {.body = kind == SHM ? memory_ring_body : ring_body, .kind = kind, .ranks = ranks, .adds = adds,
                 .amount = (ranks == 2 ? 1024 : 512) * MIB};
  if (kind == SHM) plan.memory = shared_memory((size_t)ranks * sizeof(queue_t));
  else connect_ring(&plan);
  double cpu_seconds, seconds = run(&plan, &cpu_seconds);
  if (kind == SHM) munmap(plan.memory, (size_t)ranks * sizeof(queue_t));
  else close_ring(&plan);
  char name[NAME_BYTES];
  const char *adding = adds ? ", half added" : "";
  snprintf(name, sizeof name, "%s ring%s", KIND_NAMES[kind], adding);
  print_limit(name, ranks, (double)plan.amount / seconds / 1e9, "GB/s a rank each way, as busbw");
  snprintf(name, sizeof name, "%s ring%s, CPU", KIND_NAMES[kind], adding);
  print_limit(name, ranks, cpu_seconds * 1e9 / ((double)ranks * (double)plan.amount), "ns a byte sent and received");
}

/* ---- Memory ---- */

static void memory(size_t bytes, const char *label) {
  const size_t total = (size_t)4 << 30;
  char *to = ready_memory(bytes), *from = ready_memory(bytes);
  size_t times = total / bytes;
  char name[NAME_BYTES];
  double start = now();
  for (size_t i = 0; i < times; i++) {
    memcpy(to, from, bytes);
    __asm__ volatile("" ::: "memory");
  }
  snprintf(name, sizeof name, "memcpy, %s", label);
  print_limit(name, 1, (double)total / (now() - start) / 1e9, "GB/s copied");
  start = now();
  for (size_t i = 0; i < times; i++) {
    add((float *)(void *)to, (const float *)(const void *)from, bytes / sizeof(float));
    __asm__ volatile("" ::: "memory");
  }
  snprintf(name, sizeof name, "float32 a[i] += b[i], %s", label);
  print_limit(name, 1, (double)total / (now() - start) / 1e9, "GB/s added");
  free(to);
  free(from);
}

static void sockets(kind_t kind) {
  enum { CALLS = 20000, CALLS_OF_FOUR = 5000 };
  stream(kind);
  for (int adds = 0; adds < 2; adds++) {
    ring(kind, 2, adds);
    ring(kind, 4, adds);
  }
  for (waiting_t waiting = BLOCKING; waiting <= SPINNING; waiting++) {
    small(round_trip_body, "8 B round trip", kind, waiting, 2, CALLS);
    small(exchange_body, "8 B exchange", kind, waiting, 2, CALLS);
    /* Four that spin on fewer cores measure the scheduler's tick. */
    bool crowded = sysconf(_SC_NPROCESSORS_ONLN) < 4;
    if (waiting != SPINNING || !crowded) small(exchange_body, "8 B exchange", kind, waiting, 4, CALLS_OF_FOUR);
  }
}

int main(int argc, char **argv) {
  bool wanted[KINDS] = {[TCP] = argc == 1};
  for (int i = 1; i < argc; i++) {
    for (kind_t kind = TCP; kind < KINDS; kind++) wanted[kind] |= strcmp(argv[i], KIND_NAMES[kind]) == 0;
  }
  memory(64 * MIB, "64 MiB arrays");
  memory(128 * KIB, "128 KiB arrays");
  if (wanted[TCP]) sockets(TCP);
  if (wanted[UNIX]) sockets(UNIX);
  for (int adds = 0; adds < 2 && wanted[SHM]; adds++) {
    ring(SHM, 2, adds);
    ring(SHM, 4, adds);
  }
  return 0;
}
