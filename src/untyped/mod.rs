//! Calls whose types are known only as the program runs, over memory that need not be Rust's: what bindings of
//! other languages are made of. The C boundary is one, and uses nothing else of this crate.
//!
//! Each function checks a call's arguments, which are those of ring.h's function of the same name, in its numbers,
//! and makes a [`Call`] or [`Message`] of them, or says why it is refused. Either goes to the group, since a
//! collective that is refused takes its number, too: [`Group::collective`], [`Group::collective_async`].
//!
//! What a call was lent can't be taken out of it, to be written through a shared reference or by two calls at once:
//!
//! ```compile_fail
//! use ring::untyped::{Input, Output, all_reduce};
//!
//! let (send, mut recv) = ([1_u8; 4], [0_u8; 4]);
//! let call = all_reduce(Input::of(&send), Output::of(&mut recv), 4, 1, 0).unwrap();
//! let taken = call.send;
//! ```
#![warn(missing_docs)]

mod callback;
mod collectives;
mod messages;
mod parts;

pub use callback::{callback, refuse_callback};
pub use collectives::{
    Function, RecvBlocks, SendBlocks, all_gather, all_gather_v, all_reduce, all_reduce_custom, all_to_all,
    all_to_all_v, barrier, broadcast, gather, reduce, reduce_scatter, reduce_scatter_v,
    reduce_scatter_v_custom, scatter,
};
pub use messages::{RecvEnd, SendEnd, SendRecv, accepted, recv, send, send_recv};

pub use crate::bootstrap::config::{
    Config as Checked, DEFAULT_TIMEOUT, Settings, WIDE_ACCUMULATION, timeout_from_ms,
};
pub use crate::bootstrap::environment::settings as settings_from_environment;
pub use crate::bootstrap::secret::{MAX_SECRET, Secret};
pub use crate::group::{Call, Group, Kind, Message, Parts, Request, Stretch};
pub use crate::memory::{Input, Output, Plain};
pub use crate::panics::caught;

use crate::dtype::{Dtype, Op};
use crate::error::{Error, Result, Status};
use crate::memory::Region;

/// This rank, and the number of the group's ranks.
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
