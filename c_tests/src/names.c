/* The numbers, names and layouts of ring.h. */
#include <string.h>

#include "harness.h"

#define NUMBER(constant, number) CHECK(constant == (number))
#define STATUS(constant, number) \
  CHECK(constant == (number) && strcmp(ring_status_name(number), #constant) == 0, "%s", ring_status_name(number))
#define DTYPE(constant, number, bytes, name) \
  CHECK(constant == (number) && ring_dtype_size(number) == (bytes) && !strcmp(ring_dtype_name(number), name))
#define OP(constant, number, name) CHECK(constant == (number) && !strcmp(ring_op_name(number), name))
#define FIELD(type, field, at) CHECK(offsetof(type, field) == (at), #field " is at %zu", offsetof(type, field))

static void enumerations(void) {
  STATUS(RING_STATUS_OK, 0);
  STATUS(RING_STATUS_INVALID_ARGUMENT, 1);
  STATUS(RING_STATUS_INVALID_STATE, 2);
  STATUS(RING_STATUS_UNSUPPORTED, 3);
  STATUS(RING_STATUS_INVALID_CONFIG, 4);
  STATUS(RING_STATUS_CONNECT_FAILED, 5);
  STATUS(RING_STATUS_AUTH_FAILED, 6);
  STATUS(RING_STATUS_MISMATCH, 7);
  STATUS(RING_STATUS_PEER_LOST, 8);
  STATUS(RING_STATUS_TIMEOUT, 9);
  STATUS(RING_STATUS_ABORTED, 10);
  STATUS(RING_STATUS_SYSTEM, 11);
  STATUS(RING_STATUS_OUT_OF_MEMORY, 12);
  STATUS(RING_STATUS_INTERNAL, 13);
  STATUS(RING_STATUS_PENDING, 14);
  DTYPE(RING_DTYPE_BOOL, 0, 1, "bool");
  DTYPE(RING_DTYPE_UINT8, 1, 1, "uint8");
  DTYPE(RING_DTYPE_UINT16, 2, 2, "uint16");
  DTYPE(RING_DTYPE_UINT32, 3, 4, "uint32");
  DTYPE(RING_DTYPE_UINT64, 4, 8, "uint64");
  DTYPE(RING_DTYPE_INT8, 5, 1, "int8");
  DTYPE(RING_DTYPE_INT16, 6, 2, "int16");
  DTYPE(RING_DTYPE_INT32, 7, 4, "int32");
  DTYPE(RING_DTYPE_INT64, 8, 8, "int64");
  DTYPE(RING_DTYPE_FLOAT16, 9, 2, "float16");
  DTYPE(RING_DTYPE_FLOAT32, 10, 4, "float32");
  DTYPE(RING_DTYPE_FLOAT64, 11, 8, "float64");
  DTYPE(RING_DTYPE_BFLOAT16, 12, 2, "bfloat16");
  DTYPE(RING_DTYPE_COMPLEX64, 13, 8, "complex64");
  OP(RING_OP_SUM, 0, "sum");
  OP(RING_OP_MAX, 1, "max");
  OP(RING_OP_MIN, 2, "min");
  OP(RING_OP_PROD, 3, "prod");
  OP(RING_OP_MEAN, 4, "mean");
  OP(RING_OP_BAND, 5, "band");
  OP(RING_OP_BOR, 6, "bor");
  OP(RING_OP_BXOR, 7, "bxor");
  NUMBER(RING_WIRE_NATIVE, 0);
  NUMBER(RING_WIRE_MLX, 1);
  NUMBER(RING_TRANSPORT_AUTO, 0);
  NUMBER(RING_TRANSPORT_TCP, 1);
  NUMBER(RING_TRANSPORT_SHM, 2);
  NUMBER(RING_LOG_LEVEL_ERROR, 1);
  NUMBER(RING_LOG_LEVEL_WARN, 2);
  NUMBER(RING_LOG_LEVEL_INFO, 3);
  NUMBER(RING_LOG_LEVEL_DEBUG, 4);
  NUMBER(RING_TIMEOUT_INFINITE, 0xffffffffu);
  CHECK(sizeof(ring_status_t) == 4 && sizeof(ring_dtype_t) == 4 && sizeof(ring_op_t) == 4);
  CHECK((ring_dtype_t)-1 < 0, "ring_dtype_t is signed");
}

static void unknown_values(void) {
  const int values[] = {-1, 15, 99, INT32_MAX, INT32_MIN};
  for (int i = 0; i < 5; i++) {
    CHECK(ring_dtype_size(values[i]) == 0);
    CHECK(!strcmp(ring_dtype_name(values[i]), "unknown") && !strcmp(ring_op_name(values[i]), "unknown"));
    CHECK(ring_status_name(values[i]) && ring_status_string(values[i]));
  }
  for (int status = 0; status <= 14; status++)
    for (int other = 0; other < status; other++)
      CHECK(strcmp(ring_status_string(status), ring_status_string(other)) != 0);
}

static void layouts(void) {
  FIELD(ring_failure_t, struct_size, 0);
  FIELD(ring_failure_t, status, sizeof(size_t));
  FIELD(ring_config_t, struct_size, 0);
  FIELD(ring_config_t, rank, sizeof(size_t));
  if (sizeof(void *) != 8) return;
  CHECK(sizeof(ring_failure_t) == 32 && sizeof(ring_config_t) == 104);
  FIELD(ring_failure_t, rank, 12);
  FIELD(ring_failure_t, detected_by, 16);
  FIELD(ring_failure_t, os_error, 20);
  FIELD(ring_failure_t, sequence, 24);
  FIELD(ring_config_t, size, 12);
  FIELD(ring_config_t, hostfile, 16);
  FIELD(ring_config_t, hosts, 24);
  FIELD(ring_config_t, rendezvous, 32);
  FIELD(ring_config_t, job_id, 40);
  FIELD(ring_config_t, secret, 48);
  FIELD(ring_config_t, secret_len, 56);
  FIELD(ring_config_t, connect_timeout_ms, 64);
  FIELD(ring_config_t, timeout_ms, 68);
  FIELD(ring_config_t, connections, 72);
  FIELD(ring_config_t, wire, 76);
  FIELD(ring_config_t, transport, 80);
  FIELD(ring_config_t, flags, 84);
  FIELD(ring_config_t, trace_dir, 88);
  FIELD(ring_config_t, stall_warning_ms, 96);
  FIELD(ring_config_t, reserved, 100);
}

int main(void) {
  char text[32];
  enumerations();
  unknown_values();
  layouts();
  CHECK(RING_VERSION == (RING_VERSION_MAJOR << 16 | RING_VERSION_MINOR << 8 | RING_VERSION_PATCH));
  CHECK(ring_version() == RING_VERSION && ring_abi_version() == RING_ABI_VERSION && RING_ABI_VERSION == 1);
  snprintf(text, sizeof text, "%d.%d.%d", RING_VERSION_MAJOR, RING_VERSION_MINOR, RING_VERSION_PATCH);
  CHECK(strcmp(text, ring_version_string()) == 0);
  return 0;
}
