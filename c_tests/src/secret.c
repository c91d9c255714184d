/* The shared secret: who knows it joins, who doesn't neither joins nor harms. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"

static const char SECRET[] = "correct horse battery staple", OTHER[] = "incorrect horse battery staple";
enum { CHALLENGE = 32, PROOF = 48 };

/* Whatever this process says of a failure or to the log; no secret may be in it. */
static char said[1 << 16];
static size_t said_len;

static void note(const char *text) {
  size_t len = strlen(text);
  CHECK(said_len + len + 2 <= sizeof said);
  memcpy(said + said_len, text, len);
  said_len += len;
  said[said_len++] = '\n';
  CHECK(!strstr(text, "horse") && !strstr(text, "staple"), "%s", text);
}

static void log_line(ring_log_level_t level, const char *message, void *user_data) {
  (void)level, (void)user_data;
  note(message);
}

static ring_config_t with_secret(int rank, const char *hosts, int connections, const char *secret) {
  ring_config_t config = make_config(rank, hosts, connections);
  config.secret = secret;
  config.secret_len = secret ? strlen(secret) : 0;
  OK(ring_set_log_callback(log_line, NULL, RING_LOG_LEVEL_DEBUG));
  return config;
}

static void sum_is_right(ring_group_t *group) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  enum { COUNT = 50000 };
  static int values[COUNT];
  for (int i = 0; i < COUNT; i++) values[i] = i + rank;
  OK(ring_all_reduce(group, values, values, COUNT, RING_DTYPE_INT32, RING_OP_SUM));
  for (int i = 0; i < COUNT; i++) CHECK(values[i] == size * i + size * (size - 1) / 2, "%d", values[i]);
}

static void joins(const ring_config_t *config) {
  ring_group_t *group = NULL;
  OK(ring_group_create(config, &group));
  sum_is_right(group);
  ring_group_destroy(group);
}

static void all_know_it(int rank, int size, const char *hosts, void *data) {
  (void)size;
  ring_config_t config = with_secret(rank, hosts, *(int *)data, SECRET);
  joins(&config);
}

/* Rank 0 knows it from a file, the others from a variable. */
static void from_environment(int rank, int size, const char *hosts, void *data) {
  const char *const *files = data;
  char number[16];
  (void)size, (void)hosts;
  snprintf(number, sizeof number, "%d", rank);
  setenv("RING_RANK", number, 1);
  setenv("RING_HOSTFILE", files[0], 1);
  setenv("RING_CONNECT_TIMEOUT_MS", "20000", 1);
  if (rank == 0) setenv("RING_SECRET_FILE", files[1], 1);
  else setenv("RING_SECRET", SECRET, 1);
  ring_group_t *group = NULL;
  OK(ring_group_create_from_env(&group));
  sum_is_right(group);
  ring_group_destroy(group);
}

static void write_file(char *path, const char *text) {
  int file = mkstemp(path);
  CHECK(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
  close(file);
}

static void environment(void) {
  char hostfile[] = "/tmp/ring-hostfile-XXXXXX", secret[] = "/tmp/ring-secret-XXXXXX", line[64];
  char short_one[] = "/tmp/ring-secret-XXXXXX";
  char *hosts = make_hosts(3, 1);
  write_file(hostfile, hosts);
  snprintf(line, sizeof line, "%s\n", SECRET);
  write_file(secret, line);
  write_file(short_one, "0123456789abcde\n");
  const char *files[] = {hostfile, secret};
  run_ranks(3, hosts, from_environment, files, 30, 0);

  const struct {
    const char *value, *file, *part;
  } bad[] = {
      {"0123456789abcde", NULL, "RING_SECRET has fewer than 16 bytes"},
      {"", NULL, "RING_SECRET has fewer than 16 bytes"},
      {SECRET, secret, "RING_SECRET and RING_SECRET_FILE are set"},
      {NULL, short_one, "it has fewer than 16 bytes"},
      {NULL, "/no/such/secret", "RING_SECRET_FILE /no/such/secret: No such file"},
      {NULL, "/dev/null", "RING_SECRET_FILE /dev/null"},
      {NULL, "", "RING_SECRET_FILE is empty"},
  };
  setenv("RING_RANK", "0", 1);
  setenv("RING_HOSTFILE", hostfile, 1);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    ring_group_t *group = NULL;
    unsetenv("RING_SECRET");
    unsetenv("RING_SECRET_FILE");
    if (bad[i].value) setenv("RING_SECRET", bad[i].value, 1);
    if (bad[i].file) setenv("RING_SECRET_FILE", bad[i].file, 1);
    double start = seconds();
    EXPECT(RING_STATUS_INVALID_CONFIG, ring_group_create_from_env(&group));
    CHECK(seconds() - start < 0.1 && group == NULL, "it took %.3f s", seconds() - start);
    CHECK(strstr(last_error(), bad[i].part), "\"%s\" lacks \"%s\"", last_error(), bad[i].part);
    CHECK(!strstr(last_error(), "0123456789"), "%s", last_error());
    note(last_error());
  }
  unlink(hostfile);
  unlink(secret);
  unlink(short_one);
  free(hosts);
}

