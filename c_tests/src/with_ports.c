/* Runs a command that may have ports of this host to itself: `with_ports COUNT COMMAND...`. $PORT is the first of COUNT in a
 * row; they are kept from the tests that run beside this one. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

int main(int arguments, char **argument) {
  CHECK(arguments > 2, "usage: with_ports COUNT COMMAND...");
  int count = atoi(argument[1]), in_a_row = 0, last = -2;
  while (in_a_row < count) {
    int port = free_port();
    in_a_row = port == last + 1 ? in_a_row + 1 : 1;
    last = port;
  }
  char first[16];
  snprintf(first, sizeof first, "%d", last - count + 1);
  setenv("PORT", first, 1);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    execvp(argument[2], argument + 2);
    perror(argument[2]);
    _exit(127);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
