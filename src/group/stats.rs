//! What a group counts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::Group;
use crate::sys;
use crate::watcher::Side;

/// What has been counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Collectives and messages that have succeeded.
    pub operations: u64,
    /// Bytes on data links, headers included.
    pub bytes_sent: u64,
    /// Bytes on data links, headers included.
    pub bytes_received: u64,
    /// Nanoseconds inside calls, and of requests from their turn to their end: each counts for itself.
    pub busy_ns: u64,
    /// Nanoseconds asleep for want of the right and of the left neighbour: see [`Counters::waited`].
    pub wait_ns: [u64; 2],
    /// Connections that were no peer's.
    pub strangers_refused: u64,
}

/// The numbers of a group, which any thread adds to.
#[derive(Debug)]
pub struct Counters {
    /// When the counting began, by the clock and in ticks: what a tick is.
    began: (Instant, u64),
    operations: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
    busy_ticks: AtomicU64,
    wait_ns: [AtomicU64; 2],
    strangers: AtomicU64,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            began: (Instant::now(), sys::ticks()),
            operations: AtomicU64::new(0),
            bytes_sent: AtomicU64::new(0),
            bytes_received: AtomicU64::new(0),
            busy_ticks: AtomicU64::new(0),
            wait_ns: Default::default(),
            strangers: AtomicU64::new(0),
        }
    }
}

impl Counters {
    /// Operations have succeeded.
    pub fn succeeded(&self, operations: u64) {
        self.operations.fetch_add(operations, Relaxed);
    }

    /// So much has gone over data links.
    pub fn moved(&self, (sent, received): (u64, u64)) {
        self.bytes_sent.fetch_add(sent, Relaxed);
        self.bytes_received.fetch_add(received, Relaxed);
    }

    /// A call begins; it ends when this is dropped. Small calls have no time to read the clock.
    pub fn busy(&self) -> Busy<'_> {
        Busy { counters: self, since: sys::ticks() }
    }

    fn busy_ns(&self) -> u64 {
        let (clock, ticks) = (self.began.0.elapsed().as_nanos(), sys::ticks().saturating_sub(self.began.1));
        let busy = u128::from(self.busy_ticks.load(Relaxed));
        busy.saturating_mul(clock).checked_div(ticks.into()).unwrap_or(0) as u64
    }

    /// An operation was asleep for so long and waited to send to, or to receive from, these neighbours. What
    /// waits for both counts for both: which of them held it up nobody knows.
    pub fn waited(&self, sides: [bool; 2], time: Duration) {
        for side in Side::BOTH.map(|side| side as usize) {
            if sides[side] {
                self.wait_ns[side].fetch_add(time.as_nanos() as u64, Relaxed);
            }
        }
    }

    /// So many connections were no peer's.
    pub fn set_strangers(&self, strangers: u64) {
        self.strangers.store(strangers, Relaxed);
    }
}

/// A call under way.
pub struct Busy<'c> {
    counters: &'c Counters,
    since: u64,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let ticks = sys::ticks().saturating_sub(self.since);
        self.counters.busy_ticks.fetch_add(ticks, Relaxed);
    }
}

impl Group {
    /// What has been counted so far. Waits for nothing.
    pub fn stats(&self) -> Stats {
        let Counters { operations, bytes_sent, bytes_received, wait_ns, strangers, .. } = &*self.counters;
        Stats {
            operations: operations.load(Relaxed),
            bytes_sent: bytes_sent.load(Relaxed),
            bytes_received: bytes_received.load(Relaxed),
            busy_ns: self.counters.busy_ns(),
            wait_ns: [wait_ns[0].load(Relaxed), wait_ns[1].load(Relaxed)],
            strangers_refused: strangers.load(Relaxed),
        }
    }
}
