/* Wrong arguments of every function. */
#include <limits.h>
#include <string.h>

#include "harness.h"

#define REFUSED(call) EXPECT(RING_STATUS_INVALID_ARGUMENT, call)

static void collectives(ring_group_t *group) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  static char memory[4096];
  char *in = memory, *out = memory + 2048;
  const ring_dtype_t f32 = RING_DTYPE_FLOAT32;
  const int unknown[] = {-1, 14, 99, INT_MAX, INT_MIN};
  REFUSED(ring_all_reduce(NULL, in, out, 4, f32, RING_OP_SUM));
  REFUSED(ring_all_reduce(group, NULL, out, 4, f32, RING_OP_SUM));
  REFUSED(ring_all_reduce(group, in, NULL, 4, f32, RING_OP_SUM));
  REFUSED(ring_all_reduce(group, in, in + 4, 4, f32, RING_OP_SUM));
  REFUSED(ring_all_reduce(group, in + 15, in, 4, f32, RING_OP_SUM));
  REFUSED(ring_all_reduce(group, in, out, SIZE_MAX, f32, RING_OP_SUM));
  REFUSED(ring_all_reduce(group, in, out, (size_t)PTRDIFF_MAX / 4 + 1, f32, RING_OP_SUM));
  for (int i = 0; i < 5; i++) {
    REFUSED(ring_all_reduce(group, in, out, 4, unknown[i], RING_OP_SUM));
    REFUSED(ring_all_gather(group, in, out, 4, unknown[i]));
    if (unknown[i] != 14) REFUSED(ring_all_reduce(group, in, out, 4, f32, unknown[i]));
  }
  REFUSED(ring_all_reduce(group, in, out, 4, f32, 8));
  EXPECT(RING_STATUS_UNSUPPORTED, ring_all_reduce(group, in, out, 4, f32, RING_OP_BXOR));
  EXPECT(RING_STATUS_UNSUPPORTED, ring_all_reduce(group, in, out, 4, RING_DTYPE_BOOL, RING_OP_MEAN));
  REFUSED(ring_all_gather(NULL, in, out, 4, f32));
  REFUSED(ring_all_gather(group, NULL, out, 4, f32));
  REFUSED(ring_all_gather(group, in, NULL, 4, f32));
  REFUSED(ring_all_gather(group, in, out, (size_t)PTRDIFF_MAX / 4 / (size_t)size + 1, f32));
  REFUSED(ring_all_gather(group, out + 4 * 4 * rank + 1, out, 4, f32));
  if (size > 1) REFUSED(ring_all_gather(group, out + 4 * 4 * ((rank + 1) % size), out, 4, f32));
  REFUSED(ring_barrier(NULL));
  /* Everyone refused alike: the group is healthy. In place, and no elements at all, are right. */
  memset(memory, 0, sizeof memory);
  OK(ring_all_gather(group, out + 4 * 4 * rank, out, 4, f32));
  OK(ring_all_reduce(group, NULL, NULL, 0, f32, RING_OP_SUM));
  OK(ring_all_reduce(group, in, in + 1, 0, f32, RING_OP_SUM));
  OK(ring_all_gather(group, NULL, NULL, 0, f32));
  OK(ring_all_reduce(group, in, in + 16, 4, f32, RING_OP_SUM));
  OK(ring_barrier(group));
}

static void messages(ring_group_t *group) {
  int rank = ring_group_rank(group), size = ring_group_size(group), peer = (rank + 1) % size;
  float in[4] = {0}, out[4] = {0};
  const ring_dtype_t f32 = RING_DTYPE_FLOAT32;
  REFUSED(ring_send(NULL, in, 4, f32, peer));
  REFUSED(ring_recv(NULL, out, 4, f32, peer));
  REFUSED(ring_send_recv(NULL, in, 4, peer, out, 4, peer, f32));
  REFUSED(ring_send(group, NULL, 4, f32, peer));
  REFUSED(ring_recv(group, NULL, 4, f32, peer));
  REFUSED(ring_send(group, in, SIZE_MAX, f32, peer));
  REFUSED(ring_recv(group, out, SIZE_MAX, f32, peer));
  REFUSED(ring_send(group, in, 4, 14, peer));
  REFUSED(ring_recv(group, out, 4, -1, peer));
  const int wrong[] = {-1, rank, size, INT_MAX, INT_MIN};
  for (int i = 0; i < 5; i++) {
    REFUSED(ring_send(group, in, 4, f32, wrong[i]));
    REFUSED(ring_recv(group, out, 4, f32, wrong[i]));
    if (wrong[i] != -1) REFUSED(ring_send_recv(group, in, 4, wrong[i], out, 4, -1, f32));
    if (wrong[i] != -1) REFUSED(ring_send_recv(group, in, 4, -1, out, 4, wrong[i], f32));
  }
  REFUSED(ring_send_recv(group, in, 4, rank, out, 3, rank, f32));
  REFUSED(ring_send_recv(group, in, 4, rank, in, 4, rank, f32));
  REFUSED(ring_send_recv(group, in, 4, rank, NULL, 4, rank, f32));
  REFUSED(ring_send_recv(group, in, 4, peer, (char *)in + 3, 4, peer, f32));
  REFUSED(ring_send_recv(group, in, 4, -1, out, 4, -1, 14));
  OK(ring_send_recv(group, NULL, 9, -1, NULL, 9, -1, f32));
}

