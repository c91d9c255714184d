/* Configurations that can't be: told at once, in words, and in silence otherwise. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

/* The promise is 100 ms; refusing asks no network. */
#define REFUSED(status, part, call)                                                  \
  do {                                                                               \
    double start_ = seconds();                                                       \
    EXPECT(status, call);                                                            \
    CHECK(seconds() - start_ < 0.1, "it took %.3f s", seconds() - start_);           \
    CHECK(strstr(last_error(), part), "\"%s\" lacks \"%s\"", last_error(), part);    \
    CHECK(group == NULL);                                                            \
  } while (0)

static const char TWO[] = "[\"127.0.0.1:5000\",\"127.0.0.1:5001\"]";
static ring_group_t *group;

static void hosts(const char *text, const char *part) {
  ring_config_t config = make_config(0, text, 1);
  REFUSED(RING_STATUS_INVALID_CONFIG, part, ring_group_create(&config, &group));
}

#define FIELD(status, part, ...)                                        \
  do {                                                                  \
    ring_config_t config = make_config(0, TWO, 1);                      \
    __VA_ARGS__;                                                        \
    REFUSED(status, part, ring_group_create(&config, &group));          \
  } while (0)

static void fields(void) {
  const ring_status_t invalid = RING_STATUS_INVALID_CONFIG, lacks = RING_STATUS_UNSUPPORTED;
  char long_id[300];
  memset(long_id, 'x', sizeof long_id - 1);
  long_id[sizeof long_id - 1] = 0;
  FIELD(invalid, "rank", config.rank = -1);
  FIELD(invalid, "rank", config.rank = -5);
  FIELD(invalid, "rank", config.rank = 2);
  FIELD(invalid, "size", config.size = 3);
  FIELD(invalid, "size", config.size = -1);
  FIELD(invalid, "hostfile", config.hosts = NULL);
  FIELD(invalid, "hostfile", config.hostfile = "x");
  FIELD(invalid, "rendezvous", config.rendezvous = "");
  FIELD(invalid, "hosts: it is empty", config.hosts = "");
  FIELD(invalid, "No such file", config.hosts = NULL, config.hostfile = "/no/such/file");
  FIELD(invalid, "hostfile is empty", config.hosts = NULL, config.hostfile = "");
  FIELD(invalid, "directory", config.hosts = NULL, config.hostfile = "/");
  FIELD(invalid, "connections", config.connections = 65);
  FIELD(invalid, "job_id", config.job_id = long_id);
  FIELD(invalid, "secret_len", config.secret = "x");
  FIELD(invalid, "secret", config.secret_len = 16);
  FIELD(invalid, "secret has fewer than 16", config.secret = "0123456789abcde", config.secret_len = 15);
  FIELD(invalid, "secret_len", config.secret = "0123456789abcdef", config.secret_len = 4097);
  FIELD(invalid, "wire", config.wire = 2);
  FIELD(invalid, "transport", config.transport = 3);
  FIELD(invalid, "flags", config.flags = 1u << 31);
  FIELD(invalid, "reserved", config.reserved = 1);
  FIELD(invalid, "connections is set and wire is mlx", config.wire = RING_WIRE_MLX, config.connections = 2);
  FIELD(invalid, "secret is set and wire is mlx", config.wire = RING_WIRE_MLX, config.secret = "0123456789abcdef",
        config.secret_len = 16);
  FIELD(invalid, "RING_FLAG_WIDE_ACCUMULATION is set", config.wire = RING_WIRE_MLX,
        config.flags = RING_FLAG_WIDE_ACCUMULATION);
  FIELD(invalid, "which has IPv4 addresses only", config.wire = RING_WIRE_MLX,
        config.hosts = "[\"127.0.0.1:5000\",\"[::1]:5001\"]");
  FIELD(invalid, "trace_dir is empty", config.trace_dir = "");
  FIELD(invalid, "trace_dir /no/such/directory: No such file", config.trace_dir = "/no/such/directory");
  FIELD(invalid, "trace_dir /dev/null: not a directory", config.trace_dir = "/dev/null");
  FIELD(invalid, "trace_dir /proc:", config.trace_dir = "/proc");
  FIELD(lacks, "transport", config.transport = RING_TRANSPORT_SHM);
}

