/* One host of the baseline: raw sockets that send all they can, so that the limit of a network is a measured one.
 *
 *   stream SECONDS one|both [ADDRESS...]
 *
 * Connects to each address, takes connections at PORT, and reads whatever comes. It sends on the connections that it
 * made, and with "both" on those that it took as well. Prints what arrived, in Mbit/s of payload over SECONDS. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 5999, MAX_LINKS = 16, BUFFER_BYTES = 1 << 20 };

/* Hosts start one after the other, and connections start slowly; when all have measured, the first may go. */
static const double SETTLING_S = 1.5, STAYING_S = 0.5;

typedef struct {
  struct pollfd polls[1 + MAX_LINKS]; /* the listener first */
  nfds_t count;
  bool answers;
} host_t;

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what) {
  fprintf(stderr, "stream: %s: %s\n", what, strerror(errno));
  exit(1);
}

static struct sockaddr_in address_of(const char *text) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
  if (inet_pton(AF_INET, text, &address.sin_addr) != 1) {
    fprintf(stderr, "stream: \"%s\" is no IPv4 address\n", text);
    exit(2);
  }
  return address;
}

static void add(host_t *host, int socket, bool sends) {
  if (host->count == 1 + MAX_LINKS) {
    fprintf(stderr, "stream: more than %d connections\n", MAX_LINKS);
    exit(1);
  }
  if (fcntl(socket, F_SETFL, O_NONBLOCK) != 0) die("fcntl");
  host->polls[host->count++] = (struct pollfd){.fd = socket, .events = sends ? POLLIN | POLLOUT : POLLIN};
}

static void listen_here(host_t *host) {
  struct sockaddr_in any = address_of("0.0.0.0");
  int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
  if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0) die("socket");
  if (bind(listener, (struct sockaddr *)&any, sizeof any) != 0 || listen(listener, MAX_LINKS) != 0) die("listen");
  host->polls[host->count++] = (struct pollfd){.fd = listener, .events = POLLIN};
}

/* The other host may be a moment behind. */
static void dial(host_t *host, const char *text, double deadline) {
  struct sockaddr_in address = address_of(text);
  for (;;) {
    int link = socket(AF_INET, SOCK_STREAM, 0);
    if (link < 0) die("socket");
    if (connect(link, (struct sockaddr *)&address, sizeof address) == 0) {
      add(host, link, true);
      return;
    }
    if (seconds() > deadline) die(text);
    close(link);
    nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
  }
}

/* Moves what can be moved now; returns the bytes that arrived. A connection whose peer has gone is left out. */
static size_t turn(host_t *host, char *out, char *in) {
  size_t arrived = 0;
  if (poll(host->polls, host->count, 100) < 0) die("poll");
  if (host->polls[0].revents) {
    int link = accept(host->polls[0].fd, NULL, NULL);
    if (link < 0) die("accept");
    add(host, link, host->answers);
  }
  for (nfds_t i = 1; i < host->count; i++) {
    struct pollfd *link = &host->polls[i];
    if (link->revents & (POLLIN | POLLERR | POLLHUP)) {
      ssize_t got = recv(link->fd, in, BUFFER_BYTES, 0);
      if (got > 0) arrived += (size_t)got;
      else if (got == 0 || errno != EAGAIN) link->fd = -1;
    }
    if (link->fd >= 0 && link->revents & POLLOUT && send(link->fd, out, BUFFER_BYTES, 0) < 0 && errno != EAGAIN) {
      link->fd = -1;
    }
  }
  return arrived;
}

int main(int argc, char **argv) {
  static char out[BUFFER_BYTES], in[BUFFER_BYTES];
  static host_t host;
  if (argc < 3) {
    fputs("usage: stream SECONDS one|both [ADDRESS...]\n", stderr);
    return 2;
  }
  double began = seconds(), measured_s = atof(argv[1]);
  host.answers = strcmp(argv[2], "both") == 0;
  signal(SIGPIPE, SIG_IGN);
  listen_here(&host);
  for (int i = 3; i < argc; i++) dial(&host, argv[i], began + SETTLING_S);

  while (seconds() < began + SETTLING_S) turn(&host, out, in);
  double start = seconds(), now;
  size_t arrived = 0;
  while ((now = seconds()) < start + measured_s) arrived += turn(&host, out, in);
  printf("%.1f\n", (double)arrived * 8 / 1e6 / (now - start));
  fflush(stdout);
  while (seconds() < now + STAYING_S) turn(&host, out, in);
  return 0;
}
