#!/bin/sh
# The library exports the names of MPI's that it has and nothing else, is called what it is called, and finds
# libring.so beside itself.
set -eu
library=$1
exported=$(nm -D --defined-only "$library" | awk '{ print $3 }')
others=$(echo "$exported" | grep -v -e '^MPI_' -e '^ompi_mpi_' || true)
[ -z "$others" ] || { echo "exported, but not MPI's: $others"; exit 1; }
for name in MPI_Get_library_version MPI_Init MPI_Finalize MPI_Comm_rank MPI_Comm_size MPI_Comm_split MPI_Comm_free \
  MPI_Allreduce MPI_Allgather MPI_Send MPI_Recv MPI_Type_contiguous MPI_Type_commit MPI_Op_create ompi_mpi_comm_world \
  ompi_mpi_op_sum ompi_mpi_op_max ompi_mpi_op_min ompi_mpi_c_bool ompi_mpi_int8_t ompi_mpi_uint8_t ompi_mpi_int16_t \
  ompi_mpi_uint16_t ompi_mpi_int32_t ompi_mpi_uint32_t ompi_mpi_int64_t ompi_mpi_uint64_t ompi_mpi_float ompi_mpi_double \
  ompi_mpi_c_complex; do
  echo "$exported" | grep -qx "$name" || { echo "$name, which MLX asks for, is missing"; exit 1; }
done
about=$(readelf -d "$library")
says() { echo "$about" | grep -q "$1" || { echo "$2"; exit 1; }; }
says 'SONAME.*\[libring_mpi.so\]' "SONAME is not libring_mpi.so"
says 'NEEDED.*\[libring.so.0\]' "it doesn't ask for libring.so.0"
says 'R.*PATH.*\[$ORIGIN\]' "it doesn't look beside itself"
says NODELETE "the library may be unloaded"
