/* Processes that start together, and how long the slowest takes. */
#ifndef PROCESSES_H
#define PROCESSES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

enum { MOST_RANKS = 8, NAME_BYTES = 80 };

void die(const char *what);
double now(void);
void print_limit(const char *name, int ranks, double value, const char *unit);

/* Memory that processes share. */
void *shared_memory(size_t bytes);

/* Memory that has been touched. */
char *ready_memory(size_t bytes);

/* What a process does while nothing arrives. */
typedef enum { BLOCKING, YIELDING, SPINNING } waiting_t;

/* How long each rank took and what it used, and the line that all start from. */
typedef struct {
  pthread_barrier_t start;
  double seconds[MOST_RANKS];
  double cpu_seconds[MOST_RANKS];
} shared_t;

typedef struct plan plan_t;
typedef void body_t(const plan_t *plan, int rank, shared_t *shared);
struct plan {
  body_t *body;
  waiting_t waiting;
  int ranks;
  size_t amount; /* bytes or calls */
  bool adds;
  int links[MOST_RANKS][2]; /* of each rank, to the right: its own end and that of the right neighbour */
  void *memory;
};

/* Each body calls this when its memory is ready, and the next when it is done. */
void begin(shared_t *shared, int rank);
void end(shared_t *shared, int rank);

/* Runs the body as processes. Returns the slowest one's seconds, and what all used together unless that is NULL. */
double run(const plan_t *plan, double *cpu_seconds);

#endif
