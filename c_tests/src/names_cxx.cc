// The header's constants are arguments of its functions in C++, too.
#include <ring.h>

#include <type_traits>
#include <vector>

static_assert(std::is_same<ring_status_t, int32_t>::value, "ring_status_t is int32_t");
static_assert(std::is_same<ring_dtype_t, int32_t>::value, "ring_dtype_t is int32_t");
static_assert(std::is_same<ring_op_t, int32_t>::value, "ring_op_t is int32_t");
static_assert(sizeof(void *) != 8 || sizeof(ring_config_t) == 104, "ring_config_t has no padding at its end");

int main() {
  ring_config_t config;
  ring_config_init(&config, sizeof config);
  config.rank = 0;
  config.hosts = "[\"here:0\"]";
  ring_group_t *group = nullptr;
  if (ring_group_create(&config, &group) != RING_STATUS_OK) return 1;
  std::vector<float> in{1, 2, 3}, out(3);
  ring_dtype_t dtype = RING_DTYPE_FLOAT32;
  ring_status_t status = ring_all_reduce(group, in.data(), out.data(), in.size(), dtype, RING_OP_SUM);
  ring_group_destroy(group);
  return status == RING_STATUS_OK && in == out ? 0 : 1;
}
