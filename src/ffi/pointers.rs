//! What is behind a caller's pointers: memory whose length the call's other arguments say.

use std::ffi::c_void;

use crate::untyped::{Input, Output};

/// A buffer that is read.
pub fn input<'a>(start: *const c_void) -> Input<'a> {
    // SAFETY: the caller owns, for the length of the call, what its arguments say is there.
    unsafe { Input::at(start) }
}

/// A buffer that is written.
pub fn output<'a>(start: *mut c_void) -> Output<'a> {
    // SAFETY: likewise, and nobody else uses it meanwhile.
    unsafe { Output::at(start) }
}

/// An array with an entry for each rank; None for NULL.
pub fn entries<'a>(array: *const usize, ranks: usize) -> Option<&'a [usize]> {
    // SAFETY: not NULL, and the caller has an aligned entry for each rank there.
    (!array.is_null()).then(|| unsafe { std::slice::from_raw_parts(array, ranks) })
}