static void structs(ring_group_t *group) {
  struct {
    ring_failure_t failure;
    unsigned char beyond[24];
  } larger;
  ring_failure_t failure = {.struct_size = sizeof failure};
  REFUSED(ring_group_failure(NULL, &failure));
  REFUSED(ring_group_failure(group, NULL));
  failure.struct_size = 0;
  REFUSED(ring_group_failure(group, &failure));
  failure.struct_size = sizeof(size_t) - 1;
  REFUSED(ring_group_failure(group, &failure));
  /* A program with a smaller struct gets as much as it knows. */
  memset(&failure, 0x5a, sizeof failure);
  failure.struct_size = offsetof(ring_failure_t, detected_by);
  OK(ring_group_failure(group, &failure));
  CHECK(failure.status == RING_STATUS_OK && failure.rank == -1 && failure.detected_by == 0x5a5a5a5a);
  memset(&larger, 0xff, sizeof larger);
  larger.failure.struct_size = sizeof larger;
  OK(ring_group_failure(group, &larger.failure));
  CHECK(larger.failure.status == RING_STATUS_OK && larger.failure.sequence == 0);
  CHECK(larger.failure.rank == -1 && larger.failure.detected_by == -1 && larger.failure.os_error == 0);
  for (size_t i = 0; i < sizeof larger.beyond; i++) CHECK(larger.beyond[i] == 0);
}

static void texts(ring_group_t *group) {
  char text[256], small[8];
  REFUSED(ring_barrier(NULL));
  size_t len = ring_last_error(text, sizeof text);
  CHECK(len == strlen(text) && strstr(text, "group is NULL") && !strchr(text, '\n'), "%s", text);
  CHECK(ring_last_error(NULL, 0) == len && ring_last_error(NULL, 100) == len);
  CHECK(ring_last_error(small, 0) == len);
  memset(small, 'x', sizeof small);
  CHECK(ring_last_error(small, 4) == len && strlen(small) == 3 && !memcmp(small, text, 3) && small[4] == 'x');
  CHECK(ring_last_error(small, 1) == len && small[0] == 0);
  OK(ring_group_set_timeout(group, 5000));
  CHECK(ring_last_error(NULL, 0) == len, "success changes the last error");
  CHECK(ring_group_last_error(group, text, sizeof text) == 0 && text[0] == 0);
  CHECK(ring_group_last_error(NULL, text, sizeof text) == 0);
  CHECK(ring_group_last_error(group, NULL, 0) == 0);
}

static void body(int rank, int size, const char *hosts, void *data) {
  (void)data;
  ring_group_t *group = join(rank, hosts, 1);
  CHECK(ring_group_rank(group) == rank && ring_group_size(group) == size);
  collectives(group);
  messages(group);
  structs(group);
  texts(group);
  REFUSED(ring_group_set_timeout(NULL, 1));
  OK(ring_group_set_timeout(group, 0));
  OK(ring_group_set_timeout(group, RING_TIMEOUT_INFINITE));
  OK(ring_barrier(group));
  ring_group_destroy(group);
}

int main(void) {
  CHECK(ring_group_rank(NULL) == -1 && ring_group_size(NULL) == -1);
  ring_group_destroy(NULL);
  REFUSED(ring_group_create_from_env(NULL));
  for (int size = 1; size <= 4; size++) {
    char *hosts = make_hosts(size, 1);
    run_ranks(size, hosts, body, NULL, 20, 0);
    free(hosts);
  }
  return 0;
}
