/* Which edges are called slow, and which addresses a hostfile has. */
#include "check.h"
#include "hostfile.h"
#include "verdict.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LINKS = 9 };

/* A ring of like edges, 40 us and 1 GB/s, none exactly as the next. */
static size_t make_ring(link_t *links, int size) {
  for (int i = 0; i < size; i++) {
    double off = 1 + 0.1 * (i % 3);
    links[i] = (link_t){.left = i, .right = (i + 1) % size, .measured = true};
    links[i].edge = (edge_t){.least_us = 40 * off, .gb_s = {1 / off, 1.01 / off}};
  }
  return (size_t)size;
}

static common_t judged(link_t *links, size_t count) {
  common_t common;
  CHECK(judge(links, count, &common));
  return common;
}

static void like_edges_are_not_slow(void) {
  link_t links[MOST_LINKS];
  for (int size = 1; size <= MOST_LINKS; size++) {
    size_t count = make_ring(links, size);
    common_t common = judged(links, count);
    CHECK(common.slow == 0 && common.between_hosts && common.at_once == 0);
    for (size_t i = 0; i < count; i++) CHECK(links[i].slow == 0);
  }
}

static void the_slow_one_is_named_by_what_is_slow(void) {
  link_t links[MOST_LINKS];
  for (int size = 1; size <= MOST_LINKS; size++) {
    for (int slow = 0; slow < size; slow++) {
      for (unsigned what = SLOW_RIGHT; what <= SLOW_ROUND_TRIP; what <<= 1) {
        /* Of one edge's round trip there is nothing to compare with. */
        if (size == 1 && what == SLOW_ROUND_TRIP) continue;
        size_t count = make_ring(links, size);
        edge_t *edge = &links[slow].edge;
        if (what == SLOW_RIGHT) edge->gb_s[WAY_RIGHT] = 0.5;
        if (what == SLOW_LEFT) edge->gb_s[WAY_LEFT] = 0.5;
        if (what == SLOW_ROUND_TRIP) edge->least_us = 5000;
        common_t common = judged(links, count);
        CHECK(common.slow == 1);
        for (int i = 0; i < size; i++) CHECK(links[i].slow == (i == slow ? what : 0));
        CHECK(what == SLOW_ROUND_TRIP ? common.most_round_trip_us == 5000 : common.least_gb_s == 0.5);
      }
    }
  }
}

static void the_ratios_are_the_bounds(void) {
  link_t links[MOST_LINKS];
  for (int i = 0; i < 3; i++) {
    links[i] = (link_t){.measured = true, .edge = {.least_us = 1000, .gb_s = {3, 3}}};
  }
  links[1].edge = (edge_t){.least_us = 2000, .gb_s = {2, 2}};
  CHECK(judged(links, 3).slow == 0);
  links[1].edge.gb_s[WAY_LEFT] = 1.99;
  CHECK(judged(links, 3).slow == 1 && links[1].slow == SLOW_LEFT);
  links[1].edge = (edge_t){.least_us = 2001, .gb_s = {3, 3}};
  CHECK(judged(links, 3).slow == 1 && links[1].slow == SLOW_ROUND_TRIP);
  /* Many times the median, but by less than what a scheduler adds. */
  for (int i = 0; i < 3; i++) links[i].edge.least_us = i == 1 ? 330 : 30;
  CHECK(judged(links, 3).slow == 0);
  links[1].edge.least_us = 331;
  CHECK(judged(links, 3).slow == 1);
}

static void half_of_the_ways_may_be_slow(void) {
  link_t links[MOST_LINKS];
  size_t count = make_ring(links, 4);
  for (int i = 0; i < 4; i++) links[i].edge.gb_s[WAY_LEFT] = 0.01;
  CHECK(judged(links, count).slow == 4);
  for (int i = 0; i < 4; i++) CHECK(links[i].slow == SLOW_LEFT);
}

/* Three of four edges are inside hosts, and as fast as memory: the network's isn't slow for that. Against a network that is
 * fast, one inside a host may be. */
