//! Calls that return at once, and what becomes of them.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use super::boundary::{on_group, on_request, usable_request, value};
use super::group::ring_group_t;
use super::pointers::{input, output};
use super::types::{ring_dtype_t, ring_op_t, ring_status_t};
use crate::untyped::{self, Call, Kind, Message, Place, Request, accepted, timeout_from_ms};
use crate::{Error, Result, Status};

/// A collective or a message that was started and goes on beside its caller. Until it is done its buffers belong
/// to the library: the caller neither writes, frees nor reads them, but those that are only sent, which it may
/// read. Afterwards, however it ended, the library never touches them again. Any thread may use it; it may
/// outlive its group.
///
/// Functions: ring_request_test, ring_request_wait, ring_request_destroy; made by the functions whose
/// names end in _async.
pub struct ring_request {
    _opaque: [u8; 0],
}

/// A call that goes on beside its caller.
pub type ring_request_t = ring_request;

/// Starts ring_all_reduce and returns at once; *out becomes its request, which the caller owns and ends with
/// ring_request_destroy. It takes its
/// place in the order of the group's calls now, and its buffers until it is done. Requests of collectives run
/// one after the other; messages, one at a time per direction of a pair, run beside them and beside each other. The
/// group's first request starts a thread that runs them all.
///
/// Returned at once, and *out is left alone: what ring_all_reduce refuses, with RING_STATUS_INVALID_ARGUMENT also
/// where out is NULL; the group's failure; and RING_STATUS_SYSTEM where the thread can't be started, which fails the
/// group. All else is what ring_request_wait returns.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_all_reduce_async(
    group: *mut ring_group_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: ring_dtype_t,
    op: ring_op_t,
    out: *mut *mut ring_request_t,
) -> ring_status_t {
    collective("ring_all_reduce_async", group, Kind::AllReduce, out, |_| {
        untyped::all_reduce(input(send), output(recv), count, dtype, op)
    })
}

/// Starts ring_reduce_scatter. See ring_all_reduce_async.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_reduce_scatter_async(
    group: *mut ring_group_t,
    send: *const c_void,
    recv: *mut c_void,
    recv_count: usize,
    dtype: ring_dtype_t,
    op: ring_op_t,
    out: *mut *mut ring_request_t,
) -> ring_status_t {
    collective("ring_reduce_scatter_async", group, Kind::ReduceScatter, out, |place| {
        untyped::reduce_scatter(place, input(send), output(recv), recv_count, dtype, op)
    })
}

/// Starts ring_all_gather. See ring_all_reduce_async.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_all_gather_async(
    group: *mut ring_group_t,
    send: *const c_void,
    recv: *mut c_void,
    send_count: usize,
    dtype: ring_dtype_t,
    out: *mut *mut ring_request_t,
) -> ring_status_t {
    collective("ring_all_gather_async", group, Kind::AllGather, out, |place| {
        untyped::all_gather(place, input(send), output(recv), send_count, dtype)
    })
}

/// Starts ring_broadcast. See ring_all_reduce_async.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_broadcast_async(
    group: *mut ring_group_t,
    buf: *mut c_void,
    count: usize,
    dtype: ring_dtype_t,
    root: i32,
    out: *mut *mut ring_request_t,
) -> ring_status_t {
    collective("ring_broadcast_async", group, Kind::Broadcast, out, |place| {
        untyped::broadcast(place, output(buf), count, dtype, root)
    })
}

/// Starts ring_all_to_all. See ring_all_reduce_async.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_all_to_all_async(
    group: *mut ring_group_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype: ring_dtype_t,
    out: *mut *mut ring_request_t,
) -> ring_status_t {
    collective("ring_all_to_all_async", group, Kind::AllToAll, out, |place| {
        untyped::all_to_all(place, input(send), output(recv), count, dtype)
    })
}

/// Starts ring_send. It is done when the connection has taken everything, which may be before the peer asks for
/// it. See ring_all_reduce_async; what ring_send refuses takes no number.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_send_async(
    group: *mut ring_group_t,
    buf: *const c_void,
    count: usize,
    dtype: ring_dtype_t,
    dst: i32,
    out: *mut *mut ring_request_t,
) -> ring_status_t {
    message("ring_send_async", group, true, out, |place| untyped::send(place, input(buf), count, dtype, dst))
}

