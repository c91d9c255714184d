//! Calls that every rank makes in the same order.

use std::ffi::c_void;

use super::arguments;
use super::boundary::on_group;
use super::group::ring_group_t;
use super::types::{ring_dtype_t, ring_op_t, ring_status_t};
use crate::group::{Call, Kind};

/// Reduces the ranks' arrays element by element and gives every rank the result: count elements at
/// send, count at recv. In place is send == recv; no other overlap is allowed. Every rank gets the
/// same bits (NaN payloads aside), and again the same for the same data, number of ranks and count.
/// Blocks until this rank has its result and has handed on what its neighbours need. After a
/// failure the contents of recv are unspecified.
///
/// Not sticky: RING_STATUS_INVALID_ARGUMENT (NULL, unknown dtype or op, more than PTRDIFF_MAX bytes,
/// overlap), RING_STATUS_UNSUPPORTED (op isn't defined for dtype), RING_STATUS_OUT_OF_MEMORY,
/// RING_STATUS_INVALID_STATE (from a callback or in a forked child). Such a call moves nothing, but
/// takes its number: unless every rank's was refused, the next collective is a mismatch.
///
/// Sticky, returned at once by every later call on the group, and on every rank alike, wherever in the
/// ring it happened: RING_STATUS_MISMATCH (ranks made calls that differ; the text shows both),
/// RING_STATUS_PEER_LOST (a rank's process has ended, its host is silent, a link has broken, or it has
/// destroyed its group; the rank is named), RING_STATUS_TIMEOUT (no progress for the group's timeout;
/// named is the rank that doesn't answer or hasn't made the call), RING_STATUS_ABORTED (a rank called
/// ring_group_abort, or this one destroyed the group), RING_STATUS_SYSTEM (a host refused something),
/// RING_STATUS_INTERNAL (a fault of the library). RING_STATUS_CONNECT_FAILED: within 5 s of create a
/// second process claimed this ring's ports, as two jobs without job ids do.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_all_reduce(
    group: *mut ring_group_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: ring_dtype_t,
    op: ring_op_t,
) -> ring_status_t {
    on_group("ring_all_reduce", group, |group| {
        group.collective(Kind::AllReduce, arguments::all_reduce(send, recv, count, dtype, op))
    })
}

/// Gathers the ranks' arrays: send_count elements at send, alike on all ranks, go to every rank's
/// recv, rank r's at element r * send_count of size * send_count. In place is send == this rank's
/// part of recv; no other overlap is allowed. Blocks as ring_all_reduce does.
///
/// The statuses of ring_all_reduce.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_all_gather(
    group: *mut ring_group_t,
    send: *const c_void,
    recv: *mut c_void,
    send_count: usize,
    dtype: ring_dtype_t,
) -> ring_status_t {
    on_group("ring_all_gather", group, |group| {
        let place = (group.rank(), group.size());
        group.collective(Kind::AllGather, arguments::all_gather(place, send, recv, send_count, dtype))
    })
}

/// Returns when every rank of the group has called it.
///
/// The statuses of ring_all_reduce.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_barrier(group: *mut ring_group_t) -> ring_status_t {
    on_group("ring_barrier", group, |group| group.collective(Kind::Barrier, Ok(Call::new(Kind::Barrier, 0))))
}