#define MEETING(part, ...)                                                                  \
  do {                                                                                      \
    ring_config_t config = make_config(0, NULL, 1);                                         \
    config.rendezvous = "127.0.0.1:5000";                                                   \
    config.size = 2;                                                                        \
    __VA_ARGS__;                                                                            \
    REFUSED(RING_STATUS_INVALID_CONFIG, part, ring_group_create(&config, &group));          \
  } while (0)

static void rendezvous(void) {
  MEETING("rank is not set", config.rank = -1);
  MEETING("rank is 2, but size is 2", config.rank = 2);
  MEETING("size is not set", config.size = 0);
  MEETING("size is -1", config.size = -1);
  MEETING("at most 65535", config.size = INT32_MAX);
  MEETING("hosts and rendezvous are set", config.hosts = TWO);
  MEETING("hostfile and rendezvous are set", config.hostfile = "");
  MEETING("it is empty", config.rendezvous = "");
  MEETING("it has no port", config.rendezvous = "127.0.0.1");
  MEETING("port 0", config.rendezvous = "127.0.0.1:0");
  MEETING("above 65535", config.rendezvous = "node:99999");
  MEETING("[::1]:5000", config.rendezvous = "::1:5000");
  MEETING("only rank 0", config.rendezvous = "0.0.0.0:5000", config.rank = 1);
  MEETING("connections", config.connections = 65);
  MEETING("rendezvous is set and wire is mlx", config.wire = RING_WIRE_MLX);
}

static void hostfiles(void) {
  hosts("nonsense", "not JSON");
  hosts("[]", "no entry");
  hosts("{}", "an object");
  hosts("{\"hosts\":[]}", "mlx.launch");
  hosts("[\"a..b:1\",\"127.0.0.1:5001\"]", "entry 0");
  hosts("[[]]", "entry 0");
  hosts("[\"127.0.0.1:5000\",[[\"127.0.0.1:5001\"]]]", "entry 1");
  hosts("[\"127.0.0.1\",\"127.0.0.1:5001\"]", "no port");
  hosts("[\"127.0.0.1:0\",\"127.0.0.1:5001\"]", "port 0");
  hosts("[\"127.0.0.1:5000\",\"127.0.0.1:0\"]", "port 0");
  hosts("[\"127.0.0.1:99999\",\"127.0.0.1:5001\"]", "99999");
  hosts("[\"127.0.0.1:5000\",\"127.0.0.1:5000\"]", "stands in entry 0");
  hosts("[\"::1:5000\",\"127.0.0.1:5001\"]", "[::1]:5000");
  hosts("[{\"ssh\":\"a\",\"ips\":[\"127.0.0.1\"]}]", "mlx.launch");
  hosts("[[\"127.0.0.1:1\",\"127.0.0.1:2\"],\"127.0.0.1:3\"]", "addresses");
}

/* As many bytes as are read, and wrong from the first: the quickest of several tries keeps the promise, since a
 * loaded host may take the core from any one. */
static void large_hostfile(void) {
  static const char piece[] = "{\"\":0},";
  enum { PIECE = sizeof piece - 1, BYTES = 4 << 20, TRIES = 10 };
  static char text[BYTES];
  double best = 1e9;
  text[0] = '[';
  for (size_t i = 1; i < BYTES - 2 - PIECE; i += PIECE) memcpy(text + i, piece, PIECE);
  strcat(text, "0]");
  for (int i = 0; i < TRIES; i++) {
    ring_config_t config = make_config(0, text, 1);
    double start = seconds();
    EXPECT(RING_STATUS_INVALID_CONFIG, ring_group_create(&config, &group));
    double took = seconds() - start;
    if (took < best) best = took;
  }
  CHECK(strstr(last_error(), "entries") && best < 0.1, "%.3f s: %s", best, last_error());
}