/// Starts ring_recv. No collective waits for it. See ring_send_async.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_recv_async(
    group: *mut ring_group_t,
    buf: *mut c_void,
    count: usize,
    dtype: ring_dtype_t,
    src: i32,
    out: *mut *mut ring_request_t,
) -> ring_status_t {
    message("ring_recv_async", group, false, out, |place| {
        untyped::recv(place, output(buf), count, dtype, src)
    })
}

/// Starts ring_barrier: it is done once every rank has started or called this barrier. See ring_all_reduce_async.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_barrier_async(
    group: *mut ring_group_t,
    out: *mut *mut ring_request_t,
) -> ring_status_t {
    collective("ring_barrier_async", group, Kind::Barrier, out, |_| untyped::barrier())
}

/// Tells in *done whether the request is done, whether it succeeded or failed: ring_request_wait has its
/// status. May be repeated. Never blocks.
///
/// - RING_STATUS_INVALID_ARGUMENT: request or done is NULL.
/// - RING_STATUS_INVALID_STATE: called from a callback or in a forked child.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_request_test(request: *mut ring_request_t, done: *mut bool) -> ring_status_t {
    on_request("ring_request_test", request, |request| {
        if done.is_null() {
            return Err(Error::new(Status::InvalidArgument, "ring_request_test: done is NULL"));
        }
        // SAFETY: not NULL, and the caller has a bool there.
        unsafe { done.write(request.is_done()) };
        Ok(())
    })
}

/// Blocks until the request is done, for timeout_ms milliseconds at most (0 asks once, RING_TIMEOUT_INFINITE waits
/// for its end, which the group's timeout brings about) and returns the operation's status; ring_last_error then has the text of its
/// failure. May be repeated, by several threads, too.
///
/// - RING_STATUS_PENDING: it still runs, and the group is well.
/// - RING_STATUS_ABORTED: the group was destroyed first, or aborted.
/// - RING_STATUS_INVALID_ARGUMENT: request is NULL.
/// - RING_STATUS_INVALID_STATE: called from a callback or in a forked child.
///
/// Others: as the blocking call would have returned them.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_request_wait(request: *mut ring_request_t, timeout_ms: u32) -> ring_status_t {
    on_request("ring_request_wait", request, |request| {
        let pending = || Error::new(Status::Pending, "ring_request_wait: the operation is still running");
        request.wait(timeout_from_ms(timeout_ms, Duration::ZERO)).unwrap_or_else(|| Err(pending()))
    })
}

/// Frees the request, and blocks until its end first if it still runs; NULL does nothing. Any thread may call it, once:
/// the handle must not be used afterwards. From a callback and in a forked child it does nothing either.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ring_request_destroy(request: *mut ring_request_t) {
    let Ok(ours) = usable_request("ring_request_destroy", request) else { return };
    value((), || drop(ours.wait(None)));
    // SAFETY: made by Arc::into_raw in `give`; no call may follow.
    value((), || drop(unsafe { Arc::from_raw(request.cast::<Request>()) }));
}

/// An entry that starts a collective: what `arguments` refuses takes its number.
fn collective(
    name: &str,
    group: *mut ring_group_t,
    kind: Kind,
    out: *mut *mut ring_request_t,
    arguments: impl FnOnce(Place) -> Result<Call<'static>>,
) -> ring_status_t {
    on_group(name, group, |group| {
        let call = check_out(out).and_then(|()| arguments((group.rank(), group.size())));
        give(group.collective_async(kind, call)?, out);
        Ok(())
    })
}

/// An entry that starts a message.
fn message(
    name: &str,
    group: *mut ring_group_t,
    sends: bool,
    out: *mut *mut ring_request_t,
    arguments: impl FnOnce(Place) -> Result<Message<'static>>,
) -> ring_status_t {
    on_group(name, group, |group| {
        let message = check_out(out).and_then(|()| arguments((group.rank(), group.size())));
        give(group.message_async(accepted(name, group, message)?, sends)?, out);
        Ok(())
    })
}

fn check_out(out: *mut *mut ring_request_t) -> Result<()> {
    match out.is_null() {
        true => Err(Error::new(Status::InvalidArgument, "out is NULL")),
        false => Ok(()),
    }
}

fn give(request: Arc<Request>, out: *mut *mut ring_request_t) {
    // SAFETY: checked not to be NULL; the caller has a pointer's room there.
    unsafe { out.write(Arc::into_raw(request).cast_mut().cast()) };
}
