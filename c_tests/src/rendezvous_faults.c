/* Ranks that can't meet: who never comes, who is another, who comes twice; told to all, with the cause. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "meeting.h"

/* Tries to join; the time that it took goes to *took. */
static ring_status_t try_to_meet(const ring_config_t *config, double *took) {
  ring_group_t *group = NULL;
  int before = entries("/proc/self/fd");
  double start = seconds();
  ring_status_t status = ring_group_create(config, &group);
  *took = seconds() - start;
  CHECK((status == RING_STATUS_OK) == (group != NULL));
  if (group) ring_group_destroy(group);
  CHECK(entries("/proc/self/fd") == before, "a descriptor is left");
  return status;
}

/* Some ranks never come: everyone who does names them. */
struct absence {
  unsigned absent;
  const char *part;
};

static void never_come(int rank, int size, const char *at, void *data) {
  const struct absence *absence = data;
  if (absence->absent >> rank & 1) return;
  usleep((useconds_t)((rank * 3 + 1) % size) * 50000); /* so that timeouts come one after the other */
  ring_config_t config = meeting_config(rank, size, at);
  config.connect_timeout_ms = 1500;
  double took;
  ring_status_t status = try_to_meet(&config, &took);
  CHECK(status == RING_STATUS_CONNECT_FAILED, "rank %d: %s", rank, ring_status_name(status));
  CHECK(took > 1.4 && took < 2.5, "rank %d took %f s", rank, took);
  CHECK(strstr(last_error(), "the ring did not form within 1500 ms: "), "rank %d: %s", rank, last_error());
  CHECK(strstr(last_error(), absence->part), "rank %d: \"%s\" lacks \"%s\"", rank, last_error(), absence->part);
}

/* One rank claims something else: it and rank 0 know both claims, the others hear of it, at once. */
struct claim {
  int odd, size, connections;
  const char *part;
};

static void disagreeing(int rank, int size, const char *at, void *data) {
  const struct claim *claim = data;
  ring_config_t config = meeting_config(rank, rank == claim->odd ? claim->size : size, at);
  if (rank == claim->odd) config.connections = (uint32_t)claim->connections;
  /* The others are there already, or come in the same moment. */
  if (rank == claim->odd && claim->odd % 2 == 0) usleep(300000);
  double took;
  ring_status_t status = try_to_meet(&config, &took);
  CHECK(status == RING_STATUS_CONNECT_FAILED, "rank %d: %s: %s", rank, ring_status_name(status), last_error());
  CHECK(strstr(last_error(), claim->part), "rank %d: \"%s\" lacks \"%s\"", rank, last_error(), claim->part);
  CHECK(took < 3, "rank %d took %f s", rank, took);
}

/* A second process of a rank, here the last process, comes while the others wait, or when all have met. */
static void second_of_a_rank(int process, int processes, const char *at, void *data) {
  int rank = *(int *)data, size = processes; /* one rank is missing */
  if (process == processes - 1) usleep(400000);
  else rank = process;
  ring_config_t config = meeting_config(rank, size, at);
  double took;
  ring_status_t status = try_to_meet(&config, &took);
  CHECK(status == RING_STATUS_CONNECT_FAILED, "process %d: %s", process, ring_status_name(status));
  CHECK(took < 3, "process %d took %f s", process, took);
  const char *part = *(int *)data ? "two processes claim to be rank 1" : "two processes claim to be rank 0";
  /* The rival of rank 0 is told so; that of another hears it from rank 0. */
  CHECK(strstr(last_error(), part) || strstr(last_error(), "another process of rank 1"), "process %d: %s", process, last_error());
}

