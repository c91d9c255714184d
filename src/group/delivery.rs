//! One message under way on its link.

use std::sync::Arc;
use std::time::Duration;

use super::Group;
use super::calls::Message;
use super::machine::Machine;
use super::messages::{Half, Watched, Way, What};
use super::operation::Operation;
use super::turns::Ticket;
use crate::engine::{Engine, Fault, Observer, Route, Standstill, Task, Turn};
use crate::error::Result;
use crate::link::{Arrival, ComingLink, Link};
use crate::memory::Region;
use crate::plan::{Buffer, Flow, Plan, Span};
use crate::sys::PollEntry;
use crate::trace::Underway;
use crate::wire;

/// A message that has its turn.
pub struct Delivery<'g, 'a> {
    group: &'g Group,
    message: Message<'a>,
    way: &'g Way,
    timeout: Option<Duration>,
    told: wire::Message,
    machine: Box<Machine>,
    /// Whether it waits for the right and for the left neighbour, as its thread fell asleep.
    awaits: [bool; 2],
    underway: Underway,
}

impl<'g, 'a> Delivery<'g, 'a> {
    /// Takes the way's link, or sees to it that one comes.
    pub fn begin(
        group: &'g Group,
        half: Half<'g, 'a>,
        ticket: &Ticket,
        is_request: bool,
    ) -> Result<Delivery<'g, 'a>> {
        let told = half.told(ticket.number, is_request);
        let underway = group.underway(ticket);
        let Half { message, way, timeout, .. } = half;
        let mut machine = way.home.take().ok_or_else(|| group.gone())?;
        let arrival = match link_of(group, way, &mut machine, &told, timeout) {
            Ok(arrival) => arrival,
            Err(error) => {
                way.home.put(machine);
                return Err(error);
            }
        };
        let Machine { engine, plan, .. } = &mut *machine;
        plan.clear();
        add(plan, engine, &told, 0);
        group.health.begin(told);
        if let Some(arrival) = &arrival {
            group.health.expect(told, arrival);
        }
        Ok(Delivery { group, message, way, timeout, told, machine, awaits: [false; 2], underway })
    }

    /// Runs it to its end on the caller's thread.
    pub fn run(mut self) -> Result<()> {
        let messages = [self.told];
        let (task, engine, links) = parts(&mut self.machine, &self.message, &self.told);
        let stop = &self.group.health.stop;
        let mut watched = Watched::new(self.group, &messages);
        watched.underway[0] = std::mem::take(&mut self.underway);
        let result = engine.run(&task, links, stop, self.timeout, &mut watched);
        [self.underway, _] = watched.underway;
        self.end(result)
    }

    fn end(self, result: std::result::Result<(), Fault>) -> Result<()> {
        let Delivery { group, way, timeout, told, mut machine, mut underway, .. } = self;
        let result = result.map_err(|fault| {
            let missed = group.missed(fault, &[told], timeout);
            match missed.what {
                What::Failed => {}
                What::NoLink => machine.links.clear(),
                What::Later(theirs) => machine.ahead = Some(*theirs),
            }
            missed.error
        });
        group.health.end(&told);
        group.counters.moved(machine.engine.moved());
        group.counters.succeeded(u64::from(result.is_ok()));
        underway.moved(machine.engine.moved());
        group.trace_message(underway, &told, &result);
        way.home.put(machine);
        result
    }
}

impl Operation for Delivery<'_, '_> {
    fn turn(&mut self) -> std::result::Result<Turn, Fault> {
        let (task, engine, links) = parts(&mut self.machine, &self.message, &self.told);
        engine.turn(&task, links)
    }

    fn waits(&mut self, entries: &mut Vec<PollEntry>) -> Option<Duration> {
        let (task, engine, links) = parts(&mut self.machine, &self.message, &self.told);
        engine.waits(&task, links, entries)
    }

    fn sleeps(&mut self) {
        let messages = [self.told];
        let (task, engine, links) = parts(&mut self.machine, &self.message, &self.told);
        let mut watched = Watched::new(self.group, &messages);
        watched.sleeps(engine.traffic(&task, links));
        self.awaits = watched.awaits;
    }

    fn woke(&mut self, slept: Duration) {
        self.group.counters.waited(self.awaits, slept);
        self.underway.slept(self.awaits, slept);
    }

    fn warn(&mut self, standstill: &Standstill) -> Option<Duration> {
        let stalled = self.stalled();
        self.group.warn_of_message(standstill, &stalled, &[self.told])
    }

    fn stalled(&mut self) -> Fault {
        let (task, engine, _) = parts(&mut self.machine, &self.message, &self.told);
        engine.stalled(&task)
    }

    fn finish(mut self: Box<Self>, result: std::result::Result<(), Fault>) -> Result<()> {
        let (task, engine, _) = parts(&mut self.machine, &self.message, &self.told);
        engine.end(&task, result.is_ok());
        self.end(result)
    }
}

/// Where the link arrives, if it has to come first.
fn link_of(
    group: &Group,
    way: &Way,
    machine: &mut Machine,
    told: &wire::Message,
    timeout: Option<Duration>,
) -> Result<Option<Arc<Arrival>>> {
    machine.ahead = machine.ahead.filter(|ahead| ahead.sequence != told.header.sequence);
    if let Some(theirs) = machine.ahead {
        let fault = Fault::Differs { link: 0, ours: told.header, theirs };
        return Err(group.missed(fault, &[*told], timeout).error);
    }
    if !machine.links.is_empty() {
        return Ok(None);
    }
    let arrival = group.connect(way, told, timeout)?;
    machine.links.push(Box::new(ComingLink::new(arrival.clone())));
    Ok(Some(arrival))
}

/// What a machine runs, and the rest of it.
fn parts<'m>(
    machine: &'m mut Machine,
    message: &'m Message<'_>,
    told: &wire::Message,
) -> (Task<'m>, &'m mut Engine, &'m mut Vec<Box<dyn Link>>) {
    let Machine { links, engine, plan, .. } = machine;
    let (send, recv) = match told.sends {
        true => (message.buffer, Region::empty()),
        false => (Region::empty(), message.buffer),
    };
    let element = message.dtype.size();
    let none = Region::empty();
    let task = Task { plan, element, reduction: None, ranks: 2, send, recv, scratch: none, sums: none };
    (task, engine, links)
}

/// Adds a message to the plan: one pass that only sends or only receives, on the link `link`.
pub fn add(plan: &mut Plan, engine: &mut Engine, message: &wire::Message, link: usize) {
    let mut route = Route { out: None, into: None, announce: None, expect: None, gate: link, may_owe: false };
    let span = |buffer| Span { buffer, start: 0, len: message.header.count as usize };
    if message.sends {
        (route.out, route.announce) = (Some(link), Some(message.header));
        plan.begin(Flow::Right, 0);
        plan.send(span(Buffer::Send));
    } else {
        (route.into, route.expect) = (Some(link), Some(message.header));
        plan.begin(Flow::Left, 0);
        plan.store(span(Buffer::Recv));
    }
    engine.route(&plan.passes[link], route);
}
