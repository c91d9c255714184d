/* Sums an array over all ranks. The ring comes from the environment: RING_RANK, RING_HOSTFILE. */
#include <ring.h>
#include <stdio.h>

static int failed(void) {
  char text[1024];
  ring_last_error(text, sizeof text);
  fprintf(stderr, "%s\n", text);
  return 1;
}

int main(void) {
  ring_group_t *group;
  if (ring_group_create_from_env(&group) != RING_STATUS_OK) return failed();

  int rank = ring_group_rank(group);
  float gradient[4] = {rank + 0.5f, rank + 1.5f, rank + 2.5f, rank + 3.5f};
  if (ring_all_reduce(group, gradient, gradient, 4, RING_DTYPE_FLOAT32, RING_OP_SUM) != RING_STATUS_OK) return failed();

  printf("rank %d of %d: %g %g %g %g\n", rank, ring_group_size(group), gradient[0], gradient[1], gradient[2],
         gradient[3]);
  ring_group_destroy(group);
  return 0;
}
