#include "report.h"

#include "say.h"

#include <inttypes.h>
#include <stdio.h>

static const char *split_name(split_t split) { return split == SPLIT_EVEN ? "even" : "uneven"; }

/* As nccl-tests calls the op of what doesn't reduce. */
static const char *op_of(const options_t *options) {
  return reduces(options->collective) ? ring_op_name(options->op) : "none";
}

void print_header(const options_t *options, const member_t *members, int size) {
  printf("# ring-perf %s: ring_%s", ring_version_string(), options->collective->name);
  if (options->collective->varies) printf(", %s parts", split_name(options->split));
  printf("\n");
  printf("# minBytes %zu maxBytes %zu step: %zu(factor) warmup iters: %d iters: ", options->min_bytes,
         options->max_bytes, options->factor, options->warmup);
  if (options->iterations) printf("%d", options->iterations);
  else printf("adaptive");
  printf(" validation: %d connections: %d\n#\n", options->check, options->connections);
  for (int rank = 0; rank < size; rank++) {
    printf("#  Rank %2d Pid %6" PRId64 " on %s\n", rank, members[rank].pid, members[rank].host);
  }
  printf("#\n");
  printf("# %46s  %33s  %33s\n", "", "out-of-place           ", "in-place             ");
  printf("# %12s %12s %10s %6s   %10s %7s %7s %7s  %10s %7s %7s %7s\n", "size", "count", "type", "redop", "time",
         "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong");
  printf("# %12s %12s %10s %6s   %10s %7s %7s %7s  %10s %7s %7s %7s\n", "(B)", "(elements)", "", "", "(us)",
         "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "");
  fflush(stdout);
}

static void print_result(const options_t *options, const result_t *result) {
  if (!result->measured) {
    printf("  %10s %7s %7s %7s", "-", "-", "-", "-");
    return;
  }
  printf("  %10.2f %7.2f %7.2f ", result->timing.time_us, result->algbw, result->busbw);
  if (options->check) printf("%7" PRIu64, result->wrong);
  else printf("%7s", "N/A");
}

void print_row(const options_t *options, const row_t *row) {
  end_progress();
  printf("  %12zu %12zu %10s %6s ", row->total * ring_dtype_size(options->dtype), row->count,
         ring_dtype_name(options->dtype), op_of(options));
  print_result(options, &row->out_of_place);
  print_result(options, &row->in_place);
  printf("\n");
  fflush(stdout);
}

uint64_t wrong_in(const row_t *rows, size_t row_count) {
  uint64_t wrong = 0;
  for (size_t i = 0; i < row_count; i++) wrong += rows[i].out_of_place.wrong + rows[i].in_place.wrong;
  return wrong;
}

static double average_busbw(const row_t *rows, size_t row_count) {
  double sum = 0;
  int measured = 0;
  for (size_t i = 0; i < row_count; i++) {
    sum += rows[i].out_of_place.busbw + rows[i].in_place.busbw;
    measured += rows[i].out_of_place.measured + rows[i].in_place.measured;
  }
  return measured ? sum / measured : 0;
}

void print_footer(const row_t *rows, size_t row_count) {
  uint64_t wrong = wrong_in(rows, row_count);
  printf("# Out of bounds values : %" PRIu64 " %s\n", wrong, wrong ? "FAILED" : "OK");
  printf("# Avg bus bandwidth    : %g\n#\n", average_busbw(rows, row_count));
}

static void print_json_result(const options_t *options, const char *name, const result_t *result) {
  printf(", \"%s\": ", name);
  if (!result->measured) {
    printf("null");
    return;
  }
  const timing_t *timing = &result->timing;
  printf("{\"iterations\": %d, \"time_us\": %.3f, \"median_us\": %.3f, \"p99_us\": %.3f, \"cpu_us\": %.3f, ",
         timing->iterations, timing->time_us, timing->median_us, timing->p99_us, timing->cpu_us);
  printf("\"algbw_gb_s\": %.6f, \"busbw_gb_s\": %.6f, \"wrong\": ", result->algbw, result->busbw);
  if (options->check) printf("%" PRIu64 "}", result->wrong);
  else printf("null}");
}

void print_json(const options_t *options, const member_t *members, int size, const row_t *rows, size_t row_count) {
  end_progress();
  printf("{\n  \"program\": \"ring-perf\", \"version\": \"%s\", \"collective\": \"%s\",\n",
         ring_version_string(), options->collective->name);
  printf("  \"ranks\": %d, \"connections\": %d, \"dtype\": \"%s\", \"op\": \"%s\", \"warmup\": %d,\n", size,
         options->connections, ring_dtype_name(options->dtype), op_of(options), options->warmup);
  if (options->collective->varies) printf("  \"parts\": \"%s\",\n", split_name(options->split));
  printf("  \"hosts\": [");
  for (int rank = 0; rank < size; rank++) {
    if (rank > 0) printf(", ");
    print_json_string(members[rank].host);
  }
  printf("],\n  \"results\": [");
  for (size_t i = 0; i < row_count; i++) {
    const row_t *row = &rows[i];
    printf("%s\n    {\"bytes\": %zu, \"count\": %zu", i ? "," : "", row->total * ring_dtype_size(options->dtype),
           row->count);
    print_json_result(options, "out_of_place", &row->out_of_place);
    print_json_result(options, "in_place", &row->in_place);
    printf("}");
  }
  printf("\n  ],\n  \"wrong\": ");
  if (options->check) printf("%" PRIu64, wrong_in(rows, row_count));
  else printf("null");
  printf(", \"avg_busbw_gb_s\": %.6f\n}\n", average_busbw(rows, row_count));
}
