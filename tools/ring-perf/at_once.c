#include "at_once.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each way carries what it would alone in this time, so that all of them are busy at least as long. */
static const double AT_ONCE_US = 200e3;

/* One way of an edge as one of its ends has it. */
typedef struct stream {
  const run_t *run;
  uint8_t *chunk;
  int peer;
  bool sends;
  uint64_t bytes;
  double start_us;
  double gb_s;              /* what has come */
  double *heard;            /* where that is wanted */
  ring_status_t status;
  char text[AT_ONCE_TEXT_BYTES];
} stream_t;

static void *carry(void *data) {
  stream_t *stream = data;
  stream->status = stream->sends ? send_bytes(stream->run, stream->chunk, stream->bytes, stream->peer)
                                 : receive_bytes(stream->run, stream->chunk, stream->bytes, stream->peer);
  if (stream->status != RING_STATUS_OK) ring_last_error(stream->text, sizeof stream->text);
  stream->gb_s = (double)stream->bytes / ((monotonic_us() - stream->start_us) * 1e3);
  return NULL;
}

static stream_t stream_of(const run_t *run, const edge_t *edge, way_t way, int peer, bool sends, double *heard) {
  /* 10^9 bytes a second are 10^3 a microsecond. */
  uint64_t bytes = (uint64_t)(edge->gb_s[way] * 1e3 * AT_ONCE_US);
  return (stream_t){.run = run, .peer = peer, .sends = sends, .bytes = bytes ? bytes : 1, .heard = heard};
}

/* Runs them side by side, a thread each, so that none waits for another. */
static ring_status_t run_streams(stream_t *streams, int count, char *text) {
  pthread_t threads[2 * WAYS];
  ring_status_t status = RING_STATUS_OK;
  int started = 0;
  double start_us = monotonic_us();
  for (; started < count; started++) {
    stream_t *stream = &streams[started];
    stream->chunk = stream->run->chunks[started];
    stream->start_us = start_us;
    if (pthread_create(&threads[started], NULL, carry, stream) != 0) {
      /* What the peers wait for won't come. */
      status = RING_STATUS_SYSTEM;
      snprintf(text, AT_ONCE_TEXT_BYTES, "no thread could be started");
      ring_group_abort(stream->run->group);
      break;
    }
  }
  for (int i = 0; i < started; i++) {
    pthread_join(threads[i], NULL);
    if (streams[i].status != RING_STATUS_OK && status == RING_STATUS_OK) {
      status = streams[i].status;
      memcpy(text, streams[i].text, AT_ONCE_TEXT_BYTES);
    }
    if (streams[i].heard) *streams[i].heard = streams[i].gb_s;
  }
  return status;
}

/* What every rank has received of its edges: to the right on its left one, to the left on its right one. */
static ring_status_t share(const run_t *run, const double own[WAYS], edge_t *edges) {
  double(*numbers)[WAYS] = calloc((size_t)run->size, sizeof *numbers);
  ring_status_t status = numbers ? RING_STATUS_OK : RING_STATUS_OUT_OF_MEMORY;
  if (numbers) status = ring_all_gather(run->group, own, numbers, WAYS, RING_DTYPE_FLOAT64);
  for (int edge = 0; edge < run->edges && status == RING_STATUS_OK; edge++) {
    edges[edge].at_once_gb_s[WAY_RIGHT] = numbers[(edge + 1) % run->size][WAY_RIGHT];
    edges[edge].at_once_gb_s[WAY_LEFT] = numbers[edge][WAY_LEFT];
  }
  free(numbers);
  return status;
}

ring_status_t measure_at_once(const run_t *run, edge_t *edges, char text[AT_ONCE_TEXT_BYTES]) {
  double heard[WAYS] = {0, 0};
  stream_t streams[2 * WAYS];
  int count = 0;
  int right = (run->rank + 1) % run->size, left = (run->rank + run->size - 1) % run->size;
  if (run->rank < run->edges) {
    const edge_t *edge = &edges[run->rank];
    streams[count++] = stream_of(run, edge, WAY_RIGHT, right, true, NULL);
    streams[count++] = stream_of(run, edge, WAY_LEFT, right, false, &heard[WAY_LEFT]);
  }
  if (left < run->edges) {
    const edge_t *edge = &edges[left];
    streams[count++] = stream_of(run, edge, WAY_RIGHT, left, false, &heard[WAY_RIGHT]);
    streams[count++] = stream_of(run, edge, WAY_LEFT, left, true, NULL);
  }
  ring_status_t status = ring_barrier(run->group);
  if (status == RING_STATUS_OK) {
    status = run_streams(streams, count, text);
    if (status != RING_STATUS_OK) return status;
    status = share(run, heard, edges);
  }
  if (status != RING_STATUS_OK) ring_last_error(text, AT_ONCE_TEXT_BYTES);
  return status;
}
