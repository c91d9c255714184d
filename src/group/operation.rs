//! What a thread that drives several operations knows of each.

use std::time::Duration;

use crate::engine::{Fault, Standstill, Turn};
use crate::error::Result;
use crate::sys::PollEntry;

/// An operation that has its turn, its links and its memory. It may have several stages: it is done when the
/// last one is.
pub trait Operation {
    /// Moves what can be moved now.
    fn turn(&mut self) -> std::result::Result<Turn, Fault>;

    /// Adds what it waits for; after how long to look again, though nothing is ready.
    fn waits(&mut self, entries: &mut Vec<PollEntry>) -> Option<Duration>;

    /// The thread goes to sleep.
    fn sleeps(&mut self);

    /// It has slept for so long.
    fn woke(&mut self, slept: Duration);

    /// It stands still: see [`Observer::warn`](crate::engine::Observer::warn).
    fn warn(&mut self, standstill: &Standstill) -> Option<Duration>;

    /// What it means that nothing has moved for the whole timeout.
    fn stalled(&mut self) -> Fault;

    /// Ends it as the last turn says: by a fault the group has failed when this returns, unless the fault is the
    /// operation's alone. The caller's memory isn't used any more.
    fn finish(self: Box<Self>, result: std::result::Result<(), Fault>) -> Result<()>;
}
