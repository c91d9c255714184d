/* Rings whose ranks meet at one address: all sizes, kinds of address, orders of coming; again at once; ranks that die
 * and come again while they meet; strangers. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "meeting.h"

static void plain(int rank, int size, const char *at, void *data) {
  ring_config_t config = meeting_config(rank, size, at);
  if (data) config.connections = *(uint32_t *)data;
  meets(&config);
}

/* The same processes, one group after the other. */
static void in_turn(int rank, int size, const char *at, void *data) {
  (void)data;
  for (int round = 0; round < 10; round++) plain(rank, size, at, NULL);
}

/* Rank 0 comes last, or first, or in between. */
static void one_by_one(int rank, int size, const char *at, void *data) {
  int first = *(int *)data;
  usleep((useconds_t)((rank + size - first) % size) * 100000);
  plain(rank, size, at, NULL);
}

static void with_secret(int rank, int size, const char *at, void *data) {
  ring_config_t config = meeting_config(rank, size, at);
  config.secret = data;
  config.secret_len = strlen(data);
  meets(&config);
}

/* Without a job id, and each rank by a spelling of its own. */
static void spellings(int rank, int size, const char *at, void *data) {
  char own[64];
  const char *port = strrchr(at, ':');
  const char *hosts[] = {"0.0.0.0", "127.0.0.1", "localhost"};
  (void)data;
  snprintf(own, sizeof own, "%s%s", hosts[rank ? 1 + rank % 2 : 0], port);
  ring_config_t config = meeting_config(rank, size, own);
  config.job_id = NULL;
  meets(&config);
}

/* A rank is killed while the others wait for the last one, and comes again; rank 0 is one of them. */
struct again {
  int victim, killed;
};

static void comes_again(int rank, int size, const char *at, void *data) {
  struct again *again = data;
  while (rank == size - 1 && !__atomic_load_n(&again->killed, __ATOMIC_ACQUIRE)) usleep(1000);
  if (rank == again->victim) {
    for (int run = 0; run < 3; run++) {
      pid_t old = fork();
      CHECK(old >= 0);
      if (old == 0) {
        plain(rank, size, at, NULL);
        _exit(9); /* the last rank hasn't come */
      }
      usleep(200000);
      kill(old, SIGKILL);
      int status;
      CHECK(waitpid(old, &status, 0) == old && WIFSIGNALED(status));
    }
    __atomic_store_n(&again->killed, 1, __ATOMIC_RELEASE);
  }
  plain(rank, size, at, NULL);
}

/* A rank gives up at a shorter timeout of its own, and comes again. */
static void gives_up_first(int rank, int size, const char *at, void *data) {
  if (rank == size - 1) sleep(1);
  if (rank == *(int *)data) {
    ring_config_t config = meeting_config(rank, size, at);
    config.connect_timeout_ms = 400;
    ring_group_t *group = NULL;
    EXPECT(RING_STATUS_CONNECT_FAILED, ring_group_create(&config, &group));
  }
  plain(rank, size, at, NULL);
}

/* The last rank comes 2 s late: to wait costs next to nothing. */
static void waits(int rank, int size, const char *at, void *data) {
  (void)data;
  if (rank == size - 1) sleep(2);
  double before = cpu_seconds();
  ring_config_t config = meeting_config(rank, size, at);
  ring_group_t *group = NULL;
  OK(ring_group_create(&config, &group));
  double used = cpu_seconds() - before;
  CHECK(used < 0.1, "rank %d used %f s of a core", rank, used);
  sum_is_right(group);
  ring_group_destroy(group);
}

static int connect_to(const char *at) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(strrchr(at, ':') + 1))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int tries = 0; tries < 1000; tries++) {
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(made >= 0);
    if (connect(made, (struct sockaddr *)&address, sizeof address) == 0) return made;
    close(made);
    usleep(2000);
  }
  CHECK(0, "nobody listens at %s", at);
  return -1;
}