/* Ranks 0 and 1 of three disagree; rank 2 never comes, so that rank 1 can't fail as a connector. The
 * connector knows at once and the acceptor at its deadline, and neither learns what else differs. */
struct pair {
  const char *secrets[2];
  const char *why[2];
};

static void disagreeing(int rank, int size, const char *hosts, void *data) {
  const struct pair *pair = data;
  enum { TIMEOUT_MS = 2500 };
  char claimed[64];
  (void)size;
  ring_config_t config = with_secret(rank, hosts, rank + 1, pair->secrets[rank]);
  config.job_id = rank ? "violet" : "indigo";
  config.connect_timeout_ms = TIMEOUT_MS;
  ring_group_t *group = NULL;
  double start = seconds();
  EXPECT(RING_STATUS_AUTH_FAILED, ring_group_create(&config, &group));
  double took = seconds() - start;
  const char *text = last_error();
  note(text);
  CHECK(strstr(text, pair->why[rank]), "rank %d: %s", rank, text);
  CHECK(!strstr(said, "violet") && !strstr(said, "indigo") && !strstr(said, "RING_CONNECTIONS"), "rank %d: %s", rank, said);
  if (rank == 0) {
    const char *right = strchr(hosts, ',') + 3;
    snprintf(claimed, sizeof claimed, "rank 1 (right neighbour) at %.*s", (int)strcspn(right, "\""), right);
    CHECK(took < 1.5, "it took %f s", took);
  } else {
    snprintf(claimed, sizeof claimed, "claimed to be rank 0");
    CHECK(took > TIMEOUT_MS / 1e3 - 0.1 && took < TIMEOUT_MS / 1e3 + 1, "it took %f s", took);
  }
  CHECK(strstr(text, claimed), "\"%s\" lacks \"%s\"", text, claimed);
}

/* Once both have proved themselves a difference is told, with both claims. */
static void differing(int rank, int size, const char *hosts, void *data) {
  (void)size, (void)data;
  ring_config_t config = with_secret(rank, hosts, rank ? 4 : 3, SECRET);
  ring_group_t *group = NULL;
  EXPECT(RING_STATUS_CONNECT_FAILED, ring_group_create(&config, &group));
  note(last_error());
  const char *part = rank ? "addresses) is 3 there, 4 here" : "addresses) is 4 there, 3 here";
  CHECK(strstr(last_error(), part), "rank %d: %s", rank, last_error());
}

/* One of three has another secret or none: nobody joins, and who knows why says so. */
static void odd_one(int rank, int size, const char *hosts, void *data) {
  (void)size;
  const char *odd = data ? OTHER : NULL;
  ring_config_t config = with_secret(rank, hosts, 1, rank == 1 ? odd : SECRET);
  config.connect_timeout_ms = 3000;
  ring_group_t *group = NULL;
  ring_status_t status = ring_group_create(&config, &group);
  note(last_error());
  /* Rank 1 may have failed, and gone, before rank 0 reached it. */
  CHECK(status == RING_STATUS_AUTH_FAILED || (rank == 0 && status == RING_STATUS_CONNECT_FAILED), "rank %d: %s", rank,
        last_error());
}

static int listen_on(int port) {
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 16) == 0);
  return listener;
}

static int connect_to(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int tries = 0; tries < 1000; tries++) {
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(made, (struct sockaddr *)&address, sizeof address) == 0) return made;
    close(made);
    usleep(10000);
  }
  CHECK(0, "nobody listens on %d", port);
  return -1;
}

/* Bytes that came until the peer's end, or until `limit`. */
static size_t read_some(int from, unsigned char *into, size_t limit) {
  size_t got = 0;
  while (got < limit) {
    struct pollfd wait = {from, POLLIN, 0};
    CHECK(poll(&wait, 1, 5000) == 1, "silence after %zu bytes", got);
    ssize_t n = recv(from, into + got, limit - got, 0);
    if (n <= 0) break;
    got += (size_t)n;
  }
  return got;
}

static void send_all(int to, const unsigned char *bytes, size_t len) {
  CHECK(send(to, bytes, len, MSG_NOSIGNAL) == (ssize_t)len);
}

/* Says what was heard elsewhere, and checks that the answers are a challenge and a refusal that reveal
 * nothing: neither the rank nor the job id. */
