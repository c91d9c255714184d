#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exit status for a command line that can't be understood. */
enum { EXIT_USAGE = 2 };

enum { MAX_RANKS = 256, MAX_CONNECTIONS = 64, MAX_ITERATIONS = 100000000 };

/* Above what any host or network has, and far from where sums lose their meaning. */
static const double MAX_MODEL_NUMBER = 1e9;

/* Long options without a letter. */
enum {
  OPT_RANKS = 256, OPT_COLLECTIVE, OPT_SPLIT, OPT_CONNECTIONS, OPT_IN_PLACE, OPT_OUT_OF_PLACE, OPT_JSON, OPT_MODEL,
  OPT_LINKS, OPT_VERSION
};

static const struct option LONG_OPTIONS[] = {
    {"ranks", required_argument, NULL, OPT_RANKS},
    {"collective", required_argument, NULL, OPT_COLLECTIVE},
    {"split", required_argument, NULL, OPT_SPLIT},
    {"connections", required_argument, NULL, OPT_CONNECTIONS},
    {"minbytes", required_argument, NULL, 'b'},
    {"maxbytes", required_argument, NULL, 'e'},
    {"stepfactor", required_argument, NULL, 'f'},
    {"datatype", required_argument, NULL, 'd'},
    {"op", required_argument, NULL, 'o'},
    {"iters", required_argument, NULL, 'n'},
    {"warmup_iters", required_argument, NULL, 'w'},
    {"check", required_argument, NULL, 'c'},
    {"in-place", no_argument, NULL, OPT_IN_PLACE},
    {"out-of-place", no_argument, NULL, OPT_OUT_OF_PLACE},
    {"json", no_argument, NULL, OPT_JSON},
    {"model", required_argument, NULL, OPT_MODEL},
    {"links", no_argument, NULL, OPT_LINKS},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static const char HELP[] =
    "usage: ring-perf --ranks N [options]    starts N ranks on this host\n"
    "       ring-perf [options]              is one rank of the ring that RING_RANK and\n"
    "                                        RING_HOSTFILE describe\n"
    "       ring-perf --model ALPHA,BETA[,GAMMA[,LINKS]] [options]\n"
    "                                        predicts times, and makes no ring\n"
    "       ring-perf --links [--ranks N] [--json]\n"
    "                                        tests the links of a ring: which edge is slow\n"
    "\n"
    "Measures a collective, all_reduce unless told. Time is the average of a call on the slowest\n"
    "rank, of calls that follow each other; algbw is size/time, in GB/s (10^9 bytes), and busbw\n"
    "what each rank's link must carry at that, as nccl-tests counts it:\n"
    "\n"
    "  collective                           size is                               busbw/algbw\n"
    "  all_reduce, all_reduce_custom        the array                             2(n-1)/n\n"
    "  reduce_scatter                       what each rank puts in, all parts     (n-1)/n\n"
    "  all_gather                           what each rank gets, all parts        (n-1)/n\n"
    "  gather, scatter                      what the root gets or has             (n-1)/n\n"
    "  all_to_all                           what each rank has, all blocks        (n-1)/n\n"
    "  all_gather_v, reduce_scatter_v, reduce_scatter_v_custom, all_to_all_v\n"
    "                                       the same, in parts as --split says    (n-1)/n\n"
    "  broadcast, reduce                    the array                             1\n"
    "  send_recv                            the message to the right rank, while\n"
    "                                       the left one's comes                  1\n"
    "  barrier                              0                                     -\n"
    "\n"
    "The root is rank 0. The custom ones reduce by a function that adds floats. Where parts are\n"
    "equal each has an element at least. broadcast is in place only, all_to_all, all_to_all_v,\n"
    "send_recv and barrier are not; of the others both forms are measured.\n"
    "\n"
    "      --collective NAME     what is measured (all_reduce)\n"
    "      --split even|uneven   the parts of those in _v: alike, or in proportion to 1, 2, 3, ...,\n"
    "                            in all_to_all_v by the sum of the ranks (uneven)\n"
    "  -b, --minbytes SIZE       smallest size (8); sizes may end in K, M or G (powers of 1024)\n"
    "  -e, --maxbytes SIZE       largest size (128M)\n"
    "  -f, --stepfactor N        from one size to the next (2)\n"
    "  -d, --datatype NAME       element type (float32)\n"
    "  -o, --op NAME             reduction (sum)\n"
    "  -n, --iters N             calls measured per size (as many as take about 0.2 s, 5 at least)\n"
    "  -w, --warmup_iters N      calls before them (5)\n"
    "  -c, --check 0|1           compare every element of a further call's result (1)\n"
    "      --connections N       TCP connections per neighbour (1)\n"
    "      --in-place            measure in place only\n"
    "      --out-of-place        measure out of place only\n"
    "      --json                print one JSON document instead of the table; it adds median and p99\n"
    "                            of a call's time, and CPU time of all ranks together\n"
    "      --model A,B[,G[,L]]   predict the times of all_reduce, and of no other, on rings of 2, 4,\n"
    "                            8, ... 1024 ranks, or of --ranks: A us a step; B GB/s over a\n"
    "                            link, each way; G GB/s reduced by a rank (0, the default: at no\n"
    "                            cost); L links of a rank: 1 to both neighbours together (the\n"
    "                            default), 2 apart\n"
    "      --links               test the links instead; see below\n"
    "  -h, --help                print this\n"
    "      --version             print the version\n";

static const char HELP_LINKS[] =
    "\n"
    "With --links every edge of the ring is tested, one after the other, some 0.7 s each: messages of\n"
    "8 bytes there and back (round trip), and as many as take 0.1 s or more to the right, from rank r\n"
    "to r+1, and to the left. Then all edges are busy both ways at once, as a large all_reduce keeps\n"
    "them; hosts with one port for both neighbours then carry half. It is one connection, from rank r\n"
    "to the address of rank r+1, at each of a hostfile's addresses in turn; of two ranks each sends on\n"
    "the one that it has opened. An edge is slow with less than 1/1.5 of the median bandwidth, or with a\n"
    "least round trip of 2 times the median edge's and 300 us more, measured up to four times. Where\n"
    "there are edges between hosts the medians are theirs.\n"
    "\n"
    "Exit status: 0; 1 if a call failed, a rank died, a number was wrong or an edge is slow; 2 for a\n"
    "bad option.\n";

static void usage_error(const char *option, const char *value, const char *wanted) {
  fprintf(stderr, "ring-perf: %s is \"%s\", not %s\n", option, value, wanted);
  exit(EXIT_USAGE);
}

static size_t parse_size(const char *option, const char *text) {
  const char *wanted = "a size in bytes, such as 8, 64K or 1G";
  char *end;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || errno) usage_error(option, text, wanted);
  int shift = 0;
  switch (*end) {
    case 'k': case 'K': shift = 10; break;
    case 'm': case 'M': shift = 20; break;
    case 'g': case 'G': shift = 30; break;
    default: break;
  }
  if (shift) end++;
  if (*end || number == 0 || number > (unsigned long long)PTRDIFF_MAX >> shift) usage_error(option, text, wanted);
  return (size_t)number << shift;
}

