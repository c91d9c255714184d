/* Groups are independent of each other, and calls of many threads take their turns. */
#include <pthread.h>

#include "harness.h"

enum { ROUNDS = 200, THREADS = 4 };

struct work {
  ring_group_t *group;
  int factor;
};

static void *reduce(void *data) {
  struct work *work = data;
  int rank = ring_group_rank(work->group), size = ring_group_size(work->group);
  for (int i = 0; i < ROUNDS; i++) {
    int mine = (rank + 1) * work->factor, sum = 0;
    OK(ring_all_reduce(work->group, &mine, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
    CHECK(sum == work->factor * size * (size + 1) / 2, "%d", sum);
  }
  return NULL;
}

/* Two groups of the same processes, each driven by a thread of its own. */
static void two_groups(int rank, int size, const char *hosts, void *data) {
  struct work work[2] = {{join(rank, hosts, 1), 1}, {join(rank, data, 1), 1000}};
  pthread_t threads[2];
  (void)size;
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, reduce, &work[i]) == 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 2; i++) ring_group_destroy(work[i].group);
}

/* Many threads on one group: all calls are alike, so that any order of theirs is right. */
static void many_threads(int rank, int size, const char *hosts, void *data) {
  struct work work = {join(rank, hosts, 1), 7};
  pthread_t threads[THREADS];
  (void)size;
  (void)data;
  for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, reduce, &work) == 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  ring_group_destroy(work.group);
}

int main(void) {
  char *first = make_hosts(3, 1), *second = make_hosts(3, 1);
  run_ranks(3, first, two_groups, second, 50, 0);
  run_ranks(3, first, many_threads, NULL, 50, 0);
  free(first);
  free(second);
  return 0;
}
