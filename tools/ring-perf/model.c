#include "model.h"

#include "crossovers.h"

/* The last row is that of MODEL_MAX_RANKS: the model's test looks. */
static crossover_t crossover_of(int ranks) {
  const crossover_t *row = CROSSOVERS;
  while (row->ranks < ranks) row++;
  return *row;
}

/* Of the part's n segments a rank sends all twice but for two of them, once. */
static size_t sent_in_part(size_t count, size_t ranks) { return 2 * count - 2 * count / ranks; }

/* All segments but the one that the rank's own values start. */
static size_t reduced_in_part(size_t count, size_t ranks) { return count - count / ranks; }

cost_t cost_of_all_reduce(int ranks, size_t count, size_t element_bytes) {
  crossover_t from = crossover_of(ranks);
  size_t n = (size_t)ranks, bytes = count * element_bytes;
  if (bytes < from.one_part_from) {
    bool in_turn = n > 2 && n % 2 == 0;
    return (cost_t){
        .flood = true,
        .parts = 1,
        .steps = ranks / 2,
        .right = n / 2 * bytes,
        .left = (in_turn ? n / 2 : (n - 1) / 2) * bytes,
        .in_turn = in_turn ? (n - 1) * bytes : 0,
        .reduced = (n - 1) * bytes,
    };
  }
  int parts = bytes < from.two_parts_from ? 1 : 2;
  size_t right = parts == 1 ? count : count / 2, left = count - right;
  return (cost_t){
      .parts = parts,
      .steps = 2 * (ranks - 1),
      .right = sent_in_part(right, n) * element_bytes,
      .left = sent_in_part(left, n) * element_bytes,
      .reduced = (reduced_in_part(right, n) + reduced_in_part(left, n)) * element_bytes,
  };
}

/* Bytes in a microsecond at 1 GB/s. */
static const double BYTES_PER_US = 1e3;

/* Bytes that follow each other over the rank's link, or over the busier one of two. */
static double sent_over(int links, const cost_t *cost) {
  if (cost->in_turn > 0) return (double)cost->in_turn;
  if (links == 1) return (double)(cost->right + cost->left);
  return (double)(cost->right > cost->left ? cost->right : cost->left);
}

double model_time_us(const model_t *model, const cost_t *cost) {
  double time = cost->steps * model->alpha + sent_over(model->links, cost) / (model->beta * BYTES_PER_US);
  if (model->gamma > 0) time += (double)cost->reduced / (model->gamma * BYTES_PER_US);
  return time;
}

void fit_add(fit_t *fit, const cost_t *cost, double time_us) {
  double steps = cost->steps / time_us, sent = sent_over(1, cost) / time_us;
  fit->steps_steps += steps * steps;
  fit->steps_sent += steps * sent;
  fit->sent_sent += sent * sent;
  fit->steps += steps;
  fit->sent += sent;
}

bool fit_solve(const fit_t *fit, model_t *model) {
  /* One size measured twice differs by a few per cent, which is no slope. */
  const double least_spread = 0.01;
  double squares = fit->steps_steps * fit->sent_sent;
  double determinant = squares - fit->steps_sent * fit->steps_sent;
  if (!(determinant > least_spread * squares)) return false;
  double us_a_step = (fit->steps * fit->sent_sent - fit->sent * fit->steps_sent) / determinant;
  double us_a_byte = (fit->sent * fit->steps_steps - fit->steps * fit->steps_sent) / determinant;
  if (us_a_step <= 0 || us_a_byte <= 0) return false;
  *model = (model_t){.alpha = us_a_step, .beta = 1 / (us_a_byte * BYTES_PER_US), .gamma = 0, .links = 1};
  return true;
}
