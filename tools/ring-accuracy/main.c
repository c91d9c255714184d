/* How close sums and means of 16-bit floats come to the exact ones, as a table in Markdown: `make accuracy`.
 *
 * The error of an element is its distance from the exact result in units in the last place (ULP), the distance of
 * neighbours in the type, at the exact result's size. Where terms cancel, it is at the size of the largest of them
 * (of a mean, divided by the ranks): near 0 a unit is as small as one likes, and says nothing. Rounding the exact
 * result once leaves at most 0.5. */
#include "narrow.h"

#include "local_hosts.h"

#include <math.h>
#include <ring.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_RANKS = 8, TIMEOUT_MS = 20000, TEXT_BYTES = 1024 };

/* A flood's and, of more than two ranks, a ring's in segments that differ in length; as many calls as make about as many elements. */
enum { SIZES = 2, MOST_ELEMENTS = 200003 };
static const size_t COUNTS[SIZES] = {1021, MOST_ELEMENTS};
static const int CALLS[SIZES] = {196, 1};

enum data { UNIFORM, NORMAL, DATA };
static const char *const DATA_NAMES[DATA] = {"uniform values from 0 to 1", "normal values"};
static const ring_dtype_t DTYPES[] = {RING_DTYPE_FLOAT16, RING_DTYPE_BFLOAT16};
static const ring_op_t OPS[] = {RING_OP_SUM, RING_OP_MEAN};
enum { MODES = 2 };
enum { TYPES = 2, REDUCTIONS = 2 };
static const uint32_t MODE_FLAGS[MODES] = {0, RING_FLAG_WIDE_ACCUMULATION};

/* Of one type, op and kind of data. */
struct errors {
  double most, squares;
  uint64_t elements;
};

/* Rank 0's findings, in memory that it shares with the process that prints them. */
struct findings {
  struct errors errors[TYPES][REDUCTIONS][DATA][SIZES];
};

