/* The addresses of a hostfile that the library has read already, and so is known to be one. */
#ifndef HOSTFILE_H
#define HOSTFILE_H

#include <stddef.h>

/* The text of the hostfile that the environment names for the library; NULL if it names none, or it can't be
 * read. The caller frees it. */
char *hostfile_of_environment(void);

/* How many addresses a rank has. */
int hostfile_addresses(const char *text, int rank);

/* Copies a rank's address, cut to `size` bytes with the NUL. */
void hostfile_address(const char *text, int rank, int address, char *out, size_t size);

/* The text of a hostfile in which each rank has one address, the one of this number, or its last one where it has
 * fewer. NULL without memory; the caller frees it. */
char *hostfile_of_address(const char *text, int address);

#endif
