// What raise.c looks at in MLX: the function by which it is known that exceptions of tasks are kept, and a caller
// that catches one. Built a second time without the former, as a library that merely uses the first.
#include <cstdio>
#include <exception>

#ifdef KEEPS_EXCEPTIONS
namespace mlx::core {
struct Stream {
  int index;
};
namespace scheduler {
struct Scheduler {
  __attribute__((visibility("default"))) void check_error(Stream);
};
void Scheduler::check_error(Stream) {}
}  // namespace scheduler
}  // namespace mlx::core
#endif

// Runs the task, and catches its exception's text; -1 if there was one.
extern "C" __attribute__((visibility("default"))) int FAKE_NAME(int (*send)(const void*, int, void*, int, int, void*),
                                                                void* type, void* comm, char* text, size_t bytes) {
  try {
    return send(text, 1, type, 0, 0, comm);
  } catch (const std::exception& exception) {
    std::snprintf(text, bytes, "%s", exception.what());
    return -1;
  }
}
