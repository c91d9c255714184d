//! What is kept of a call: while it runs, and afterwards.

use std::time::{Duration, Instant};

use crate::dtype::{Dtype, Op};
use crate::error::Status;
use crate::wire::{CallHeader, Kind};

/// Sleeps with no more than this between them are one wait: who is woken for nothing stays awake for 50 us.
const GAP: Duration = Duration::from_micros(100);

/// A call as its trace tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub kind: Kind,
    /// Of the collective, or of the message in its pair; 0 where there is none.
    pub number: u64,
    pub count: u64,
    pub dtype: Option<Dtype>,
    pub op: Option<Op>,
    pub root: Option<u32>,
    /// Of a message: the rank that it goes to.
    pub to: Option<u32>,
    /// Of a message: the rank that it comes from.
    pub from: Option<u32>,
}

impl Call {
    /// As its header tells it to the neighbours.
    pub fn of(header: &CallHeader) -> Call {
        let CallHeader { kind, sequence, count, dtype, op, root, .. } = *header;
        let root = u32::try_from(root).ok();
        Call { kind, number: sequence, count, dtype, op, root, to: None, from: None }
    }

    /// A message between these ranks.
    pub fn between(self, to: Option<usize>, from: Option<usize>) -> Call {
        let rank = |rank: usize| rank as u32;
        Call { to: to.map(rank), from: from.map(rank), ..self }
    }

    /// The function's name without its prefix.
    pub fn name(&self) -> &'static str {
        match (self.kind, self.to, self.from) {
            (Kind::Message, Some(_), Some(_)) => "send_recv",
            (Kind::Message, Some(_), None) => "send",
            (Kind::Message, None, _) => "recv",
            (kind, ..) => kind.name(),
        }
    }
}

/// A call that has its turn, until it has ended. Where there is no trace it keeps nothing and reads no clock.
#[derive(Debug, Default)]
pub struct Underway(pub(super) Option<Box<Kept>>);

/// What is kept of it: apart, since calls that aren't traced are moved around as well.
#[derive(Debug)]
pub struct Kept {
    came: Instant,
    began: Instant,
    moved: (u64, u64),
    /// Nanoseconds, for the right and the left neighbour.
    waits: [u64; 2],
    latest: Option<Wait>,
    longest: Option<Wait>,
}

/// A time of sleep, on and off.
#[derive(Clone, Copy, Debug)]
struct Wait {
    sides: [bool; 2],
    since: Instant,
    until: Instant,
}

impl Underway {
    /// It was asleep for so long until now, for want of the right and of the left neighbour.
    pub fn slept(&mut self, sides: [bool; 2], slept: Duration) {
        if let Some(kept) = &mut self.0 {
            kept.slept_until(Instant::now(), sides, slept);
        }
    }

    /// So much has gone over data links.
    pub fn moved(&mut self, (sent, received): (u64, u64)) {
        if let Some(kept) = &mut self.0 {
            kept.moved = (kept.moved.0 + sent, kept.moved.1 + received);
        }
    }
}

impl Kept {
    /// A call that came then has its turn now.
    pub fn begin(came: Option<Instant>) -> Kept {
        let began = Instant::now();
        let came = came.unwrap_or(began);
        Kept { came, began, moved: (0, 0), waits: [0; 2], latest: None, longest: None }
    }

    fn slept_until(&mut self, until: Instant, sides: [bool; 2], slept: Duration) {
        for (wait, waits) in self.waits.iter_mut().zip(sides) {
            *wait += if waits { slept.as_nanos() as u64 } else { 0 };
        }
        let since = until.checked_sub(slept).unwrap_or(until);
        let goes_on =
            |latest: &Wait| latest.sides == sides && since.saturating_duration_since(latest.until) <= GAP;
        let since = self.latest.filter(goes_on).map_or(since, |latest| latest.since);
        self.latest = Some(Wait { sides, since, until });
        if sides != [false; 2] && self.longest.is_none_or(|longest| longest.lasted() <= until - since) {
            self.longest = self.latest;
        }
    }

    /// It has ended.
    pub fn end(&self, group: u32, call: Call, status: Status, origin: Instant) -> Record {
        let Kept { came, began, .. } = *self;
        let since = |time: Instant| nanoseconds(time.saturating_duration_since(origin));
        let (start, end) = (since(began), since(Instant::now()));
        // A sleep is measured from a moment before its end was.
        let slept = |wait: Wait| Slept {
            sides: wait.sides,
            start: since(wait.since).clamp(start, end),
            end: since(wait.until).clamp(start, end),
        };
        Record {
            group,
            call,
            status,
            is_refusal: false,
            start,
            end,
            queued: nanoseconds(began.saturating_duration_since(came)),
            moved: self.moved,
            waits: self.waits,
            longest: self.longest.map(slept),
        }
    }
}

impl Wait {
    fn lasted(&self) -> Duration {
        self.until - self.since
    }
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A call that has ended. Times are nanoseconds since the trace began.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Of the family's.
    pub group: u32,
    pub call: Call,
    pub status: Status,
    /// It was refused as it came, and has no length.
    pub is_refusal: bool,
    pub start: u64,
    pub end: u64,
    /// Before it had its turn.
    pub queued: u64,
    /// Bytes that were sent and received, headers included.
    pub moved: (u64, u64),
    /// Asleep for want of the right and of the left neighbour.
    pub waits: [u64; 2],
    /// The longest of these sleeps.
    pub longest: Option<Slept>,
}

/// A time of sleep.
#[derive(Clone, Copy, Debug)]
pub struct Slept {
    /// Whether the right and the left neighbour were waited for.
    pub sides: [bool; 2],
    pub start: u64,
    pub end: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_sleeps_that_follow_each_other_are_one_wait() {
        let origin = Instant::now();
        let at = |us| origin + Duration::from_micros(us);
        let mut kept = Kept::begin(Some(origin));
        let mut slept = |since, until, sides| {
            kept.slept_until(at(until), sides, Duration::from_micros(until - since));
        };
        slept(10, 500, [true, false]);
        slept(1000, 1300, [false, true]);
        slept(1350, 1700, [false, true]);
        slept(1700, 2600, [false, false]);
        slept(2700, 3000, [false, true]);
        assert_eq!(kept.waits, [490_000, 950_000]);
        let longest = kept.longest.unwrap();
        assert_eq!((longest.since, longest.until, longest.sides), (at(1000), at(1700), [false, true]));
    }
}
