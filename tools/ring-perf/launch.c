#include "launch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Below the range that systems use for outgoing connections. */
enum { FIRST_PORT = 10000, PORTS = 20000 };

/* A free port, kept from others until this process ends by a socket that is bound to it and doesn't
 * listen. A rank's listener, which has SO_REUSEADDR too, may bind it all the same. */
static int free_port(void) {
  static unsigned next;
  static const int on = 1;
  if (next == 0) next = (unsigned)getpid() * 61u;
  for (int tries = 0; tries < PORTS; tries++) {
    int port = FIRST_PORT + (int)(next++ % PORTS);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(probe, (struct sockaddr *)&address, sizeof address) == 0) {
      setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      return port;
    }
    close(probe);
  }
  fputs("no free port on 127.0.0.1\n", stderr);
  exit(1);
}

int launch(int ranks, int (*body)(int rank, const char *hosts, void *data), void *data) {
  char *hosts = malloc((size_t)ranks * 24 + 8), *end = hosts;
  if (!hosts) return 1;
  for (int rank = 0; rank < ranks; rank++) {
    end += sprintf(end, "%s\"127.0.0.1:%d\"", rank ? "," : "[", free_port());
  }
  strcpy(end, "]");
  int started = 0, worst = 0;
  fflush(NULL);
  for (; started < ranks; started++) {
    pid_t child = fork();
    if (child == 0) exit(body(started, hosts, data));
    if (child < 0) {
      perror("starting a rank");
      worst = 1;
      break;
    }
  }
  for (int i = 0; i < started; i++) {
    int status = 0;
    wait(&status);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (WIFSIGNALED(status)) fprintf(stderr, "a rank was ended by signal %d\n", WTERMSIG(status));
    if (worst == 0) worst = code;
  }
  free(hosts);
  return worst;
}