/* The last process is everybody but a rank: it knocks and goes, talks nonsense, stays silent. */
static void with_strangers(int process, int processes, const char *at, void *data) {
  static char zeros[1 << 16];
  (void)data;
  if (process < processes - 1) {
    if (process == 1) usleep(500000);
    plain(process, processes - 1, at, NULL);
    return;
  }
  int silent[20];
  for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) silent[i] = connect_to(at);
  for (int i = 0; i < 50; i++) close(connect_to(at));
  const char *words[] = {"\x01\x02\x03", "GET / HTTP/1.1\r\nHost: here\r\n\r\n", "\x93LIBRING", "\x93LIBRINGLIBRINGLIBRING"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    int made = connect_to(at);
    (void)!send(made, words[i], strlen(words[i]), MSG_NOSIGNAL);
    close(made);
  }
  int made = connect_to(at);
  (void)!send(made, zeros, sizeof zeros, MSG_NOSIGNAL);
  close(made);
  usleep(300000);
  for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) close(silent[i]);
}

static void from_environment(int rank, int size, const char *at, void *data) {
  char number[16];
  (void)data;
  snprintf(number, sizeof number, "%d", rank);
  setenv("RING_RANK", number, 1);
  snprintf(number, sizeof number, "%d", size);
  setenv("RING_SIZE", number, 1);
  setenv("RING_RENDEZVOUS", at, 1);
  ring_group_t *group = NULL;
  OK(ring_group_create_from_env(&group));
  sum_is_right(group);
  ring_group_destroy(group);
}

int main(int arguments, char **argument) {
  CHECK(arguments == 2, "usage: rendezvous SIZE|ways|again|strangers");
  int size = atoi(argument[1]);
  if (size > 0) {
    for (uint32_t connections = 1; connections <= 3; connections += 2) {
      run_ranks(size, rendezvous_at("127.0.0.1"), plain, &connections, 30, 0);
    }
    for (int first = 0; first < size; first += size / 2 + 1) {
      run_ranks(size, rendezvous_at("127.0.0.1"), one_by_one, &first, 30, 0);
    }
  } else if (strcmp(argument[1], "ways") == 0) {
    char secret[] = "correct horse battery staple";
    /* A group of one makes no socket: its port isn't asked for, nor its name. */
    int before = entries("/proc/self/fd");
    ring_config_t alone = meeting_config(0, 1, "nowhere.invalid:1");
    meets(&alone);
    CHECK(entries("/proc/self/fd") == before);
    run_ranks(3, rendezvous_at("[::1]"), plain, NULL, 30, 0);
    run_ranks(3, rendezvous_at("localhost"), plain, NULL, 30, 0);
    run_ranks(4, rendezvous_at("127.0.0.1"), with_secret, secret, 30, 0);
    run_ranks(4, rendezvous_at("127.0.0.1"), spellings, NULL, 30, 0);
    run_ranks(3, rendezvous_at("127.0.0.1"), from_environment, NULL, 30, 0);
    run_ranks(3, rendezvous_at("127.0.0.1"), waits, NULL, 30, 0);
  } else if (strcmp(argument[1], "again") == 0) {
    char same[64];
    snprintf(same, sizeof same, "%s", rendezvous_at("127.0.0.1"));
    for (int i = 0; i < 20; i++) run_ranks(4, same, plain, NULL, 30, 0);
    run_ranks(4, same, in_turn, NULL, 30, 0);
    for (int victim = 0; victim < 3; victim++) {
      struct again *again = shared(sizeof *again);
      again->victim = victim;
      run_ranks(4, rendezvous_at("127.0.0.1"), comes_again, again, 30, 0);
      run_ranks(4, rendezvous_at("127.0.0.1"), gives_up_first, &victim, 30, 0);
    }
  } else {
    run_ranks(4, rendezvous_at("127.0.0.1"), with_strangers, NULL, 30, 0);
  }
  release_ports();
  return 0;
}
