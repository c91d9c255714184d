//! Collectives in which ranks' parts have lengths of their own.

use std::ffi::c_void;

use super::collectives::collective;
use super::group::ring_group_t;
use super::pointers::{entries, input, output};
use super::types::{ring_dtype_t, ring_op_t, ring_status_t};
use crate::untyped::{self, Kind};

/// As ring_all_gather, with parts of different lengths: recv_counts has an entry for each rank, alike on all
/// ranks; send_count elements at send are this rank's, as many as recv_counts[rank]. Rank r's arrive at
/// element recv_displs[r] of recv; recv_displs may differ between ranks, and NULL packs the parts in the order
/// of ranks. Parts don't overlap each other, and what lies between them stays as it is. The arrays are read
/// before the call returns. In place is send == this rank's part of recv; no other overlap is allowed.
///
/// The statuses of ring_all_gather; RING_STATUS_INVALID_ARGUMENT also where recv_counts is NULL, send_count
/// isn't recv_counts[rank], or parts of recv overlap. recv_counts that differ between ranks are a mismatch,
/// which comes as in ring_broadcast.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_all_gather_v(
    group: *mut ring_group_t,
    send: *const c_void,
    send_count: usize,
    recv: *mut c_void,
    recv_counts: *const usize,
    recv_displs: *const usize,
    dtype: ring_dtype_t,
) -> ring_status_t {
    collective("ring_all_gather_v", group, Kind::AllGatherV, |place| {
        let parts = (entries(recv_counts, place.1), entries(recv_displs, place.1));
        untyped::all_gather_v(place, (input(send), send_count), output(recv), parts, dtype)
    })
}

/// As ring_reduce_scatter, with parts of different lengths: recv_counts has an entry for each rank, alike on
/// all ranks. send holds the parts of all ranks packed in their order; this rank's, recv_counts[rank]
/// elements, arrives reduced at recv. The array is read before the call returns. In place is recv == this
/// rank's part of send, and only that part is written; no other overlap is allowed.
///
/// The statuses of ring_reduce_scatter; RING_STATUS_INVALID_ARGUMENT also where recv_counts is NULL.
/// recv_counts that differ between ranks are a mismatch, which comes as in ring_broadcast.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_reduce_scatter_v(
    group: *mut ring_group_t,
    send: *const c_void,
    recv: *mut c_void,
    recv_counts: *const usize,
    dtype: ring_dtype_t,
    op: ring_op_t,
) -> ring_status_t {
    collective("ring_reduce_scatter_v", group, Kind::ReduceScatterV, |place| {
        let counts = entries(recv_counts, place.1);
        untyped::reduce_scatter_v(place, input(send), output(recv), counts, dtype, op)
    })
}

/// As ring_all_to_all, with blocks of different lengths: send_counts[d] elements from element send_displs[d]
/// of send on go to rank d, and recv_counts[s] elements of rank s arrive at element recv_displs[s] of recv.
/// send_counts[d] must equal rank d's recv_counts of this rank. NULL displacements pack the blocks in the
/// order of ranks. Blocks of recv don't overlap each other, and what lies between them stays as it is. The
/// arrays are read before the call returns. There is no form in place, and no overlap is allowed.
///
/// The statuses of ring_all_to_all; RING_STATUS_INVALID_ARGUMENT also where an array of counts is NULL, this
/// rank's counts for itself differ, or blocks of recv overlap. Counts of two ranks that differ are a
/// mismatch, which comes as in ring_broadcast.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_all_to_all_v(
    group: *mut ring_group_t,
    send: *const c_void,
    send_counts: *const usize,
    send_displs: *const usize,
    recv: *mut c_void,
    recv_counts: *const usize,
    recv_displs: *const usize,
    dtype: ring_dtype_t,
) -> ring_status_t {
    collective("ring_all_to_all_v", group, Kind::AllToAllV, |place| {
        let listed = |array| entries(array, place.1);
        let out = (input(send), listed(send_counts), listed(send_displs));
        let into = (output(recv), listed(recv_counts), listed(recv_displs));
        untyped::all_to_all_v(place, out, into, dtype)
    })
}