static int parse_number(const char *option, const char *text, long least, long most) {
  char *end;
  errno = 0;
  long number = strtol(text, &end, 10);
  if (end == text || *end || errno || number < least || number > most) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "a number from %ld to %ld", least, most);
    usage_error(option, text, wanted);
  }
  return (int)number;
}

/* The value whose name this is. The library's numbers have no gaps. */
static int32_t parse_name(const char *option, const char *text, const char *(*name_of)(int32_t)) {
  char wanted[256] = "one of";
  for (int32_t value = 0; strcmp(name_of(value), "unknown") != 0; value++) {
    if (strcmp(name_of(value), text) == 0) return value;
    size_t used = strlen(wanted);
    snprintf(wanted + used, sizeof wanted - used, " %s", name_of(value));
  }
  usage_error(option, text, wanted);
  return -1;
}

static const collective_t *parse_collective(const char *text) {
  const collective_t *found = find_collective(text);
  if (found) return found;
  char wanted[512] = "one of";
  for (int i = 0; collective_name(i); i++) {
    size_t used = strlen(wanted);
    snprintf(wanted + used, sizeof wanted - used, " %s", collective_name(i));
  }
  usage_error("--collective", text, wanted);
  return NULL;
}

static split_t parse_split(const char *text) {
  bool even = strcmp(text, "even") == 0;
  if (!even && strcmp(text, "uneven") != 0) usage_error("--split", text, "even or uneven");
  return even ? SPLIT_EVEN : SPLIT_UNEVEN;
}

/* The next of the numbers between commas; where there is none more, `absent`, without which it must be there. */
static double next_number(const char **text, const char *whole, const double *absent) {
  static const char wanted[] = "ALPHA,BETA[,GAMMA[,LINKS]], such as 20,1.25 (us, GB/s)";
  if (**text == '\0' && absent) return *absent;
  char *end;
  double number = strtod(*text, &end);
  bool ends = *end == '\0' || (*end == ',' && end[1] != '\0');
  if (end == *text || !ends || !(number >= 0 && number <= MAX_MODEL_NUMBER)) usage_error("--model", whole, wanted);
  *text = *end ? end + 1 : end;
  return number;
}

