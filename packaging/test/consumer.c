/* A program that knows only the installed library. */
#include <ring.h>
#include <stdio.h>

int main(void) {
  ring_config_t config;
  ring_group_t *group = NULL;
  float in[3] = {1, 2, 3}, out[3] = {0, 0, 0};
  ring_config_init(&config, sizeof config);
  config.rank = 0;
  config.hosts = "[\"here:0\"]";
  if (ring_group_create(&config, &group) != RING_STATUS_OK) return 1;
  ring_status_t status = ring_all_reduce(group, in, out, 3, RING_DTYPE_FLOAT32, RING_OP_SUM);
  ring_group_destroy(group);
  printf("%s: %g %g %g\n", ring_status_name(status), out[0], out[1], out[2]);
  return status == RING_STATUS_OK && out[0] == 1 && out[1] == 2 && out[2] == 3 ? 0 : 1;
}
