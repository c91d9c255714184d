#include "predict.h"

#include <stdio.h>

typedef struct prediction {
  size_t bytes;
  cost_t cost;
  double time_us;
  double algbw;      /* GB/s */
  double busbw;      /* GB/s */
} prediction_t;

static prediction_t predict(const options_t *options, size_t count, int ranks) {
  size_t element_bytes = ring_dtype_size(options->dtype);
  prediction_t p = {.bytes = count * element_bytes, .cost = cost_of_all_reduce(ranks, count, element_bytes)};
  p.time_us = model_time_us(&options->model, &p.cost);
  p.algbw = (double)p.bytes / (p.time_us * 1e3);
  p.busbw = p.algbw * 2 * (ranks - 1) / ranks;
  return p;
}

static const char *algorithm_name(const cost_t *cost) { return cost->flood ? "flood" : "ring"; }

static void print_row_of(const options_t *options, size_t count, int ranks) {
  prediction_t p = predict(options, count, ranks);
  printf("  %12zu %12zu %10s %6s   %5d %9s %6d  %12.2f %7.2f %7.2f\n", p.bytes, count, ring_dtype_name(options->dtype),
         ring_op_name(options->op), ranks, algorithm_name(&p.cost), p.cost.steps, p.time_us, p.algbw, p.busbw);
}

static void print_json_row_of(const options_t *options, size_t count, int ranks, bool first) {
  prediction_t p = predict(options, count, ranks);
  printf("%s\n    {\"ranks\": %d, \"bytes\": %zu, \"count\": %zu, \"algorithm\": \"%s\", \"steps\": %d", first ? "" : ",",
         ranks, p.bytes, count, algorithm_name(&p.cost), p.cost.steps);
  printf(", \"sent_right\": %zu, \"sent_left\": %zu, \"reduced\": %zu", p.cost.right, p.cost.left, p.cost.reduced);
  printf(", \"time_us\": %.3f, \"algbw_gb_s\": %.6f, \"busbw_gb_s\": %.6f}", p.time_us, p.algbw, p.busbw);
}

static void print_head(const options_t *options) {
  const model_t *model = &options->model;
  if (options->json) {
    printf("{\n  \"program\": \"ring-perf\", \"version\": \"%s\", \"collective\": \"all_reduce\",\n", ring_version_string());
    printf("  \"dtype\": \"%s\", \"op\": \"%s\",\n", ring_dtype_name(options->dtype), ring_op_name(options->op));
    printf("  \"model\": {\"alpha_us\": %g, \"beta_gb_s\": %g, \"gamma_gb_s\": ", model->alpha, model->beta);
    if (model->gamma > 0) printf("%g", model->gamma);
    else printf("null");
    printf(", \"links\": %d},\n  \"results\": [", model->links);
    return;
  }
  printf("# ring-perf %s: ring_all_reduce, predicted\n", ring_version_string());
  printf("# a step %g us, a link %g GB/s each way, links of a rank %d, reduction ", model->alpha, model->beta, model->links);
  if (model->gamma > 0) printf("%g GB/s\n#\n", model->gamma);
  else printf("free\n#\n");
  printf("# %12s %12s %10s %6s   %5s %9s %6s  %12s %7s %7s\n", "size", "count", "type", "redop", "ranks", "algorithm",
         "steps", "time", "algbw", "busbw");
  printf("# %12s %12s %10s %6s   %5s %9s %6s  %12s %7s %7s\n", "(B)", "(elements)", "", "", "", "", "", "(us)", "(GB/s)",
         "(GB/s)");
}

void print_prediction(const options_t *options, const row_t *rows, size_t row_count) {
  int least = options->ranks ? options->ranks : 2, most = options->ranks ? options->ranks : MODEL_MAX_RANKS;
  print_head(options);
  for (int ranks = least; ranks <= most; ranks *= 2) {
    for (size_t i = 0; i < row_count; i++) {
      if (options->json) print_json_row_of(options, rows[i].count, ranks, ranks == least && i == 0);
      else print_row_of(options, rows[i].count, ranks);
    }
  }
  if (options->json) printf("\n  ]\n}\n");
}

static void add_result(fit_t *fit, const cost_t *cost, const result_t *result) {
  if (result->measured) fit_add(fit, cost, result->timing.time_us);
}

/* The larger of the two times by the smaller, or what it was before if that is more. */
static double worst_of(double before, const model_t *model, const cost_t *cost, const result_t *result) {
  if (!result->measured) return before;
  double ratio = model_time_us(model, cost) / result->timing.time_us;
  if (ratio < 1) ratio = 1 / ratio;
  return ratio > before ? ratio : before;
}

void print_fit(const options_t *options, int size, const row_t *rows, size_t row_count) {
  if (size < 2 || size > MODEL_MAX_RANKS) return;
  size_t element_bytes = ring_dtype_size(options->dtype);
  fit_t fit = {0};
  for (size_t i = 0; i < row_count; i++) {
    cost_t cost = cost_of_all_reduce(size, rows[i].count, element_bytes);
    add_result(&fit, &cost, &rows[i].out_of_place);
    add_result(&fit, &cost, &rows[i].in_place);
  }
  model_t model;
  if (!fit_solve(&fit, &model)) return;
  double worst = 1;
  for (size_t i = 0; i < row_count; i++) {
    cost_t cost = cost_of_all_reduce(size, rows[i].count, element_bytes);
    worst = worst_of(worst, &model, &cost, &rows[i].out_of_place);
    worst = worst_of(worst, &model, &cost, &rows[i].in_place);
  }
  printf("# Model (alpha,beta)   : %.3g,%.3g (us a step, GB/s; off by %.1fx at most)\n#\n", model.alpha, model.beta,
         worst);
}
