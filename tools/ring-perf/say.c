#include "say.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_TEXT = 2048 };

/* To the line's start, and erases it. */
#define ERASE_LINE "\r\033[K"

int say_failure(const char *who, ring_status_t status) {
  char text[MAX_TEXT];
  ring_last_error(text, sizeof text);
  fprintf(stderr, "ring-perf: %s: %s: %s\n", who, ring_status_name(status), text);
  return 1;
}

int say_no_ring(ring_status_t status, const char *command) {
  say_failure("joining the ring of the environment", status);
  bool is_described = getenv("RING_RANK") || getenv("RING_HOSTFILE") || getenv("RING_RENDEZVOUS");
  if (status == RING_STATUS_INVALID_CONFIG && !is_described) {
    fprintf(stderr, "ring-perf: for ranks on this host: %s --ranks 4\n", command);
  }
  return 1;
}

static bool on_terminal(void) { return isatty(STDERR_FILENO); }

void show_progress(const char *format, ...) {
  if (!on_terminal()) return;
  va_list arguments;
  va_start(arguments, format);
  fputs(ERASE_LINE "# ", stderr);
  vfprintf(stderr, format, arguments);
  fputs(" ...", stderr);
  va_end(arguments);
}

void end_progress(void) {
  if (on_terminal()) fputs(ERASE_LINE, stderr);
}

void print_json_string(const char *text) {
  putchar('"');
  for (; *text; text++) {
    unsigned char byte = (unsigned char)*text;
    if (byte == '"' || byte == '\\') printf("\\%c", byte);
    else if (byte < ' ') printf("\\u%04x", byte);
    else putchar(byte);
  }
  putchar('"');
}

void hold_streams(void) {
  /* To be read only, so that writing there still fails. */
  int held;
  do held = open("/dev/null", O_RDONLY);
  while (held >= 0 && held <= STDERR_FILENO);
  if (held >= 0) close(held);
}

int written(int exit_status) {
  bool lost = fflush(stdout) != 0 || ferror(stdout);
  if (!lost) return exit_status;
  perror("ring-perf: writing to stdout");
  return exit_status ? exit_status : 1;
}
