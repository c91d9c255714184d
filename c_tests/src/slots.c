/* Each slot of the table is at its place and is the function of its name. Argument: the library's path. */
#include <dlfcn.h>
#include <ring.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition, name)                                                       \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, name, #condition);      \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

typedef void (*any_function)(void);

#define SLOT(name) {#name, "ring_" #name, offsetof(ring_api_v1_t, name)}

/* The order is ABI: a slot that is added stands last here, and none is moved. */
static const struct {
  const char *name, *function;
  size_t offset;
} SLOTS[] = {
    SLOT(version),
    SLOT(version_string),
    {"ring_abi_version", "ring_abi_version", offsetof(ring_api_v1_t, ring_abi_version)},
    SLOT(dtype_size),
    SLOT(dtype_name),
    SLOT(op_name),
    SLOT(status_name),
    SLOT(status_string),
    SLOT(last_error),
    SLOT(group_last_error),
    SLOT(group_failure),
    SLOT(config_init),
    SLOT(group_create),
    SLOT(group_create_from_env),
    SLOT(group_rank),
    SLOT(group_size),
    SLOT(group_set_timeout),
    SLOT(group_split),
    SLOT(group_abort),
    SLOT(group_destroy),
    SLOT(all_reduce),
    SLOT(reduce_scatter),
    SLOT(all_gather),
    SLOT(broadcast),
    SLOT(reduce),
    SLOT(gather),
    SLOT(scatter),
    SLOT(all_to_all),
    SLOT(barrier),
    SLOT(all_gather_v),
    SLOT(reduce_scatter_v),
    SLOT(all_to_all_v),
    SLOT(send),
    SLOT(recv),
    SLOT(send_recv),
    SLOT(all_reduce_custom),
    SLOT(reduce_scatter_v_custom),
    SLOT(all_reduce_async),
    SLOT(reduce_scatter_async),
    SLOT(all_gather_async),
    SLOT(broadcast_async),
    SLOT(all_to_all_async),
    SLOT(send_async),
    SLOT(recv_async),
    SLOT(barrier_async),
    SLOT(request_test),
    SLOT(request_wait),
    SLOT(request_destroy),
    SLOT(set_log_callback),
    SLOT(group_stats),
};
enum { COUNT = sizeof SLOTS / sizeof *SLOTS, HEAD_BYTES = sizeof(size_t) + 2 * sizeof(uint32_t) };

/* A host has names of its own, and shows them to what it loads: this one, and another version's table. */
ring_status_t ring_barrier(ring_group_t *group) {
  (void)group;
  return RING_STATUS_INTERNAL;
}
const ring_api_v1_t *ring_get_api_v1(void) { return NULL; }

int main(int argc, char **argv) {
  CHECK(argc == 2, "usage: slots LIBRARY");
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  CHECK(library, argv[1]);
  const ring_api_v1_t *(*get_api)(void) = (const ring_api_v1_t *(*)(void))dlsym(library, "ring_get_api_v1");
  CHECK(get_api && get_api != ring_get_api_v1, "ring_get_api_v1");
  const ring_api_v1_t *api = get_api();
  CHECK(api && api == get_api(), "one table");
  CHECK(api->struct_size == sizeof *api, "struct_size");
  CHECK(api->abi_version == RING_ABI_VERSION && api->ring_abi_version() == RING_ABI_VERSION, "abi_version");
  CHECK(api->reserved == 0, "reserved");
  CHECK(api->struct_size == HEAD_BYTES + COUNT * sizeof(any_function), "all slots are listed");
  for (size_t i = 0; i < COUNT; i++) {
    CHECK(SLOTS[i].offset == HEAD_BYTES + i * sizeof(any_function), SLOTS[i].name);
    any_function slot = *(const any_function *)((const char *)api + SLOTS[i].offset);
    CHECK(slot, SLOTS[i].name);
    CHECK(slot == (any_function)dlsym(library, SLOTS[i].function), SLOTS[i].name);
  }
  CHECK(api->barrier != ring_barrier, "barrier");
  /* Callers of version 1 that were built for 64 bits have these in them. */
  if (sizeof(void *) == 8) {
    CHECK(offsetof(ring_api_v1_t, version) == 16, "version");
    CHECK(offsetof(ring_api_v1_t, all_reduce) == 176, "all_reduce");
    CHECK(offsetof(ring_api_v1_t, group_stats) == 408, "group_stats");
  }
  return 0;
}
