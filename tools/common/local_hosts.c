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

static bool is_free(int port) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons((uint16_t)port);
  int probe = socket(AF_INET, SOCK_STREAM, 0);
  if (probe < 0) return false;
  bool bound = bind(probe, (struct sockaddr *)&address, sizeof address) == 0;
  close(probe);
  return bound;
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
    if (!is_free(port)) continue;
    end += sprintf(end, "%s\"127.0.0.1:%d\"", found ? "," : "", port);
    found++;
  }
  strcpy(end, "]");
  if (found == ranks) return text;
  free(text);
  return NULL;
}
