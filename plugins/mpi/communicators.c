#include "communicators.h"

#include "report.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* A call on an aborted group returns within 100 ms; a machine may be busy. */
enum { LAST_CALLS_S = 5 };

struct communicator ompi_mpi_comm_world;
/* Open MPI's MPI_COMM_NULL. It is in no list, and every use of it is refused. */
struct communicator ompi_mpi_comm_null;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t nobody = PTHREAD_COND_INITIALIZER;
/* The world and what was split off; a handle is good if it is in here. */
static struct communicator *all;
static bool forming, inherited;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork_in_parent(void) { pthread_mutex_unlock(&lock); }

static void after_fork_in_child(void) {
  inherited = inherited || forming || all;
  pthread_mutex_unlock(&lock);
}

static void watch_forks(void) { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }

static void take_lock(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&lock);
}

static struct communicator **place_of(MPI_Comm comm) {
  struct communicator **place = &all;
  while (*place && *place != comm) place = &(*place)->next;
  return place;
}

struct communicator *use_communicator(MPI_Comm comm) {
  take_lock();
  struct communicator *found = *place_of(comm);
  if (found) found->users++;
  pthread_mutex_unlock(&lock);
  return found;
}

static void destroy(struct communicator *comm) {
  ring_group_destroy(comm->group);
  if (comm != &ompi_mpi_comm_world) free(comm);
}

void release_communicator(struct communicator *comm) {
  take_lock();
  bool last = --comm->users == 0 && comm->freed;
  pthread_cond_broadcast(&nobody);
  pthread_mutex_unlock(&lock);
  if (last) destroy(comm);
}

static void open_communicator(struct communicator *comm, ring_group_t *group) {
  *comm = (struct communicator){.group = group, .rank = ring_group_rank(group), .size = ring_group_size(group)};
  take_lock();
  comm->next = all;
  all = comm;
  pthread_mutex_unlock(&lock);
}

void open_world(ring_group_t *group) {
  open_communicator(&ompi_mpi_comm_world, group);
  forming_world(false);
}

void forming_world(bool is_forming) {
  take_lock();
  forming = is_forming;
  pthread_mutex_unlock(&lock);
}

bool inherited_world(void) {
  take_lock();
  bool is_inherited = inherited;
  pthread_mutex_unlock(&lock);
  return is_inherited;
}

void close_communicators(void) {
  /* The calls that the parent's threads were in have nobody here to end them. */
  if (inherited_world()) return;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += LAST_CALLS_S;
  take_lock();
  struct communicator *closed = all;
  all = NULL;
  for (struct communicator *comm = closed; comm; comm = comm->next) {
    if (comm->users > 0) ring_group_abort(comm->group);
  }
  while (closed) {
    struct communicator *comm = closed;
    int waited = 0;
    while (comm->users > 0 && waited != ETIMEDOUT) waited = pthread_cond_timedwait(&nobody, &lock, &until);
    closed = comm->next;
    if (comm->users > 0) continue;
    pthread_mutex_unlock(&lock);
    destroy(comm);
    take_lock();
  }
  pthread_mutex_unlock(&lock);
}

int MPI_Comm_rank(MPI_Comm comm, int *rank) {
  call_t call = begin_quietly("MPI_Comm_rank", comm);
  if (!call.comm) return refuse(&call, MPI_ERR_COMM, NO_COMMUNICATOR);
  if (!rank) return refuse(&call, MPI_ERR_ARG, "no place for the rank is given");
  *rank = call.comm->rank;
  return finish(&call, RING_STATUS_OK);
}

int MPI_Comm_size(MPI_Comm comm, int *size) {
  call_t call = begin_quietly("MPI_Comm_size", comm);
  if (!call.comm) return refuse(&call, MPI_ERR_COMM, NO_COMMUNICATOR);
  if (!size) return refuse(&call, MPI_ERR_ARG, "no place for the size is given");
  *size = call.comm->size;
  return finish(&call, RING_STATUS_OK);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *out) {
  call_t call = begin("MPI_Comm_split", comm);
  if (!call.comm) return refuse(&call, MPI_ERR_COMM, NO_COMMUNICATOR);
  struct communicator *child = out ? malloc(sizeof *child) : NULL;
  if (!child) {
    miss_turn(&call);
    if (!out) return refuse(&call, MPI_ERR_ARG, "no place for the communicator is given");
    return refuse(&call, MPI_ERR_NO_MEM, "no memory");
  }
  ring_group_t *group;
  ring_status_t status = ring_group_split(call.comm->group, color, key, &group);
  *out = &ompi_mpi_comm_null;
  if (status == RING_STATUS_OK && group) {
    open_communicator(child, group);
    *out = child;
  } else {
    free(child);
  }
  return finish(&call, status);
}

int MPI_Comm_free(MPI_Comm *comm) {
  call_t call = begin_quietly("MPI_Comm_free", comm ? *comm : NULL);
  if (!call.comm) return MPI_ERR_COMM;
  if (call.comm == &ompi_mpi_comm_world) return refuse(&call, MPI_ERR_COMM, "the world is not freed but finalized");
  take_lock();
  struct communicator **place = place_of(call.comm);
  /* Unless another thread was quicker, or MPI_Finalize has it. */
  if (*place) {
    *place = call.comm->next;
    call.comm->freed = true;
  }
  pthread_mutex_unlock(&lock);
  *comm = &ompi_mpi_comm_null;
  return finish(&call, RING_STATUS_OK);
}
