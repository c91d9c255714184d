/* Ranks as processes on this host: made, watched, and checked. */
#ifndef HARNESS_H
#define HARNESS_H

#include <ring.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends this process with a message unless the condition holds. */
#define CHECK(condition, ...)                                                   \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: %s:", __FILE__, __LINE__, #condition);            \
      fprintf(stderr, " " __VA_ARGS__);                                         \
      fprintf(stderr, "\n");                                                    \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

/* Checks a call's status; the text of its failure is shown. */
#define EXPECT(status, call)                                                                \
  do {                                                                                      \
    ring_status_t got_ = (call);                                                            \
    CHECK(got_ == (status), "%s, not %s: %s", ring_status_name(got_), ring_status_name(status), last_error()); \
  } while (0)

#define OK(call) EXPECT(RING_STATUS_OK, call)

/* The text of this thread's last failure; valid until the next call. */
const char *last_error(void);
/* The text of a group's failure; valid until the next call. */
const char *group_error(const ring_group_t *group);

/* Seconds on a clock that only goes forward. */
double seconds(void);

/* A port of 127.0.0.1 below the range of outgoing connections that nobody listens on. */
int free_port(void);

/* Lets others have the ports that this process was given. */
void release_ports(void);

/* A hostfile's text for a ring on 127.0.0.1; the caller frees it. */
char *make_hosts(int size, int addresses);

/* A configuration with timeouts for tests. */
ring_config_t make_config(int rank, const char *hosts, int connections);

/* Joins the ring, or ends this process. */
ring_group_t *join(int rank, const char *hosts, int connections);

/* What a rank does in its process; data is what run_ranks was given, and shared memory stays
 * shared. Returning normally is success. */
typedef void rank_body(int rank, int size, const char *hosts, void *data);

/* Runs a body as `size` processes and waits for them, for at most limit_s seconds; ends this process
 * if one of them failed, except by the death of ranks in the mask `may_die`. */
void run_ranks(int size, const char *hosts, rank_body *body, void *data, int limit_s, unsigned may_die);

/* Memory that processes share. */
void *shared(size_t bytes);

#endif