static void structs(void) {
  struct {
    ring_config_t config;
    unsigned char beyond[16];
  } larger;
  ring_config_t config;
  REFUSED(RING_STATUS_INVALID_ARGUMENT, "NULL", ring_group_create(NULL, &group));
  config = make_config(0, TWO, 1);
  EXPECT(RING_STATUS_INVALID_ARGUMENT, ring_group_create(&config, NULL));
  const size_t sizes[] = {0, 8, sizeof config - 1, SIZE_MAX};
  for (int i = 0; i < 4; i++) {
    config.struct_size = sizes[i];
    REFUSED(RING_STATUS_INVALID_ARGUMENT, "struct_size", ring_group_create(&config, &group));
  }
  memset(&larger, 0xff, sizeof larger);
  ring_config_init(&larger.config, sizeof larger);
  CHECK(larger.config.struct_size == sizeof larger && larger.config.rank == -1 && larger.config.hosts == NULL);
  for (int i = 0; i < 16; i++) CHECK(larger.beyond[i] == 0);
  larger.config.rank = 0;
  larger.config.hosts = "[\"here:0\"]";
  OK(ring_group_create(&larger.config, &group));
  ring_group_destroy(group);
  group = NULL;
  larger.beyond[15] = 1;
  REFUSED(RING_STATUS_INVALID_ARGUMENT, "field", ring_group_create(&larger.config, &group));
  /* Too small, or nowhere: nothing is written. */
  memset(&config, 0x5a, sizeof config);
  ring_config_init(&config, sizeof config - 1);
  ring_config_init(NULL, sizeof config);
  for (size_t i = 0; i < sizeof config; i++) CHECK(((unsigned char *)&config)[i] == 0x5a);
}

