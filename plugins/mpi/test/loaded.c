#include "loaded.h"

#include "ranks.h"

#include <complex.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

mpi_t mpi;

static void *symbol(void *library, const char *name) {
  void *found = dlsym(library, name);
  CHECK_SAYING(found, "%s", name);
  return found;
}

void load(const char *path) {
  static const char *const types[TYPES] = {
    "ompi_mpi_c_bool",   "ompi_mpi_int8_t",  "ompi_mpi_uint8_t",  "ompi_mpi_int16_t", "ompi_mpi_uint16_t",
    "ompi_mpi_int32_t",  "ompi_mpi_uint32_t", "ompi_mpi_int64_t", "ompi_mpi_uint64_t", "ompi_mpi_float",
    "ompi_mpi_double",   "ompi_mpi_c_complex"};
  static const char *const ops[OPS] = {"ompi_mpi_op_sum", "ompi_mpi_op_max", "ompi_mpi_op_min"};
  void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  CHECK_SAYING(library, "%s", dlerror());
  /* ISO C has no cast from objects to functions. */
#define TAKE(name, its_symbol, parameters) *(void **)&mpi.name = symbol(library, #its_symbol);
  FUNCTIONS(TAKE)
#undef TAKE
  mpi.world = symbol(library, "ompi_mpi_comm_world");
  for (int i = 0; i < TYPES; i++) mpi.types[i] = symbol(library, types[i]);
  for (int i = 0; i < OPS; i++) mpi.ops[i] = symbol(library, ops[i]);
}

size_t bytes_of(int type) {
  static const size_t bytes[TYPES] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8};
  return bytes[type];
}

#define HOLDS(_)                                                                                             \
  _(BOOL, bool) _(INT8, int8_t) _(UINT8, uint8_t) _(INT16, int16_t) _(UINT16, uint16_t) _(INT32, int32_t)    \
  _(UINT32, uint32_t) _(INT64, int64_t) _(UINT64, uint64_t) _(FLOAT, float) _(DOUBLE, double) _(COMPLEX, float complex)

void put(int type, void *array, int i, int value) {
  switch (type) {
#define PUT(name, held) case name: ((held *)array)[i] = (held)value; break;
    HOLDS(PUT)
#undef PUT
    default: CHECK_SAYING(false, "no such type");
  }
}

double get(int type, const void *array, int i) {
  switch (type) {
#define GET(name, held) case name: return (double)((const held *)array)[i];
    HOLDS(GET)
#undef GET
    default: CHECK_SAYING(false, "no such type");
  }
}