static model_t parse_model(const char *text) {
  const double free_reduction = 0, one_link = 1;
  const char *rest = text;
  model_t model = {.alpha = next_number(&rest, text, NULL)};
  model.beta = next_number(&rest, text, NULL);
  model.gamma = next_number(&rest, text, &free_reduction);
  double links = next_number(&rest, text, &one_link);
  if (model.beta == 0) usage_error("--model", text, "of a BETA above 0");
  if (*rest || (links != 1 && links != 2)) usage_error("--model", text, "of LINKS 1 or 2 at its end");
  model.links = (int)links;
  return model;
}

/* What a collective can't be asked for ends the process. */
static void settle_collective(options_t *options) {
  const collective_t *collective = options->collective;
  if (options->predict && collective != find_collective(MODEL_COLLECTIVE)) {
    usage_error("--collective", collective->name, MODEL_COLLECTIVE ", the one that --model predicts");
  }
  if (collective->custom && (options->dtype != RING_DTYPE_FLOAT32 || options->op != RING_OP_SUM)) {
    usage_error("--collective", collective->name, "for other types and ops than float32 and sum");
  }
  if (!options->in_place && !options->out_of_place) {
    options->in_place = collective->in_place;
    options->out_of_place = collective->out_of_place;
  }
  if (options->in_place && !collective->in_place) {
    usage_error("--collective", collective->name, "one with a form --in-place");
  }
  if (options->out_of_place && !collective->out_of_place) {
    usage_error("--collective", collective->name, "one with a form --out-of-place");
  }
}

options_t parse_options(int argc, char **argv) {
  options_t options = {
      .collective = find_collective("all_reduce"),
      .split = SPLIT_UNEVEN,
      .min_bytes = 8,
      .max_bytes = (size_t)128 << 20,
      .factor = 2,
      .dtype = RING_DTYPE_FLOAT32,
      .op = RING_OP_SUM,
      .warmup = 5,
      .check = true,
  };
  int option;
  bool fits_links = true;
  while ((option = getopt_long(argc, argv, "b:e:f:d:o:n:w:c:h", LONG_OPTIONS, NULL)) != -1) {
    fits_links &= option == OPT_LINKS || option == OPT_RANKS || option == OPT_JSON;
    switch (option) {
      case 'b': options.min_bytes = parse_size("-b", optarg); break;
      case 'e': options.max_bytes = parse_size("-e", optarg); break;
      case 'f': options.factor = (size_t)parse_number("-f", optarg, 2, 1 << 20); break;
      case 'd': options.dtype = parse_name("-d", optarg, ring_dtype_name); break;
      case 'o': options.op = parse_name("-o", optarg, ring_op_name); break;
      case 'n': options.iterations = parse_number("-n", optarg, 1, MAX_ITERATIONS); break;
      case 'w': options.warmup = parse_number("-w", optarg, 0, MAX_ITERATIONS); break;
      case 'c': options.check = parse_number("-c", optarg, 0, 1); break;
      case OPT_RANKS: options.ranks = parse_number("--ranks", optarg, 1, MODEL_MAX_RANKS); break;
      case OPT_CONNECTIONS:
        options.connections = parse_number("--connections", optarg, 1, MAX_CONNECTIONS);
        break;
      case OPT_COLLECTIVE: options.collective = parse_collective(optarg); break;
      case OPT_SPLIT: options.split = parse_split(optarg); break;
      case OPT_IN_PLACE: options.in_place = true; break;
      case OPT_OUT_OF_PLACE: options.out_of_place = true; break;
      case OPT_JSON: options.json = true; break;
      case OPT_MODEL:
        options.predict = true;
        options.model = parse_model(optarg);
        break;
      case OPT_LINKS: options.links = true; break;
      case OPT_VERSION: printf("ring-perf %s\n", ring_version_string()); exit(0);
      case 'h': fputs(HELP, stdout); fputs(HELP_LINKS, stdout); exit(0);
      default: fputs("ring-perf: try --help\n", stderr); exit(EXIT_USAGE);
    }
  }
  if (optind < argc) {
    fprintf(stderr, "ring-perf: \"%s\" is no option; try --help\n", argv[optind]);
    exit(EXIT_USAGE);
  }
  if (options.links && !fits_links) {
    fputs("ring-perf: --links has no other options than --ranks and --json\n", stderr);
    exit(EXIT_USAGE);
  }
  if (options.max_bytes < options.min_bytes) {
    fprintf(stderr, "ring-perf: the largest size, %zu bytes, is below the smallest, %zu bytes\n", options.max_bytes,
            options.min_bytes);
    exit(EXIT_USAGE);
  }
  if (options.predict ? options.ranks == 1 : options.ranks > MAX_RANKS) {
    fprintf(stderr, "ring-perf: --ranks is %d, not from %d to %d\n", options.ranks, options.predict ? 2 : 1,
            options.predict ? MODEL_MAX_RANKS : MAX_RANKS);
    exit(EXIT_USAGE);
  }
  settle_collective(&options);
  return options;
}
