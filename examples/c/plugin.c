/* A runtime that isn't linked with libring, and has a ring where the library can be loaded. What the ring is comes
 * from the environment: RING_RANK, RING_HOSTFILE. */
#include <dlfcn.h>
#include <ring.h>
#include <stdio.h>

#ifdef __APPLE__
#define RING_LIBRARY "libring.0.dylib"
#else
#define RING_LIBRARY "libring.so.0"
#endif

/* libring's functions, or NULL and why there are none. Called once; the table lives as long as the process. */
static const ring_api_v1_t *load_ring(const char **why) {
  void *library = dlopen(RING_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  const ring_api_v1_t *(*get_api)(void) = NULL;
  if (library) *(void **)&get_api = dlsym(library, "ring_get_api_v1");
  if (!get_api) {
    *why = dlerror();
    return NULL;
  }
  const ring_api_v1_t *ring = get_api();
  *why = RING_LIBRARY " is of another ABI";
  if (ring->abi_version != RING_ABI_VERSION) return NULL;
  /* Of the slots that this program uses, all_reduce is the last. */
  *why = RING_LIBRARY " is too old";
  if (ring->struct_size < offsetof(ring_api_v1_t, all_reduce) + sizeof ring->all_reduce) return NULL;
  return ring;
}

static int failed(const ring_api_v1_t *ring) {
  char text[1024];
  ring->last_error(text, sizeof text);
  fprintf(stderr, "%s\n", text);
  return 1;
}

int main(void) {
  const char *why;
  const ring_api_v1_t *ring = load_ring(&why);
  if (!ring) {
    fprintf(stderr, "no ring: %s\n", why);
    return 1;
  }
  ring_group_t *group;
  if (ring->group_create_from_env(&group) != RING_STATUS_OK) return failed(ring);

  int rank = ring->group_rank(group);
  float gradient[2] = {rank + 0.5f, rank + 1.5f};
  if (ring->all_reduce(group, gradient, gradient, 2, RING_DTYPE_FLOAT32, RING_OP_MEAN) != RING_STATUS_OK)
    return failed(ring);

  printf("rank %d of %d, libring %s: %g %g\n", rank, ring->group_size(group), ring->version_string(), gradient[0],
         gradient[1]);
  ring->group_destroy(group);
  return 0;
}
