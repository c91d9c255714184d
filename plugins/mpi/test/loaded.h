/* libring_mpi as MLX has it: opened at run time, its functions and objects taken by their names. */
#ifndef LOADED_H
#define LOADED_H

#include <stddef.h>

typedef void *MPI_Comm;
typedef void *MPI_Datatype;
typedef void *MPI_Op;
typedef void user_function(void *in, void *inout, int *length, MPI_Datatype *type);

typedef struct status {
  int source, tag, error, cancelled;
  size_t received_bytes;
} status_t;

#define IN_PLACE ((void *)1)
enum { ANY_SOURCE = -1, ANY_TAG = -1, UNDEFINED = -32766 };

#define FUNCTIONS(_)                                                                         \
  _(get_library_version, MPI_Get_library_version, (char *, int *))                           \
  _(init, MPI_Init, (int *, char ***))                                                       \
  _(finalize, MPI_Finalize, (void))                                                          \
  _(rank, MPI_Comm_rank, (MPI_Comm, int *))                                                  \
  _(size, MPI_Comm_size, (MPI_Comm, int *))                                                  \
  _(split, MPI_Comm_split, (MPI_Comm, int, int, MPI_Comm *))                                 \
  _(free, MPI_Comm_free, (MPI_Comm *))                                                       \
  _(all_reduce, MPI_Allreduce, (const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm))  \
  _(all_gather, MPI_Allgather, (const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm)) \
  _(send, MPI_Send, (const void *, int, MPI_Datatype, int, int, MPI_Comm))                   \
  _(recv, MPI_Recv, (void *, int, MPI_Datatype, int, int, MPI_Comm, status_t *))             \
  _(type_contiguous, MPI_Type_contiguous, (int, MPI_Datatype, MPI_Datatype *))               \
  _(type_commit, MPI_Type_commit, (MPI_Datatype *))                                          \
  _(op_create, MPI_Op_create, (user_function *, int, MPI_Op *))

/* The types in the order of loaded.c's table of what they hold. */
enum { BOOL, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FLOAT, DOUBLE, COMPLEX, TYPES };
enum { SUM, MAX, MIN, OPS };

typedef struct mpi {
#define MEMBER(name, symbol, parameters) int(*name) parameters;
  FUNCTIONS(MEMBER)
#undef MEMBER
  MPI_Comm world;
  MPI_Datatype types[TYPES];
  MPI_Op ops[OPS];
} mpi_t;

extern mpi_t mpi;

/* Opens the library, or ends the process. */
void load(const char *path);

/* Numbers in memory as one of the types holds them: 0 and 1 of bool, a real part of complex. */
size_t bytes_of(int type);
void put(int type, void *array, int i, int value);
double get(int type, const void *array, int i);

#endif
