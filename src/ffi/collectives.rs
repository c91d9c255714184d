//! Calls that every rank makes in the same order.

use std::ffi::c_void;

use super::boundary::on_group;
use super::group::ring_group_t;
use super::pointers::{input, output};
use super::types::{ring_dtype_t, ring_op_t, ring_status_t};
use crate::Result;
use crate::untyped::{self, Call, Kind, Place};

/// An entry that is a collective: what `arguments` refuses takes its number.
pub(super) fn collective<'a>(
    name: &str,
    group: *mut ring_group_t,
    kind: Kind,
    arguments: impl FnOnce(Place) -> Result<Call<'a>>,
) -> ring_status_t {
    on_group(name, group, |group| group.collective(kind, arguments((group.rank(), group.size()))))
}

/// Reduces the ranks' arrays by op, element by element, and gives every rank the result: count elements of dtype at
/// send, count at recv. In place is send == recv; no other overlap is allowed. Where count is 0 both may
/// be NULL. Every rank gets the same bits (NaN payloads aside), and again the same for the same data, number
/// of ranks and count. float16 and bfloat16 are rounded at each addition, unless the group has
/// RING_FLAG_WIDE_ACCUMULATION. Ranks make their calls in one order, threads of a rank one after the other.
/// Blocks until this rank has its result and has handed on what its neighbours need. After a
/// failure the contents of recv are unspecified.
///
/// Not sticky. Such a call moves nothing, but takes its number: unless every rank's was refused, the next
/// collective is a mismatch.
///
/// - RING_STATUS_INVALID_ARGUMENT: NULL, unknown dtype or op, more than PTRDIFF_MAX bytes, overlap. With a NULL
///   group there is no number to take.
/// - RING_STATUS_UNSUPPORTED: op isn't defined for dtype, or the group is on the MLX wire, which doesn't carry this.
/// - RING_STATUS_OUT_OF_MEMORY: before anything moved.
/// - RING_STATUS_INVALID_STATE: called from a callback or in a forked child; this one takes no number.
///
/// Sticky, returned at once by every later call on the group, and on every rank alike, wherever in the
/// ring it happened:
///
/// - RING_STATUS_MISMATCH: ranks made calls that differ; the text shows both.
/// - RING_STATUS_PEER_LOST: a rank's process has ended, its host is silent, a link has broken, or it has
///   destroyed its group; the rank is named.
/// - RING_STATUS_TIMEOUT: no progress for the group's timeout; named is the rank that doesn't answer or hasn't
///   made the call.
/// - RING_STATUS_ABORTED: a rank called ring_group_abort, or this one destroyed the group.
/// - RING_STATUS_SYSTEM: a host refused something.
/// - RING_STATUS_OUT_OF_MEMORY: a rank found no memory after something had moved.
/// - RING_STATUS_INTERNAL: the library has a fault of its own.
/// - RING_STATUS_CONNECT_FAILED: within 5 s of create a second process claimed this ring's ports, as two jobs
///   without job ids do.
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
    collective("ring_all_reduce", group, Kind::AllReduce, |_| {
        untyped::all_reduce(input(send), output(recv), count, dtype, op)
    })
}

/// Reduces the ranks' arrays by op and gives each rank its part of the result: size * recv_count elements of dtype at
/// send, alike on all ranks, of which rank r gets, reduced, those from element r * recv_count on, at recv.
/// In place is recv == this rank's part of send, and only that part is written; no other overlap is
/// allowed. The bits depend on the data, the number of ranks and recv_count alone. Blocks as
/// ring_all_reduce does.
///
/// The statuses of ring_all_reduce.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_reduce_scatter(
    group: *mut ring_group_t,
    send: *const c_void,
    recv: *mut c_void,
    recv_count: usize,
    dtype: ring_dtype_t,
    op: ring_op_t,
) -> ring_status_t {
    collective("ring_reduce_scatter", group, Kind::ReduceScatter, |place| {
        untyped::reduce_scatter(place, input(send), output(recv), recv_count, dtype, op)
    })
}

/// Gathers the ranks' arrays: send_count elements of dtype at send, alike on all ranks, go to every rank's
/// recv, rank r's at element r * send_count of size * send_count. In place is send == this rank's
/// part of recv; no other overlap is allowed. Blocks as ring_all_reduce does.
///
/// The statuses of ring_all_reduce but RING_STATUS_UNSUPPORTED: every type and both wires have it.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_all_gather(
    group: *mut ring_group_t,
    send: *const c_void,
    recv: *mut c_void,
    send_count: usize,
    dtype: ring_dtype_t,
) -> ring_status_t {
    collective("ring_all_gather", group, Kind::AllGather, |place| {
        untyped::all_gather(place, input(send), output(recv), send_count, dtype)
    })
}

