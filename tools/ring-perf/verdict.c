#include "verdict.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The middle value, of an even number the upper or the lower of two; 0 of none. Sorts them. */
static double median(double *values, size_t count, bool upper) {
  if (count == 0) return 0;
  qsort(values, count, sizeof *values, by_value);
  return values[upper ? count / 2 : (count - 1) / 2];
}

void keep_better(edge_t *edge, const edge_t *again) {
  for (int way = 0; way < WAYS; way++) {
    if (again->gb_s[way] > edge->gb_s[way]) edge->gb_s[way] = again->gb_s[way];
  }
  if (again->least_us < edge->least_us) {
    edge->least_us = again->least_us;
    edge->median_us = again->median_us;
    edge->p99_us = again->p99_us;
    edge->most_us = again->most_us;
  }
}

/* Whether its numbers are ones that others are held to. */
static bool counts(const link_t *link, bool between_hosts) {
  return link->measured && !(between_hosts && link->inside_host);
}

static void find_medians(const link_t *links, size_t count, double *values, common_t *common) {
  size_t found = 0;
  for (size_t i = 0; i < count; i++) {
    if (counts(&links[i], common->between_hosts)) values[found++] = links[i].edge.least_us;
  }
  common->round_trip_us = median(values, found, false);

  found = 0;
  for (size_t i = 0; i < count; i++) {
    if (!counts(&links[i], common->between_hosts)) continue;
    for (int way = 0; way < WAYS; way++) values[found++] = links[i].edge.gb_s[way];
  }
  common->gb_s = median(values, found, true);

  found = 0;
  for (size_t i = 0; i < count; i++) {
    const edge_t *edge = &links[i].edge;
    if (!counts(&links[i], common->between_hosts)) continue;
    for (int way = 0; way < WAYS; way++) {
      if (edge->at_once_gb_s[way] > 0) values[found++] = edge->at_once_gb_s[way] / edge->gb_s[way];
    }
  }
  common->at_once = median(values, found, true);
}

static void judge_link(link_t *link, common_t *common) {
  const edge_t *edge = &link->edge;
  link->slow = 0;
  for (int way = 0; way < WAYS; way++) {
    if (edge->gb_s[way] * BANDWIDTH_RATIO < common->gb_s) link->slow |= 1u << way;
    if (common->least_gb_s == 0 || edge->gb_s[way] < common->least_gb_s) common->least_gb_s = edge->gb_s[way];
  }
  if (edge->least_us > common->round_trip_us * ROUND_TRIP_RATIO &&
      edge->least_us > common->round_trip_us + ROUND_TRIP_MARGIN_US) {
    link->slow |= SLOW_ROUND_TRIP;
  }
  if (edge->least_us > common->most_round_trip_us) common->most_round_trip_us = edge->least_us;
  common->slow += link->slow != 0;
}

bool judge(link_t *links, size_t count, common_t *common) {
  *common = (common_t){.between_hosts = false};
  double *values = malloc((count * WAYS + 1) * sizeof *values);
  if (!values) return false;
  for (size_t i = 0; i < count; i++) common->between_hosts |= links[i].measured && !links[i].inside_host;
  find_medians(links, count, values, common);
  free(values);
  for (size_t i = 0; i < count; i++) {
    if (links[i].measured) judge_link(&links[i], common);
  }
  return true;
}
