/* Adds up four floats of every process: see "Run it" in README.md. */
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
  float values[4] = {1, 10, 100, 1000};
  for (int i = 0; i < 4; i++) values[i] *= (float)(rank + 1);

  if (ring_all_reduce(group, values, values, 4, RING_DTYPE_FLOAT32, RING_OP_SUM) != RING_STATUS_OK) {
    ring_group_destroy(group);
    return failed();
  }
  printf("rank %d of %d:", rank, ring_group_size(group));
  for (int i = 0; i < 4; i++) printf(" %g", values[i]);
  printf("\n");
  ring_group_destroy(group);
}
