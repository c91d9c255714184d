/* What Go calls in place of ring.h: each function makes its call and brings back the text of its failure at once. The text
 * is kept per OS thread, and a goroutine may be on another one by the next call. Buffers are char, since cgo looks for Go
 * pointers in all that lies around what is passed as void *, such as the struct that an array is a part of; elements
 * have none, which Go checks by their type. */
#ifndef RING_GO_SHIMS_H
#define RING_GO_SHIMS_H

#include <ring.h>

/* Longer texts, of rings with hundreds of ranks that are missing, are cut. */
enum { RING_GO_TEXT_BYTES = 4096 };

/* How a call failed. */
typedef struct ring_go_report {
  /* The group's failure if that is what the call returned; otherwise ranks of -1 and zeros. */
  ring_failure_t failure;
  char text[RING_GO_TEXT_BYTES];
} ring_go_report_t;

ring_status_t ring_go_create(const ring_config_t *config, ring_group_t **out, ring_go_report_t *report);
ring_status_t ring_go_create_from_env(ring_group_t **out, ring_go_report_t *report);
ring_status_t ring_go_split(ring_group_t *group, int32_t color, int32_t key, ring_group_t **out,
                            ring_go_report_t *report);
ring_status_t ring_go_set_timeout(ring_group_t *group, uint32_t timeout_ms, ring_go_report_t *report);
ring_status_t ring_go_abort(ring_group_t *group, ring_go_report_t *report);
ring_status_t ring_go_stats(const ring_group_t *group, ring_stats_t *out, ring_go_report_t *report);

/* The group's failure, and its status; RING_STATUS_OK while there is none. */
ring_status_t ring_go_failure(const ring_group_t *group, ring_go_report_t *report);

/* RING_STATUS_INVALID_STATE in a callback, from which ring_group_destroy does nothing. */
ring_status_t ring_go_refuse_callback(ring_go_report_t *report);

ring_status_t ring_go_all_reduce(ring_group_t *group, const char *send, char *recv, size_t count, ring_dtype_t dtype,
                                 ring_op_t op, ring_go_report_t *report);
ring_status_t ring_go_reduce_scatter(ring_group_t *group, const char *send, char *recv, size_t recv_count,
                                     ring_dtype_t dtype, ring_op_t op, ring_go_report_t *report);
ring_status_t ring_go_all_gather(ring_group_t *group, const char *send, char *recv, size_t send_count,
                                 ring_dtype_t dtype, ring_go_report_t *report);
ring_status_t ring_go_broadcast(ring_group_t *group, char *buf, size_t count, ring_dtype_t dtype, int32_t root,
                                ring_go_report_t *report);
ring_status_t ring_go_reduce(ring_group_t *group, const char *send, char *recv, size_t count, ring_dtype_t dtype,
                             ring_op_t op, int32_t root, ring_go_report_t *report);
ring_status_t ring_go_gather(ring_group_t *group, const char *send, char *recv, size_t send_count, ring_dtype_t dtype,
                             int32_t root, ring_go_report_t *report);
ring_status_t ring_go_scatter(ring_group_t *group, const char *send, char *recv, size_t recv_count, ring_dtype_t dtype,
                              int32_t root, ring_go_report_t *report);
ring_status_t ring_go_all_to_all(ring_group_t *group, const char *send, char *recv, size_t count, ring_dtype_t dtype,
                                 ring_go_report_t *report);
ring_status_t ring_go_barrier(ring_group_t *group, ring_go_report_t *report);

ring_status_t ring_go_all_gather_v(ring_group_t *group, const char *send, size_t send_count, char *recv,
                                   const size_t *recv_counts, const size_t *recv_displs, ring_dtype_t dtype,
                                   ring_go_report_t *report);
ring_status_t ring_go_reduce_scatter_v(ring_group_t *group, const char *send, char *recv, const size_t *recv_counts,
                                       ring_dtype_t dtype, ring_op_t op, ring_go_report_t *report);
ring_status_t ring_go_all_to_all_v(ring_group_t *group, const char *send, const size_t *send_counts,
                                   const size_t *send_displs, char *recv, const size_t *recv_counts,
                                   const size_t *recv_displs, ring_dtype_t dtype, ring_go_report_t *report);

ring_status_t ring_go_send(ring_group_t *group, const char *buf, size_t count, ring_dtype_t dtype, int32_t dst,
                           ring_go_report_t *report);
ring_status_t ring_go_recv(ring_group_t *group, char *buf, size_t count, ring_dtype_t dtype, int32_t src,
                           ring_go_report_t *report);
ring_status_t ring_go_send_recv(ring_group_t *group, const char *send, size_t send_count, int32_t dst, char *recv,
                                size_t recv_count, int32_t src, ring_dtype_t dtype, ring_go_report_t *report);

/* reduction is a cgo.Handle, which ringGoReduce is given. */
ring_status_t ring_go_all_reduce_custom(ring_group_t *group, const char *send, char *recv, size_t count,
                                        size_t element_bytes, uintptr_t reduction, ring_go_report_t *report);
ring_status_t ring_go_reduce_scatter_v_custom(ring_group_t *group, const char *send, char *recv,
                                              const size_t *recv_counts, size_t element_bytes, uintptr_t reduction,
                                              ring_go_report_t *report);

/* Sends the log to ringGoLog, or nowhere. */
ring_status_t ring_go_set_log(bool on, ring_log_level_t max_level, ring_go_report_t *report);

/* Go's. */
void ringGoReduce(void *acc, void *input, size_t count, uintptr_t reduction);
void ringGoLog(ring_log_level_t level, char *message);

#endif