/* The last process is of another job: it fails alone, with both ids. */
static void other_job(int process, int processes, const char *at, void *data) {
  (void)data;
  ring_config_t config = meeting_config(process, processes - 1, at);
  if (process < processes - 1) {
    if (process == processes - 2) sleep(1);
    meets(&config);
    return;
  }
  usleep(300000);
  config.rank = 1;
  config.job_id = "other";
  double took;
  CHECK(try_to_meet(&config, &took) == RING_STATUS_CONNECT_FAILED);
  CHECK(strstr(last_error(), "job id \"test\" there, job id \"other\" here"), "%s", last_error());
  CHECK(took < 1, "it took %f s", took);
}

/* Rank 2 has another secret or none: it knows at once, rank 0 at its deadline, and the others who is missing. */
static void odd_secret(int rank, int size, const char *at, void *data) {
  const char *own = rank == 2 ? data : "correct horse battery staple";
  ring_config_t config = meeting_config(rank, size, at);
  config.secret = own;
  config.secret_len = own ? strlen(own) : 0;
  config.connect_timeout_ms = 2000;
  double took;
  ring_status_t status = try_to_meet(&config, &took);
  const char *text = last_error();
  CHECK(!strstr(text, "horse"), "%s", text);
  if (rank == 1) {
    CHECK(status == RING_STATUS_CONNECT_FAILED && strstr(text, "rank 2"), "rank 1: %s: %s", ring_status_name(status), text);
  } else {
    CHECK(status == RING_STATUS_AUTH_FAILED && strstr(text, "secret"), "rank %d: %s: %s", rank, ring_status_name(status), text);
  }
  CHECK(rank == 2 ? took < 1 : took > 1.9 && took < 3, "rank %d took %f s", rank, took);
  if (rank == 0) CHECK(strstr(text, "claimed to be rank 2"), "%s", text);
}

/* Two jobs of three ranks at one rendezvous, without job ids: never a ring of both. */
enum { RANKS = 3 };
struct jobs {
  int start_ms[2 * RANKS];
};

static void job_rank(int process, int processes, const char *at, void *data) {
  const struct jobs *jobs = data;
  int job = process / RANKS, value = job ? 100 : 1, sum = -1;
  (void)processes;
  usleep((useconds_t)jobs->start_ms[process] * 1000);
  ring_config_t config = meeting_config(process % RANKS, RANKS, at);
  config.job_id = NULL;
  config.connect_timeout_ms = 2000;
  ring_group_t *group = NULL;
  ring_status_t status = ring_group_create(&config, &group);
  CHECK(status == RING_STATUS_OK || status == RING_STATUS_CONNECT_FAILED, "%s: %s", ring_status_name(status), last_error());
  if (status != RING_STATUS_OK) return;
  status = ring_all_reduce(group, &value, &sum, 1, RING_DTYPE_INT32, RING_OP_SUM);
  CHECK(status != RING_STATUS_OK || sum == RANKS * value, "a sum of two jobs: %d", sum);
  ring_group_destroy(group);
}

