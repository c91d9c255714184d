/* What is said on stderr, and strings of the JSON that goes to stdout. */
#ifndef SAY_H
#define SAY_H

#include <ring.h>

/* Says what failed, with the library's text of this thread's last failure. Returns 1, the exit status. */
int say_failure(const char *who, ring_status_t status);
/* The same of the ring that the environment should describe; where it describes none, the command that needs none as well. */
int say_no_ring(ring_status_t status, const char *command);

/* Shows what goes on while it does, on a terminal; the next text replaces it. */
void show_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void end_progress(void);

void print_json_string(const char *text);

/* Keeps the numbers of standard streams that are closed from sockets, which what is printed would go to. */
void hold_streams(void);
/* Ends the output: the exit status, or 1 where what was printed on stdout is lost. */
int written(int exit_status);

#endif
