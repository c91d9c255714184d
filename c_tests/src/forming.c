/* How a ring comes to stand, or doesn't. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"

static void sum_is_right(ring_group_t *group) {
  int rank = ring_group_rank(group), size = ring_group_size(group), sum = -1;
  OK(ring_all_reduce(group, &rank, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM));
  CHECK(sum == size * (size - 1) / 2, "%d", sum);
}

static void plain(int rank, int size, const char *hosts, void *data) {
  (void)size;
  ring_group_t *group = join(rank, hosts, data ? *(int *)data : 1);
  sum_is_right(group);
  ring_group_destroy(group);
}

/* Each rank knows itself as the wildcard, its right neighbour, and dummies. */
static void own_hostfiles(int rank, int size, const char *hosts, void *data) {
  const int *ports = data;
  char text[1024] = "[", *end = text + 1;
  (void)hosts;
  for (int r = 0; r < size; r++) {
    const char *comma = r ? "," : "";
    if (r == rank) end += sprintf(end, "%s\"0.0.0.0:%d\"", comma, ports[r]);
    else if (r == (rank + 1) % size) end += sprintf(end, "%s[\"127.0.0.1:%d\"]", comma, ports[r]);
    else end += sprintf(end, "%s\"198.51.100.1:0\"", comma);
  }
  strcpy(end, "]");
  plain(rank, size, text, NULL);
}

static void wide(int rank, int size, const char *hosts, void *data) {
  ring_config_t config = make_config(rank, hosts, 1);
  ring_group_t *group;
  (void)size, (void)data;
  config.flags = RING_FLAG_WIDE_ACCUMULATION;
  OK(ring_group_create(&config, &group));
  sum_is_right(group);
  ring_group_destroy(group);
}

static ring_status_t try_join(ring_config_t config) {
  ring_group_t *group = NULL;
  ring_status_t status = ring_group_create(&config, &group);
  CHECK((status == RING_STATUS_OK) == (group != NULL));
  ring_group_destroy(group);
  return status;
}

static void neighbour_never_comes(void) {
  char *hosts = make_hosts(3, 1);
  ring_config_t config = make_config(0, hosts, 1);
  config.connect_timeout_ms = 300;
  double start = seconds();
  EXPECT(RING_STATUS_CONNECT_FAILED, try_join(config));
  double took = seconds() - start;
  CHECK(took > 0.25 && took < 1.3, "%f", took);
  const char *text = last_error(), *right = strchr(hosts, ',') + 2;
  char address[32];
  snprintf(address, sizeof address, "%.*s", (int)(strchr(right + 1, '"') - right - 1), right + 1);
  CHECK(strstr(text, "rank 1") && strstr(text, address) && strstr(text, "Connection refused"), "%s", text);
  CHECK(strstr(text, "rank 2 (left neighbour)"), "%s", text);
  free(hosts);
}

