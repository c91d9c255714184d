/* One way, in a ring, and small messages. */
#ifndef SOCKETS_H
#define SOCKETS_H

typedef enum { TCP, UNIX } kind_t;

void measure_sockets(kind_t kind);

#endif
