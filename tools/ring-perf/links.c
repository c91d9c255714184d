#include "links.h"

#include "at_once.h"
#include "hostfile.h"
#include "links_report.h"
#include "say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A message that doesn't move for this long is lost, as on links that carry small packets only; where the environment
 * has no timeout of its own. An edge of 30 kbit/s takes its first round in less. */
enum { SILENCE_MS = 30000 };

/* How often an edge that looks slow is measured again: what else a host does may pass in the meantime, a slow edge stays. */
enum { FURTHER_LOOKS = 3 };

static bool begin_table(table_t *table, int size, int addresses) {
  /* In a ring of two both edges are between the same ranks. */
  *table = (table_t){.size = size, .addresses = addresses, .edges = size > 2 ? size : size - 1};
  table->links = calloc((size_t)(table->edges * addresses) + 1, sizeof *table->links);
  table->ends = calloc((size_t)(size * addresses), sizeof *table->ends);
  if (table->links && table->ends) return true;
  fprintf(stderr, "ring-perf: no memory for the links of %d ranks\n", size);
  return false;
}

static void end_table(table_t *table) {
  free(table->links);
  free(table->ends);
}

static link_t *link_at(const table_t *table, int edge, int address) {
  return &table->links[edge * table->addresses + address];
}

/* ---- a ring with one address a rank ---- */

static ring_status_t gather_ends(const run_t *run, const table_t *table, const char *hosts, int address) {
  end_t *ends = &table->ends[address * run->size], *own = &ends[run->rank];
  member_t *members = calloc((size_t)run->size, sizeof *members);
  ring_status_t status = members ? gather_members(run->group, members) : RING_STATUS_OUT_OF_MEMORY;
  for (int rank = 0; rank < run->size && status == RING_STATUS_OK; rank++) ends[rank].member = members[rank];
  free(members);
  if (hosts) hostfile_address(hosts, (run->rank + 1) % run->size, 0, own->address, sizeof own->address);
  if (status != RING_STATUS_OK) return status;
  return ring_all_gather(run->group, own, ends, sizeof *own, RING_DTYPE_UINT8);
}

static void begin_links(const run_t *run, const table_t *table, int address) {
  const end_t *ends = &table->ends[address * run->size];
  for (int edge = 0; edge < run->edges; edge++) {
    link_t *link = link_at(table, edge, address);
    *link = (link_t){.left = edge, .right = (edge + 1) % run->size, .address = address};
    link->inside_host = strcmp(ends[link->left].member.host, ends[link->right].member.host) == 0;
  }
}

static int say_where(const run_t *run, const link_t *link, ring_status_t status) {
  char who[96];
  snprintf(who, sizeof who, "rank %d, testing the link between ranks %d and %d", run->rank, link->left, link->right);
  return say_failure(who, status);
}

/* Each edge once, or those that look slow once more. */
static int measure_edges(const run_t *run, const table_t *table, int address, bool again) {
  for (int edge = 0; edge < run->edges; edge++) {
    link_t *link = link_at(table, edge, address);
    if (again && !link->slow) continue;
    if (run->rank == 0) show_progress("ranks %d and %d%s", link->left, link->right, again ? ", again" : "");
    edge_t measured;
    ring_status_t status = measure_edge(run, edge, &measured);
    if (status != RING_STATUS_OK) return say_where(run, link, status);
    if (again) keep_better(&link->edge, &measured);
    else link->edge = measured;
    link->measured = true;
  }
  return 0;
}

static int measure_all_at_once(const run_t *run, const table_t *table, int address) {
  edge_t *edges = calloc((size_t)run->edges + 1, sizeof *edges);
  char text[AT_ONCE_TEXT_BYTES] = "no memory";
  ring_status_t status = edges ? RING_STATUS_OK : RING_STATUS_OUT_OF_MEMORY;
  if (run->rank == 0) show_progress("all at once");
  for (int edge = 0; edge < run->edges && edges; edge++) edges[edge] = link_at(table, edge, address)->edge;
  if (edges) status = measure_at_once(run, edges, text);
  for (int edge = 0; edge < run->edges && status == RING_STATUS_OK; edge++) {
    link_at(table, edge, address)->edge = edges[edge];
  }
  free(edges);
  if (status == RING_STATUS_OK) return 0;
  fprintf(stderr, "ring-perf: rank %d, testing all links at once: %s: %s\n", run->rank, ring_status_name(status), text);
  return 1;
}

