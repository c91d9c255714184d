#include "communicators.h"
#include "report.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define AS_TEXT(number) #number
#define VERSION(major, minor, patch) AS_TEXT(major) "." AS_TEXT(minor) "." AS_TEXT(patch)

/* MLX takes a library whose version speaks of Open MPI. */
static const char version_text[] = "libring_mpi " VERSION(RING_VERSION_MAJOR, RING_VERSION_MINOR, RING_VERSION_PATCH)
  " (speaks a part of the ABI of Open MPI v4)";
_Static_assert(sizeof version_text <= MPI_MAX_LIBRARY_VERSION_STRING, "callers have no more room");

int MPI_Get_library_version(char *version, int *length) {
  if (!version || !length) return MPI_ERR_ARG;
  memcpy(version, version_text, sizeof version_text);
  *length = (int)sizeof version_text - 1;
  return MPI_SUCCESS;
}

/* MLX may call MPI_Init for each group that a program asks for, and ends each. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users;

/* Whether someone has told this process to be a rank. If not, a program that asks MLX for any backend there
 * is runs alone, and wants no word about it. */
static bool is_launched(void) {
  static const char *const said[] = {"RING_RANK",     "MLX_RANK",       "OMPI_COMM_WORLD_RANK", "PMI_RANK",
                                     "SLURM_PROCID",  "RANK",           "RING_HOSTFILE",        "MLX_HOSTFILE",
                                     "RING_RENDEZVOUS"};
  for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
    if (getenv(said[i])) return true;
  }
  return false;
}

static int form_world(void) {
  forming_world(true);
  ring_group_t *group;
  if (ring_group_create_from_env(&group) == RING_STATUS_OK) {
    open_world(group);
    return MPI_SUCCESS;
  }
  char text[TEXT_BYTES];
  ring_last_error(text, sizeof text);
  forming_world(false);
  if (is_launched()) say("MPI_Init", text);
  return MPI_ERR_OTHER;
}

int MPI_Init(int *argc, char ***argv) {
  (void)argc, (void)argv;
  if (inherited_world()) {
    say("MPI_Init", "this process is a forked child of a rank, and can't be one itself");
    return MPI_ERR_OTHER;
  }
  pthread_mutex_lock(&lock);
  int code = users > 0 ? MPI_SUCCESS : form_world();
  if (code == MPI_SUCCESS) users++;
  pthread_mutex_unlock(&lock);
  return code;
}

int MPI_Finalize(void) {
  /* Nothing of the parent's is this process's to end. */
  if (inherited_world()) return MPI_SUCCESS;
  pthread_mutex_lock(&lock);
  int code = users > 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
  if (users > 0 && --users == 0) close_communicators();
  pthread_mutex_unlock(&lock);
  return code;
}
