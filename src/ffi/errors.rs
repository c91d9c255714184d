//! Failures as texts and as a struct.

use std::ffi::c_char;

use super::boundary::{borrow, last_error, on_group, value};
use super::group::ring_group_t;
use super::sized::write_sized;
use super::types::ring_status_t;
use crate::{Error, Status};

/// A group's failure in numbers; see ring_group_failure.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ring_failure {
    /// sizeof(ring_failure_t), set by the caller.
    pub struct_size: usize,
    /// RING_STATUS_OK while the group is healthy.
    pub status: ring_status_t,
    /// The rank at fault, -1 if not known or if it takes two. With RING_STATUS_ABORTED it is the rank that
    /// aborted.
    pub rank: i32,
    /// The rank that saw it first, -1 if not known.
    pub detected_by: i32,
    /// errno, 0 if none.
    pub os_error: i32,
    /// Number of the collective ("call 17" in texts), or of the message from one rank to another, both
    /// from 1; 0 between calls.
    pub sequence: u64,
}

/// A group's failure in numbers.
pub type ring_failure_t = ring_failure;

// No struct of the ABI ends in padding.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<ring_failure>() == 32);

/// Copies the text of this thread's last failure: one line that names the call and its number (collectives
/// are numbered from 1), the rank at fault and its address, the OS error in words, and the first cause.
/// Every call that fails sets it, success leaves it; another thread's failures don't show here.
///
/// Written to buf is a NUL-terminated UTF-8 text, cut to len bytes at a character's end; returned is the full length
/// in bytes without the NUL. A NULL buf counts as len 0, with which nothing is written. Never blocks, never fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ring_last_error(buf: *mut c_char, len: usize) -> usize {
    value(0, || copy_text(&last_error(), buf, len))
}

/// Copies the text of the group's failure to buf, of len bytes, in the form of ring_last_error; empty while the
/// group is healthy or for NULL. It is set once and never changes. Never blocks, never fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ring_group_last_error(
    group: *const ring_group_t,
    buf: *mut c_char,
    len: usize,
) -> usize {
    value(0, || {
        let group = borrow(group);
        let failure = group.as_ref().and_then(|group| group.failure());
        copy_text(failure.map_or("", |error| &error.text), buf, len)
    })
}

/// Tells whether and how the group has failed, also between calls: a failure anywhere in the ring is
/// known here within moments, a silent host's after some 20 s. What is returned is whether it could be
/// told; how the group is stands in out->status. The caller sets out->struct_size; the smaller of it
/// and the library's own size is written, what is beyond is zeroed. Never blocks.
///
/// - RING_STATUS_INVALID_ARGUMENT: group or out is NULL, or struct_size isn't the size of any
///   ring_failure_t (less than its own bytes, or over 4096).
/// - RING_STATUS_INVALID_STATE: called from a callback or in a forked child.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn ring_group_failure(
    group: *const ring_group_t,
    out: *mut ring_failure_t,
) -> ring_status_t {
    on_group("ring_group_failure", group, |group| {
        let failure = group.failure().map_or(NONE, in_numbers);
        // SAFETY: the caller has set the size of what it has there.
        unsafe { write_sized(FAILURE, out, &failure) }
    })
}

const FAILURE: (&str, &str) = ("ring_group_failure", "ring_failure_t");

const NONE: ring_failure = ring_failure {
    struct_size: 0,
    status: Status::Ok as i32,
    rank: -1,
    detected_by: -1,
    os_error: 0,
    sequence: 0,
};

fn in_numbers(error: &Error) -> ring_failure {
    let number = |rank: Option<usize>| rank.map_or(-1, |rank| rank as i32);
    ring_failure {
        struct_size: 0,
        status: error.status as i32,
        rank: number(error.rank),
        detected_by: number(error.detected_by),
        os_error: error.os_error,
        sequence: error.sequence,
    }
}

/// Copies a text as the header promises.
fn copy_text(text: &str, buf: *mut c_char, len: usize) -> usize {
    if !buf.is_null() && len > 0 {
        let kept = text.floor_char_boundary(len - 1);
        // SAFETY: the caller has `len` bytes at `buf`; kept + 1 of them are written.
        unsafe {
            buf.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), kept);
            buf.add(kept).write(0);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    // The words are those of a little-endian 64-bit target.
    #[cfg(all(target_endian = "little", target_pointer_width = "64"))]
    #[test]
    fn a_failure_fills_the_callers_struct_and_no_more() {
        const UNTOUCHED: u64 = 0x5555_5555_5555_5555;
        let failure = ring_failure { status: 8, rank: 2, sequence: 7, ..NONE };
        for (theirs, right) in [
            (8, [8, UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED]),
            (16, [16, 2 << 32 | 8, UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED]),
            (32, [32, 2 << 32 | 8, 0xffff_ffff, 7, UNTOUCHED, UNTOUCHED]),
            (40, [40, 2 << 32 | 8, 0xffff_ffff, 7, 0, UNTOUCHED]),
        ] {
            let mut room = [UNTOUCHED; 6];
            room[0] = theirs;
            // SAFETY: in all cases that aren't refused there is room for so much.
            assert!(unsafe { write_sized(FAILURE, room.as_mut_ptr().cast(), &failure) }.is_ok());
            assert_eq!(room, right, "{theirs}");
        }
        for theirs in [0, 7, 4097, u64::MAX] {
            let mut room = [theirs; 6];
            // SAFETY: as above.
            assert!(unsafe { write_sized(FAILURE, room.as_mut_ptr().cast(), &failure) }.is_err());
            assert_eq!(room, [theirs; 6]);
        }
    }

    #[test]
    fn texts_are_cut_at_a_character() {
        let text = "aä€z";
        for (len, right) in
            [(1, ""), (2, "a"), (3, "a"), (4, "aä"), (6, "aä"), (7, "aä€"), (8, "aä€z"), (99, "aä€z")]
        {
            let mut buffer = [0x7f_u8; 100];
            assert_eq!(copy_text(text, buffer.as_mut_ptr().cast(), len), text.len());
            assert_eq!(buffer[..right.len()], *right.as_bytes());
            assert_eq!(buffer[right.len()..right.len() + 2], [0, 0x7f]);
        }
        let mut untouched = [0x7f_u8; 2];
        assert_eq!(copy_text(text, untouched.as_mut_ptr().cast(), 0), 7);
        assert_eq!(copy_text(text, std::ptr::null_mut(), 5), 7);
        assert_eq!(untouched, [0x7f; 2]);
    }
}
