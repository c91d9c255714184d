/* The part of Open MPI's ABI that MLX takes from the library that MLX_MPI_LIBNAME names: names and numbers
 * are Open MPI's. Handles are the addresses of objects. */
#ifndef RING_MPI_ABI_H
#define RING_MPI_ABI_H

#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

typedef struct communicator *MPI_Comm;
typedef struct datatype *MPI_Datatype;
typedef struct operation *MPI_Op;
typedef void MPI_User_function(void *in, void *inout, int *len, MPI_Datatype *type);

typedef struct MPI_Status {
  int MPI_SOURCE;
  int MPI_TAG;
  int MPI_ERROR;
  int cancelled;
  size_t received_bytes;
} MPI_Status;

/* MPI_IN_PLACE is an address that no buffer has. */
#define MPI_IN_PLACE ((void *)1)

enum { MPI_ANY_SOURCE = -1, MPI_ANY_TAG = -1, MPI_UNDEFINED = -32766, MPI_MAX_LIBRARY_VERSION_STRING = 256 };

enum {
  MPI_SUCCESS = 0,
  MPI_ERR_BUFFER = 1,
  MPI_ERR_COUNT = 2,
  MPI_ERR_TYPE = 3,
  MPI_ERR_TAG = 4,
  MPI_ERR_COMM = 5,
  MPI_ERR_RANK = 6,
  MPI_ERR_OP = 10,
  MPI_ERR_ARG = 13,
  MPI_ERR_OTHER = 16,
  MPI_ERR_INTERN = 17,
  MPI_ERR_NO_MEM = 34
};

/* environment.c */
EXPORTED int MPI_Get_library_version(char *version, int *length);
EXPORTED int MPI_Init(int *argc, char ***argv);
EXPORTED int MPI_Finalize(void);

/* communicators.c */
EXPORTED extern struct communicator ompi_mpi_comm_world, ompi_mpi_comm_null;
EXPORTED int MPI_Comm_rank(MPI_Comm comm, int *rank);
EXPORTED int MPI_Comm_size(MPI_Comm comm, int *size);
EXPORTED int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *out);
EXPORTED int MPI_Comm_free(MPI_Comm *comm);

/* datatypes.c */
EXPORTED extern struct datatype ompi_mpi_c_bool, ompi_mpi_int8_t, ompi_mpi_uint8_t, ompi_mpi_int16_t, ompi_mpi_uint16_t,
  ompi_mpi_int32_t, ompi_mpi_uint32_t, ompi_mpi_int64_t, ompi_mpi_uint64_t, ompi_mpi_float, ompi_mpi_double,
  ompi_mpi_c_complex;
EXPORTED int MPI_Type_contiguous(int count, MPI_Datatype element, MPI_Datatype *out);
EXPORTED int MPI_Type_commit(MPI_Datatype *type);

/* operations.c */
EXPORTED extern struct operation ompi_mpi_op_sum, ompi_mpi_op_max, ompi_mpi_op_min;
EXPORTED int MPI_Op_create(MPI_User_function *function, int commute, MPI_Op *out);

/* collectives.c */
EXPORTED int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
EXPORTED int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                           MPI_Datatype recv_type, MPI_Comm comm);

/* messages.c */
EXPORTED int MPI_Send(const void *buf, int count, MPI_Datatype type, int dst, int tag, MPI_Comm comm);
EXPORTED int MPI_Recv(void *buf, int count, MPI_Datatype type, int src, int tag, MPI_Comm comm, MPI_Status *status);

#endif
