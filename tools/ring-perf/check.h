/* What a test of a tool must find true; it ends where it doesn't. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);        \
      exit(1);                                                               \
    }                                                                        \
  } while (0)

#endif
