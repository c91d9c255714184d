//! The checks of a call's arguments. What they let through the group may use without a doubt.

mod collectives;
mod messages;
mod parts;

pub use collectives::{
    Function, all_gather, all_gather_v, all_reduce, all_reduce_custom, all_to_all, all_to_all_v, broadcast,
    gather, reduce, reduce_scatter, reduce_scatter_v, reduce_scatter_v_custom, scatter,
};
pub use messages::{SendRecv, message, send_recv};

use std::ffi::c_void;

use crate::dtype::{Dtype, Op};
use crate::error::{Error, Result, Status};
use crate::memory::Region;

/// This rank, and the ranks of the group.
pub type Place = (usize, usize);

fn invalid(text: String) -> Error {
    Error::new(Status::InvalidArgument, text)
}

fn dtype(number: i32) -> Result<Dtype> {
    Dtype::from_number(number).ok_or_else(|| invalid(format!("dtype is {number}, which is no ring_dtype_t")))
}

fn op(number: i32, dtype: Dtype) -> Result<Op> {
    let op =
        Op::from_number(number).ok_or_else(|| invalid(format!("op is {number}, which is no ring_op_t")))?;
    if dtype.supports(op) {
        return Ok(op);
    }
    Err(Error::new(Status::Unsupported, format!("{} is not defined for {}", op.name(), dtype.name())))
}

/// A rank of the group; `name` is the argument's.
fn rank(name: &str, number: i32, size: usize) -> Result<usize> {
    let rank = usize::try_from(number).ok().filter(|rank| *rank < size);
    rank.ok_or_else(|| invalid(format!("{name} is {number}, and the group has ranks 0 to {}", size - 1)))
}

/// Bytes of `count` elements of each of `ranks` ranks; `name` is the count's.
fn bytes(name: &str, count: usize, element: usize, ranks: usize) -> Result<usize> {
    let bytes = count.checked_mul(element).and_then(|bytes| bytes.checked_mul(ranks));
    bytes.filter(|bytes| *bytes <= isize::MAX as usize).ok_or_else(|| {
        let of_ranks = if ranks > 1 { format!(" of each of {ranks} ranks") } else { String::new() };
        invalid(format!(
            "{name} is {count}: so many elements of {element} bytes{of_ranks} are more than PTRDIFF_MAX bytes"
        ))
    })
}

/// A buffer of the caller's. NULL is one of no bytes.
fn region<'a>(name: &str, start: *const c_void, bytes: usize) -> Result<Region<'a>> {
    if bytes == 0 {
        return Ok(Region::empty());
    }
    if start.is_null() {
        return Err(invalid(format!("{name} is NULL and {bytes} bytes are needed there")));
    }
    if (start as usize).checked_add(bytes).is_none() {
        return Err(invalid(format!("{name} with {bytes} bytes goes beyond the address space")));
    }
    // SAFETY: not NULL, and the caller owns so many bytes there for the length of the call.
    Ok(unsafe { Region::new(start.cast_mut().cast(), bytes) })
}

/// How a call in place has its buffers.
#[derive(Clone, Copy)]
enum InPlace {
    Never,
    /// `send` starts at this byte of `recv`.
    SendAt(usize),
    /// `recv` starts at this byte of `send`.
    RecvAt(usize),
}

impl InPlace {
    fn allows(self, send: &Region<'_>, recv: &Region<'_>) -> bool {
        let (send, recv) = (send.as_ptr() as usize, recv.as_ptr() as usize);
        match self {
            InPlace::Never => false,
            InPlace::SendAt(offset) => send == recv + offset,
            InPlace::RecvAt(offset) => recv == send + offset,
        }
    }
}

/// Refuses buffers that share bytes, unless they lie exactly in place.
fn check_overlap(send: &Region<'_>, recv: &Region<'_>, in_place: InPlace) -> Result<()> {
    let (s, r) = (send.as_ptr() as usize, recv.as_ptr() as usize);
    let apart = s + send.len() <= r || r + recv.len() <= s;
    if apart || send.is_empty() || recv.is_empty() || in_place.allows(send, recv) {
        return Ok(());
    }
    Err(overlapping())
}

fn overlapping() -> Error {
    invalid("send and recv overlap, and not as the call in place has it".into())
}
