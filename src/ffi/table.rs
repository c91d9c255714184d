//! All functions in one table, for programs that load the library and look up one name.

use std::ffi::{c_char, c_void};

use super::config::ring_config_t;
use super::custom::ring_reduce_fn;
use super::errors::ring_failure_t;
use super::group::ring_group_t;
use super::log::ring_log_fn;
use super::requests::ring_request_t;
use super::stats::ring_stats_t;
use super::types::{ring_dtype_t, ring_log_level_t, ring_op_t, ring_status_t};
use super::{
    collectives, collectives_v, config, custom, errors, group, log, messages, requests, stats, types, version,
};

/// Every function of this header, for a program that loads the library; from ring_get_api_v1. A slot is the
/// function whose name is ring_ and the slot's: what is said of that function is true of it.
///
/// The library may be older or newer than the program's header, and struct_size says how many slots it has: one
/// that ends within struct_size is there and isn't NULL, and what lies beyond isn't there to be read. So a program
/// checks once that the last slot that it uses is there, such as
/// struct_size >= offsetof(ring_api_v1_t, group_stats) + sizeof(void *). Slots are never moved, taken away or given
/// another type; new ones come at the end.
#[repr(C)]
// What a slot does is written at its function, once. The types are written out for cbindgen, which expands no
// macro; the initialiser below compiles only where they are the functions' own.
#[allow(missing_docs)]
pub struct ring_api_v1 {
    /// Bytes of the library's own table.
    pub struct_size: usize,
    /// The library's RING_ABI_VERSION; where it isn't the header's, no slot may be used.
    pub abi_version: u32,
    /// 0.
    pub reserved: u32,
    pub version: extern "C" fn() -> u32,
    pub version_string: extern "C" fn() -> *const c_char,
    /// The one slot with its function's whole name, since the other is the field's above.
    pub ring_abi_version: extern "C" fn() -> u32,
    pub dtype_size: extern "C" fn(dtype: ring_dtype_t) -> usize,
    pub dtype_name: extern "C" fn(dtype: ring_dtype_t) -> *const c_char,
    pub op_name: extern "C" fn(op: ring_op_t) -> *const c_char,
    pub status_name: extern "C" fn(status: ring_status_t) -> *const c_char,
    pub status_string: extern "C" fn(status: ring_status_t) -> *const c_char,
    pub last_error: unsafe extern "C" fn(buf: *mut c_char, len: usize) -> usize,
    pub group_last_error:
        unsafe extern "C" fn(group: *const ring_group_t, buf: *mut c_char, len: usize) -> usize,
    pub group_failure:
        unsafe extern "C" fn(group: *const ring_group_t, out: *mut ring_failure_t) -> ring_status_t,
    pub config_init: unsafe extern "C" fn(config: *mut ring_config_t, struct_size: usize),
    pub group_create:
        unsafe extern "C" fn(config: *const ring_config_t, out: *mut *mut ring_group_t) -> ring_status_t,
    pub group_create_from_env: unsafe extern "C" fn(out: *mut *mut ring_group_t) -> ring_status_t,
    pub group_rank: unsafe extern "C" fn(group: *const ring_group_t) -> i32,
    pub group_size: unsafe extern "C" fn(group: *const ring_group_t) -> i32,
    pub group_set_timeout: unsafe extern "C" fn(group: *mut ring_group_t, timeout_ms: u32) -> ring_status_t,
    pub group_split: unsafe extern "C" fn(
        group: *mut ring_group_t,
        color: i32,
        key: i32,
        out: *mut *mut ring_group_t,
    ) -> ring_status_t,
    pub group_abort: unsafe extern "C" fn(group: *mut ring_group_t) -> ring_status_t,
    pub group_destroy: unsafe extern "C" fn(group: *mut ring_group_t),
    pub all_reduce: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        recv: *mut c_void,
        count: usize,
        dtype: ring_dtype_t,
        op: ring_op_t,
    ) -> ring_status_t,
    pub reduce_scatter: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        recv: *mut c_void,
        recv_count: usize,
        dtype: ring_dtype_t,
        op: ring_op_t,
    ) -> ring_status_t,
    pub all_gather: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        recv: *mut c_void,
        send_count: usize,
        dtype: ring_dtype_t,
    ) -> ring_status_t,
    pub broadcast: unsafe extern "C" fn(
        group: *mut ring_group_t,
        buf: *mut c_void,
        count: usize,
        dtype: ring_dtype_t,
        root: i32,
    ) -> ring_status_t,
    pub reduce: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        recv: *mut c_void,
        count: usize,
        dtype: ring_dtype_t,
        op: ring_op_t,
        root: i32,
    ) -> ring_status_t,
    pub gather: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        recv: *mut c_void,
        send_count: usize,
        dtype: ring_dtype_t,
        root: i32,
    ) -> ring_status_t,
    pub scatter: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        recv: *mut c_void,
        recv_count: usize,
        dtype: ring_dtype_t,
        root: i32,
    ) -> ring_status_t,
    pub all_to_all: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        recv: *mut c_void,
        count: usize,
        dtype: ring_dtype_t,
    ) -> ring_status_t,
    pub barrier: unsafe extern "C" fn(group: *mut ring_group_t) -> ring_status_t,
    pub all_gather_v: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        send_count: usize,
        recv: *mut c_void,
        recv_counts: *const usize,
        recv_displs: *const usize,
        dtype: ring_dtype_t,
    ) -> ring_status_t,
    pub reduce_scatter_v: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        recv: *mut c_void,
        recv_counts: *const usize,
        dtype: ring_dtype_t,
        op: ring_op_t,
    ) -> ring_status_t,
    pub all_to_all_v: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        send_counts: *const usize,
        send_displs: *const usize,
        recv: *mut c_void,
        recv_counts: *const usize,
        recv_displs: *const usize,
        dtype: ring_dtype_t,
    ) -> ring_status_t,
    pub send: unsafe extern "C" fn(
        group: *mut ring_group_t,
        buf: *const c_void,
        count: usize,
        dtype: ring_dtype_t,
        dst: i32,
    ) -> ring_status_t,
    pub recv: unsafe extern "C" fn(
        group: *mut ring_group_t,
        buf: *mut c_void,
        count: usize,
        dtype: ring_dtype_t,
        src: i32,
    ) -> ring_status_t,
    pub send_recv: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        send_count: usize,
        dst: i32,
        recv: *mut c_void,
        recv_count: usize,
        src: i32,
        dtype: ring_dtype_t,
    ) -> ring_status_t,
    pub all_reduce_custom: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        recv: *mut c_void,
        count: usize,
        element_bytes: usize,
        r#fn: ring_reduce_fn,
        user_data: *mut c_void,
    ) -> ring_status_t,
    pub reduce_scatter_v_custom: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        recv: *mut c_void,
        recv_counts: *const usize,
        element_bytes: usize,
        r#fn: ring_reduce_fn,
        user_data: *mut c_void,
    ) -> ring_status_t,
    pub all_reduce_async: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        recv: *mut c_void,
        count: usize,
        dtype: ring_dtype_t,
        op: ring_op_t,
        out: *mut *mut ring_request_t,
    ) -> ring_status_t,
    pub reduce_scatter_async: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        recv: *mut c_void,
        recv_count: usize,
        dtype: ring_dtype_t,
        op: ring_op_t,
        out: *mut *mut ring_request_t,
    ) -> ring_status_t,
    pub all_gather_async: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        recv: *mut c_void,
        send_count: usize,
        dtype: ring_dtype_t,
        out: *mut *mut ring_request_t,
    ) -> ring_status_t,
    pub broadcast_async: unsafe extern "C" fn(
        group: *mut ring_group_t,
        buf: *mut c_void,
        count: usize,
        dtype: ring_dtype_t,
        root: i32,
        out: *mut *mut ring_request_t,
    ) -> ring_status_t,
    pub all_to_all_async: unsafe extern "C" fn(
        group: *mut ring_group_t,
        send: *const c_void,
        recv: *mut c_void,
        count: usize,
        dtype: ring_dtype_t,
        out: *mut *mut ring_request_t,
    ) -> ring_status_t,
    pub send_async: unsafe extern "C" fn(
        group: *mut ring_group_t,
        buf: *const c_void,
        count: usize,
        dtype: ring_dtype_t,
        dst: i32,
        out: *mut *mut ring_request_t,
    ) -> ring_status_t,
    pub recv_async: unsafe extern "C" fn(
        group: *mut ring_group_t,
        buf: *mut c_void,
        count: usize,
        dtype: ring_dtype_t,
        src: i32,
        out: *mut *mut ring_request_t,
    ) -> ring_status_t,
    pub barrier_async:
        unsafe extern "C" fn(group: *mut ring_group_t, out: *mut *mut ring_request_t) -> ring_status_t,
    pub request_test: unsafe extern "C" fn(request: *mut ring_request_t, done: *mut bool) -> ring_status_t,
    pub request_wait: unsafe extern "C" fn(request: *mut ring_request_t, timeout_ms: u32) -> ring_status_t,
    pub request_destroy: unsafe extern "C" fn(request: *mut ring_request_t),
    pub set_log_callback: unsafe extern "C" fn(
        log: ring_log_fn,
        user_data: *mut c_void,
        max_level: ring_log_level_t,
    ) -> ring_status_t,
    pub group_stats:
        unsafe extern "C" fn(group: *const ring_group_t, out: *mut ring_stats_t) -> ring_status_t,
}

