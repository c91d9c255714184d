//! How a fault of a call is put into words, and who is to blame.

use std::thread;
use std::time::Duration;

use super::Group;
use crate::engine::Fault;
use crate::error::{Error, Status, os_words};
use crate::watcher::{Cause, Verdict};
use crate::wire::{CallHeader, Message, Refused};

/// Ranks that came to a call together, and wait for one that has stopped, get to their deadlines within this time:
/// what its host still took was progress to some. It takes more when its full window is probed, which Linux does
/// after 200 ms; up to 0.34 s between two ranks were measured.
const OTHERS_GIVE_UP: Duration = Duration::from_millis(500);

/// A call that runs: what its links and its deadline mean.
pub struct Running<'a> {
    pub header: CallHeader,
    /// None for a collective.
    pub message: Option<Message>,
    pub timeout: Option<Duration>,
    /// Which rank a link leads to.
    pub rank: &'a dyn Fn(usize) -> usize,
}

impl Group {
    /// Fails the group by a fault of a call, and returns the failure that stands. That this rank destroyed the
    /// group is no failure: the goodbye tells it. Nor is a message whose link could not be made. The data links
    /// are closed by whoever called, once it holds none of them.
    pub(super) fn fail(&self, fault: Fault, call: &Running<'_>) -> Error {
        let peers = self.health.peers();
        let error = match fault {
            Fault::Ended { link, error } => return self.ended((call.rank)(link), &error, call),
            Fault::Unreached { error, .. } => match self.health.settled() {
                Some(first) => return first,
                None if self.health.stop.is_raised() => return self.destroyed(call),
                None if error.status == Status::ConnectFailed => return unreached(peers.rank, error, call),
                None => Error { text: told(error.status, &call.header, &error.text).text, ..error },
            },
            Fault::Stopped => return self.health.settled().unwrap_or_else(|| self.destroyed(call)),
            // A failure that is known explains the wait: a deadline that ends beside it is no news.
            Fault::Stalled { sending, receiving } => match self.health.settled() {
                Some(first) => return first,
                None if self.health.stop.is_raised() => return self.destroyed(call),
                None if !self.health.hears() => return self.stalled_alone(&sending, &receiving, call),
                None => self.stalled(call),
            },
            Fault::Differs { link, ours, theirs } => {
                let text = difference(peers.rank, &ours, (call.rank)(link), &theirs);
                let sequence = ours.sequence.min(theirs.sequence);
                Error { sequence, ..Error::new(Status::Mismatch, text) }
            }
            Fault::Unequal { calls } => {
                let [(one, first), (other, second)] = *calls;
                let text = difference(one, &first, other, &second);
                Error { sequence: first.sequence, ..Error::new(Status::Mismatch, text) }
            }
            Fault::Garbled { link } => {
                let rank = (call.rank)(link);
                let text = format!("what {} sent is no call of this protocol", peers.name(rank));
                told(Status::Internal, &call.header, &text).at_rank(rank)
            }
            Fault::System(error) => {
                let text = format!("rank {}, waiting for its neighbours: {}", peers.rank, os_words(&error));
                told(Status::System, &call.header, &text).at_rank(peers.rank).with_os(&error)
            }
            Fault::Refused(error) => {
                let text = format!("rank {}: {}", peers.rank, error.text);
                told(error.status, &call.header, &text).at_rank(peers.rank)
            }
        };
        self.health.fail(error)
    }

    /// The links have been closed by a failure or a destroy that came first.
    pub(super) fn gone(&self) -> Error {
        let destroyed = || Error::new(Status::Aborted, "the group was destroyed");
        self.health.failure().cloned().unwrap_or_else(destroyed)
    }

    fn ended(&self, rank: usize, error: &std::io::Error, call: &Running<'_>) -> Error {
        match self.health.cause(rank, &call.header, call.message.as_ref(), error) {
            None => self.destroyed(call),
            Some(Cause::Failed(first)) => first,
            Some(Cause::Unreached(error)) => error,
            Some(Cause::Left(last)) => {
                let name = self.health.peers().name(rank);
                let text = format!("{name} has destroyed its group after call {last}");
                self.health.fail(told(Status::PeerLost, &call.header, &text).at_rank(rank))
            }
        }
    }

    fn destroyed(&self, call: &Running<'_>) -> Error {
        let error = told(Status::Aborted, &call.header, "this rank destroyed the group during the call");
        error.at_rank(self.rank())
    }

