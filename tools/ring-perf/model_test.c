/* The costs are those that costs.tsv, the argument, has of the library's plans; times follow from them. */
#include "check.h"
#include "crossovers.h"
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 256, FIELDS = 9, LEAST_ROWS = 100 };

static int wrong_rows(FILE *file) {
  char line[LINE_BYTES];
  CHECK(fgets(line, sizeof line, file));
  CHECK(strcmp(line, "ranks\tbytes\telement\talgorithm\tparts\tsteps\tright\tleft\treduced\n") == 0);
  int rows = 0, wrong = 0;
  for (; fgets(line, sizeof line, file); rows++) {
    int ranks;
    size_t bytes, element;
    char algorithm[8];
    cost_t plan;
    CHECK(sscanf(line, "%d %zu %zu %7s %d %d %zu %zu %zu", &ranks, &bytes, &element, algorithm, &plan.parts,
                 &plan.steps, &plan.right, &plan.left, &plan.reduced) == FIELDS);
    cost_t cost = cost_of_all_reduce(ranks, bytes / element, element);
    if (cost.flood != (strcmp(algorithm, "flood") == 0) || cost.parts != plan.parts || cost.steps != plan.steps ||
        cost.right != plan.right || cost.left != plan.left || cost.reduced != plan.reduced) {
      fprintf(stderr, "plan:  %smodel: %s, parts %d, steps %d, right %zu, left %zu, reduced %zu\n", line,
              cost.flood ? "flood" : "ring", cost.parts, cost.steps, cost.right, cost.left, cost.reduced);
      wrong++;
    }
  }
  CHECK(rows >= LEAST_ROWS);
  return wrong;
}

static void every_ring_has_a_row(void) {
  CHECK(CROSSOVERS[sizeof CROSSOVERS / sizeof *CROSSOVERS - 1].ranks == MODEL_MAX_RANKS);
}

static double time_of(double alpha, double beta, double gamma, int links) {
  model_t model = {alpha, beta, gamma, links};
  cost_t cost = {.parts = 2, .steps = 6, .right = 3000, .left = 4000, .reduced = 5000};
  return model_time_us(&model, &cost);
}

/* Of numbers that are exact in binary. */
static void times_are_sums(void) {
  CHECK(time_of(0.5, 1, 0, 1) == 3 + 7);
  CHECK(time_of(0.5, 1, 0, 2) == 3 + 4);
  CHECK(time_of(0, 0.5, 0, 2) == 8);
  CHECK(time_of(0, 1, 2, 1) == 7 + 2.5);
}

static bool near(double value, double wanted) { return value > 0.999 * wanted && value < 1.001 * wanted; }

/* What a model predicts gives the model back; one size doesn't. */
static void a_fit_finds_the_model(void) {
  const model_t model = {.alpha = 17, .beta = 2.5, .gamma = 0, .links = 1};
  for (int ranks = 2; ranks <= MODEL_MAX_RANKS; ranks *= 2) {
    fit_t fit = {0};
    model_t found;
    for (size_t count = 2; count <= (size_t)1 << 28; count *= 8) {
      cost_t cost = cost_of_all_reduce(ranks, count, sizeof(float));
      fit_add(&fit, &cost, model_time_us(&model, &cost));
      if (count == 2) CHECK(!fit_solve(&fit, &found));
    }
    CHECK(fit_solve(&fit, &found));
    CHECK(near(found.alpha, model.alpha) && near(found.beta, model.beta));
    CHECK(found.gamma == 0 && found.links == 1);
  }
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  every_ring_has_a_row();
  FILE *file = fopen(argv[1], "r");
  CHECK(file);
  int wrong = wrong_rows(file);
  fclose(file);
  times_are_sums();
  a_fit_finds_the_model();
  return wrong > 0;
}
