/* Configurations that MLX's wire has no room for, and RING_WIRE. */
#include <string.h>
#include <unistd.h>

#include "member.h"

static const char TWO[] = "[\"127.0.0.1:5000\",\"127.0.0.1:5001\"]";
static ring_group_t *group;

#define REFUSED(part, call)                                                          \
  do {                                                                               \
    double start_ = seconds();                                                       \
    EXPECT(RING_STATUS_INVALID_CONFIG, call);                                        \
    CHECK(seconds() - start_ < 0.1, "it took %.3f s", seconds() - start_);           \
    CHECK(strstr(last_error(), part), "\"%s\" lacks \"%s\"", last_error(), part);    \
    CHECK(group == NULL);                                                            \
  } while (0)

#define FIELD(part, ...)                                            \
  do {                                                              \
    ring_config_t config = mlx_config(0, TWO);                      \
    __VA_ARGS__;                                                    \
    REFUSED(part, ring_group_create(&config, &group));              \
  } while (0)

static void fields(void) {
  FIELD("rendezvous", config.hosts = NULL, config.rendezvous = "127.0.0.1:5000", config.size = 2);
  FIELD("secret", config.secret = "0123456789abcdef", config.secret_len = 16);
  FIELD("connections", config.connections = 2);
  FIELD("WIDE_ACCUMULATION", config.flags = RING_FLAG_WIDE_ACCUMULATION);
  FIELD("[::1]:5000", config.hosts = "[\"[::1]:5000\",\"127.0.0.1:5001\"]");
  FIELD("[::]:5000", config.hosts = "[\"[::]:5000\",\"127.0.0.1:5001\"]");
  FIELD("[::1]:5001", config.hosts = "[\"127.0.0.1:5000\",\"[::1]:5001\"]");
  FIELD("[fe80::1%lo]:5002", config.hosts = "[[\"127.0.0.1:5000\",\"127.0.0.1:5001\"],[\"[fe80::1%lo]:5002\",\"127.0.0.1:5003\"]]");
  FIELD("addresses", config.hosts = "[[\"127.0.0.1:5000\",\"127.0.0.1:5001\"],\"127.0.0.1:5003\"]");
  FIELD("wire", config.wire = 2);
  FIELD("wire", config.wire = -1);
}

/* A group of one, without a socket, works on any wire; its entry may be anything that this wire allows. */
static void alone(void) {
  ring_config_t config = mlx_config(0, "[\"127.0.0.1:5000\"]");
  config.connections = 1;
  config.job_id = "a job";
  OK(ring_group_create(&config, &group));
  int one = 1, sum = 0;
  OK(ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(sum == 1);
  OK(ring_barrier(group));
  ring_group_destroy(group);
  group = NULL;
}

static const char *variables[] = {"RING_RANK", "RING_HOSTFILE", "RING_RENDEZVOUS", "RING_SIZE", "RING_SECRET", "RING_CONNECTIONS",
                                  "RING_WIRE"};

static void unset(void) {
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
}

/* Pairs of names and values, then NULL. */
static void set(const char *const *pairs) {
  unset();
  for (; *pairs; pairs += 2) setenv(pairs[0], pairs[1], 1);
}

static void environment(void) {
  char path[] = "/tmp/mlx_hosts_XXXXXX";
  int file = mkstemp(path);
  CHECK(file >= 0 && write(file, TWO, sizeof TWO - 1) == sizeof TWO - 1);
  close(file);
  struct {
    const char *part, *pairs[9];
  } bad[] = {
      {"RING_WIRE is \"junk\"", {"RING_RANK", "0", "RING_HOSTFILE", path, "RING_WIRE", "junk"}},
      {"RING_WIRE is \"\"", {"RING_RANK", "0", "RING_HOSTFILE", path, "RING_WIRE", ""}},
      {"RING_WIRE is \"MLX\"", {"RING_RANK", "0", "RING_HOSTFILE", path, "RING_WIRE", "MLX"}},
      {"RING_WIRE is \"1\"", {"RING_RANK", "0", "RING_HOSTFILE", path, "RING_WIRE", "1"}},
      {"RING_SECRET", {"RING_RANK", "0", "RING_HOSTFILE", path, "RING_WIRE", "mlx", "RING_SECRET", "0123456789abcdef"}},
      {"RING_CONNECTIONS", {"RING_RANK", "0", "RING_HOSTFILE", path, "RING_WIRE", "mlx", "RING_CONNECTIONS", "2"}},
      {"RING_RENDEZVOUS", {"RING_RANK", "0", "RING_RENDEZVOUS", "127.0.0.1:5000", "RING_WIRE", "mlx", "RING_SIZE", "2"}},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    set(bad[i].pairs);
    REFUSED(bad[i].part, ring_group_create_from_env(&group));
  }
  unset();
  unlink(path);
}

/* Ranks whose variables are a launcher's, and one that says which wire; a hostfile of names is one of IPv4 addresses, too. */
static void from_variables(int rank, int size, const char *hosts, void *data) {
  const char *wire = data;
  char path[] = "/tmp/mlx_hosts_XXXXXX", number[8];
  (void)size;
  int file = mkstemp(path);
  CHECK(file >= 0 && write(file, hosts, strlen(hosts)) == (ssize_t)strlen(hosts));
  close(file);
  snprintf(number, sizeof number, "%d", rank);
  setenv("MLX_RANK", number, 1);
  setenv("MLX_HOSTFILE", path, 1);
  setenv("RING_CONNECT_TIMEOUT_MS", "20000", 1);
  setenv("RING_WIRE", wire, 1);
  OK(ring_group_create_from_env(&group));
  unlink(path);
  expect_sum(group, 1000);
  /* Which wire it is shows in what it can carry. */
  int value = rank;
  EXPECT(strcmp(wire, "mlx") ? RING_STATUS_OK : RING_STATUS_UNSUPPORTED, ring_broadcast(group, &value, 1, RING_DTYPE_INT32, 0));
  ring_group_destroy(group);
}

int main(void) {
  fields();
  alone();
  environment();
  char *hosts = make_hosts(3, 2);
  run_ranks(3, hosts, from_variables, "mlx", 30, 0);
  run_ranks(3, hosts, from_variables, "native", 30, 0);
  for (char *at = hosts; (at = strstr(at, "127.0.0.1")); at++) memcpy(at, "localhost", 9);
  run_ranks(3, hosts, from_variables, "mlx", 30, 0);
  free(hosts);
  return 0;
}
