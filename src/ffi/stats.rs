//! Statistics.

use super::boundary::on_group;
use super::group::ring_group_t;
use super::sized::write_sized;
use super::types::ring_status_t;
use crate::Stats;

/// What a group has counted since it was created; see ring_group_stats. All numbers only grow.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ring_stats {
    /// sizeof(ring_stats_t), set by the caller.
    pub struct_size: usize,
    /// Collectives and messages that this rank has finished with success, requests included. A send_recv counts for
    /// as many messages as it has.
    pub operations: u64,
    /// Bytes that this rank has sent on the group's data connections: payload, and a header a call and neighbour.
    /// It is counted when a call ends, however it ends.
    pub bytes_sent: u64,
    /// Bytes that it has received there, likewise.
    pub bytes_received: u64,
    /// Nanoseconds in calls: of each collective and message from its call, or of a request from its turn, to its
    /// end. Those that run at the same time count each for itself.
    pub busy_ns: u64,
    /// Of these, nanoseconds asleep while waiting for the left neighbour (rank - 1): to receive from it, or for it
    /// to take more. What waits for both neighbours counts for both; the first few ten microseconds of a wait are
    /// spent awake and count for none. In a ring of two the neighbours are one rank: left is what is received from it
    /// on the connection that it opened.
    pub wait_left_ns: u64,
    /// The same of the right neighbour (rank + 1).
    pub wait_right_ns: u64,
    /// Connections to this rank's port, since its ring began to form, that were no peer's, or that had another job's
    /// id or secret.
    pub strangers_refused: u64,
}

/// What a group has counted.
pub type ring_stats_t = ring_stats;

// No struct of the ABI ends in padding.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<ring_stats>() == 64);

/// Copies the group's counters; also of a group that has failed. The caller sets out->struct_size; the smaller of
/// it and the library's own size is written, what is beyond is zeroed. Never blocks.
///
/// - RING_STATUS_INVALID_ARGUMENT: group or out is NULL, or struct_size isn't the size of any ring_stats_t (less than
///   its own bytes, or over 4096).
/// - RING_STATUS_INVALID_STATE: called from a callback or in a forked child.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_group_stats(
    group: *const ring_group_t,
    out: *mut ring_stats_t,
) -> ring_status_t {
    on_group("ring_group_stats", group, |group| {
        let stats = in_numbers(group.stats());
        // SAFETY: the caller has set the size of what it has there.
        unsafe { write_sized(("ring_group_stats", "ring_stats_t"), out, &stats) }
    })
}

fn in_numbers(stats: Stats) -> ring_stats {
    let Stats { operations, bytes_sent, bytes_received, busy_ns, wait_ns, strangers_refused } = stats;
    let [wait_right_ns, wait_left_ns] = wait_ns;
    ring_stats {
        struct_size: size_of::<ring_stats>(),
        operations,
        bytes_sent,
        bytes_received,
        busy_ns,
        wait_left_ns,
        wait_right_ns,
        strangers_refused,
    }
}
