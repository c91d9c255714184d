#include "operations.h"

#include "report.h"

#include <limits.h>
#include <pthread.h>

/* MLX makes eight. */
enum { MAX_CREATED = 64 };

struct operation ompi_mpi_op_sum = {.op = RING_OP_SUM};
struct operation ompi_mpi_op_max = {.op = RING_OP_MAX};
struct operation ompi_mpi_op_min = {.op = RING_OP_MIN};

static struct operation *const named[] = {&ompi_mpi_op_sum, &ompi_mpi_op_max, &ompi_mpi_op_min};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct operation created[MAX_CREATED];
static int created_count;

/* A trial of a function takes a while, and a child that is forked meanwhile has no thread to end it. */
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static void watch_forks(void) { pthread_atfork(before_fork, after_fork, after_fork); }

struct operation *known_operation(MPI_Op op) {
  for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
    if (op == named[i]) return named[i];
  }
  struct operation *found = NULL;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < created_count && !found; i++) {
    if (op == &created[i]) found = &created[i];
  }
  pthread_mutex_unlock(&lock);
  return found;
}

bool is_defined(const struct operation *operation, const struct datatype *type) {
  return operation->function || type->dtype != OPAQUE;
}

static meaning_t meaning_of(struct operation *operation, struct datatype *type) {
  pthread_mutex_lock(&lock);
  if (operation->looked_at != type) {
    operation->meaning = recognise(operation->function, type);
    operation->looked_at = type;
  }
  meaning_t meaning = operation->meaning;
  pthread_mutex_unlock(&lock);
  return meaning;
}

typedef struct step {
  MPI_User_function *function;
  struct datatype *type;
} step_t;

/* A function of MPI's form in the library's. What it calls inout holds this rank's values here. */
static void apply(void *acc, const void *received, size_t count, void *user_data) {
  const step_t *step = user_data;
  unsigned char *inout = acc;
  /* MPI has no const; its functions don't write what they are given as in. */
  union { const void *from_ring; unsigned char *from_mpi; } in = {received};
  while (count > 0) {
    int some = count < INT_MAX ? (int)count : INT_MAX;
    MPI_Datatype type = step->type;
    int length = some;
    step->function(in.from_mpi, inout, &length, &type);
    in.from_mpi += (size_t)some * step->type->bytes;
    inout += (size_t)some * step->type->bytes;
    count -= (size_t)some;
  }
}

ring_status_t reduce(ring_group_t *group, const void *send, void *recv, int count, struct datatype *type,
                     struct operation *operation) {
  if (!operation->function) {
    return ring_all_reduce(group, send, recv, (size_t)count, type->dtype, operation->op);
  }
  meaning_t meaning = meaning_of(operation, type);
  if (meaning.known) return ring_all_reduce(group, send, recv, (size_t)count, meaning.dtype, meaning.op);
  step_t step = {operation->function, type};
  return ring_all_reduce_custom(group, send, recv, (size_t)count, type->bytes, apply, &step);
}

static int fail(int code, const char *why) {
  say("MPI_Op_create", why);
  return code;
}

int MPI_Op_create(MPI_User_function *function, int commute, MPI_Op *out) {
  if (!function || !out) return fail(MPI_ERR_ARG, "no function, or no place for the operation, is given");
  if (!commute) return fail(MPI_ERR_OP, "a ring adds in an order of its own, and the operation is said not to commute");
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&lock);
  bool fits = created_count < MAX_CREATED;
  if (fits) {
    *out = &created[created_count++];
    **out = (struct operation){.function = function};
  }
  pthread_mutex_unlock(&lock);
  return fits ? MPI_SUCCESS : fail(MPI_ERR_NO_MEM, "there can be no more operations");
}
