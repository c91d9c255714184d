/* Ranks as processes on this host. */
#ifndef RANKS_H
#define RANKS_H

#include <stdbool.h>

/* Ends this process with a message unless the condition holds. */
#define CHECK(condition) CHECK_SAYING(condition, "it is not so")
#define CHECK_SAYING(condition, ...)                                           \
  do {                                                                         \
    if (!(condition)) check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__); \
  } while (0)

__attribute__((noreturn, format(printf, 4, 5))) void check_failed(const char *file, int line, const char *condition,
                                                                  const char *format, ...);

/* What a rank does in its process; the world is there, and is finalized afterwards. */
typedef void rank_body(int rank, int size);

/* Runs it as so many processes, told of each other as mlx.launch tells them. One of them may be killed, or
 * -1. Ends this process if another one fails. */
void run_ranks(int size, rank_body *body, int may_die);

/* The same without a world: the body makes it. */
void run_processes(int size, rank_body *body, int may_die);

/* Seconds on a clock that only goes forward. */
double now_s(void);

/* From here on, what this process writes to stderr goes to a file; and its lines, of which there must be
 * some, or none. The text lives until the next call. */
void catch_errors(void);
const char *caught_errors(int lines);

#endif
