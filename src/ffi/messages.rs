//! Messages between two ranks.

use std::ffi::c_void;

use super::boundary::on_group;
use super::group::ring_group_t;
use super::pointers::{input, output};
use super::types::{ring_dtype_t, ring_status_t};
use crate::untyped::{self, SendRecv, accepted};

/// Sends count elements of dtype at buf to rank dst, any other rank; where count is 0 buf may be NULL. It may return
/// before the peer has called ring_recv, and blocks while the connection takes no more. Messages from one rank to
/// another arrive in the order of the calls; they are independent of collectives. The first one to a
/// rank that isn't a neighbour opens a connection to it, at the address at which that rank's left
/// neighbour reached it; no rank has to be in a call for this. On the MLX wire only neighbours can be sent to, on
/// the connections of collectives and in one order with these: any other rank is RING_STATUS_UNSUPPORTED, not
/// sticky, and two ranks that send to each other large arrays at the same time need ring_send_recv.
///
/// Not sticky. What is refused takes no number:
///
/// - RING_STATUS_INVALID_ARGUMENT: NULL, unknown dtype, more than PTRDIFF_MAX bytes, or dst isn't another rank of
///   the group.
/// - RING_STATUS_UNSUPPORTED: on the MLX wire, dst is no neighbour.
/// - RING_STATUS_INVALID_STATE: called from a callback or in a forked child.
/// - RING_STATUS_CONNECT_FAILED: dst can't be reached: its address refuses for a second, or is silent for the
///   shorter of connect_timeout_ms and half of the group's timeout; the text names it and says why. The ring_recv
///   of this message returns the same at dst, and the next ring_send tries anew. The message has taken its number.
///
/// Sticky: as in ring_all_reduce.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_send(
    group: *mut ring_group_t,
    buf: *const c_void,
    count: usize,
    dtype: ring_dtype_t,
    dst: i32,
) -> ring_status_t {
    on_group("ring_send", group, |group| {
        let place = (group.rank(), group.size());
        let message = untyped::send(place, input(buf), count, dtype, dst);
        group.send(accepted("ring_send", group, message)?)
    })
}

/// Receives the next message of rank src, any other rank: count elements of dtype at buf.
/// Blocks until it is there. A message of another count or type is RING_STATUS_MISMATCH, and
/// nothing of it is stored.
///
/// The statuses of ring_send; RING_STATUS_CONNECT_FAILED if src could not reach this rank with the message.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_recv(
    group: *mut ring_group_t,
    buf: *mut c_void,
    count: usize,
    dtype: ring_dtype_t,
    src: i32,
) -> ring_status_t {
    on_group("ring_recv", group, |group| {
        let place = (group.rank(), group.size());
        let message = untyped::recv(place, output(buf), count, dtype, src);
        group.recv(accepted("ring_recv", group, message)?)
    })
}

/// Sends and receives at the same time, as two ranks that send to each other must: send_count
/// elements at send to rank dst, recv_count at recv from rank src, both of dtype. Blocks until both are done. The
/// buffers don't overlap. A dst or src of -1 means none; with both equal to this rank it copies, and the counts
/// must be equal. Where one half gets RING_STATUS_CONNECT_FAILED the other is done all the same.
///
/// The statuses of ring_send; RING_STATUS_INVALID_ARGUMENT also where the buffers overlap, one of dst and src
/// alone is this rank, or the counts of a copy differ.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_send_recv(
    group: *mut ring_group_t,
    send: *const c_void,
    send_count: usize,
    dst: i32,
    recv: *mut c_void,
    recv_count: usize,
    src: i32,
    dtype: ring_dtype_t,
) -> ring_status_t {
    on_group("ring_send_recv", group, |group| {
        let place = (group.rank(), group.size());
        let (out, into) = ((input(send), send_count, dst), (output(recv), recv_count, src));
        match accepted("ring_send_recv", group, untyped::send_recv(place, out, into, dtype))? {
            SendRecv::Messages(send, recv) => group.send_recv(send, recv),
            SendRecv::Copy { from, to } => group.copy_to_self(from, to),
        }
    })
}