/* Well-mixed bits (the finaliser of SplitMix64). */
static uint64_t hash(uint64_t x) {
  x += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

/* From 0 to 1, neither of them. */
static double fraction(uint64_t bits) { return ((double)(bits >> 11) + 0.5) / (double)(UINT64_C(1) << 53); }

static double value(enum data data, int rank, int call, size_t element) {
  uint64_t bits = hash((uint64_t)rank << 48 | (uint64_t)call << 32 | (uint64_t)element);
  double u = fraction(bits);
  if (data == UNIFORM) return u;
  const double turn = 6.283185307179586;
  return sqrt(-2 * log(u)) * cos(turn * fraction(hash(bits)));
}

static _Noreturn void give_up(const char *what) {
  fprintf(stderr, "ring-accuracy: %s\n", what);
  fflush(stderr);
  _exit(1);
}

static void must(ring_status_t status) {
  char text[TEXT_BYTES];
  ring_last_error(text, sizeof text);
  if (status != RING_STATUS_OK) give_up(text);
}

static ring_group_t *join(int rank, const char *hosts, uint32_t flags) {
  ring_config_t config;
  ring_config_init(&config, sizeof config);
  config.rank = rank;
  config.hosts = hosts;
  config.connect_timeout_ms = config.timeout_ms = TIMEOUT_MS;
  config.flags = flags;
  ring_group_t *group;
  must(ring_group_create(&config, &group));
  return group;
}

/* The sum of an element's terms, and the largest of them. */
struct exact {
  double sum, largest;
};

/* In float64 a sum of so few 16-bit values has no error that counts. */
static void add_up(struct exact *exact, size_t count, ring_dtype_t dtype, enum data data, int call, int ranks) {
  for (size_t i = 0; i < count; i++) {
    exact[i].sum = exact[i].largest = 0;
    for (int rank = 0; rank < ranks; rank++) {
      double term = from_narrow(dtype, to_narrow(dtype, value(data, rank, call, i)));
      exact[i].sum += term;
      exact[i].largest = fmax(exact[i].largest, fabs(term));
    }
  }
}

static void add_errors(struct errors *errors, const uint16_t *results, const struct exact *exact, size_t count,
                       ring_dtype_t dtype, int divisor) {
  for (size_t i = 0; i < count; i++) {
    double result = exact[i].sum / divisor, unit = ulp(dtype, fmax(fabs(result), exact[i].largest / divisor));
    double error = fabs(from_narrow(dtype, results[i]) - result) / unit;
    /* Of what is no number, too. */
    if (!(error <= errors->most)) errors->most = error;
    errors->squares += error * error;
  }
  errors->elements += count;
}

/* What each rank does. */
static void run_rank(int rank, int ranks, const char *hosts, uint32_t flags, struct findings *findings) {
  static uint16_t own[MOST_ELEMENTS], results[MOST_ELEMENTS];
  static struct exact exact[MOST_ELEMENTS];
  ring_group_t *group = join(rank, hosts, flags);
  for (int t = 0; t < TYPES; t++) {
    for (enum data data = 0; data < DATA; data++) {
      for (int size = 0; size < SIZES; size++) {
        for (int call = 0; call < CALLS[size]; call++) {
          for (size_t i = 0; i < COUNTS[size]; i++) own[i] = to_narrow(DTYPES[t], value(data, rank, call, i));
          if (rank == 0) add_up(exact, COUNTS[size], DTYPES[t], data, call, ranks);
          for (int op = 0; op < REDUCTIONS; op++) {
            must(ring_all_reduce(group, own, results, COUNTS[size], DTYPES[t], OPS[op]));
            if (rank != 0) continue;
            add_errors(&findings->errors[t][op][data][size], results, exact, COUNTS[size], DTYPES[t],
                       OPS[op] == RING_OP_MEAN ? ranks : 1);
          }
        }
      }
    }
  }
  ring_group_destroy(group);
}

/* Runs the ranks as processes of this host, each forked from this one. */
static void run(int ranks, uint32_t flags, struct findings *findings) {
  char *hosts = local_hosts(ranks);
  if (!hosts) give_up("no free ports on 127.0.0.1");
  pid_t children[MOST_RANKS];
  fflush(NULL);
  for (int rank = 0; rank < ranks; rank++) {
    children[rank] = fork();
    if (children[rank] < 0) give_up("no more processes");
    if (children[rank] == 0) {
      run_rank(rank, ranks, hosts, flags, findings);
      _exit(0);
    }
  }
  bool failed = false;
  for (int rank = 0; rank < ranks; rank++) {
    int status;
    failed = waitpid(children[rank], &status, 0) < 0 || status != 0 || failed;
  }
  free(hosts);
  if (failed) give_up("a rank failed");
}

static struct errors both_sizes(const struct errors errors[SIZES]) {
  struct errors all = {0, 0, 0};
  for (int size = 0; size < SIZES; size++) {
    all.most = errors[size].most > all.most ? errors[size].most : all.most;
    all.squares += errors[size].squares;
    all.elements += errors[size].elements;
  }
  return all;
}

/* Most and RMS. */
static void print_errors(const struct errors errors[SIZES]) {
  struct errors all = both_sizes(errors);
  printf("%.2f / %.3f", all.most, sqrt(all.squares / (double)all.elements));
}

/* findings are by mode and number of ranks. */
static void print_tables(struct findings (*findings)[MOST_RANKS + 1], int most_ranks) {
  for (enum data data = 0; data < DATA; data++) {
    printf("Errors of %s in ULP, most / RMS: each addition rounded → wide accumulation.\n\n| ranks |",
           DATA_NAMES[data]);
    for (int t = 0; t < TYPES; t++) {
      for (int op = 0; op < REDUCTIONS; op++) printf(" %s %s |", ring_dtype_name(DTYPES[t]), ring_op_name(OPS[op]));
    }
    printf("\n| --- | --- | --- | --- | --- |\n");
    for (int ranks = 2; ranks <= most_ranks; ranks++) {
      printf("| %d |", ranks);
      for (int column = 0; column < TYPES * REDUCTIONS; column++) {
        int t = column / REDUCTIONS, op = column % REDUCTIONS;
        printf(" ");
        print_errors(findings[0][ranks].errors[t][op][data]);
        printf(" → ");
        print_errors(findings[1][ranks].errors[t][op][data]);
        printf(" |");
      }
      printf("\n");
    }
    printf("\n");
  }
}

/* Whether the flag does what it promises: each result is the exact one rounded once, but for the little that f32
 * has lost by then. */
static bool holds(struct findings (*findings)[MOST_RANKS + 1], int most_ranks) {
  const double half_and_f32s = 0.51;
  bool kept = true;
  for (int ranks = 2; ranks <= most_ranks; ranks++) {
    const struct errors *errors = (const struct errors *)&findings[1][ranks];
    double most = 0;
    for (int i = 0; i < TYPES * REDUCTIONS * DATA * SIZES; i++) most = fmax(most, errors[i].most);
    if (most <= half_and_f32s) continue;
    fprintf(stderr, "ring-accuracy: with wide accumulation %d ranks are off by %.2f ULP, which is more than rounding once\n",
            ranks, most);
    kept = false;
  }
  return kept;
}

int main(int argc, char **argv) {
  int most_ranks = argc > 1 ? atoi(argv[1]) : MOST_RANKS;
  if (argc > 2 || most_ranks < 2 || most_ranks > MOST_RANKS) {
    fprintf(stderr, "usage: ring-accuracy [RANKS]   rings of 2 to RANKS, at most and by default %d\n", MOST_RANKS);
    return 2;
  }
  const size_t bytes = sizeof(struct findings[MODES][MOST_RANKS + 1]);
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) give_up("no memory");
  struct findings(*findings)[MOST_RANKS + 1] = memory;
  for (int ranks = 2; ranks <= most_ranks; ranks++) {
    for (int mode = 0; mode < MODES; mode++) run(ranks, MODE_FLAGS[mode], &findings[mode][ranks]);
  }
  print_tables(findings, most_ranks);
  return holds(findings, most_ranks) ? 0 : 1;
}
