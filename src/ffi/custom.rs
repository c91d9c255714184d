//! Collectives that reduce by a function of the host program.

use std::ffi::c_void;

use super::boundary::UserData;
use super::collectives::collective;
use super::group::ring_group_t;
use super::pointers::{entries, input, output};
use super::types::ring_status_t;
use crate::untyped::{self, Function, Kind, callback};

/// Reduces count elements of the host program's own: acc[i] = acc[i] op input[i], where acc holds this rank's
/// values and input those received; both pointers hold for the call alone. op is associative and commutative. Runs on
/// the thread that made the call, never concurrently within a call, on any number of whole elements; acc and input
/// don't overlap and are aligned to min(16, the largest power of two that divides element_bytes). user_data is the
/// call's. It must not unwind or longjmp; calls on groups from inside it give RING_STATUS_INVALID_STATE.
pub type ring_reduce_fn = Option<
    unsafe extern "C" fn(acc: *mut c_void, input: *const c_void, count: usize, user_data: *mut c_void),
>;

/// The host's function as the library calls it.
fn function(function: ring_reduce_fn, user_data: *mut c_void) -> Option<Function<'static>> {
    let (function, user_data) = (function?, UserData(user_data));
    Some(Box::new(move |acc, input, count| {
        let UserData(user_data) = &user_data;
        // SAFETY: the host's function, with its own pointer and so many whole elements at both others.
        callback(|| unsafe { function(acc.cast(), input.cast(), count, *user_data) });
    }))
}

/// As ring_all_reduce, of count elements of element_bytes bytes each, reduced by fn with user_data. In a
/// group of one fn isn't called. fn and user_data are needed for the call alone.
///
/// The statuses of ring_all_reduce (RING_STATUS_UNSUPPORTED on the MLX wire alone);
/// RING_STATUS_INVALID_ARGUMENT also where element_bytes is 0 or fn NULL. A mismatch comes as in ring_broadcast.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_all_reduce_custom(
    group: *mut ring_group_t,
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    element_bytes: usize,
    r#fn: ring_reduce_fn,
    user_data: *mut c_void,
) -> ring_status_t {
    collective("ring_all_reduce_custom", group, Kind::AllReduceCustom, |_| {
        let function = function(r#fn, user_data);
        untyped::all_reduce_custom(input(send), output(recv), count, element_bytes, function)
    })
}

/// As ring_reduce_scatter_v, of elements of element_bytes bytes each, reduced by fn with user_data. In a
/// group of one fn isn't called. fn and user_data are needed for the call alone.
///
/// The statuses of ring_reduce_scatter_v (RING_STATUS_UNSUPPORTED on the MLX wire alone);
/// RING_STATUS_INVALID_ARGUMENT also where element_bytes is 0 or fn NULL.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_reduce_scatter_v_custom(
    group: *mut ring_group_t,
    send: *const c_void,
    recv: *mut c_void,
    recv_counts: *const usize,
    element_bytes: usize,
    r#fn: ring_reduce_fn,
    user_data: *mut c_void,
) -> ring_status_t {
    collective("ring_reduce_scatter_v_custom", group, Kind::ReduceScatterVCustom, |place| {
        let function = function(r#fn, user_data);
        let (send, recv, counts) = (input(send), output(recv), entries(recv_counts, place.1));
        untyped::reduce_scatter_v_custom(place, send, recv, counts, element_bytes, function)
    })
}
