//! What a group tells its trace, if it has one.

use super::Group;
use super::calls::Call;
use super::turns::Ticket;
use crate::error::{Error, Result, Status};
use crate::trace::{self, Trace, Underway};
use crate::watcher::Peers;
use crate::wire::{CallHeader, Kind, Message};

fn status<T>(result: &Result<T>) -> Status {
    result.as_ref().err().map_or(Status::Ok, |error| error.status)
}

impl Group {
    /// A call has its turn.
    pub(super) fn underway(&self, ticket: &Ticket) -> Underway {
        self.trace.as_ref().map_or(Underway::default(), |trace| trace.begin(ticket.came))
    }

    /// A call that takes no turns begins.
    pub(super) fn underway_now(&self) -> Underway {
        self.trace.as_ref().map_or(Underway::default(), |trace| trace.begin(None))
    }

    /// A call has ended.
    pub(super) fn trace_call<T>(&self, underway: Underway, header: &CallHeader, result: &Result<T>) {
        if let Some(trace) = &self.trace {
            trace.ended(underway, trace::Call::of(header), status(result));
        }
    }

    /// A collective has ended, or a message that was one of their queue.
    pub(super) fn trace_collective(
        &self,
        underway: Underway,
        header: &CallHeader,
        call: &Call<'_>,
        result: &Result<()>,
    ) {
        if let Some(trace) = &self.trace {
            trace.ended(underway, trace::Call::of(header).between(call.to, call.from), status(result));
        }
    }

    /// A message has ended.
    pub(super) fn trace_message(&self, underway: Underway, message: &Message, result: &Result<()>) {
        if let Some(trace) = &self.trace {
            let peer = Some(message.peer as usize);
            let (to, from) = if message.sends { (peer, None) } else { (None, peer) };
            trace.ended(underway, trace::Call::of(&message.header).between(to, from), status(result));
        }
    }

    /// A message to this rank itself has ended, which has no number.
    pub(super) fn trace_own(&self, underway: Underway) {
        if let Some(trace) = &self.trace {
            let own = Some(self.rank());
            let call = trace::Call::of(&CallHeader::new(Kind::Message, 0)).between(own, own);
            trace.ended(underway, call, Status::Ok);
        }
    }

    /// A collective was refused, and has taken its number.
    pub(super) fn trace_refusal(&self, header: &CallHeader, status: Status) {
        if let Some(trace) = &self.trace {
            trace.refused(trace::Call::of(header), status);
        }
    }

    /// The trace of a group that a split of this one makes.
    pub(super) fn trace_of_split(&self, number: u64, color: i32, peers: &Peers) -> Option<Trace> {
        Some(self.trace.as_ref()?.of_split(number, color, peers.rank, peers.size))
    }

    /// The group has failed, and a call is about to say so.
    pub(super) fn trace_failure(&self, error: &Error) {
        if let Some(trace) = &self.trace {
            trace.failed(error);
        }
    }

    /// The same on the watcher's thread. What calls are inside will do it as they end.
    pub(super) fn trace_failure_meanwhile(&self) {
        if let (Some(trace), Some(error), true) = (&self.trace, self.failure(), self.running.is_empty()) {
            trace.failed_meanwhile(error);
        }
    }
}
