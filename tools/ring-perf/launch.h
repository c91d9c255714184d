/* Ranks as processes of this host. */
#ifndef LAUNCH_H
#define LAUNCH_H

/* What a rank does in its process, given a hostfile's text; returns its exit status. */
typedef int rank_body(int rank, const char *hosts, const void *data);

/* Runs the body as `ranks` processes that can form a ring, and waits for all of them. Says on stderr
 * which failed. Returns 0 if none did, else 1. */
int launch(int ranks, rank_body *body, const void *data);

#endif
