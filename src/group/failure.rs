//! A group's one failure: what it was, who is told, and how it is put into words.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::control::{Cause, Control};
use super::{Peers, Side};
use crate::engine::{Fault, Stop};
use crate::error::{Error, Status, os_words};
use crate::log;
use crate::wire::{CallHeader, Frame, Refused};

/// The sticky failure, and the control links that spread it.
pub struct Failure {
    peers: Peers,
    first: OnceLock<Error>,
    pub stop: Stop,
    controls: Mutex<Vec<Control>>,
}

impl Failure {
    /// `controls` are those to the right and to the left neighbour; a group of one has none.
    pub fn new(peers: Peers, stop: Stop, controls: Vec<Control>) -> Failure {
        Failure { peers, first: OnceLock::new(), stop, controls: Mutex::new(controls) }
    }

    /// What made the group fail; it never changes.
    pub fn get(&self) -> Option<&Error> {
        self.first.get()
    }

    /// Fails the group, unless it has failed already, and tells the neighbours; the failure that
    /// stands is returned. The caller then closes its data links.
    pub fn set(&self, error: Error) -> Error {
        let mut mine = false;
        let first = self.first.get_or_init(|| {
            mine = true;
            Error { detected_by: error.detected_by.or(Some(self.peers.rank)), ..error }
        });
        if mine {
            log::line!(Error, "the group has failed: {first}");
            let record = Frame::record(first, self.peers.rank);
            self.each_control(|control| control.tell(&record));
            self.stop.raise();
        }
        first.clone()
    }

    /// Says goodbye after the last collective.
    pub fn say_goodbye(&self, sequence: u64) {
        self.each_control(|control| control.tell(&Frame::Goodbye { rank: self.peers.rank as u32, sequence }));
    }

    fn each_control(&self, act: impl FnMut(&mut Control)) {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(act);
    }

    /// The control links, to be closed.
    pub fn take_controls(&self) -> Vec<Control> {
        std::mem::take(&mut *self.controls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Why the data link to a neighbour ended, by the neighbour's own word.
    fn cause(&self, side: Side) -> Cause {
        let mut controls = self.controls.lock().unwrap_or_else(PoisonError::into_inner);
        controls.get_mut(side as usize).map_or(Cause::Silent, Control::cause)
    }

    /// Puts a fault of a call into words; `side` tells which neighbour a link leads to.
    pub fn explain(
        &self,
        fault: Fault,
        call: &CallHeader,
        timeout: Option<Duration>,
        side: impl Fn(usize) -> Side,
    ) -> Error {
        let at = format!("{call}, call {}", call.sequence);
        let peer = |link: usize| self.peers.name(side(link));
        let rank = |link: usize| self.peers.rank_at(side(link));
        let error = match fault {
            Fault::Ended { link, error } => {
                let os = os_words(&error);
                match self.cause(side(link)) {
                    Cause::Failed(first) => return first,
                    Cause::Left(last) => {
                        let text = format!("{at}: {} has destroyed its group after call {last}", peer(link));
                        Error::new(Status::PeerLost, text).at_rank(rank(link))
                    }
                    Cause::Died => {
                        let text = format!("{at}: the process of {} has ended ({os})", peer(link));
                        Error::new(Status::PeerLost, text).at_rank(rank(link)).with_os(&error)
                    }
                    Cause::Silent => {
                        let text = format!(
                            "{at}: the link between rank {} and {} has ended ({os}), both ranks are there",
                            self.peers.rank,
                            peer(link)
                        );
                        Error::new(Status::PeerLost, text).with_os(&error)
                    }
                }
            }
            Fault::Differs { link, ours, theirs } => {
                let text = difference(self.peers.rank, &ours, rank(link), &theirs);
                Error::new(Status::Mismatch, text)
            }
            Fault::Garbled { link } => {
                let text = format!("{at}: what {} sent is no call of this protocol", peer(link));
                Error::new(Status::Internal, text).at_rank(rank(link))
            }
            Fault::Stalled { sending, receiving } => self.stalled(&at, timeout, &sending, &receiving, &side),
            Fault::Stopped => {
                let destroyed = || {
                    let text = format!("{at}: this rank destroyed the group during the call");
                    Error::new(Status::Aborted, text).at_rank(self.peers.rank)
                };
                return self.get().cloned().unwrap_or_else(destroyed);
            }
            Fault::System(error) => {
                let text = format!("{at}: waiting for the neighbours: {}", os_words(&error));
                Error::new(Status::System, text).at_rank(self.peers.rank).with_os(&error)
            }
        };
        Error { sequence: call.sequence, ..error }
    }

    fn stalled(
        &self,
        at: &str,
        timeout: Option<Duration>,
        sending: &[usize],
        receiving: &[usize],
        side: &impl Fn(usize) -> Side,
    ) -> Error {
        let names = |links: &[usize]| {
            let mut names: Vec<_> = links.iter().map(|link| self.peers.name(side(*link))).collect();
            names.dedup();
            names.join(" and ")
        };
        let mut waits = Vec::new();
        if !receiving.is_empty() {
            waits.push(format!("nothing comes from {}", names(receiving)));
        }
        if !sending.is_empty() {
            waits.push(format!("nothing goes to {}", names(sending)));
        }
        let waited = timeout.unwrap_or_default().as_millis();
        let text = format!("{at}: no progress for {waited} ms: {}", waits.join("; "));
        let error = Error::new(Status::Timeout, text);
        // In a larger ring the neighbour may itself wait for another rank.
        if self.peers.size == 2 { error.at_rank(self.peers.right) } else { error }
    }
}

/// Both calls, alike on both ranks: the lower rank's first.
fn difference(our_rank: usize, ours: &CallHeader, their_rank: usize, theirs: &CallHeader) -> String {
    let told = |rank: usize, call: &CallHeader, other: &CallHeader| {
        let Refused { sequence, status } = call.refused;
        let refusal = match Status::from_number(status) {
            Some(status) if sequence != 0 && sequence.abs_diff(other.sequence) <= 1 => {
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
    }
}
