#include "edge.h"

#include <stdlib.h>
#include <time.h>

/* Round trips: as many as there are in this time, which a network across an ocean makes few and one inside a
 * host thousands. The first ones wake whoever sleeps. */
static const double ROUND_TRIPS_US = 50e3;
enum { WARMUP = 5, LEAST_SAMPLES = 20, MOST_SAMPLES = 5000 };

/* The first round of bytes takes a second at half a megabit per second; each further one is twice as large, so that
 * connections have opened their windows before the round that counts. */
enum { FIRST_ROUND_BYTES = 1 << 16 };

/* A round that takes this long counts: thousands of packets on any network on which rings are run, and less than a
 * minute for the edges of 64 ranks. */
static const double ROUND_US = 100e3;

/* A round's end is known a round trip late, which is taken off; where it is more than a part of the whole the
 * window still opens. */
static const double LEAST_ROUND_TRIPS = 4;

double monotonic_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- between the two ends ---- */

static ring_status_t say(const run_t *run, int64_t word, int peer) {
  return ring_send(run->group, &word, 1, RING_DTYPE_INT64, peer);
}

static ring_status_t hear(const run_t *run, int64_t *word, int peer) {
  return ring_recv(run->group, word, 1, RING_DTYPE_INT64, peer);
}

ring_status_t send_bytes(const run_t *run, const uint8_t *chunk, uint64_t bytes, int peer) {
  ring_status_t status = RING_STATUS_OK;
  for (uint64_t left = bytes; left > 0 && status == RING_STATUS_OK;) {
    size_t count = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
    status = ring_send(run->group, chunk, count, RING_DTYPE_UINT8, peer);
    left -= count;
  }
  return status;
}

ring_status_t receive_bytes(const run_t *run, uint8_t *chunk, uint64_t bytes, int peer) {
  ring_status_t status = RING_STATUS_OK;
  for (uint64_t left = bytes; left > 0 && status == RING_STATUS_OK;) {
    size_t count = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
    status = ring_recv(run->group, chunk, count, RING_DTYPE_UINT8, peer);
    left -= count;
  }
  return status;
}

/* ---- round trips ---- */

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Each word says whether another one follows. */
static ring_status_t ping(const run_t *run, int peer, edge_t *edge) {
  static double samples_us[MOST_SAMPLES];
  ring_status_t status = RING_STATUS_OK;
  double start = monotonic_us(), sent = start;
  int samples = -WARMUP;
  for (int64_t more = 1; more && status == RING_STATUS_OK; samples++) {
    bool enough = samples + 1 >= LEAST_SAMPLES && sent - start > ROUND_TRIPS_US;
    more = !enough && samples + 1 < MOST_SAMPLES;
    int64_t word;
    status = say(run, more, peer);
    if (status == RING_STATUS_OK) status = hear(run, &word, peer);
    double heard = monotonic_us();
    if (samples >= 0) samples_us[samples] = heard - sent;
    sent = heard;
  }
  if (status != RING_STATUS_OK) return status;
  qsort(samples_us, (size_t)samples, sizeof *samples_us, by_value);
  edge->least_us = samples_us[0];
  edge->median_us = samples_us[samples / 2];
  edge->p99_us = samples_us[samples * 99 / 100];
  edge->most_us = samples_us[samples - 1];
  return RING_STATUS_OK;
}

static ring_status_t answer(const run_t *run, int peer) {
  ring_status_t status = RING_STATUS_OK;
  for (int64_t more = 1; more && status == RING_STATUS_OK;) {
    status = hear(run, &more, peer);
    if (status == RING_STATUS_OK) status = say(run, more, peer);
  }
  return status;
}

/* ---- bandwidth ---- */

/* A round: how many bytes will come, the bytes, and a word back that they have come. No bytes is the end. */
static ring_status_t stream_out(const run_t *run, int peer, double round_trip_us, double *gb_s) {
  ring_status_t status = RING_STATUS_OK;
  bool counts = false;
  for (int64_t bytes = FIRST_ROUND_BYTES; !counts && status == RING_STATUS_OK; bytes *= 2) {
    double start = monotonic_us();
    int64_t word;
    status = say(run, bytes, peer);
    if (status == RING_STATUS_OK) status = send_bytes(run, run->chunks[0], (uint64_t)bytes, peer);
    if (status == RING_STATUS_OK) status = hear(run, &word, peer);
    double took = monotonic_us() - start;
    *gb_s = (double)bytes / ((took - round_trip_us) * 1e3);
    counts = took - round_trip_us >= ROUND_US && took >= LEAST_ROUND_TRIPS * round_trip_us;
  }
  if (status == RING_STATUS_OK) status = say(run, 0, peer);
  return status;
}

static ring_status_t stream_in(const run_t *run, int peer) {
  ring_status_t status = RING_STATUS_OK;
  for (int64_t bytes = 1; bytes && status == RING_STATUS_OK;) {
    status = hear(run, &bytes, peer);
    if (status == RING_STATUS_OK) status = receive_bytes(run, run->chunks[0], (uint64_t)bytes, peer);
    if (status == RING_STATUS_OK && bytes) status = say(run, bytes, peer);
  }
  return status;
}

/* ---- an edge ---- */

/* Numbers that one end has and the other needs; the same program is at both. */
static ring_status_t send_number(const run_t *run, double number, int peer) {
  return ring_send(run->group, &number, 1, RING_DTYPE_FLOAT64, peer);
}

static ring_status_t receive_number(const run_t *run, double *number, int peer) {
  return ring_recv(run->group, number, 1, RING_DTYPE_FLOAT64, peer);
}

static ring_status_t measure_from_left(const run_t *run, int peer, edge_t *edge) {
  ring_status_t status = ping(run, peer, edge);
  if (status == RING_STATUS_OK) status = send_number(run, edge->median_us, peer);
  if (status == RING_STATUS_OK) status = stream_out(run, peer, edge->median_us, &edge->gb_s[WAY_RIGHT]);
  if (status == RING_STATUS_OK) status = stream_in(run, peer);
  if (status == RING_STATUS_OK) status = receive_number(run, &edge->gb_s[WAY_LEFT], peer);
  return status;
}

static ring_status_t measure_from_right(const run_t *run, int peer) {
  double round_trip_us = 0, gb_s = 0;
  ring_status_t status = answer(run, peer);
  if (status == RING_STATUS_OK) status = receive_number(run, &round_trip_us, peer);
  if (status == RING_STATUS_OK) status = stream_in(run, peer);
  if (status == RING_STATUS_OK) status = stream_out(run, peer, round_trip_us, &gb_s);
  if (status == RING_STATUS_OK) status = send_number(run, gb_s, peer);
  return status;
}

ring_status_t measure_edge(const run_t *run, int edge, edge_t *out) {
  int left = edge, right = (edge + 1) % run->size;
  *out = (edge_t){.least_us = 0};
  ring_status_t status = RING_STATUS_OK;
  if (run->rank == left) status = measure_from_left(run, right, out);
  else if (run->rank == right) status = measure_from_right(run, left);
  if (status != RING_STATUS_OK) return status;
  /* The next edge's ends begin when they have heard of this one. */
  return ring_broadcast(run->group, out, sizeof *out, RING_DTYPE_UINT8, left);
}