/* All ranks have the same numbers, and so agree on which edges to measure again. */
static int measure_ring(const run_t *run, const table_t *table, const char *hosts, int address) {
  char who[32];
  snprintf(who, sizeof who, "rank %d", run->rank);
  ring_status_t status = gather_ends(run, table, hosts, address);
  if (status != RING_STATUS_OK) return say_failure(who, status);
  begin_links(run, table, address);
  if (run->edges == 0) return 0;
  int failed = measure_edges(run, table, address, false);
  for (int look = 0; look < FURTHER_LOOKS && !failed; look++) {
    common_t common;
    if (judge(table->links, (size_t)(table->edges * table->addresses), &common)) {
      failed = measure_edges(run, table, address, true);
    } else {
      fprintf(stderr, "ring-perf: %s: no memory\n", who);
      failed = 1;
    }
  }
  if (!failed) failed = measure_all_at_once(run, table, address);
  return failed;
}

static int test_address(ring_group_t *group, const table_t *table, const char *hosts, int address) {
  run_t run = {.group = group, .rank = ring_group_rank(group), .size = table->size, .edges = table->edges};
  if (!getenv("RING_TIMEOUT_MS")) (void)!ring_group_set_timeout(group, SILENCE_MS);
  const size_t chunks = sizeof run.chunks / sizeof *run.chunks;
  uint8_t *memory = malloc(chunks * CHUNK_BYTES);
  if (!memory) {
    fprintf(stderr, "ring-perf: rank %d: no memory\n", run.rank);
    return 1;
  }
  /* Pages that nobody has written are all one, and cost no memory to read. */
  memset(memory, run.rank + 1, chunks * CHUNK_BYTES);
  for (size_t i = 0; i < chunks; i++) run.chunks[i] = memory + i * CHUNK_BYTES;
  int failed = measure_ring(&run, table, hosts, address);
  free(memory);
  return failed;
}

/* What was measured, also where the test came to an early end. Returns the exit status. */
static int report(const table_t *table, int rank, bool json, int failed) {
  common_t common;
  if (!judge(table->links, (size_t)(table->edges * table->addresses), &common)) return 1;
  end_progress();
  if (rank == 0 && json && !failed) print_links_json(table, &common);
  if (rank == 0 && !json) print_links(table, &common);
  return failed || common.slow ? 1 : 0;
}

int test_links(ring_group_t *group, const char *hosts, bool json) {
  table_t table;
  int result = 1;
  if (begin_table(&table, ring_group_size(group), 1)) {
    result = report(&table, ring_group_rank(group), json, test_address(group, &table, hosts, 0));
  }
  end_table(&table);
  return result;
}

/* ---- the environment's ring ---- */

/* Writes a hostfile that the environment names from now on. `path` is its name. */
static bool use_hostfile(const char *hosts, char *path, size_t size) {
  const char *folder = getenv("TMPDIR");
  snprintf(path, size, "%s/ring-perf-XXXXXX", folder ? folder : "/tmp");
  int file = mkstemp(path);
  if (file < 0) {
    perror("ring-perf: making a file for one address of each rank");
    return false;
  }
  size_t length = strlen(hosts);
  bool written = write(file, hosts, length) == (ssize_t)length;
  close(file);
  if (written) return setenv("RING_HOSTFILE", path, 1) == 0;
  fprintf(stderr, "ring-perf: %s can't be written\n", path);
  unlink(path);
  return false;
}

/* One after the other, as a ring of its own: so messages go by the address. */
static int test_addresses(const table_t *table, const char *hosts) {
  int failed = 0;
  for (int address = 0; address < table->addresses && !failed; address++) {
    char path[512];
    char *chosen = hostfile_of_address(hosts, address);
    if (!chosen || !use_hostfile(chosen, path, sizeof path)) {
      free(chosen);
      return 1;
    }
    ring_group_t *group;
    ring_status_t status = ring_group_create_from_env(&group);
    unlink(path);
    if (status != RING_STATUS_OK) {
      char who[64];
      snprintf(who, sizeof who, "joining the ring of each rank's address %d", address + 1);
      failed = say_failure(who, status);
    } else {
      failed = test_address(group, table, chosen, address);
      ring_group_destroy(group);
    }
    free(chosen);
  }
  return failed;
}

int test_links_of_environment(bool json) {
  ring_group_t *group;
  ring_status_t status = ring_group_create_from_env(&group);
  if (status != RING_STATUS_OK) return say_no_ring(status, "ring-perf --links");
  int rank = ring_group_rank(group), size = ring_group_size(group);
  char *hosts = hostfile_of_environment();
  int addresses = hosts ? hostfile_addresses(hosts, rank) : 1;
  int result = 1;
  table_t table;
  if (addresses < 2 || size < 2) {
    result = test_links(group, hosts, json);
    ring_group_destroy(group);
  } else {
    ring_group_destroy(group);
    if (begin_table(&table, size, addresses)) result = report(&table, rank, json, test_addresses(&table, hosts));
    end_table(&table);
  }
  free(hosts);
  return result;
}
