/* What rank 0 prints of a ring's links. */
#ifndef LINKS_REPORT_H
#define LINKS_REPORT_H

#include "member.h"
#include "verdict.h"

/* More than "[IPv6%interface]:port" and most names need; longer ones are cut. */
enum { ADDRESS_BYTES = 128 };

/* A rank, and the addresses of its right neighbour as it knows them: `addresses` of them, one after the other. */
typedef struct end {
  member_t member;
  char address[ADDRESS_BYTES];
} end_t;

/* A ring's links: those of edge e at all addresses, one after the other, from e * addresses on. */
typedef struct table {
  int size;
  int addresses;            /* of a rank */
  int edges;
  link_t *links;            /* edges * addresses */
  end_t *ends;              /* size * addresses */
} table_t;

void print_links(const table_t *table, const common_t *common);
void print_links_json(const table_t *table, const common_t *common);

#endif
