/* A forked child can't use the group, and doesn't keep its connections alive. */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static int sockets(void) {
  int count = 0, type;
  socklen_t len = sizeof type;
  for (int fd = 3; fd < 256; fd++) count += getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
  return count;
}

static void in_child(ring_group_t *group, int rank, int size) {
  int value = 1;
  ring_failure_t failure = {.struct_size = sizeof failure};
  CHECK(ring_group_rank(group) == rank && ring_group_size(group) == size);
  EXPECT(RING_STATUS_INVALID_STATE, ring_barrier(group));
  EXPECT(RING_STATUS_INVALID_STATE, ring_all_reduce(group, &value, &value, 1, RING_DTYPE_INT32, RING_OP_SUM));
  EXPECT(RING_STATUS_INVALID_STATE, ring_all_gather(group, &value, &value, 0, RING_DTYPE_INT32));
  EXPECT(RING_STATUS_INVALID_STATE, ring_send(group, &value, 1, RING_DTYPE_INT32, (rank + 1) % size));
  EXPECT(RING_STATUS_INVALID_STATE, ring_recv(group, &value, 1, RING_DTYPE_INT32, (rank + 1) % size));
  EXPECT(RING_STATUS_INVALID_STATE, ring_group_set_timeout(group, 5));
  ring_group_t *half = NULL;
  EXPECT(RING_STATUS_INVALID_STATE, ring_group_split(group, 0, 0, &half));
  EXPECT(RING_STATUS_INVALID_STATE, ring_group_failure(group, &failure));
  CHECK(sockets() == 0, "%d sockets are open in the child", sockets());
  ring_group_destroy(group);
  /* The child may have groups of its own. */
  ring_config_t config = make_config(0, "[\"here:0\"]", 1);
  ring_group_t *own = NULL;
  OK(ring_group_create(&config, &own));
  OK(ring_barrier(own));
  ring_group_destroy(own);
}

static void forks(int rank, int size, const char *hosts, void *data) {
  (void)data;
  int status = -1, one = 1, sum = 0;
  ring_group_t *group = join(rank, hosts, 2);
  OK(ring_barrier(group));
  pid_t child = fork();
  if (child == 0) {
    in_child(group, rank, size);
    exit(0);
  }
  OK(ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(waitpid(child, &status, 0) == child && status == 0, "the child's status is %x", status);
  OK(ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(sum == size);
  ring_group_destroy(group);
}

/* Rank 1 forks a child that lives on, and is killed: the others hear of it all the same. */
static void survived_by_child(int rank, int size, const char *hosts, void *data) {
  (void)data;
  (void)size;
  ring_group_t *group = join(rank, hosts, 1);
  OK(ring_barrier(group));
  if (rank == 1) {
    if (fork() == 0) {
      sleep(3);
      _exit(0);
    }
    raise(SIGKILL);
  }
  double start = seconds();
  EXPECT(RING_STATUS_PEER_LOST, ring_barrier(group));
  CHECK(seconds() - start < 1, "it took %f s", seconds() - start);
  ring_group_destroy(group);
}

int main(void) {
  for (int size = 2; size <= 4; size++) {
    char *hosts = make_hosts(size, 1);
    run_ranks(size, hosts, forks, NULL, 20, 0);
    run_ranks(size, hosts, survived_by_child, NULL, 20, 1u << 1);
    run_ranks(size, hosts, forks, NULL, 20, 0); /* the dead rank's port is free */
    free(hosts);
  }
  return 0;
}
