#include "shims.h"

#include <string.h>

/* Passes a status on, with the text and the numbers of what it stands for. The text comes first: what follows may
 * fail, too, and has a text of its own. */
static ring_status_t told(ring_status_t status, const ring_group_t *group, ring_go_report_t *report) {
  if (status == RING_STATUS_OK) return status;
  ring_last_error(report->text, sizeof report->text);
  ring_failure_t *failure = &report->failure;
  failure->struct_size = sizeof *failure;
  bool known = group && ring_group_failure(group, failure) == RING_STATUS_OK;
  if (!known || failure->status != status) {
    *failure = (ring_failure_t){.struct_size = sizeof *failure, .status = status, .rank = -1, .detected_by = -1};
  }
  return status;
}

ring_status_t ring_go_create(const ring_config_t *config, ring_group_t **out, ring_go_report_t *report) {
  return told(ring_group_create(config, out), NULL, report);
}

ring_status_t ring_go_create_from_env(ring_group_t **out, ring_go_report_t *report) {
  return told(ring_group_create_from_env(out), NULL, report);
}

ring_status_t ring_go_split(ring_group_t *group, int32_t color, int32_t key, ring_group_t **out,
                            ring_go_report_t *report) {
  return told(ring_group_split(group, color, key, out), group, report);
}

ring_status_t ring_go_set_timeout(ring_group_t *group, uint32_t timeout_ms, ring_go_report_t *report) {
  return told(ring_group_set_timeout(group, timeout_ms), group, report);
}

ring_status_t ring_go_abort(ring_group_t *group, ring_go_report_t *report) {
  return told(ring_group_abort(group), group, report);
}

ring_status_t ring_go_stats(const ring_group_t *group, ring_stats_t *out, ring_go_report_t *report) {
  out->struct_size = sizeof *out;
  return told(ring_group_stats(group, out), group, report);
}

ring_status_t ring_go_failure(const ring_group_t *group, ring_go_report_t *report) {
  report->failure.struct_size = sizeof report->failure;
  ring_status_t status = ring_group_failure(group, &report->failure);
  if (status != RING_STATUS_OK) return told(status, group, report);
  ring_group_last_error(group, report->text, sizeof report->text);
  return report->failure.status;
}

ring_status_t ring_go_refuse_callback(ring_go_report_t *report) {
  /* Callbacks are refused before arguments. */
  ring_status_t status = ring_group_create_from_env(NULL);
  if (status != RING_STATUS_INVALID_STATE) return RING_STATUS_OK;
  told(status, NULL, report);
  strcpy(report->text, "Close was called from a callback");
  return status;
}

ring_status_t ring_go_all_reduce(ring_group_t *group, const char *send, char *recv, size_t count, ring_dtype_t dtype,
                                 ring_op_t op, ring_go_report_t *report) {
  return told(ring_all_reduce(group, send, recv, count, dtype, op), group, report);
}

ring_status_t ring_go_reduce_scatter(ring_group_t *group, const char *send, char *recv, size_t recv_count,
                                     ring_dtype_t dtype, ring_op_t op, ring_go_report_t *report) {
  return told(ring_reduce_scatter(group, send, recv, recv_count, dtype, op), group, report);
}

ring_status_t ring_go_all_gather(ring_group_t *group, const char *send, char *recv, size_t send_count,
                                 ring_dtype_t dtype, ring_go_report_t *report) {
  return told(ring_all_gather(group, send, recv, send_count, dtype), group, report);
}

ring_status_t ring_go_broadcast(ring_group_t *group, char *buf, size_t count, ring_dtype_t dtype, int32_t root,
                                ring_go_report_t *report) {
  return told(ring_broadcast(group, buf, count, dtype, root), group, report);
}

ring_status_t ring_go_reduce(ring_group_t *group, const char *send, char *recv, size_t count, ring_dtype_t dtype,
                             ring_op_t op, int32_t root, ring_go_report_t *report) {
  return told(ring_reduce(group, send, recv, count, dtype, op, root), group, report);
}

