/* Calls of 2 GiB and about: every byte is right. Exit status 77 says that memory doesn't suffice.
 * Argument: uint8 or float32. */
#include <string.h>
#include <unistd.h>

#include "harness.h"

enum { SKIPPED = 77, LIMIT_S = 560 };

/* Two ranks with two buffers of a little over 2 GiB each, and room for the sockets and the host. */
#define NEEDS_KIB (12ull << 20)

static const size_t LENGTHS[] = {((size_t)1 << 31) - 8, (size_t)1 << 31, ((size_t)1 << 31) + ((size_t)1 << 20)};

static unsigned long long available_kib(void) {
  char line[256];
  unsigned long long kib = 0;
  FILE *file = fopen("/proc/meminfo", "r");
  if (!file) return 0;
  while (fgets(line, sizeof line, file) && sscanf(line, "MemAvailable: %llu", &kib) != 1) {}
  fclose(file);
  return kib;
}

/* Values whose sums are exact: of 24 bits where they are floats. Multiplied, so that a part that stands at
 * another place, whatever power of two it is off, is seen. */
static uint32_t mixed(size_t index) { return (uint32_t)(index * 0x9e3779b97f4a7c15u >> 40); }

static void bytes(ring_group_t *group, size_t length) {
  uint8_t *in = malloc(length), *out = malloc(length);
  uint32_t factor = (uint32_t)ring_group_rank(group) * 2 + 1; /* 1 and 3: the sum is 4 times the value */
  CHECK(in && out, "no memory");
  for (size_t i = 0; i < length; i++) in[i] = (uint8_t)(mixed(i) * factor);
  OK(ring_all_reduce(group, in, out, length, RING_DTYPE_UINT8, RING_OP_SUM));
  for (size_t i = 0; i < length; i++)
    CHECK(out[i] == (uint8_t)(mixed(i) * 4), "element %zu of %zu is %u", i, length, out[i]);
  free(in);
  free(out);
}

static void floats(ring_group_t *group, size_t length) {
  size_t count = length / sizeof(float);
  float *in = malloc(length), *out = malloc(length);
  int32_t add = ring_group_rank(group) ? 5 : 11;
  CHECK(in && out, "no memory");
  for (size_t i = 0; i < count; i++) in[i] = (float)((int32_t)(mixed(i) >> 2) + add);
  OK(ring_all_reduce(group, in, out, count, RING_DTYPE_FLOAT32, RING_OP_SUM));
  for (size_t i = 0; i < count; i++)
    CHECK(out[i] == (float)((int32_t)(mixed(i) >> 2) * 2 + 16), "element %zu of %zu is %f", i, count, out[i]);
  free(in);
  free(out);
}

static void body(int rank, int size, const char *hosts, void *data) {
  const char *type = data;
  (void)size;
  ring_group_t *group = join(rank, hosts, 2);
  OK(ring_group_set_timeout(group, LIMIT_S * 1000));
  for (int i = 0; i < 3; i++) (strcmp(type, "uint8") ? floats : bytes)(group, LENGTHS[i]);
  ring_group_destroy(group);
}

int main(int argc, char **argv) {
  CHECK(argc == 2, "argument: uint8 or float32");
  unsigned long long available = available_kib();
  if (available < NEEDS_KIB) {
    printf("skipped: 12 GiB of memory are needed, %llu MiB are available\n", available >> 10);
    return SKIPPED;
  }
  char *hosts = make_hosts(2, 1);
  run_ranks(2, hosts, body, argv[1], LIMIT_S, 0);
  free(hosts);
  return 0;
}
