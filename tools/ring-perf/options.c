#include "options.h"

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char USAGE[] =
    "usage: ring-perf [options]\n"
    "Measures all-reduce. With --ranks N it starts N ranks on this host; without, it joins the ring\n"
    "that the environment describes (RING_RANK, RING_HOSTFILE, ...).\n"
    "\n"
    "  --ranks N           start N ranks here, 1 to 64\n"
    "  --connections K     TCP connections per neighbour (with --ranks; else RING_CONNECTIONS)\n"
    "  -b, --minbytes B    smallest size, such as 8, 32K, 1M (default 8)\n"
    "  -e, --maxbytes B    largest size (default 128M)\n"
    "  -f, --stepfactor F  from size to size (default 2)\n"
    "  -d, --datatype T    float32, bfloat16, int64, ... (default float32)\n"
    "  -o, --op OP         sum, prod, max, min, mean, band, bor, bxor (default sum)\n"
    "  -n, --iters N       calls a size (default: about half a second's worth)\n"
    "  -w, --warmup N      calls before them (default: a tenth of them)\n"
    "  -c, --check 0|1     compare every element with the right value (default 1)\n"
    "      --json          print one JSON document instead of a table\n"
    "  -h, --help          print this\n"
    "      --version       print the version\n";

static _Noreturn void refuse(const char *option, const char *value) {
  fprintf(stderr, "ring-perf: %s: \"%s\" is not a value for it; see --help\n", option, value);
  exit(2);
}

static size_t size_of(const char *option, const char *text) {
  char *end;
  unsigned long long number = strtoull(text, &end, 10);
  int shift = 0;
  if (*end == 'K' || *end == 'k') shift = 10;
  if (*end == 'M' || *end == 'm') shift = 20;
  if (*end == 'G' || *end == 'g') shift = 30;
  if (shift) end++;
  if (text[0] < '0' || text[0] > '9' || *end || number == 0 || number > (unsigned long long)PTRDIFF_MAX >> shift) {
    refuse(option, text);
  }
  return (size_t)(number << shift);
}

static int number_of(const char *option, const char *text, int least, int most) {
  char *end;
  long number = strtol(text, &end, 10);
  if (text == end || *end || number < least || number > most) refuse(option, text);
  return (int)number;
}

static int32_t by_name(const char *option, const char *text, const char *(*name)(int32_t)) {
  for (int32_t value = 0; strcmp(name(value), "unknown") != 0; value++) {
    if (strcmp(name(value), text) == 0) return value;
  }
  refuse(option, text);
}

struct options read_options(int argc, char **argv) {
  enum { RANKS = 1000, CONNECTIONS, JSON, VERSION };
  static const struct option LONG[] = {
      {"ranks", required_argument, NULL, RANKS},   {"connections", required_argument, NULL, CONNECTIONS},
      {"minbytes", required_argument, NULL, 'b'},  {"maxbytes", required_argument, NULL, 'e'},
      {"stepfactor", required_argument, NULL, 'f'}, {"datatype", required_argument, NULL, 'd'},
      {"op", required_argument, NULL, 'o'},        {"iters", required_argument, NULL, 'n'},
      {"warmup", required_argument, NULL, 'w'},    {"check", required_argument, NULL, 'c'},
      {"json", no_argument, NULL, JSON},           {"help", no_argument, NULL, 'h'},
      {"version", no_argument, NULL, VERSION},     {NULL, 0, NULL, 0}};
  struct options options = {.connections = 1,
                            .min_bytes = 8,
                            .max_bytes = 128 << 20,
                            .factor = 2,
                            .dtype = RING_DTYPE_FLOAT32,
                            .op = RING_OP_SUM,
                            .warmup = -1,
                            .check = true};
  int option;
  while ((option = getopt_long(argc, argv, "b:e:f:d:o:n:w:c:h", LONG, NULL)) != -1) {
    switch (option) {
      case RANKS: options.ranks = number_of("--ranks", optarg, 1, 64); break;
      case CONNECTIONS: options.connections = number_of("--connections", optarg, 1, 64); break;
      case 'b': options.min_bytes = size_of("-b", optarg); break;
      case 'e': options.max_bytes = size_of("-e", optarg); break;
      case 'f': options.factor = (size_t)number_of("-f", optarg, 2, 1 << 20); break;
      case 'd': options.dtype = by_name("-d", optarg, ring_dtype_name); break;
      case 'o': options.op = by_name("-o", optarg, ring_op_name); break;
      case 'n': options.iterations = number_of("-n", optarg, 1, 1 << 30); break;
      case 'w': options.warmup = number_of("-w", optarg, 0, 1 << 30); break;
      case 'c': options.check = number_of("-c", optarg, 0, 1); break;
      case JSON: options.json = true; break;
      case VERSION: printf("ring-perf %s\n", ring_version_string()); exit(0);
      case 'h': fputs(USAGE, stdout); exit(0);
      default: fputs("see --help\n", stderr); exit(2);
    }
  }
  if (optind < argc) refuse("an argument", argv[optind]);
  if (options.min_bytes > options.max_bytes) options.max_bytes = options.min_bytes;
  return options;
}
