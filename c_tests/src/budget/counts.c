/* Functions that are defined here stand before libc's own. */
#undef _FORTIFY_SOURCE /* it would have some of them inline */
#include "counts.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

const char *const COUNT_NAMES[COUNTS] = {
    "allocations", "frees",       "sends",       "receipts", "misses",     "repeats",
    "yields",      "clock reads", "early reads", "polls",    "other calls"};

static _Thread_local long mine[COUNTS];
static long all[COUNTS];
static _Thread_local bool yielded_just_now;
static _Thread_local int received_from = -1; /* a socket, just now */

static void note(enum count count) {
  mine[count]++;
  __atomic_fetch_add(&all[count], 1, __ATOMIC_RELAXED);
  if (count <= FREES) return;
  yielded_just_now = count == YIELDS;
  received_from = -1;
}

void counts_start(void) {
  memset(mine, 0, sizeof mine);
  for (int i = 0; i < COUNTS; i++) __atomic_store_n(&all[i], 0, __ATOMIC_RELAXED);
}

struct counts counts_since_start(void) {
  struct counts counts;
  for (int i = 0; i < COUNTS; i++) {
    counts.here[i] = mine[i];
    counts.elsewhere[i] = __atomic_load_n(&all[i], __ATOMIC_RELAXED) - mine[i];
  }
  return counts;
}

#ifndef __GLIBC__

bool counts_work(void) { return false; }
void stop_clock(void) { (void)note; }
void start_clock(void) {}

#else

static _Thread_local bool stopped;
static _Thread_local struct timespec stopped_at;

bool counts_work(void) { return true; }

/* glibc's names for its own, which need no look-up: that would allocate. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *memory);

void *malloc(size_t bytes) {
  note(ALLOCATIONS);
  return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
  note(ALLOCATIONS);
  return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes) {
  note(ALLOCATIONS);
  return __libc_realloc(memory, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  note(ALLOCATIONS);
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  note(ALLOCATIONS);
  return __libc_memalign(alignment, bytes);
}

void free(void *memory) {
  if (memory) note(FREES);
  __libc_free(memory);
}

/* libc's function of that name as `libc`. Looked up at its first call, which may come before any constructor. */
#define FIND_LIBC(name)                  \
  static __typeof__(name) *libc = NULL; \
  if (!libc) *(void **)&libc = dlsym(RTLD_NEXT, #name)

ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
  FIND_LIBC(sendmsg);
  note(SENDS);
  return libc(socket, message, flags);
}

ssize_t recv(int socket, void *into, size_t bytes, int flags) {
  FIND_LIBC(recv);
  ssize_t got = libc(socket, into, bytes, flags);
  int error = errno;
  if (got <= 0 && socket == received_from) note(REPEATS);
  note(got > 0 ? RECEIPTS : MISSES);
  if (got > 0) received_from = socket;
  errno = error;
  return got;
}

int sched_yield(void) {
  FIND_LIBC(sched_yield);
  note(YIELDS);
  return libc();
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  FIND_LIBC(clock_gettime);
  if (!yielded_just_now) note(EARLY_READS);
  note(CLOCK_READS);
  if (!stopped) return libc(clock, now);
  *now = stopped_at;
  return 0;
}

int poll(struct pollfd *entries, nfds_t count, int limit_ms) {
  FIND_LIBC(poll);
  note(POLLS);
  return libc(entries, count, limit_ms);
}

ssize_t read(int file, void *into, size_t bytes) {
  FIND_LIBC(read);
  note(OTHERS);
  return libc(file, into, bytes);
}

ssize_t write(int file, const void *from, size_t bytes) {
  FIND_LIBC(write);
  note(OTHERS);
  return libc(file, from, bytes);
}

long syscall(long number, ...) {
  FIND_LIBC(syscall);
  long arguments[6];
  va_list list;
  note(OTHERS);
  /* As libc's does: what wasn't given isn't looked at. */
  va_start(list, number);
  for (int i = 0; i < 6; i++) arguments[i] = va_arg(list, long);
  va_end(list);
  return libc(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

void stop_clock(void) {
  clock_gettime(CLOCK_MONOTONIC, &stopped_at);
  stopped = true;
}

void start_clock(void) { stopped = false; }

#endif
