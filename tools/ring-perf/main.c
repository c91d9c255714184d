/* ring-perf: how fast a collective is, and whether its numbers are right; and which links of a ring are slow. */
#include "launch.h"
#include "links.h"
#include "measure.h"
#include "options.h"
#include "predict.h"
#include "report.h"
#include "say.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* Ranks that are started together are there at once, or not at all. */
enum { LOCAL_CONNECT_TIMEOUT_MS = 20000 };

static size_t elements(const options_t *options, size_t bytes) {
  size_t count = bytes / ring_dtype_size(options->dtype);
  return count ? count : 1;
}

/* The sizes to measure on so many ranks; the caller frees them. */
static row_t *make_rows(const options_t *options, int size, size_t *row_count) {
  const collective_t *collective = options->collective;
  row_t *rows = calloc(sizeof(size_t) * CHAR_BIT, sizeof *rows);
  *row_count = 0;
  for (size_t bytes = options->min_bytes; rows; bytes *= options->factor) {
    row_t *row = &rows[(*row_count)++];
    row->total = whole_of(collective, elements(options, bytes), size);
    row->count = collective->in_parts ? row->total / (size_t)size : row->total;
    if (row->total == 0 || bytes > options->max_bytes / options->factor) break;
  }
  return rows;
}

/* Measures every row; rank 0 prints them. */
static ring_status_t measure_rows(ring_group_t *group, const options_t *options, row_t *rows, size_t row_count,
                                  void *send, void *recv) {
  bool prints = ring_group_rank(group) == 0;
  ring_status_t status = RING_STATUS_OK;
  for (size_t i = 0; i < row_count && status == RING_STATUS_OK; i++) {
    row_t *row = &rows[i];
    size_t bytes = row->total * ring_dtype_size(options->dtype);
    if (options->out_of_place) {
      if (prints) show_progress("%zu bytes, out of place", bytes);
      status = measure(group, options, send, recv, row->total, &row->out_of_place);
    }
    if (options->in_place && status == RING_STATUS_OK) {
      if (prints) show_progress("%zu bytes, in place", bytes);
      status = measure(group, options, recv, recv, row->total, &row->in_place);
    }
    if (prints && !options->json && status == RING_STATUS_OK) print_row(options, row);
  }
  return status;
}

static int run(ring_group_t *group, const options_t *options) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  char who[32];
  snprintf(who, sizeof who, "rank %d", rank);
  size_t row_count, largest = 1;
  row_t *rows = make_rows(options, size, &row_count);
  for (size_t i = 0; rows && i < row_count; i++) {
    size_t bytes = rows[i].total * ring_dtype_size(options->dtype);
    if (bytes > largest) largest = bytes;
  }
  member_t *members = calloc((size_t)size, sizeof *members);
  void *send = malloc(options->out_of_place ? largest : 1), *recv = malloc(largest);
  int result = 1;
  if (!rows || !members || !send || !recv) {
    fprintf(stderr, "ring-perf: %s: no memory for arrays of %zu bytes\n", who, largest);
  } else {
    ring_status_t status = gather_members(group, members);
    if (status == RING_STATUS_OK && rank == 0 && !options->json) print_header(options, members, size);
    if (status == RING_STATUS_OK) status = measure_rows(group, options, rows, row_count, send, recv);
    if (status != RING_STATUS_OK) {
      say_failure(who, status);
    } else {
      if (rank == 0 && options->json) print_json(options, members, size, rows, row_count);
      if (rank == 0 && !options->json) {
        print_footer(rows, row_count);
        if (options->collective == find_collective(MODEL_COLLECTIVE)) print_fit(options, size, rows, row_count);
      }
      result = wrong_in(rows, row_count) ? 1 : 0;
    }
  }
  free(send);
  free(recv);
  free(members);
  free(rows);
  return result;
}

static int run_local_rank(int rank, const char *hosts, const void *data) {
  const options_t *options = data;
  ring_config_t config;
  ring_config_init(&config, sizeof config);
  config.rank = rank;
  config.hosts = hosts;
  config.connections = (uint32_t)options->connections;
  config.connect_timeout_ms = LOCAL_CONNECT_TIMEOUT_MS;
  ring_group_t *group;
  ring_status_t status = ring_group_create(&config, &group);
  char who[32];
  snprintf(who, sizeof who, "rank %d", rank);
  if (status != RING_STATUS_OK) return say_failure(who, status);
  int result = options->links ? test_links(group, hosts, options->json) : run(group, options);
  ring_group_destroy(group);
  return result;
}

static int run_rank_of_environment(options_t *options) {
  if (options->links) return test_links_of_environment(options->json);
  char number[16];
  snprintf(number, sizeof number, "%d", options->connections);
  if (options->connections) setenv("RING_CONNECTIONS", number, 1);
  ring_group_t *group;
  ring_status_t status = ring_group_create_from_env(&group);
  if (status != RING_STATUS_OK) return say_no_ring(status, "ring-perf");
  const char *connections = getenv("RING_CONNECTIONS");
  options->connections = connections && atoi(connections) ? atoi(connections) : 1;
  int result = run(group, options);
  ring_group_destroy(group);
  return result;
}

static int predict(const options_t *options) {
  size_t row_count;
  /* An all-reduce has the same size on any ring. */
  row_t *rows = make_rows(options, 1, &row_count);
  if (!rows) {
    fprintf(stderr, "ring-perf: no memory\n");
    return 1;
  }
  print_prediction(options, rows, row_count);
  free(rows);
  return 0;
}

int main(int argc, char **argv) {
  hold_streams();
  options_t options = parse_options(argc, argv);
  if (options.predict) return written(predict(&options));
  if (options.ranks == 0) return written(run_rank_of_environment(&options));
  if (options.connections == 0) options.connections = 1;
  return launch(options.ranks, run_local_rank, &options);
}