static void port_is_taken(void) {
  int port = free_port(), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int occupant = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(occupant, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  CHECK(bind(occupant, (struct sockaddr *)&address, sizeof address) == 0 && listen(occupant, 5) == 0);
  char hosts[128], shown[32];
  snprintf(hosts, sizeof hosts, "[\"127.0.0.1:%d\",\"127.0.0.1:%d\"]", port, free_port());
  snprintf(shown, sizeof shown, "127.0.0.1:%d", port);
  double start = seconds();
  EXPECT(RING_STATUS_CONNECT_FAILED, try_join(make_config(0, hosts, 1)));
  CHECK(seconds() - start < 1, "it took %f s", seconds() - start);
  CHECK(strstr(last_error(), shown) && strstr(last_error(), "in use"), "%s", last_error());
  close(occupant);
}

/* Rank 1 claims something else: both ranks know both claims, at once. */
struct claim {
  int size, connections;
  const char *job, *part;
  uint32_t flags;
};

static void disagreeing(int rank, int size, const char *hosts, void *data) {
  const struct claim *claim = data;
  char *longer = NULL;
  (void)size;
  ring_config_t config = make_config(rank, hosts, 1);
  config.connect_timeout_ms = 3000;
  if (rank == 1) {
    if (claim->size) {
      longer = malloc(strlen(hosts) + 64);
      strcpy(longer, hosts);
      strcpy(strrchr(longer, ']'), ",\"198.51.100.1:0\"]");
      /* Rank 1 of three: its right neighbour is real to it, so that it reaches nobody else. */
      sprintf(strrchr(longer, ','), ",\"127.0.0.1:%d\"]", free_port());
      config.hosts = longer;
    }
    config.connections = (uint32_t)claim->connections;
    if (claim->job) config.job_id = claim->job;
    config.flags = claim->flags;
  }
  double start = seconds();
  EXPECT(RING_STATUS_CONNECT_FAILED, try_join(config));
  const char *text = last_error();
  if (claim->part) CHECK(strstr(text, claim->part), "rank %d: %s", rank, text);
  if (claim->flags) {
    const char *part = rank == 0 ? "wide accumulation is on there, off here" : "wide accumulation is off there, on here";
    CHECK(strstr(text, part), "rank %d: %s", rank, text);
  }
  if (!claim->size && !claim->job) CHECK(seconds() - start < 1, "rank %d took %f s", rank, seconds() - start);
  free(longer);
}

/* Two processes are rank 0: their port can be only one's, and rank 1 ends up with one of them. */
static void same_rank(int rank, int size, const char *hosts, void *data) {
  (void)size;
  int *failed = data;
  ring_config_t config = make_config(rank == 2 ? 0 : rank, hosts, 1);
  config.connect_timeout_ms = 3000;
  ring_group_t *group = NULL;
  ring_status_t status = ring_group_create(&config, &group);
  if (status == RING_STATUS_OK) {
    /* The second of them may also come when the ring has just formed. */
    int one = rank, sum = -1;
    status = ring_all_reduce(group, &one, &sum, 1, RING_DTYPE_INT32, RING_OP_MAX);
    if (status == RING_STATUS_OK) CHECK(sum == 1 || sum == 2, "%d", sum);
    ring_group_destroy(group);
  }
  if (status != RING_STATUS_OK) {
    CHECK(status == RING_STATUS_CONNECT_FAILED, "%s", last_error());
    __atomic_fetch_add(failed, 1, __ATOMIC_SEQ_CST);
  }
}

int main(void) {
  int three = 3, two = 2;
  for (int i = 0; i < 20; i++) { /* again at once on the same ports */
    static char *same;
    if (!same) same = make_hosts(3, 1);
    run_ranks(3, same, plain, NULL, 20, 0);
  }
  char *hosts = make_hosts(3, 2);
  run_ranks(3, hosts, plain, &two, 20, 0);
  free(hosts);
  hosts = make_hosts(5, 1);
  run_ranks(5, hosts, plain, &three, 20, 0);
  free(hosts);
  hosts = make_hosts(3, 1);
  run_ranks(3, hosts, wide, NULL, 20, 0);
  free(hosts);

  int ports[8];
  for (int i = 0; i < 8; i++) ports[i] = free_port();
  run_ranks(4, NULL, own_hostfiles, ports, 20, 0);

  char text[256];
  snprintf(text, sizeof text, "[\"[::1]:%d\",\"[::1]:%d\",\"[::1]:%d\"]", free_port(), free_port(), free_port());
  run_ranks(3, text, plain, NULL, 20, 0);
  snprintf(text, sizeof text, "[\"localhost:%d\",\"localhost:%d\"]", free_port(), free_port());
  run_ranks(2, text, plain, NULL, 20, 0);
  snprintf(text, sizeof text, "[\"[::]:%d\",\"127.0.0.1:%d\"]", ports[4], ports[5]);
  run_ranks(2, text, plain, NULL, 20, 0);
  ring_config_t alone = make_config(0, "[\"nowhere.invalid:0\"]", 1);
  EXPECT(RING_STATUS_OK, try_join(alone));

  neighbour_never_comes();
  port_is_taken();

  const struct claim claims[] = {
      {1, 1, NULL, NULL, 0},
      {0, 3, NULL, "number of connections", 0},
      {0, 1, "other", "of another job", 0},
      {0, 1, NULL, "disagrees", RING_FLAG_WIDE_ACCUMULATION},
  };
  for (int i = 0; i < 4; i++) {
    hosts = make_hosts(2, 1);
    /* The size needs a flat list to be lengthened. */
    if (claims[i].size) {
      free(hosts);
      hosts = malloc(256);
      snprintf(hosts, 256, "[\"127.0.0.1:%d\",\"127.0.0.1:%d\"]", free_port(), free_port());
    }
    struct claim claim = claims[i];
    if (i == 2) claim.part = NULL;
    run_ranks(2, hosts, disagreeing, &claim, 20, 0);
    free(hosts);
  }

  int *failed = shared(sizeof *failed);
  hosts = make_hosts(2, 1);
  run_ranks(3, hosts, same_rank, failed, 20, 0);
  CHECK(*failed >= 1, "two processes were the same rank");
  free(hosts);
  return 0;
}
