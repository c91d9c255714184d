/* Drives libring_mpi as MLX does: ring-mpi-test LIBRARY SUBJECT RANKS. */
#include "loaded.h"
#include "ranks.h"
#include "subjects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  void (*test)(int size);
} subjects[] = {
  {"numbers", test_numbers},   {"custom", test_custom}, {"splits", test_splits}, {"messages", test_messages},
  {"refusals", test_refusals}, {"faults", test_faults}, {"lives", test_lives},
#ifdef WITH_FAKE_MLX
  {"raised", test_raised},
#endif
};

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: ring-mpi-test LIBRARY SUBJECT RANKS\n");
    return 2;
  }
  load(argv[1]);
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
    if (strcmp(argv[2], subjects[i].name) != 0) continue;
    subjects[i].test(atoi(argv[3]));
    return 0;
  }
  fprintf(stderr, "no such subject: %s\n", argv[2]);
  return 2;
}
