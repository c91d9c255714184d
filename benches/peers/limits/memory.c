#include "memory.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ring.h"

/* A link: one writer and one reader. */
enum { SLOTS = 16, SLOT_BYTES = 64 << 10 };

typedef struct {
  _Alignas(64) _Atomic size_t written;
  _Alignas(64) _Atomic size_t taken;
  _Alignas(64) char slots[SLOTS][SLOT_BYTES];
} queue_t;

static void memory_ring_body(const plan_t *plan, int rank, shared_t *shared) {
  queue_t *queues = plan->memory;
  queue_t *right = &queues[rank], *left = &queues[(rank + plan->ranks - 1) % plan->ranks];
  const char *source = ready_memory(SPAN);
  char *array = ready_memory(SPAN);
  size_t slots = plan->amount / SLOT_BYTES, sent = 0, got = 0;
  atomic_store(&right->written, 0);
  atomic_store(&right->taken, 0);
  begin(shared, rank);
  while (sent < slots || got < slots) {
    bool idle = true;
    if (got < slots && atomic_load_explicit(&left->written, memory_order_acquire) > got) {
      char *to = array + got * SLOT_BYTES % SPAN;
      const char *from = left->slots[got % SLOTS];
      bool adds = plan->adds && got * SLOT_BYTES / MIB % 2 == 1;
      if (adds) add((float *)(void *)to, (const float *)(const void *)from, SLOT_BYTES / sizeof(float));
      else memcpy(to, from, SLOT_BYTES);
      atomic_store_explicit(&left->taken, ++got, memory_order_release);
      idle = false;
    }
    if (sent < slots && sent - atomic_load_explicit(&right->taken, memory_order_acquire) < SLOTS) {
      memcpy(right->slots[sent % SLOTS], source + sent * SLOT_BYTES % SPAN, SLOT_BYTES);
      atomic_store_explicit(&right->written, ++sent, memory_order_release);
      idle = false;
    }
    if (idle) sched_yield();
  }
  end(shared, rank);
}

static void ring(int ranks, bool adds) {
  plan_t plan = ring_plan(memory_ring_body, ranks, adds);
  plan.memory = shared_memory((size_t)ranks * sizeof(queue_t));
  measure_ring(&plan, "shm");
  munmap(plan.memory, (size_t)ranks * sizeof(queue_t));
}

void measure_memory_rings(void) {
  for (int adds = 0; adds < 2; adds++) {
    ring(2, adds);
    ring(4, adds);
  }
}

static void arrays(size_t bytes, const char *label) {
  const size_t total = (size_t)4 << 30;
  char *to = ready_memory(bytes), *from = ready_memory(bytes);
  size_t times = total / bytes;
  char name[NAME_BYTES];
  double start = now();
  for (size_t i = 0; i < times; i++) {
    memcpy(to, from, bytes);
    __asm__ volatile("" ::: "memory");
  }
  snprintf(name, sizeof name, "memcpy, %s", label);
  print_limit(name, 1, (double)total / (now() - start) / 1e9, "GB/s copied");
  start = now();
  for (size_t i = 0; i < times; i++) {
    add((float *)(void *)to, (const float *)(const void *)from, bytes / sizeof(float));
    __asm__ volatile("" ::: "memory");
  }
  snprintf(name, sizeof name, "float32 a[i] += b[i], %s", label);
  print_limit(name, 1, (double)total / (now() - start) / 1e9, "GB/s added");
  free(to);
  free(from);
}

void measure_memory(void) {
  arrays(64 * MIB, "64 MiB arrays");
  arrays(128 * KIB, "128 KiB arrays");
}
