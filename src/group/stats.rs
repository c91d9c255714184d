//! What a group counts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::Group;
use crate::sys::ticks;
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
    /// Nanoseconds asleep for want of the right and of the left neighbour; what waits for both counts for both.
    pub wait_ns: [u64; 2],
    /// Connections that were no peer's.
    pub strangers_refused: u64,
}

/// The numbers of a group, which any thread adds to.
#[derive(Debug)]
pub struct Counters {
    /// When the group was made, by the clock and in ticks: what a tick lasts is known once it is asked for.
    since: (Instant, u64),
    operations: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
    /// In ticks: a small call may not read a clock.
    busy: AtomicU64,
    /// What was told of it last, in nanoseconds: it never shrinks.
    busy_ns: AtomicU64,
    wait_ns: [AtomicU64; 2],
    strangers: AtomicU64,
}

impl Default for Counters {
    fn default() -> Counters {
        let zero = AtomicU64::default;
        Counters {
            since: (Instant::now(), ticks()),
            operations: zero(),
            bytes_sent: zero(),
            bytes_received: zero(),
            busy: zero(),
            busy_ns: zero(),
            wait_ns: [zero(), zero()],
            strangers: zero(),
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

    /// A call begins; it ends when this is dropped.
    pub fn busy(&self) -> Busy<'_> {
        Busy { counters: self, since: ticks() }
    }

    fn busy_ns(&self) -> u64 {
        let (start, first) = self.since;
        let (time, passed) = (start.elapsed().as_nanos(), ticks().saturating_sub(first));
        let busy = u128::from(self.busy.load(Relaxed)) * time / u128::from(passed.max(1));
        let busy = u64::try_from(busy).unwrap_or(u64::MAX);
        busy.max(self.busy_ns.fetch_max(busy, Relaxed))
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
        self.counters.busy.fetch_add(ticks().saturating_sub(self.since), Relaxed);
    }
}

impl Group {
    /// What has been counted so far. Waits for nothing.
    pub fn stats(&self) -> Stats {
        let counters = &*self.counters;
        let of = |number: &AtomicU64| number.load(Relaxed);
        Stats {
            operations: of(&counters.operations),
            bytes_sent: of(&counters.bytes_sent),
            bytes_received: of(&counters.bytes_received),
            busy_ns: counters.busy_ns(),
            wait_ns: [of(&counters.wait_ns[0]), of(&counters.wait_ns[1])],
            strangers_refused: of(&counters.strangers),
        }
    }
}
