/* A failure as a C++ exception, where MLX takes one. */
#ifndef RING_MPI_RAISE_H
#define RING_MPI_RAISE_H

/* Doesn't return if the caller, a return address, is code of an MLX that hands exceptions of its tasks to
 * mx.eval. Nobody else sees one: MPI's functions return codes. */
void raise_in_mlx(const void *caller, const char *text);

#endif