static void hosts_insides_are_no_measure(void) {
  link_t links[MOST_LINKS];
  size_t count = make_ring(links, 4);
  for (int i = 1; i < 4; i++) {
    links[i].inside_host = true;
    links[i].edge = (edge_t){.least_us = 5, .gb_s = {10, 10}};
  }
  links[0].edge.least_us = 500;
  CHECK(judged(links, count).slow == 0);
  links[2].edge.gb_s[WAY_RIGHT] = 0.1;
  common_t common = judged(links, count);
  CHECK(common.slow == 1 && links[2].slow == SLOW_RIGHT && common.between_hosts && common.gb_s < 1.1);
  links[0].inside_host = true;
  links[2].edge.gb_s[WAY_RIGHT] = 10;
  CHECK(judged(links, count).slow == 1 && links[0].slow == (SLOW_RIGHT | SLOW_LEFT | SLOW_ROUND_TRIP));
}

static void what_was_not_measured_counts_for_nothing(void) {
  link_t links[MOST_LINKS];
  size_t count = make_ring(links, 6);
  for (int i = 2; i < 6; i++) links[i] = (link_t){.left = i, .measured = false};
  common_t common = judged(links, count);
  CHECK(common.slow == 0 && common.least_gb_s > 0.9 && common.gb_s > 0.9);
  for (int i = 0; i < 6; i++) links[i].measured = false;
  CHECK(judged(links, count).slow == 0);
}

static void what_edges_carry_at_once(void) {
  link_t links[MOST_LINKS];
  size_t count = make_ring(links, 5);
  for (int i = 0; i < 5; i++) {
    for (int way = 0; way < WAYS; way++) links[i].edge.at_once_gb_s[way] = links[i].edge.gb_s[way] / 2;
  }
  links[3].edge.at_once_gb_s[WAY_LEFT] /= 10;
  double part = judged(links, count).at_once;
  CHECK(part > 0.499 && part < 0.501);
}

static void the_better_is_kept(void) {
  edge_t edge = {.least_us = 40, .p99_us = 50, .most_us = 60, .gb_s = {1, 2}};
  const edge_t again = {.least_us = 30, .p99_us = 90, .most_us = 100, .gb_s = {3, 1}};
  edge_t first = edge;
  keep_better(&edge, &again);
  CHECK(edge.least_us == 30 && edge.p99_us == 90 && edge.most_us == 100);
  CHECK(edge.gb_s[WAY_RIGHT] == 3 && edge.gb_s[WAY_LEFT] == 2);
  edge = again;
  keep_better(&edge, &first);
  CHECK(edge.least_us == 30 && edge.p99_us == 90 && edge.gb_s[WAY_RIGHT] == 3 && edge.gb_s[WAY_LEFT] == 2);
}

static void text_of_address_is(const char *text, int address, const char *wanted) {
  char *hosts = hostfile_of_address(text, address);
  CHECK(hosts && strcmp(hosts, wanted) == 0);
  free(hosts);
}

static void address_is(const char *text, int rank, int address, size_t size, const char *wanted) {
  char found[64] = "stale";
  hostfile_address(text, rank, address, found, size);
  CHECK(strcmp(found, wanted) == 0);
}

static void hostfiles_have_addresses(void) {
  const char *text = " [ [\"10.0.0.1:1\" , \"10.1.0.1:1\"],\n\"b:2\", [\"[fd00::3%e,0]:3\",\"c:3\",\"d\\\"]:3\"] ]\n";
  CHECK(hostfile_addresses(text, 0) == 2 && hostfile_addresses(text, 1) == 1 && hostfile_addresses(text, 2) == 3);
  CHECK(hostfile_addresses(text, 3) == 0 && hostfile_addresses("[]", 0) == 0);
  address_is(text, 0, 1, 64, "10.1.0.1:1");
  address_is(text, 1, 0, 64, "b:2");
  address_is(text, 2, 0, 64, "[fd00::3%e,0]:3");
  address_is(text, 2, 0, 7, "[fd00:");
  address_is(text, 1, 1, 64, "");
  text_of_address_is(text, 0, "[\"10.0.0.1:1\",\"b:2\",\"[fd00::3%e,0]:3\"]");
  text_of_address_is(text, 1, "[\"10.1.0.1:1\",\"b:2\",\"c:3\"]");
  text_of_address_is(text, 2, "[\"10.1.0.1:1\",\"b:2\",\"d\\\"]:3\"]");
  text_of_address_is("[\"a:1\"]", 0, "[\"a:1\"]");
}

int main(void) {
  like_edges_are_not_slow();
  the_slow_one_is_named_by_what_is_slow();
  the_ratios_are_the_bounds();
  half_of_the_ways_may_be_slow();
  hosts_insides_are_no_measure();
  what_was_not_measured_counts_for_nothing();
  what_edges_carry_at_once();
  the_better_is_kept();
  hostfiles_have_addresses();
  return 0;
}
