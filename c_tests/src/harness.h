/* Ranks as processes on this host: made, watched, and checked. */
#ifndef HARNESS_H
#define HARNESS_H

#include <ring.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

/* Ends this process with a message unless the condition holds. */
#define CHECK(condition, ...)                                                            \
  do {                                                                                   \
    if (!(condition)) check_failed(__FILE__, __LINE__, #condition, " " __VA_ARGS__);     \
  } while (0)

/* Says so in one write, since ranks may fail together, and exits. */
__attribute__((noreturn, format(printf, 4, 5))) void check_failed(const char *file, int line, const char *condition,
                                                                  const char *format, ...);

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

enum { MAX_RANKS = 32 }; /* as many as a mask has bits */

/* Processes that run a body each; a pid of 0 has been waited for. */
struct ranks {
  int size;
  pid_t pids[MAX_RANKS];
};

/* Starts a body as `size` processes, which die with this one (on Linux). */
struct ranks start_ranks(int size, const char *hosts, rank_body *body, void *data);

/* Waits for them, for at most limit_s seconds; ends this process if one of them failed, except by the
 * death of ranks in the mask `may_die`. */
void await_ranks(struct ranks *ranks, int limit_s, unsigned may_die);

/* Both. */
void run_ranks(int size, const char *hosts, rank_body *body, void *data, int limit_s, unsigned may_die);

/* Memory that processes share. */
void *shared(size_t bytes);

/* Seconds of a core that this process has used. */
double cpu_seconds(void);

/* Entries of a folder such as /proc/self/fd. */
int entries(const char *folder);

/* The next number of a sequence that `state` starts: any state will do. */
uint64_t next_random(uint64_t *state);

#endif