ring_status_t ring_go_gather(ring_group_t *group, const char *send, char *recv, size_t send_count, ring_dtype_t dtype,
                             int32_t root, ring_go_report_t *report) {
  return told(ring_gather(group, send, recv, send_count, dtype, root), group, report);
}

ring_status_t ring_go_scatter(ring_group_t *group, const char *send, char *recv, size_t recv_count, ring_dtype_t dtype,
                              int32_t root, ring_go_report_t *report) {
  return told(ring_scatter(group, send, recv, recv_count, dtype, root), group, report);
}

ring_status_t ring_go_all_to_all(ring_group_t *group, const char *send, char *recv, size_t count, ring_dtype_t dtype,
                                 ring_go_report_t *report) {
  return told(ring_all_to_all(group, send, recv, count, dtype), group, report);
}

ring_status_t ring_go_barrier(ring_group_t *group, ring_go_report_t *report) {
  return told(ring_barrier(group), group, report);
}

ring_status_t ring_go_all_gather_v(ring_group_t *group, const char *send, size_t send_count, char *recv,
                                   const size_t *recv_counts, const size_t *recv_displs, ring_dtype_t dtype,
                                   ring_go_report_t *report) {
  return told(ring_all_gather_v(group, send, send_count, recv, recv_counts, recv_displs, dtype), group, report);
}

ring_status_t ring_go_reduce_scatter_v(ring_group_t *group, const char *send, char *recv, const size_t *recv_counts,
                                       ring_dtype_t dtype, ring_op_t op, ring_go_report_t *report) {
  return told(ring_reduce_scatter_v(group, send, recv, recv_counts, dtype, op), group, report);
}

ring_status_t ring_go_all_to_all_v(ring_group_t *group, const char *send, const size_t *send_counts,
                                   const size_t *send_displs, char *recv, const size_t *recv_counts,
                                   const size_t *recv_displs, ring_dtype_t dtype, ring_go_report_t *report) {
  return told(ring_all_to_all_v(group, send, send_counts, send_displs, recv, recv_counts, recv_displs, dtype), group,
              report);
}

ring_status_t ring_go_send(ring_group_t *group, const char *buf, size_t count, ring_dtype_t dtype, int32_t dst,
                           ring_go_report_t *report) {
  return told(ring_send(group, buf, count, dtype, dst), group, report);
}

ring_status_t ring_go_recv(ring_group_t *group, char *buf, size_t count, ring_dtype_t dtype, int32_t src,
                           ring_go_report_t *report) {
  return told(ring_recv(group, buf, count, dtype, src), group, report);
}

ring_status_t ring_go_send_recv(ring_group_t *group, const char *send, size_t send_count, int32_t dst, char *recv,
                                size_t recv_count, int32_t src, ring_dtype_t dtype, ring_go_report_t *report) {
  return told(ring_send_recv(group, send, send_count, dst, recv, recv_count, src, dtype), group, report);
}

static void reduce(void *acc, const void *input, size_t count, void *user_data) {
  /* Go knows no const. */
  ringGoReduce(acc, (void *)input, count, (uintptr_t)user_data);
}

ring_status_t ring_go_all_reduce_custom(ring_group_t *group, const char *send, char *recv, size_t count,
                                        size_t element_bytes, uintptr_t reduction, ring_go_report_t *report) {
  return told(ring_all_reduce_custom(group, send, recv, count, element_bytes, reduce, (void *)reduction), group,
              report);
}

ring_status_t ring_go_reduce_scatter_v_custom(ring_group_t *group, const char *send, char *recv,
                                              const size_t *recv_counts, size_t element_bytes, uintptr_t reduction,
                                              ring_go_report_t *report) {
  return told(ring_reduce_scatter_v_custom(group, send, recv, recv_counts, element_bytes, reduce, (void *)reduction),
              group, report);
}

static void log_line(ring_log_level_t level, const char *message, void *user_data) {
  (void)user_data;
  ringGoLog(level, (char *)message);
}

ring_status_t ring_go_set_log(bool on, ring_log_level_t max_level, ring_go_report_t *report) {
  return told(ring_set_log_callback(on ? log_line : NULL, NULL, max_level), NULL, report);
}
