/* A rank on MLX's wire that does what a script says and writes a digest a result, as c_tests/mlx/rank.py does with
 * other implementations. Arguments: rank, hostfile, script, folder of data, output. See c_tests/mlx/mixed.py. */
#include <string.h>

#include "harness.h"

enum { MAX_LINES = 4096, APART = 4194352, STARTS = 16 }; /* bytes between ranks' elements in a file of data; their alignment */

static char *pool_folder;

static char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  CHECK(file, "%s", path);
  fseek(file, 0, SEEK_END);
  *length = (size_t)ftell(file);
  rewind(file);
  char *data = malloc(*length + 1);
  CHECK(data && fread(data, 1, *length, file) == *length, "%s", path);
  data[*length] = 0;
  fclose(file);
  return data;
}

/* This rank's elements, copied to where `to` points. */
static void take(const char *kind, size_t position, int rank, void *to, size_t bytes) {
  static struct { char kind[16], *data; size_t length; } files[16];
  int i = 0;
  while (files[i].data && strcmp(files[i].kind, kind)) i++;
  if (!files[i].data) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", pool_folder, kind);
    files[i].data = read_file(path, &files[i].length);
    snprintf(files[i].kind, sizeof files[i].kind, "%s", kind);
  }
  size_t start = (position + (size_t)rank * APART) % (files[i].length - bytes) / STARTS * STARTS;
  memcpy(to, files[i].data + start, bytes);
}

