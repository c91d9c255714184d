#include "links_report.h"

#include "say.h"

#include <ring.h>
#include <stdio.h>
#include <string.h>

/* What is slow in words that fit a table, and in JSON. */
static const char *const SLOW_NAMES[] = {"right", "left", "round_trip"};
enum { SLOW_KINDS = sizeof SLOW_NAMES / sizeof *SLOW_NAMES };

static const char *host_of(const table_t *table, int rank) { return table->ends[rank].member.host; }

/* Where the left end has the right one. */
static const char *address_of(const table_t *table, const link_t *link) {
  return table->ends[link->address * table->size + link->left].address;
}

static size_t link_count(const table_t *table) { return (size_t)(table->edges * table->addresses); }

/* ---- the table ---- */

static int width_of(const table_t *table, bool of_hosts) {
  int widest = of_hosts ? (int)strlen("hosts") : (int)strlen("address");
  for (size_t i = 0; i < link_count(table); i++) {
    const link_t *link = &table->links[i];
    int width = (int)strlen(address_of(table, link));
    if (of_hosts) width = (int)(strlen(host_of(table, link->left)) + strlen(host_of(table, link->right)) + strlen(" - "));
    if (width > widest) widest = width;
  }
  return widest;
}

static void print_rate(double gb_s, bool measured) {
  if (measured && gb_s > 0) printf(" %9.4f", gb_s);
  else printf(" %9s", "-");
}

static void print_verdict(const link_t *link, const common_t *common) {
  if (!link->measured) {
    printf("not tested");
    return;
  }
  const char *between = "slow: ";
  for (int way = 0; way < WAYS; way++) {
    if (!(link->slow & 1u << way)) continue;
    printf("%s%s %.2f x", between, SLOW_NAMES[way], link->edge.gb_s[way] / common->gb_s);
    between = ", ";
  }
  if (link->slow & SLOW_ROUND_TRIP) printf("%sround trip %.1f x", between, link->edge.least_us / common->round_trip_us);
  if (!link->slow) printf("ok");
}

static void print_link(const table_t *table, const link_t *link, const common_t *common, const int widths[2]) {
  char ranks[32], hosts[2 * HOST_BYTES + 4];
  snprintf(ranks, sizeof ranks, "%d - %d", link->left, link->right);
  snprintf(hosts, sizeof hosts, "%s - %s", host_of(table, link->left), host_of(table, link->right));
  const char *address = address_of(table, link);
  printf("  %-9s  %-*s  %-*s ", ranks, widths[0], hosts, widths[1], *address ? address : "-");
  const edge_t *edge = &link->edge;
  if (link->measured) printf(" %9.1f %9.1f %9.1f ", edge->least_us, edge->median_us, edge->p99_us);
  else printf(" %9s %9s %9s ", "-", "-", "-");
  for (int way = 0; way < WAYS; way++) print_rate(edge->gb_s[way], link->measured);
  printf(" ");
  for (int way = 0; way < WAYS; way++) print_rate(edge->at_once_gb_s[way], link->measured);
  printf("   ");
  print_verdict(link, common);
  printf("\n");
}

static void print_slow_way(const table_t *table, const link_t *link, way_t way, const common_t *common) {
  int from = way == WAY_RIGHT ? link->left : link->right, to = way == WAY_RIGHT ? link->right : link->left;
  const char *address = address_of(table, link);
  printf("# Slow: from rank %d to rank %d (%s to %s%s%s): %.4g GB/s, %.2f of the median\n", from, to, host_of(table, from),
         host_of(table, to), *address ? ", link to " : "", address, link->edge.gb_s[way], link->edge.gb_s[way] / common->gb_s);
}

static void print_slow(const table_t *table, const link_t *link, const common_t *common) {
  for (int way = 0; way < WAYS; way++) {
    if (link->slow & 1u << way) print_slow_way(table, link, (way_t)way, common);
  }
  if (link->slow & SLOW_ROUND_TRIP) {
    const char *address = address_of(table, link);
    printf("# Slow: least round trip between ranks %d and %d (%s and %s%s%s): %.4g us, %.1f times the median\n", link->left,
           link->right, host_of(table, link->left), host_of(table, link->right), *address ? ", link to " : "", address,
           link->edge.least_us, link->edge.least_us / common->round_trip_us);
  }
}

