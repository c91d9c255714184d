//! The calls that every rank makes in the same order.

use std::sync::{Arc, Weak};

use super::Group;
use super::calls::Call;
use super::collective::Collective;
use super::driver::{Driver, Pending, Work};
use super::machine::Home;
use super::request::Request;
use super::turns::{Ticket, Turns};
use crate::engine::Waking;
use crate::error::{Error, Result};
use crate::link::Link;
use crate::wire::{CallHeader, Kind};

/// The lanes of both edges, and what collectives keep from call to call.
pub struct Collectives {
    pub(super) turns: Arc<Turns>,
    pub(super) home: Home,
}

impl Collectives {
    /// Links: all lanes to the right neighbour, then all to the left one.
    pub fn new(links: Vec<Box<dyn Link>>, is_timed: bool) -> Collectives {
        Collectives { turns: Turns::new(is_timed), home: Home::new(links) }
    }

    /// The links, unless a call has them.
    pub fn take_links(&self) -> Vec<Box<dyn Link>> {
        self.home.take_links()
    }
}

impl Group {
    /// Runs a collective; a call whose arguments were refused takes its number all the same.
    pub fn collective(&self, kind: Kind, call: Result<Call<'_>>) -> Result<()> {
        let _entered = self.enter()?;
        let call = call.and_then(|call| self.carried(call));
        let call = call.map_err(|refusal| self.refuse(kind, refusal))?;
        let _busy = self.counters.busy();
        let ticket = self.collectives.turns.take();
        let may_have_stages = matches!(kind, Kind::AllToAll | Kind::AllToAllV);
        if may_have_stages && self.collectives.home.is(|machine| call.has_stages(self.size(), &machine.pairs))
        {
            return self.run_stages(call, ticket);
        }
        let result = self.check_health().and_then(|()| match self.size() {
            1 => {
                self.run_alone(&call, &ticket);
                Ok(())
            }
            _ => Collective::begin(self, call, &ticket, self.timeout())?.run(),
        });
        drop(ticket);
        self.leave();
        result
    }

    /// Runs a collective of several stages on the caller's thread.
    fn run_stages(&self, call: Call<'_>, ticket: Ticket) -> Result<()> {
        let mut driver = Driver::new(self).map_err(|error| self.host_refused("making a pipe", &error))?;
        let (request, reply) = Request::new(Weak::new(), self.generation);
        let (work, timeout) = (Work::Collective(call), self.timeout());
        driver.add(Pending { work, ticket, timeout, reply, entered: None });
        driver.run(&mut Waking::default());
        request.outcome()
    }

    /// A collective whose arguments were refused takes its number.
    pub(super) fn refuse(&self, kind: Kind, refusal: Error) -> Error {
        let number = self.collectives.turns.refuse(refusal.status as i32);
        self.trace_refusal(&CallHeader::new(kind, number), refusal.status);
        named(kind, number, refusal)
    }

    /// A collective in a group of one.
    pub(super) fn run_alone(&self, call: &Call<'_>, ticket: &Ticket) {
        let underway = self.underway(ticket);
        alone(call);
        self.counters.succeeded(1);
        self.trace_call(underway, &call.header(ticket.number), &Ok(()));
    }
}

/// A group of one reduces nothing, but makes bools 0 or 1. What a rank has for itself lies in its part.
fn alone(call: &Call<'_>) {
    let (from, to) = (call.send_parts.of(0), call.recv_parts.of(0));
    let from = call.send.part(from.start * call.element, from.len * call.element);
    let to = call.recv.part(to.start * call.element, to.len * call.element);
    match &call.reduction {
        Some(reduction) => reduction.copy(to, from),
        None => to.copy_from(from),
    }
}

/// A refusal with the call that it is about.
pub(super) fn named(kind: Kind, number: u64, refusal: Error) -> Error {
    Error { text: format!("{}, call {number}: {}", kind.name(), refusal.text), sequence: number, ..refusal }
}
