/* MLX ignores the codes of most of MPI's functions: an array of a failed call would be taken for a result.
 * What a task of one of its streams throws, mx.eval throws again, and its own ring reports a lost peer in
 * this way. The C++ runtime is MLX's, found at run time: this library needs none. */
#include "raise.h"

#include <dlfcn.h>
#include <stddef.h>

/* mlx::core::scheduler::Scheduler::check_error(mlx::core::Stream), which throws what a stream has kept. An MLX
 * without it would end the process. */
#define KEEPS_EXCEPTIONS "_ZN3mlx4core9scheduler9Scheduler11check_errorENS0_6StreamE"

/* As every std::runtime_error of the platforms' C++ runtimes, with room to spare. */
enum { EXCEPTION_BYTES = 64 };

typedef void *allocate_fn(size_t bytes);
typedef void construct_fn(void *exception, const char *text);
typedef void destruct_fn(void *exception);
typedef void throw_fn(void *exception, void *type, destruct_fn *destruct);

void raise_in_mlx(const void *caller, const char *text) {
  Dl_info object, keeper;
  if (!dladdr(caller, &object)) return;
  void *mlx = dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (!mlx) return;
  void *keeps = dlsym(mlx, KEEPS_EXCEPTIONS);
  void *type = dlsym(mlx, "_ZTISt13runtime_error");
  /* ISO C has no cast from objects to functions, and POSIX promises that the bits are the same. */
  union { void *found; allocate_fn *call; } allocate = {dlsym(mlx, "__cxa_allocate_exception")};
  union { void *found; construct_fn *call; } construct = {dlsym(mlx, "_ZNSt13runtime_errorC1EPKc")};
  union { void *found; destruct_fn *call; } destruct = {dlsym(mlx, "_ZNSt13runtime_errorD1Ev")};
  union { void *found; throw_fn *call; } throw = {dlsym(mlx, "__cxa_throw")};
  dlclose(mlx);
  /* The look-up goes through what the caller's object needs: a program that merely uses MLX isn't MLX. */
  if (!keeps || !dladdr(keeps, &keeper) || keeper.dli_fbase != object.dli_fbase) return;
  if (!type || !allocate.found || !construct.found || !destruct.found || !throw.found) return;

  void *exception = allocate.call(EXCEPTION_BYTES);
  construct.call(exception, text);
  throw.call(exception, type, destruct.call);
}
