#include "ring.h"

#include <stdio.h>

void add(float *restrict to, const float *restrict from, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] += from[i];
}

plan_t ring_plan(body_t *body, int ranks, bool adds) {
  return (plan_t){.body = body, .ranks = ranks, .adds = adds, .amount = (ranks == 2 ? 1024 : 512) * MIB};
}

void measure_ring(const plan_t *plan, const char *kind) {
  double cpu_seconds, seconds = run(plan, &cpu_seconds);
  char name[NAME_BYTES];
  const char *adding = plan->adds ? ", half added" : "";
  snprintf(name, sizeof name, "%s ring%s", kind, adding);
  print_limit(name, plan->ranks, (double)plan->amount / seconds / 1e9, "GB/s a rank each way, as busbw");
  snprintf(name, sizeof name, "%s ring%s, CPU", kind, adding);
  print_limit(name, plan->ranks, cpu_seconds * 1e9 / ((double)plan->ranks * (double)plan->amount),
              "ns a byte sent and received");
}
