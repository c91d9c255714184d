/* Ranks as processes on this host. */
#ifndef LAUNCH_H
#define LAUNCH_H

/* Forks `ranks` processes that each run the body with their rank and a hostfile's text, and returns
 * the first exit status that isn't 0. Call it before the library has been used. */
int launch(int ranks, int (*body)(int rank, const char *hosts, void *data), void *data);

#endif