    fn stalled(&self, call: &Running<'_>) -> Error {
        let Verdict { differs, rank, text } = match &call.message {
            Some(message) => self.health.judge_message(message),
            None => self.health.judge_collective(&call.header),
        };
        if differs {
            return Error { sequence: call.header.sequence, ..Error::new(Status::Mismatch, text) };
        }
        no_progress(rank, &text, call)
    }

    /// Nothing moves, and nobody can be asked: named is the neighbour that the links wait for, if it is one. The others'
    /// deadlines come about now, too, and are to be found out by themselves: links are kept a little longer.
    fn stalled_alone(&self, sending: &[usize], receiving: &[usize], call: &Running<'_>) -> Error {
        let (parts, mut ranks) = self.waits(sending, receiving, call);
        ranks.sort_unstable();
        ranks.dedup();
        let rank = ranks.first().copied().filter(|_| ranks.len() == 1);
        let first = self.health.fail(no_progress(rank, &parts.join("; "), call));
        thread::sleep(OTHERS_GIVE_UP);
        first
    }

    /// What this rank's links are waited for, in words, and the ranks at their other ends.
    pub(super) fn waits(
        &self,
        sending: &[usize],
        receiving: &[usize],
        call: &Running<'_>,
    ) -> (Vec<String>, Vec<usize>) {
        let (mut parts, mut ranks) = (Vec::new(), Vec::new());
        for (links, what) in [(receiving, "receive from"), (sending, "send to")] {
            let mut waited: Vec<_> = links.iter().map(|link| (call.rank)(*link)).collect();
            waited.sort_unstable();
            waited.dedup();
            parts.extend(waited.iter().map(|rank| {
                format!("rank {} waits to {what} {}", self.rank(), self.health.peers().neighbour(*rank))
            }));
            ranks.extend(waited);
        }
        (parts, ranks)
    }
}

fn no_progress(rank: Option<usize>, why: &str, call: &Running<'_>) -> Error {
    let waited = call.timeout.unwrap_or_default().as_millis();
    let text = format!("no progress for {waited} ms: {why}");
    Error { rank, ..told(Status::Timeout, &call.header, &text) }
}

/// A message whose link could not be made, in words that are the receiver's as well.
fn unreached(rank: usize, error: Error, call: &Running<'_>) -> Error {
    match &call.message {
        Some(message) if message.sends => {
            let text = cant_reach(rank, message.peer as usize, &error.text);
            let text = told(error.status, &call.header, &text).text;
            Error { sequence: call.header.sequence, text, ..error }
        }
        // The receiver has the sender's words.
        _ => error,
    }
}

/// What stands between two ranks.
pub(super) fn cant_reach(rank: usize, peer: usize, trouble: &str) -> String {
    format!("rank {rank} can't reach rank {peer}: {trouble}")
}

pub(super) fn told(status: Status, call: &CallHeader, text: &str) -> Error {
    let text = format!("{call}, call {}: {text}", call.sequence);
    Error { sequence: call.sequence, ..Error::new(status, text) }
}

/// Both calls, alike on both ranks: the lower rank's first. A refusal explains a difference where it was one rank's alone.
fn difference(our_rank: usize, ours: &CallHeader, their_rank: usize, theirs: &CallHeader) -> String {
    let told = |rank: usize, call: &CallHeader, other: &CallHeader| {
        let Refused { sequence, status } = call.refused;
        let refusal = match Status::from_number(status) {
            Some(status)
                if sequence != 0
                    && sequence != other.refused.sequence
                    && sequence.abs_diff(other.sequence) <= 1 =>
            {
                format!(" after it refused its call {sequence} with {}", status.name())
            }
            _ => String::new(),
        };
        format!("rank {rank} called {call} as call {}{refusal}", call.sequence)
    };
    let (ours_told, theirs_told) = (told(our_rank, ours, theirs), told(their_rank, theirs, ours));
    if our_rank < their_rank { [ours_told, theirs_told] } else { [theirs_told, ours_told] }.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Kind;

    #[test]
    fn both_ends_tell_a_difference_alike() {
        let barrier = CallHeader::new(Kind::Barrier, 17);
        let late = CallHeader { sequence: 18, refused: Refused { sequence: 17, status: 1 }, ..barrier };
        let text = difference(2, &late, 0, &barrier);
        assert_eq!(
            text,
            "rank 0 called barrier() as call 17; \
             rank 2 called barrier() as call 18 after it refused its call 17 with RING_STATUS_INVALID_ARGUMENT"
        );
        assert_eq!(difference(0, &barrier, 2, &late), text);
        let other = CallHeader { count: 5, ..late };
        assert_eq!(
            difference(1, &late, 2, &other),
            "rank 1 called barrier() as call 18; rank 2 called barrier() as call 18"
        );
    }
}
