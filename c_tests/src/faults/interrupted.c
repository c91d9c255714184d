/* Signals rain on every rank while rings form, work and end: nothing notices, and the handlers stay the
 * program's. */
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "harness.h"
#include "work.h"

enum { RINGS = 3, TURNS = 10, PERIOD_US = 500, COUNT = 1 << 18 };

static volatile sig_atomic_t signals;

static void count_signal(int number) {
  (void)number;
  signals++;
}

static void body(int rank, int size, const char *hosts, void *data) {
  (void)size;
  (void)data;
  /* Without SA_RESTART: each one interrupts what can be interrupted. */
  struct sigaction action = {.sa_handler = count_signal}, after;
  const struct itimerval often = {{0, PERIOD_US}, {0, PERIOD_US}};
  sigset_t before_mask, after_mask;
  CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
  sigprocmask(SIG_SETMASK, NULL, &before_mask);
  for (int i = 0; i < RINGS; i++) {
    ring_group_t *group = join(rank, hosts, 2);
    struct desk desk = open_desk(group, COUNT);
    for (int turn = 0; turn < TURNS; turn++)
      for (int work = 0; work < 4; work++) OK(do_work(&WORKS[work], &desk));
    /* A long wait, too. */
    if (rank == 0)
      for (double end = seconds() + 0.3; seconds() < end;) usleep(1000);
    OK(ring_barrier(group));
    ring_group_destroy(group);
    close_desk(&desk);
  }
  sigprocmask(SIG_SETMASK, NULL, &after_mask);
  CHECK(signals > 100, "only %d signals", (int)signals);
  CHECK(memcmp(&before_mask, &after_mask, sizeof before_mask) == 0, "the mask has changed");
  CHECK(sigaction(SIGALRM, NULL, &after) == 0 && after.sa_handler == count_signal, "the handler has changed");
}

int main(void) {
  char *hosts = make_hosts(4, 1);
  run_ranks(4, hosts, body, NULL, 60, 0);
  free(hosts);
  return 0;
}
