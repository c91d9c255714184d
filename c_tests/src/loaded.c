/* A host that loads the library at run time, as plugins are. Argument: the library's path. */
#include <dlfcn.h>
#include <ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);         \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

/* A function of the library by its own type. */
#define FIND(name) __typeof__(&name) my_##name = (__typeof__(&name))dlsym(library, #name); CHECK(my_##name)

static void body(const char *path, int rank, const char *hosts) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(library);
  FIND(ring_config_init);
  FIND(ring_group_create);
  FIND(ring_all_reduce);
  FIND(ring_group_destroy);
  FIND(ring_group_size);
  ring_config_t config;
  my_ring_config_init(&config, sizeof config);
  config.rank = rank;
  config.hosts = hosts;
  config.connect_timeout_ms = 20000;
  ring_group_t *group = NULL;
  CHECK(my_ring_group_create(&config, &group) == RING_STATUS_OK);
  double mine = rank + 1, sum = 0;
  CHECK(my_ring_all_reduce(group, &mine, &sum, 1, RING_DTYPE_FLOAT64, RING_OP_SUM) == RING_STATUS_OK);
  int size = my_ring_group_size(group);
  CHECK(sum == size * (size + 1) / 2.0);
  my_ring_group_destroy(group);
  /* Closing is allowed, and leaves what threads still need. */
  CHECK(dlclose(library) == 0);
  CHECK(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == library);
}

int main(int argc, char **argv) {
  CHECK(argc > 1);
  body(argv[1], 0, "[\"here:0\"]");
  int port = 8000 + (int)(getpid() % 1000) * 2, failed = 0;
  char hosts[64];
  snprintf(hosts, sizeof hosts, "[\"127.0.0.1:%d\",\"127.0.0.1:%d\"]", port, port + 1);
  for (int rank = 0; rank < 2; rank++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      body(argv[1], rank, hosts);
      exit(0);
    }
  }
  for (int rank = 0; rank < 2; rank++) {
    int status = 1;
    CHECK(wait(&status) > 0);
    failed |= status;
  }
  return failed != 0;
}
