#include "hostfile.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *hostfile_of_environment(void) {
  const char *path = getenv("RING_HOSTFILE");
  if (!path && !getenv("RING_RENDEZVOUS")) path = getenv("MLX_HOSTFILE");
  FILE *file = path ? fopen(path, "r") : NULL;
  if (!file) return NULL;
  char *text = NULL;
  size_t capacity = 0;
  /* There is no NUL in JSON: this reads all of it. */
  if (getdelim(&text, &capacity, '\0', file) < 0) {
    free(text);
    text = NULL;
  }
  fclose(file);
  return text;
}

/* A walk over the strings. */
typedef struct walk {
  const char *at;       /* what comes next */
  int depth;            /* of arrays */
  int rank;             /* whose string it is */
  int address;          /* its number among the rank's */
  const char *string;   /* within the quotes, as written */
  int length;
} walk_t;

static walk_t walk_of(const char *text) { return (walk_t){.at = text, .rank = 0, .address = -1}; }

/* The next string; false after the last. */
static bool next_string(walk_t *walk) {
  for (; *walk->at; walk->at++) {
    switch (*walk->at) {
      case '[': walk->depth++; break;
      case ']': walk->depth--; break;
      case ',':
        if (walk->depth != 1) break;
        walk->rank++;
        walk->address = -1;
        break;
      case '"': {
        const char *end = walk->at + 1;
        while (*end && *end != '"') end += *end == '\\' && end[1] ? 2 : 1;
        walk->string = walk->at + 1;
        walk->length = (int)(end - walk->string);
        walk->address++;
        walk->at = *end ? end + 1 : end;
        return true;
      }
      default: break;
    }
  }
  return false;
}

int hostfile_addresses(const char *text, int rank) {
  int addresses = 0;
  walk_t walk = walk_of(text);
  while (next_string(&walk)) addresses += walk.rank == rank;
  return addresses;
}

void hostfile_address(const char *text, int rank, int address, char *out, size_t size) {
  *out = '\0';
  walk_t walk = walk_of(text);
  while (next_string(&walk)) {
    if (walk.rank == rank && walk.address == address) snprintf(out, size, "%.*s", walk.length, walk.string);
  }
}

char *hostfile_of_address(const char *text, int address) {
  /* What is written is no longer than what is read, but for the brackets. */
  char *hosts = malloc(strlen(text) + sizeof "[]"), *end = hosts;
  if (!hosts) return NULL;
  *end++ = '[';
  walk_t walk = walk_of(text);
  for (bool more = next_string(&walk); more;) {
    walk_t chosen = walk;
    for (more = next_string(&walk); more && walk.rank == chosen.rank; more = next_string(&walk)) {
      if (walk.address <= address) chosen = walk;
    }
    end += sprintf(end, "%s\"%.*s\"", chosen.rank ? "," : "", chosen.length, chosen.string);
  }
  strcpy(end, "]");
  return hosts;
}