static void impersonate(int port, const unsigned char *hello, size_t hello_len, const unsigned char *proof,
                        const unsigned char *challenge) {
  unsigned char heard[512];
  int stranger = connect_to(port);
  send_all(stranger, hello, hello_len);
  CHECK(read_some(stranger, heard, CHALLENGE) == CHALLENGE);
  CHECK(heard[14] == 0x80 && memcmp(heard, challenge, 16) == 0 && memcmp(heard, challenge, CHALLENGE) != 0);
  send_all(stranger, proof, PROOF);
  CHECK(read_some(stranger, heard, sizeof heard) == CHALLENGE && heard[14] == 0x82);
  for (int i = 16; i < CHALLENGE; i++) CHECK(heard[i] == 0);
  close(stranger);
}

/* Stands between rank 1 and rank 0: hears the first handshake, plays it again to rank 0 while the ring
 * forms, and otherwise carries bytes both ways. */
static void eavesdrop(int listener, int rank_0) {
  enum { LINKS = 8 };
  struct pollfd ends[1 + 2 * LINKS] = {{listener, POLLIN, 0}};
  unsigned char hello[512], challenge[CHALLENGE], proof[PROOF], zeros[PROOF] = {0};
  static unsigned char bytes[1 << 16];
  int links = 0, open = 0;
  while (links == 0 || open > 0) {
    CHECK(poll(ends, (nfds_t)(1 + 2 * links), 20000) > 0, "silence");
    if (ends[0].revents) {
      CHECK(links < LINKS);
      int from = accept(listener, NULL, NULL), to = connect_to(rank_0);
      if (links == 0) {
        CHECK(read_some(from, hello, 16) == 16);
        size_t len = hello[12] + 256u * hello[13];
        CHECK(len <= sizeof hello && read_some(from, hello + 16, len - 16) == len - 16);
        send_all(to, hello, len);
        CHECK(read_some(to, challenge, CHALLENGE) == CHALLENGE);
        send_all(from, challenge, CHALLENGE);
        CHECK(read_some(from, proof, PROOF) == PROOF);
        /* Before the proof itself gets there, then behind it. */
        impersonate(rank_0, hello, len, proof, challenge);
        impersonate(rank_0, hello, len, zeros, challenge);
        send_all(to, proof, PROOF);
        impersonate(rank_0, hello, len, proof, challenge);
        int half = connect_to(rank_0);
        send_all(half, hello, len);
        CHECK(read_some(half, bytes, CHALLENGE) == CHALLENGE);
      }
      ends[1 + 2 * links] = (struct pollfd){from, POLLIN, 0};
      ends[2 + 2 * links] = (struct pollfd){to, POLLIN, 0};
      links++;
      open += 2;
    }
    for (int i = 1; i <= 2 * links; i++) {
      if (ends[i].fd < 0 || !ends[i].revents) continue;
      int other = ends[i % 2 ? i + 1 : i - 1].fd;
      ssize_t got = recv(ends[i].fd, bytes, sizeof bytes, 0);
      if (got > 0) send_all(other < 0 ? -other : other, bytes, (size_t)got);
      if (got <= 0) {
        shutdown(other < 0 ? -other : other, SHUT_WR);
        ends[i].fd = -ends[i].fd;
        ends[i].revents = 0;
        open--;
      }
    }
  }
}

static void overheard(int rank, int size, const char *hosts, void *data) {
  const int *ports = data;
  char text[128];
  (void)size, (void)hosts;
  if (rank == 2) {
    eavesdrop(listen_on(ports[2]), ports[0]);
    return;
  }
  snprintf(text, sizeof text, "[\"127.0.0.1:%d\",\"127.0.0.1:%d\"]", ports[rank == 1 ? 2 : 0], ports[1]);
  ring_config_t config = with_secret(rank, text, 1, SECRET);
  config.job_id = "violet";
  joins(&config);
  if (rank == 0) CHECK(strstr(said, "did not prove that it knows this rank's secret"), "%s", said);
}

int main(void) {
  for (int size = 1; size <= 4; size++) {
    for (int connections = 1; connections <= 3; connections += 2) {
      char *hosts = make_hosts(size, 1);
      run_ranks(size, hosts, all_know_it, &connections, 30, 0);
      free(hosts);
    }
  }
  environment();

  struct pair pairs[] = {
      {{SECRET, OTHER}, {"has another secret than this rank", "did not prove"}},
      {{SECRET, NULL}, {"has no secret", "has a secret"}},
      {{NULL, SECRET}, {"has a secret", "has no secret"}},
  };
  for (int i = 0; i < 3; i++) {
    char *hosts = make_hosts(3, 1);
    run_ranks(2, hosts, disagreeing, &pairs[i], 20, 0);
    free(hosts);
  }
  for (int i = 0; i < 2; i++) {
    char *hosts = make_hosts(3, 1);
    run_ranks(3, hosts, odd_one, i ? (void *)OTHER : NULL, 20, 0);
    free(hosts);
  }
  char *hosts = make_hosts(2, 1);
  run_ranks(2, hosts, differing, NULL, 20, 0);
  free(hosts);
  int ports[] = {free_port(), free_port(), free_port()};
  run_ranks(3, NULL, overheard, ports, 40, 0);
  return 0;
}