/* A ring is as fast as its slowest edge. */
static void print_loss(const table_t *table, const common_t *common) {
  unsigned slow = 0;
  for (size_t i = 0; i < link_count(table); i++) slow |= table->links[i].slow;
  if (slow & (SLOW_RIGHT | SLOW_LEFT)) {
    printf("# The ring is as fast as its slowest edge: large collectives take up to %.1f times as long as at the median.\n",
           common->gb_s / common->least_gb_s);
  }
  if (slow & SLOW_ROUND_TRIP) {
    /* A call's data cross each edge once at least, one way. */
    printf("# Every call waits for the longest of them: %.4g us more a call, at least, than at the median.\n",
           (common->most_round_trip_us - common->round_trip_us) / 2);
  }
  if (!slow) printf("# No edge is slow.\n");
}

void print_links(const table_t *table, const common_t *common) {
  printf("# ring-perf %s: the links of a ring of %d, one edge at a time, then all at once\n#\n",
         ring_version_string(), table->size);
  if (table->edges == 0) {
    printf("# A ring of one has no links: there is nothing to test.\n");
    return;
  }
  const int widths[2] = {width_of(table, true), width_of(table, false)};
  printf("# %-9s  %-*s  %-*s  %29s   %18s   %18s\n", "", widths[0], "", widths[1], "", "round trip (us)    ",
         "alone (GB/s)  ", "at once (GB/s) ");
  printf("# %-9s  %-*s  %-*s  %9s %9s %9s   %9s %9s  %9s %9s   %s\n", "ranks", widths[0], "hosts", widths[1], "address",
         "least", "median", "p99", "right", "left", "right", "left", "verdict");
  bool whole = true, inside_host = true;
  for (size_t i = 0; i < link_count(table); i++) {
    print_link(table, &table->links[i], common, widths);
    whole &= table->links[i].measured;
    inside_host &= table->links[i].inside_host;
  }
  printf("#\n# Median%s: least round trip %.4g us, %.4g GB/s one way", common->between_hosts ? " of the edges between hosts" : "",
         common->round_trip_us, common->gb_s);
  if (common->at_once > 0) printf("; at once each way carries %.2f of what it carries alone", common->at_once);
  printf("\n# Slow is less than 1/%g of that bandwidth, or a least round trip of %g times that and %g us more.\n", BANDWIDTH_RATIO,
         ROUND_TRIP_RATIO, ROUND_TRIP_MARGIN_US);
  if (inside_host) printf("# All ranks are on one host: verdicts depend on what else it does.\n");
  for (size_t i = 0; i < link_count(table); i++) print_slow(table, &table->links[i], common);
  if (whole) print_loss(table, common);
  else printf("# The test has failed before its end.\n");
}

/* ---- JSON ---- */

static void print_json_link(const table_t *table, const link_t *link) {
  const edge_t *edge = &link->edge;
  printf("{\"ranks\": [%d, %d], \"address\": ", link->left, link->right);
  if (*address_of(table, link)) print_json_string(address_of(table, link));
  else printf("null");
  printf(", \"inside_host\": %s,\n     \"least_us\": %.3f, \"median_us\": %.3f, \"p99_us\": %.3f, \"max_us\": %.3f,",
         link->inside_host ? "true" : "false", edge->least_us, edge->median_us,
         edge->p99_us, edge->most_us);
  printf(" \"right_gb_s\": %.6f, \"left_gb_s\": %.6f,", edge->gb_s[WAY_RIGHT], edge->gb_s[WAY_LEFT]);
  printf(" \"at_once_right_gb_s\": %.6f, \"at_once_left_gb_s\": %.6f, \"slow\": [", edge->at_once_gb_s[WAY_RIGHT],
         edge->at_once_gb_s[WAY_LEFT]);
  const char *between = "";
  for (int kind = 0; kind < SLOW_KINDS; kind++) {
    if (!(link->slow & 1u << kind)) continue;
    printf("%s\"%s\"", between, SLOW_NAMES[kind]);
    between = ", ";
  }
  printf("]}");
}

void print_links_json(const table_t *table, const common_t *common) {
  printf("{\n  \"program\": \"ring-perf\", \"version\": \"%s\", \"test\": \"links\", \"ranks\": %d,\n  \"hosts\": [",
         ring_version_string(), table->size);
  for (int rank = 0; rank < table->size; rank++) {
    if (rank > 0) printf(", ");
    print_json_string(host_of(table, rank));
  }
  printf("],\n  \"median\": {\"between_hosts\": %s, \"least_us\": %.3f, \"gb_s\": %.6f, \"at_once\": %.4f},\n",
         common->between_hosts ? "true" : "false", common->round_trip_us, common->gb_s, common->at_once);
  printf("  \"links\": [");
  for (size_t i = 0; i < link_count(table); i++) {
    printf("%s\n    ", i ? "," : "");
    print_json_link(table, &table->links[i]);
  }
  printf("\n  ],\n  \"slow\": %d\n}\n", common->slow);
}