static void clear_environment(void) {
  const char *names[] = {"RING_RANK", "MLX_RANK", "RING_SIZE", "RING_HOSTFILE", "MLX_HOSTFILE", "RING_JOB_ID",
                         "RING_CONNECT_TIMEOUT_MS", "RING_TIMEOUT_MS", "RING_CONNECTIONS", "RING_LOG", "RING_WIRE", "RING_TRANSPORT",
                         "RING_RENDEZVOUS", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
                         "SLURM_PROCID", "SLURM_NTASKS", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                         "TORCHELASTIC_USE_AGENT_STORE"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
}

static void variable(const char *file, const char *name, const char *value, ring_status_t status, const char *part) {
  clear_environment();
  setenv("RING_RANK", "0", 1);
  setenv("RING_HOSTFILE", file, 1);
  if (value) setenv(name, value, 1);
  else unsetenv(name);
  REFUSED(status, part, ring_group_create_from_env(&group));
}

/* "NAME=VALUE" strings, up to a NULL, are refused with this text. */
static void refused_variables(const char *part, const char *const *variables) {
  clear_environment();
  for (; *variables; variables++) {
    char name[64];
    const char *value = strchr(*variables, '=');
    snprintf(name, sizeof name, "%.*s", (int)(value - *variables), *variables);
    setenv(name, value + 1, 1);
  }
  REFUSED(RING_STATUS_INVALID_CONFIG, part, ring_group_create_from_env(&group));
}

#define VARIABLES(part, ...) refused_variables(part, (const char *const[]){__VA_ARGS__, NULL})

/* What launchers set, with something missing or wrong: told at once, and never a group of one. */
static void launchers(const char *file) {
  char hostfile[64];
  snprintf(hostfile, sizeof hostfile, "RING_HOSTFILE=%s", file);
  VARIABLES("none of RING_RANK, MLX_RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID and RANK is", "RING_RENDEZVOUS=a:1");
  VARIABLES("none of RING_HOSTFILE, RING_RENDEZVOUS, MLX_HOSTFILE and MASTER_ADDR is", "RANK=0", "WORLD_SIZE=1");
  VARIABLES("MASTER_PORT is not", "RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=localhost");
  VARIABLES("MASTER_ADDR is not", "RANK=0", "WORLD_SIZE=1", "MASTER_PORT=29500");
  VARIABLES("MASTER_PORT is \"x\"", "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=localhost", "MASTER_PORT=x");
  VARIABLES("MASTER_ADDR:MASTER_PORT \"a b:1\"", "RANK=0", "WORLD_SIZE=0", "MASTER_ADDR=a b", "MASTER_PORT=1");
  VARIABLES("port 65536", "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=localhost", "MASTER_PORT=65535",
            "TORCHELASTIC_USE_AGENT_STORE=True");
  VARIABLES("neither RING_SIZE nor WORLD_SIZE", "RANK=0", "SLURM_NTASKS=2", "RING_RENDEZVOUS=127.0.0.1:1");
  VARIABLES("RING_SIZE is not set", "RING_RANK=0", "RING_RENDEZVOUS=127.0.0.1:1");
  VARIABLES("a group of one must be asked for", "RING_RANK=0", "SLURM_PROCID=0", "SLURM_NTASKS=1", "RING_RENDEZVOUS=127.0.0.1:1");
  VARIABLES("OMPI_COMM_WORLD_SIZE is \"\"", "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=", "RING_RENDEZVOUS=127.0.0.1:1");
  VARIABLES("PMI_RANK is 4, but PMI_SIZE is 4", "PMI_RANK=4", "PMI_SIZE=4", "RING_RENDEZVOUS=127.0.0.1:1");
  VARIABLES("RING_RENDEZVOUS \"\": it is empty", "PMI_RANK=0", "PMI_SIZE=4", "RING_RENDEZVOUS=");
  VARIABLES("SLURM_NTASKS is 3, but RING_HOSTFILE", "SLURM_PROCID=0", "SLURM_NTASKS=3", hostfile);
  VARIABLES("RANK is 2, but RING_HOSTFILE", "RANK=2", "WORLD_SIZE=2", hostfile);
  clear_environment();
}

static void environment(void) {
  char file[] = "/tmp/ring-hostfile-XXXXXX", empty[] = "/tmp/ring-hostfile-XXXXXX";
  int out = mkstemp(file), nothing = mkstemp(empty);
  CHECK(out >= 0 && nothing >= 0 && write(out, TWO, sizeof TWO - 1) == sizeof TWO - 1);
  close(out);
  close(nothing);
  const ring_status_t invalid = RING_STATUS_INVALID_CONFIG;
  variable(file, "RING_RANK", NULL, invalid, "RING_RANK");
  variable(file, "RING_RANK", "", invalid, "RING_RANK");
  variable(file, "RING_RANK", "-1", invalid, "RING_RANK");
  variable(file, "RING_RANK", "2", invalid, "RING_RANK");
  variable(file, "RING_RANK", "abc", invalid, "RING_RANK");
  variable(file, "RING_HOSTFILE", NULL, invalid, "RING_HOSTFILE");
  variable(file, "RING_HOSTFILE", "", invalid, "RING_HOSTFILE");
  variable(file, "RING_HOSTFILE", "/no/such/file", invalid, "RING_HOSTFILE /no/such/file: No such file");
  variable(empty, "RING_SIZE", "2", invalid, "it is empty");
  variable(file, "RING_SIZE", "3", invalid, "RING_SIZE is 3");
  variable(file, "RING_CONNECTIONS", "65", invalid, "RING_CONNECTIONS");
  variable(file, "RING_TIMEOUT_MS", "1s", invalid, "RING_TIMEOUT_MS");
  variable(file, "RING_CONNECT_TIMEOUT_MS", "-1", invalid, "RING_CONNECT_TIMEOUT_MS");
  variable(file, "RING_LOG", "loud", invalid, "RING_LOG");
  variable(file, "RING_WIRE", "", invalid, "RING_WIRE is \"\", not native or mlx");
  variable(file, "RING_WIRE", "MLX", invalid, "RING_WIRE is \"MLX\", not native or mlx");
  variable(file, "RING_TRANSPORT", "", invalid, "RING_TRANSPORT is \"\", not auto, tcp or shm");
  variable(file, "RING_TRANSPORT", "shm", RING_STATUS_UNSUPPORTED, "RING_TRANSPORT is shm");
  launchers(file);
  /* MLX's names do as well, and create reads none. */
  clear_environment();
  setenv("MLX_RANK", "7", 1);
  setenv("MLX_HOSTFILE", file, 1);
  REFUSED(invalid, "MLX_RANK is 7", ring_group_create_from_env(&group));
  ring_config_t config = make_config(0, "[\"here:0\"]", 1);
  OK(ring_group_create(&config, &group));
  ring_group_destroy(group);
  group = NULL;
  unlink(file);
  unlink(empty);
}

int main(void) {
  /* Nothing may be printed: both outputs go to a file for the length of the test. */
  char printed[] = "/tmp/ring-printed-XXXXXX";
  int file = mkstemp(printed), terminal = dup(2);
  CHECK(file >= 0 && terminal >= 0);
  unlink(printed);
  fcntl(terminal, F_SETFD, FD_CLOEXEC);
  dup2(file, 1);
  fields();
  rendezvous();
  hostfiles();
  large_hostfile();
  structs();
  dup2(file, 2);
  ring_config_t config = make_config(0, "[]", 1);
  ring_status_t quiet = ring_group_create(&config, &group);
  config = make_config(0, "[\"here:0\"]", 1);
  ring_status_t good = ring_group_create(&config, &group);
  ring_group_destroy(group);
  group = NULL;
  dup2(terminal, 2);
  CHECK(quiet == RING_STATUS_INVALID_CONFIG && good == RING_STATUS_OK);
  environment();
  CHECK(lseek(file, 0, SEEK_END) == 0, "something was printed");
  return 0;
}