/// Every function of this header.
pub type ring_api_v1_t = ring_api_v1;

static API: ring_api_v1 = ring_api_v1 {
    struct_size: size_of::<ring_api_v1>(),
    abi_version: version::ABI_VERSION,
    reserved: 0,
    version: version::ring_version,
    version_string: version::ring_version_string,
    ring_abi_version: version::ring_abi_version,
    dtype_size: types::ring_dtype_size,
    dtype_name: types::ring_dtype_name,
    op_name: types::ring_op_name,
    status_name: types::ring_status_name,
    status_string: types::ring_status_string,
    last_error: errors::ring_last_error,
    group_last_error: errors::ring_group_last_error,
    group_failure: errors::ring_group_failure,
    config_init: config::ring_config_init,
    group_create: group::ring_group_create,
    group_create_from_env: group::ring_group_create_from_env,
    group_rank: group::ring_group_rank,
    group_size: group::ring_group_size,
    group_set_timeout: group::ring_group_set_timeout,
    group_split: group::ring_group_split,
    group_abort: group::ring_group_abort,
    group_destroy: group::ring_group_destroy,
    all_reduce: collectives::ring_all_reduce,
    reduce_scatter: collectives::ring_reduce_scatter,
    all_gather: collectives::ring_all_gather,
    broadcast: collectives::ring_broadcast,
    reduce: collectives::ring_reduce,
    gather: collectives::ring_gather,
    scatter: collectives::ring_scatter,
    all_to_all: collectives::ring_all_to_all,
    barrier: collectives::ring_barrier,
    all_gather_v: collectives_v::ring_all_gather_v,
    reduce_scatter_v: collectives_v::ring_reduce_scatter_v,
    all_to_all_v: collectives_v::ring_all_to_all_v,
    send: messages::ring_send,
    recv: messages::ring_recv,
    send_recv: messages::ring_send_recv,
    all_reduce_custom: custom::ring_all_reduce_custom,
    reduce_scatter_v_custom: custom::ring_reduce_scatter_v_custom,
    all_reduce_async: requests::ring_all_reduce_async,
    reduce_scatter_async: requests::ring_reduce_scatter_async,
    all_gather_async: requests::ring_all_gather_async,
    broadcast_async: requests::ring_broadcast_async,
    all_to_all_async: requests::ring_all_to_all_async,
    send_async: requests::ring_send_async,
    recv_async: requests::ring_recv_async,
    barrier_async: requests::ring_barrier_async,
    request_test: requests::ring_request_test,
    request_wait: requests::ring_request_wait,
    request_destroy: requests::ring_request_destroy,
    set_log_callback: log::ring_set_log_callback,
    group_stats: stats::ring_group_stats,
};

/// The library's functions in a table, so that dlsym has to find this name alone. The table is constant and lives
/// as long as the process, since the library is never unloaded: dlclose leaves it. Never NULL. Never blocks, never
/// fails.
#[unsafe(no_mangle)]
pub extern "C" fn ring_get_api_v1() -> *const ring_api_v1_t {
    &raw const API
}
