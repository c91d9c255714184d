#include "local_hosts.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Below the ports that Linux (32768) and macOS (49152) give to outgoing connections: one of those
 * could take a port between the look and the use. */
enum { FIRST_PORT = 10000, PORTS = 20000 };

/* More than ,"127.0.0.1:65535" needs. */
enum { ENTRY_BYTES = 24 };

/* Keeps a free port from others by a socket that is bound to it and doesn't listen. A rank's listener,
 * which has SO_REUSEADDR, may bind it all the same; whoever lacks that, and the system, may not. */
static bool keep(int port) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons((uint16_t)port);
  int keeper = socket(AF_INET, SOCK_STREAM, 0);
  if (keeper < 0) return false;
  /* Set before bind, SO_REUSEADDR would find a port free that another keeps. */
  const int on = 1;
  if (bind(keeper, (struct sockaddr *)&address, sizeof address) == 0 &&
      setsockopt(keeper, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0) {
    return true;
  }
  close(keeper);
  return false;
}

char *local_hosts(int ranks) {
  char *text = malloc((size_t)ranks * ENTRY_BYTES + sizeof "[]");
  if (!text) return NULL;
  char *end = text;
  *end++ = '[';
  /* Programs that start together look in different places. */
  int offset = (int)((unsigned)getpid() * 61u % PORTS);
  int found = 0;
  for (int tries = 0; found < ranks && tries < PORTS; tries++) {
    int port = FIRST_PORT + (offset + tries) % PORTS;
    if (!keep(port)) continue;
    end += sprintf(end, "%s\"127.0.0.1:%d\"", found ? "," : "", port);
    found++;
  }
  strcpy(end, "]");
  if (found == ranks) return text;
  free(text);
  return NULL;
}
