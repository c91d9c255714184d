//! A byte stream to one peer that never blocks.

mod arrival;
mod coming;
mod linger;
mod tcp;

pub use arrival::Arrival;
pub use coming::ComingLink;
pub use linger::linger;
pub use tcp::{TcpLink, close_at_once};

#[cfg(test)]
pub mod pair;

use std::io;

use crate::memory::Region;
use crate::sys::{Interest, PollEntry};

/// What the engine needs of a way to a peer. Nothing blocks: 0 bytes means "not now", and the
/// peer's end is an error (`UnexpectedEof`), given only once what came before it is consumed.
pub trait Link: Send {
    /// Sends as much of the pieces, in order, as the link takes now.
    fn send(&mut self, pieces: &[Region<'_>]) -> io::Result<usize>;

    /// What has arrived, as a slice that the link owns, aligned for units of `unit` bytes (to at
    /// most 16). Reads once if less than a unit is there; the slice may still be shorter.
    fn peek(&mut self, unit: usize) -> io::Result<Region<'_>>;

    /// Bytes that [`Link::peek`] gives without a read.
    fn buffered(&self) -> usize;

    /// Drops the first bytes of what [`Link::peek`] gave.
    fn consume(&mut self, bytes: usize);

    /// Stores what has arrived straight where it belongs, with one read or from the buffer.
    fn receive(&mut self, into: Region<'_>) -> io::Result<usize>;

    /// What to poll to learn that this may go on; None if the link can't be waited for.
    fn waits(&self, interest: Interest) -> Option<PollEntry>;

    /// Tells the peer that nothing more comes.
    fn finish(&mut self);
}