/// Gives every rank the root's array: count elements of dtype at buf, which are read on rank root and written on
/// all others. Blocks until this rank has the array and has handed it on; the root may return before the
/// last rank has called. After a failure the contents of buf are unspecified, but on the root.
///
/// The statuses of ring_all_reduce (RING_STATUS_UNSUPPORTED on the MLX wire alone);
/// RING_STATUS_INVALID_ARGUMENT also where root isn't a rank of the group. A call that differs from another rank's
/// is RING_STATUS_MISMATCH at the latest in this rank's next collective.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_broadcast(
    group: *mut ring_group_t,
    buf: *mut c_void,
    count: usize,
    dtype: ring_dtype_t,
    root: i32,
) -> ring_status_t {
    collective("ring_broadcast", group, Kind::Broadcast, |place| {
        untyped::broadcast(place, output(buf), count, dtype, root)
    })
}

/// Reduces the ranks' arrays by op and gives rank root the result: count elements of dtype at send, on the root count
/// at recv. Elsewhere recv is ignored and may be NULL. In place is send == recv on the root; no other overlap is
/// allowed. The bits depend on the data, the number of ranks, count and root alone. Blocks until this rank
/// has its result or has handed on what the root needs.
///
/// The statuses of ring_all_reduce; RING_STATUS_INVALID_ARGUMENT also where root isn't a rank of the
/// group. A mismatch comes as in ring_broadcast.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_reduce(
    group: *mut ring_group_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: ring_dtype_t,
    op: ring_op_t,
    root: i32,
) -> ring_status_t {
    collective("ring_reduce", group, Kind::Reduce, |place| {
        untyped::reduce(place, input(send), output(recv), count, (dtype, op), root)
    })
}

/// Gathers the ranks' arrays on rank root: send_count elements of dtype at send, alike on all ranks, rank r's at
/// element r * send_count of the root's recv, which holds size * send_count. Elsewhere recv is ignored and
/// may be NULL. In place is send == the root's own part of recv, on the root; no other overlap is allowed.
/// Blocks as ring_reduce does.
///
/// The statuses of ring_broadcast.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_gather(
    group: *mut ring_group_t,
    send: *const c_void,
    recv: *mut c_void,
    send_count: usize,
    dtype: ring_dtype_t,
    root: i32,
) -> ring_status_t {
    collective("ring_gather", group, Kind::Gather, |place| {
        untyped::gather(place, input(send), output(recv), send_count, dtype, root)
    })
}

/// Gives each rank its part of the root's array: recv_count elements of dtype at recv, alike on all ranks, rank r's
/// from element r * recv_count of the root's send, which holds size * recv_count. Elsewhere send is ignored
/// and may be NULL. In place is recv == the root's own part of send, on the root; no other overlap is
/// allowed. Blocks until this rank has its part and has handed on those of others.
///
/// The statuses of ring_broadcast.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_scatter(
    group: *mut ring_group_t,
    send: *const c_void,
    recv: *mut c_void,
    recv_count: usize,
    dtype: ring_dtype_t,
    root: i32,
) -> ring_status_t {
    collective("ring_scatter", group, Kind::Scatter, |place| {
        untyped::scatter(place, input(send), output(recv), recv_count, dtype, root)
    })
}

/// Sends a block of count elements of dtype to every rank and receives one from each: the block at element
/// d * count of send goes to rank d, and that of rank s arrives at element s * count of recv. Both hold
/// size * count elements, count is alike on all ranks, and the own block is copied. There is no form in
/// place, and no overlap is allowed. Blocks until this rank has its blocks and its own have left.
///
/// The statuses of ring_all_reduce (RING_STATUS_UNSUPPORTED on the MLX wire alone).
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_all_to_all(
    group: *mut ring_group_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: ring_dtype_t,
) -> ring_status_t {
    collective("ring_all_to_all", group, Kind::AllToAll, |place| {
        untyped::all_to_all(place, input(send), output(recv), count, dtype)
    })
}

/// Blocks until every rank of the group has called it. Moves no data.
///
/// The statuses of ring_all_reduce (RING_STATUS_UNSUPPORTED on the MLX wire alone).
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_barrier(group: *mut ring_group_t) -> ring_status_t {
    collective("ring_barrier", group, Kind::Barrier, |_| untyped::barrier())
}