/* zlib's crc32. */
static uint32_t digest(const unsigned char *data, size_t length) {
  static uint32_t table[256];
  if (!table[1])
    for (uint32_t i = 0; i < 256; i++) {
      table[i] = i;
      for (int bit = 0; bit < 8; bit++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
    }
  uint32_t crc = ~0u;
  for (size_t i = 0; i < length; i++) crc = table[(crc ^ data[i]) & 255] ^ crc >> 8;
  return ~crc;
}

#define WITHOUT_NANS(word, magnitude, infinity, nan)                        \
  for (size_t i = 0; i < bytes / sizeof(word); i++) {                       \
    word *bits = (word *)data + i;                                          \
    if ((*bits & (word)(magnitude)) > (word)(infinity)) *bits = (word)(nan); \
  }

/* One NaN for all: which one a sum gives isn't promised. */
static void without_nans(void *data, size_t bytes, ring_dtype_t dtype) {
  if (dtype == RING_DTYPE_FLOAT16) WITHOUT_NANS(uint16_t, 0x7fff, 0x7c00, 0x7e00)
  if (dtype == RING_DTYPE_BFLOAT16) WITHOUT_NANS(uint16_t, 0x7fff, 0x7f80, 0x7fc0)
  if (dtype == RING_DTYPE_FLOAT32 || dtype == RING_DTYPE_COMPLEX64) WITHOUT_NANS(uint32_t, 0x7fffffff, 0x7f800000, 0x7fc00000)
  if (dtype == RING_DTYPE_FLOAT64) WITHOUT_NANS(uint64_t, INT64_MAX, 0x7ff0000000000000, 0x7ff8000000000000)
}

struct line {
  char name[32], type[16], kind[16];
  unsigned long long count, position;
  char mode; /* i: in place, o: not, a: a request; for messages s: one after the other, x: send_recv, a: requests */
  ring_dtype_t dtype;
};

static ring_dtype_t dtype_named(const char *name) {
  for (ring_dtype_t dtype = 0; ring_dtype_size(dtype); dtype++)
    if (!strcmp(ring_dtype_name(dtype), name)) return dtype;
  CHECK(0, "no type %s", name);
  return -1;
}

static ring_op_t op_named(const char *name) {
  for (ring_op_t op = RING_OP_SUM; op <= RING_OP_BXOR; op++)
    if (!strcmp(ring_op_name(op), name)) return op;
  return -1;
}

static void await(ring_request_t *request) {
  OK(ring_request_wait(request, RING_TIMEOUT_INFINITE));
  ring_request_destroy(request);
}

static void send_to(ring_group_t *group, const void *data, const struct line *line, int to) {
  ring_request_t *request;
  if (line->mode != 'a') {
    OK(ring_send(group, data, line->count, line->dtype, to));
    return;
  }
  OK(ring_send_async(group, data, line->count, line->dtype, to, &request));
  await(request);
}

static void receive_from(ring_group_t *group, void *data, const struct line *line, int from) {
  ring_request_t *request;
  if (line->mode != 'a') {
    OK(ring_recv(group, data, line->count, line->dtype, from));
    return;
  }
  OK(ring_recv_async(group, data, line->count, line->dtype, from, &request));
  await(request);
}

static void all_reduce(ring_group_t *group, void *data, void *result, const struct line *line, ring_op_t op) {
  const void *from = line->mode == 'i' ? result : data;
  if (line->mode != 'a') {
    OK(ring_all_reduce(group, from, result, line->count, line->dtype, op));
    return;
  }
  ring_request_t *request;
  OK(ring_all_reduce_async(group, from, result, line->count, line->dtype, op, &request));
  await(request);
}

static void all_gather(ring_group_t *group, void *data, char *result, size_t bytes, const struct line *line) {
  char *own = result + (size_t)ring_group_rank(group) * bytes;
  const void *from = data;
  if (line->mode == 'i') from = memcpy(own, data, bytes);
  if (line->mode != 'a') {
    OK(ring_all_gather(group, from, result, line->count, line->dtype));
    return;
  }
  ring_request_t *request;
  OK(ring_all_gather_async(group, from, result, line->count, line->dtype, &request));
  await(request);
}

/* A message a rank, all to the same side. Where they go one after the other, rank 0 begins. */
static void pass(ring_group_t *group, void *data, void *result, const struct line *line, int step) {
  int rank = ring_group_rank(group), size = ring_group_size(group);
  int to = (rank + step + size) % size, from = (rank - step + size) % size;
  if (line->mode == 'x') {
    OK(ring_send_recv(group, data, line->count, to, result, line->count, from, line->dtype));
    return;
  }
  if (rank == 0) send_to(group, data, line, to);
  receive_from(group, result, line, from);
  if (rank != 0) send_to(group, data, line, to);
}

/* Returns how many bytes have come. */
static size_t perform(ring_group_t *group, const struct line *line, void *data, void *result, size_t bytes) {
  int rank = ring_group_rank(group), from, to;
  ring_op_t op = op_named(line->name);
  if (op >= 0) {
    memcpy(result, data, bytes);
    all_reduce(group, data, result, line, op);
    if (op == RING_OP_SUM || op == RING_OP_MEAN) without_nans(result, bytes, line->dtype);
    return bytes;
  }
  if (!strcmp(line->name, "gather")) {
    all_gather(group, data, result, bytes, line);
    return bytes * (size_t)ring_group_size(group);
  }
  if (!strcmp(line->name, "right") || !strcmp(line->name, "left")) {
    pass(group, data, result, line, line->name[0] == 'r' ? 1 : -1);
    return bytes;
  }
  if (sscanf(line->name, "hop:%d:%d", &from, &to) == 2) {
    if (rank == from) send_to(group, data, line, to);
    if (rank == to) receive_from(group, result, line, from);
    return rank == to ? bytes : SIZE_MAX;
  }
  CHECK(!strcmp(line->name, "barrier"), "no operation %s", line->name);
  if (line->mode == 'a') {
    ring_request_t *request;
    OK(ring_barrier_async(group, &request));
    await(request);
  } else {
    OK(ring_barrier(group));
  }
  return SIZE_MAX;
}

int main(int arguments, char **argument) {
  CHECK(arguments == 6, "arguments: rank, hostfile, script, folder of data, output");
  pool_folder = argument[4];
  ring_config_t config;
  ring_config_init(&config, sizeof config);
  config.rank = atoi(argument[1]);
  config.hostfile = argument[2];
  config.wire = RING_WIRE_MLX;
  config.connect_timeout_ms = 60000;
  config.timeout_ms = 60000;
  ring_group_t *group;
  OK(ring_group_create(&config, &group));
  puts("formed");
  fflush(stdout);
  char go[8];
  CHECK(fgets(go, sizeof go, stdin));

  size_t length;
  char *script = read_file(argument[3], &length), *rest = script;
  FILE *out = fopen(argument[5], "w");
  CHECK(out, "%s", argument[5]);
  for (int number = 0; rest && *rest; number++) {
    struct line line = {.count = 0};
    CHECK(sscanf(rest, "%31s %15s %llu %llu %15s %c", line.name, line.type, &line.count, &line.position, line.kind, &line.mode) == 6,
          "line %d", number);
    rest = strchr(rest, '\n');
    if (rest) rest++;
    line.dtype = dtype_named(line.type);
    size_t bytes = line.count * ring_dtype_size(line.dtype);
    char *data = malloc(bytes + 1), *result = malloc(bytes * (size_t)ring_group_size(group) + 1);
    CHECK(data && result);
    /* What this library's callers may call true is any byte but 0; MLX's ranks must get a 1. */
    int is_any = line.dtype == RING_DTYPE_BOOL && op_named(line.name) >= 0;
    if (bytes > 0) take(is_any ? "truth" : line.kind, line.position, config.rank, data, bytes);
    size_t came = perform(group, &line, data, result, bytes);
    if (came != SIZE_MAX) fprintf(out, "%d %08x %zu\n", number, digest((unsigned char *)result, came), came);
    free(data);
    free(result);
  }
  fclose(out);
  ring_group_destroy(group);
  free(script);
  return 0;
}
