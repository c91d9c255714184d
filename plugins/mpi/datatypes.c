#include "datatypes.h"

#include "report.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

/* MLX makes two. */
enum { MAX_DERIVED = 64 };

#define TYPE(name, kind, size, pattern) struct datatype name = {kind, size, true, pattern}
/* Floating-point types get NaNs. Integers have nothing like it: the ends of their ranges are what shows most. */
TYPE(ompi_mpi_c_bool, RING_DTYPE_BOOL, 1, UINT64_C(0x0101010101010101));
TYPE(ompi_mpi_int8_t, RING_DTYPE_INT8, 1, UINT64_C(0x8080808080808080));
TYPE(ompi_mpi_uint8_t, RING_DTYPE_UINT8, 1, UINT64_MAX);
TYPE(ompi_mpi_int16_t, RING_DTYPE_INT16, 2, UINT64_C(0x8000800080008000));
TYPE(ompi_mpi_uint16_t, RING_DTYPE_UINT16, 2, UINT64_MAX);
TYPE(ompi_mpi_int32_t, RING_DTYPE_INT32, 4, UINT64_C(0x8000000080000000));
TYPE(ompi_mpi_uint32_t, RING_DTYPE_UINT32, 4, UINT64_MAX);
TYPE(ompi_mpi_int64_t, RING_DTYPE_INT64, 8, UINT64_C(0x8000000000000000));
TYPE(ompi_mpi_uint64_t, RING_DTYPE_UINT64, 8, UINT64_MAX);
TYPE(ompi_mpi_float, RING_DTYPE_FLOAT32, 4, UINT64_MAX);
TYPE(ompi_mpi_double, RING_DTYPE_FLOAT64, 8, UINT64_MAX);
TYPE(ompi_mpi_c_complex, RING_DTYPE_COMPLEX64, 8, UINT64_MAX);

static struct datatype *const named[] = {
  &ompi_mpi_c_bool,   &ompi_mpi_int8_t,  &ompi_mpi_uint8_t, &ompi_mpi_int16_t,  &ompi_mpi_uint16_t, &ompi_mpi_int32_t,
  &ompi_mpi_uint32_t, &ompi_mpi_int64_t, &ompi_mpi_uint64_t, &ompi_mpi_float, &ompi_mpi_double,   &ompi_mpi_c_complex,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct datatype derived[MAX_DERIVED];
static int derived_count;

/* A handle is an address, and one that was never given out is not to be looked into. */
static struct datatype *known(MPI_Datatype type) {
  for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
    if (type == named[i]) return named[i];
  }
  struct datatype *found = NULL;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < derived_count && !found; i++) {
    if (type == &derived[i]) found = &derived[i];
  }
  pthread_mutex_unlock(&lock);
  return found;
}

struct datatype *usable_datatype(MPI_Datatype type) {
  struct datatype *found = known(type);
  return found && __atomic_load_n(&found->committed, __ATOMIC_ACQUIRE) ? found : NULL;
}

elements_t as_elements(const struct datatype *type, int count) {
  if (type->dtype != OPAQUE) return (elements_t){(size_t)count, type->dtype};
  return (elements_t){(size_t)count * type->bytes, RING_DTYPE_UINT8};
}

void spoil(void *out, size_t count, const struct datatype *type) {
  unsigned char *at = out;
  size_t bytes = count * type->bytes;
  for (; bytes >= sizeof type->spoilt; at += sizeof type->spoilt, bytes -= sizeof type->spoilt) {
    memcpy(at, &type->spoilt, sizeof type->spoilt);
  }
  memcpy(at, &type->spoilt, bytes);
}

static int fail(int code, const char *call, const char *why) {
  say(call, why);
  return code;
}

int MPI_Type_contiguous(int count, MPI_Datatype element, MPI_Datatype *out) {
  struct datatype *type = known(element);
  if (!type) return fail(MPI_ERR_TYPE, "MPI_Type_contiguous", "there is no such datatype");
  if (!out) return fail(MPI_ERR_ARG, "MPI_Type_contiguous", "no place for the datatype is given");
  if (count < 1 || type->bytes > (size_t)(INT_MAX / count)) {
    return fail(MPI_ERR_COUNT, "MPI_Type_contiguous", "a datatype has from 1 to 2^31 - 1 bytes");
  }
  pthread_mutex_lock(&lock);
  bool fits = derived_count < MAX_DERIVED;
  if (fits) {
    *out = &derived[derived_count++];
    /* As bytes that are all set a number of any floating-point type is a NaN. */
    **out = (struct datatype){OPAQUE, (size_t)count * type->bytes, false, UINT64_MAX};
  }
  pthread_mutex_unlock(&lock);
  return fits ? MPI_SUCCESS : fail(MPI_ERR_NO_MEM, "MPI_Type_contiguous", "there can be no more datatypes");
}

int MPI_Type_commit(MPI_Datatype *type) {
  struct datatype *found = type ? known(*type) : NULL;
  if (!found) return fail(MPI_ERR_TYPE, "MPI_Type_commit", "there is no such datatype");
  __atomic_store_n(&found->committed, true, __ATOMIC_RELEASE);
  return MPI_SUCCESS;
}
