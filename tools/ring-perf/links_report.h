/* What rank 0 prints of a ring's links. */
#ifndef LINKS_REPORT_H
#define LINKS_REPORT_H

#include "member.h"
#include "verdict.h"

/* More than "[IPv6%interface]:port" and most names need; longer ones are cut. */
enum { ADDRESS_BYTES = 128 };

/* A rank, and the address at which it has its right neighbour; empty where no hostfile says. */
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
  end_t *ends;              /* those of all ranks at each address, one after the other */
} table_t;

void print_links(const table_t *table, const common_t *common);
void print_links_json(const table_t *table, const common_t *common);

#endif