static void port_is_taken(void) {
  int port = free_port(), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int occupant = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(occupant, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  CHECK(bind(occupant, (struct sockaddr *)&address, sizeof address) == 0 && listen(occupant, 5) == 0);
  char at[32];
  snprintf(at, sizeof at, "127.0.0.1:%d", port);
  ring_config_t config = meeting_config(0, 2, at);
  double took;
  CHECK(try_to_meet(&config, &took) == RING_STATUS_CONNECT_FAILED && took < 1, "it took %f s", took);
  CHECK(strstr(last_error(), at) && strstr(last_error(), "in use"), "%s", last_error());
  /* Nor can it listen at another host's. */
  config.rendezvous = "192.0.2.1:5000";
  CHECK(try_to_meet(&config, &took) == RING_STATUS_CONNECT_FAILED && took < 1, "it took %f s", took);
  CHECK(strstr(last_error(), "192.0.2.1:5000") && strstr(last_error(), "rank 0's own host"), "%s", last_error());
  /* To a rank that comes there it is no rank 0. */
  config = meeting_config(1, 2, at);
  config.connect_timeout_ms = 500;
  CHECK(try_to_meet(&config, &took) == RING_STATUS_CONNECT_FAILED);
  CHECK(strstr(last_error(), at) && strstr(last_error(), "rank 0 could not be reached"), "%s", last_error());
  close(occupant);
}

/* A rank comes with a rendezvous to a rank 0 that has a hostfile: both know. */
static void other_way(int rank, int size, const char *at, void *data) {
  ring_config_t config = meeting_config(rank, size, at);
  if (rank == 0) {
    config.rendezvous = NULL;
    config.hosts = data;
  }
  double took;
  CHECK(try_to_meet(&config, &took) == RING_STATUS_CONNECT_FAILED && took < 3, "rank %d took %f s", rank, took);
  CHECK(strstr(last_error(), "rendezvous"), "rank %d: %s", rank, last_error());
}

static void absences(void) {
  struct absence absences[] = {
      {1u << 3, "rank 3 has not come to "},
      {1u << 1, "rank 1 has not come to "},
      {1u << 1 | 1u << 3, "ranks 1, 3 have not come to "},
      {1u << 0, "rank 0 could not be reached at 127.0.0.1:"},
      {1u << 0 | 1u << 2, "Connection refused"},
  };
  for (size_t i = 0; i < sizeof absences / sizeof *absences; i++) {
    run_ranks(4, rendezvous_at("127.0.0.1"), never_come, &absences[i], 30, 0);
  }
}

static void claims(void) {
  struct claim claims[] = {
      {1, 5, 1, "the ring's size is "},        {2, 3, 1, "the ring's size is "}, {3, 4, 2, "the number of connections"},
      {2, 4, 3, "the number of connections"}, {0, 5, 1, "the ring's size is "},
  };
  for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
    run_ranks(4, rendezvous_at("127.0.0.1"), disagreeing, &claims[i], 30, 0);
  }
  for (int rank = 0; rank < 2; rank++) run_ranks(4, rendezvous_at("127.0.0.1"), second_of_a_rank, &rank, 30, 0);
  run_ranks(4, rendezvous_at("127.0.0.1"), other_job, NULL, 30, 0);
  char at[64], hosts[128];
  snprintf(at, sizeof at, "%s", rendezvous_at("127.0.0.1"));
  snprintf(hosts, sizeof hosts, "[\"%s\",\"127.0.0.1:%d\"]", at, free_port());
  run_ranks(2, at, other_way, hosts, 30, 0);
  port_is_taken();
}

static void secrets(void) {
  run_ranks(3, rendezvous_at("127.0.0.1"), odd_secret, "incorrect horse battery staple", 30, 0);
  run_ranks(3, rendezvous_at("127.0.0.1"), odd_secret, NULL, 30, 0);
}

static void two_jobs(void) {
  struct jobs jobs[] = {
      {{0, 0, 0, 0, 0, 0}},       {{0, 30, 0, 30, 0, 30}}, {{0, 60, 30, 30, 0, 90}},
      {{0, 0, 0, 100, 100, 100}}, {{50, 50, 50, 0, 0, 0}}, {{0, 90, 90, 90, 0, 0}},
  };
  for (size_t i = 0; i < 2 * sizeof jobs / sizeof *jobs; i++) {
    run_ranks(2 * RANKS, rendezvous_at("127.0.0.1"), job_rank, &jobs[i / 2], 30, 0);
  }
}

int main(int arguments, char **argument) {
  const struct {
    const char *name;
    void (*run)(void);
  } parts[] = {{"absences", absences}, {"claims", claims}, {"secrets", secrets}, {"two_jobs", two_jobs}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (arguments == 2 && strcmp(argument[1], parts[i].name) == 0) {
      parts[i].run();
      release_ports();
      return 0;
    }
  }
  CHECK(0, "usage: rendezvous_faults absences|claims|secrets|two_jobs");
}
