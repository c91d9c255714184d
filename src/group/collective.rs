//! A collective under way, from its turn to its end.

use std::time::Duration;

use super::Group;
use super::calls::Call;
use super::collectives::named;
use super::counts::{COUNT_BYTES, Counts};
use super::failure::Running;
use super::machine::Machine;
use super::mlx;
use super::operation::Operation;
use super::pairs::{Linking, Pairs};
use super::planning::{
    plan_call, plan_counts, plan_meeting, plan_relayed, rank_of_link, route, scratch_bytes,
};
use super::turns::Ticket;
use crate::bootstrap::config::Wire;
use crate::dtype::Dtype;
use crate::engine::{Engine, Fault, Observer, Standstill, Task, Traffic, Turn};
use crate::error::{Error, Result, Status};
use crate::kernels::FloatMode;
use crate::link::Link;
use crate::memory::Region;
use crate::plan::{Algorithm, Place};
use crate::sys::PollEntry;
use crate::trace::Underway;
use crate::wire::{self, CallHeader, Kind};

/// A collective that has its turn. When it fails, the group has failed before the next call gets its turn; the
/// links are closed after that.
pub struct Collective<'g, 'a> {
    group: &'g Group,
    call: Call<'a>,
    header: CallHeader,
    place: Place,
    timeout: Option<Duration>,
    machine: Box<Machine>,
    stage: Stage,
    part: Part,
    watched: Watched<'g>,
}

/// What of a call its collective is: a split does something else between its two rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Whole,
    FirstRound,
    LastRound,
}

/// What runs now. Only an all-to-all has other stages than the last.
enum Stage {
    /// The call itself, the last stage.
    Exchange,
    /// Every rank is to make this call before it opens direct links.
    Meet,
    /// Direct links are on their way.
    Linking(Linking),
    /// Every rank tells whether it has all of its links.
    Agree(Option<Vec<Box<dyn Link>>>),
    /// Every rank tells its counts.
    Counts(Counts),
    /// The call itself along the ring, of blocks whose counts all know; likewise the last stage.
    Relay(Counts),
}

impl<'a> Call<'a> {
    /// Whether the blocks are large enough to go straight, or as long as they may be.
    fn wants_direct(&self, size: usize) -> bool {
        match self.kind {
            Kind::AllToAll => Place::sends_direct(size, self.count * self.element),
            kind => kind == Kind::AllToAllV,
        }
    }

    /// Whether all blocks go straight to their ranks.
    pub fn goes_direct(&self, size: usize, pairs: &Pairs) -> bool {
        self.wants_direct(size) && (size <= 3 || *pairs == Pairs::Here)
    }

    /// Whether more is to be done than the call itself.
    pub fn has_stages(&self, size: usize, pairs: &Pairs) -> bool {
        let tries = self.wants_direct(size) && pairs.is_worth_trying(size);
        tries || (self.kind == Kind::AllToAllV && !self.goes_direct(size, pairs))
    }
}

impl<'g, 'a> Collective<'g, 'a> {
    /// Plans a call and lays it onto the links.
    pub fn begin(
        group: &'g Group,
        call: Call<'a>,
        ticket: &Ticket,
        timeout: Option<Duration>,
    ) -> Result<Collective<'g, 'a>> {
        Collective::begin_part(group, call, ticket, timeout, Part::Whole)
    }

    /// The same of a part of a call.
    pub fn begin_part(
        group: &'g Group,
        call: Call<'a>,
        ticket: &Ticket,
        timeout: Option<Duration>,
        part: Part,
    ) -> Result<Collective<'g, 'a>> {
        let call = match group.wire {
            Wire::Mlx => call.for_mlx(),
            Wire::Native if group.is_wide() => call.widened(),
            Wire::Native => call,
        };
        let home = &group.collectives.home;
        let machine = home.take().ok_or_else(|| group.gone())?;
        if machine.links.is_empty() {
            home.put(machine);
            return Err(group.gone());
        }
        let place = Place { rank: group.rank(), size: group.size(), lanes: machine.lanes };
        let stage = match call.has_stages(place.size, &machine.pairs) {
            false => Stage::Exchange,
            true if machine.pairs.is_worth_trying(place.size) => Stage::Meet,
            true => Stage::Counts(Counts::of(&call, place)),
        };
        let header = CallHeader { refused: ticket.refused(), ..call.header(ticket.number) };
        let underway = if part == Part::Whole { group.underway(ticket) } else { Underway::default() };
        let watched = Watched { group, header, place, awaits: [false; 2], underway };
        let mut collective =
            Collective { group, call, header, place, timeout, machine, stage, part, watched };
        if let Err(refusal) = collective.lay() {
            home.put(collective.machine);
            ticket.refuse(refusal.status as i32);
            group.trace_refusal(&collective.header, refusal.status);
            return Err(named(collective.call.kind, ticket.number, refusal));
        }
        if part != Part::LastRound {
            group.health.enter(collective.header);
        }
        Ok(collective)
    }

    /// Plans the stage, gets its scratch space and lays its passes onto the links.
    fn lay(&mut self) -> Result<()> {
        let Collective { group, call, place, machine, stage, header, .. } = self;
        let place = *place;
        let mut blocks = None;
        let algorithm = match stage {
            Stage::Exchange if group.is_mlx() => mlx::plan(&mut machine.plan, place, call),
            Stage::Exchange => plan_call(&mut machine.plan, place, call, &machine.pairs),
            Stage::Relay(counts) => {
                plan_relayed(&mut machine.plan, place, call, &|from, to| counts.of_block(from, to))
            }
            Stage::Meet | Stage::Linking(_) => plan_meeting(&mut machine.plan, place, Algorithm::Meet),
            Stage::Agree(_) => plan_meeting(&mut machine.plan, place, Algorithm::Agree),
            Stage::Counts(_) => plan_counts(&mut machine.plan, place),
        };
        if algorithm == Algorithm::Direct && call.kind == Kind::AllToAllV {
            blocks = Some((&call.send_parts, &call.recv_parts));
        }
        let (elements, sums) = scratch_bytes(&machine.plan, stage.element(call));
        let bytes = elements.saturating_add(sums);
        let missing = bytes.saturating_sub(machine.scratch.len());
        if machine.scratch.try_reserve_exact(missing).is_err() {
            let text = format!("no memory for {bytes} bytes of scratch space");
            return Err(Error::new(Status::OutOfMemory, text));
        }
        machine.scratch.resize(machine.scratch.len() + missing, 0);
        header.algorithm = algorithm as u8;
        if group.is_mlx() {
            mlx::fill(&mut machine.scratch, &machine.plan, call);
            mlx::route(machine, place);
        } else {
            route(machine, place, *header, blocks);
        }
        Ok(())
    }

    fn parts(&mut self) -> (Task<'_>, &mut Engine, &mut Vec<Box<dyn Link>>) {
        let Collective { call, place, machine, stage, .. } = self;
        let Machine { links, engine, plan, scratch, .. } = &mut **machine;
        let element = stage.element(call);
        let (elements, sums) = scratch_bytes(plan, element);
        let memory = Region::from_slice(scratch);
        let (send, recv) = match stage {
            Stage::Exchange | Stage::Relay(_) => (call.send, call.recv),
            Stage::Counts(counts) => counts.buffers(),
            Stage::Meet | Stage::Linking(_) | Stage::Agree(_) => (Region::empty(), Region::empty()),
        };
        let task = Task {
            plan,
            element,
            reduction: call.reduction.as_ref(),
            ranks: place.size,
            send,
            recv,
            scratch: memory.part(0, elements),
            sums: memory.part(elements, sums),
        };
        (task, engine, links)
    }

    /// Starts the stage for a thread that drives several operations.
    pub fn start(&mut self) {
        let (task, engine, _) = self.parts();
        engine.begin(&task);
    }

    /// Runs a call of one stage to its end on the caller's thread.
    pub fn run(self) -> Result<()> {
        self.run_part().0
    }

    /// The same of a part of a call; what its trace keeps is for the next one.
    pub fn run_part(mut self) -> (Result<()>, Underway) {
        debug_assert!(matches!(self.stage, Stage::Exchange));
        let floats = self.call.op.is_some() && self.call.dtype.is_some_and(Dtype::is_floating);
        let _mode = floats.then(FloatMode::ieee);
        let Collective { group, timeout, header, place, .. } = self;
        let underway = std::mem::take(&mut self.watched.underway);
        let mut watched = Watched { group, header, place, awaits: [false; 2], underway };
        let (task, engine, links) = self.parts();
        let result = engine.run(&task, links, &group.health.stop, timeout, &mut watched);
        self.watched.underway = watched.underway;
        self.end(result)
    }

    /// Goes on with what a trace has kept of the call's first part.
    pub fn resume(&mut self, underway: Underway) {
        self.watched.underway = underway;
    }

    /// The stage has ended well: begins the next one, if there is one.
    fn advance(&mut self) -> std::result::Result<Turn, Fault> {
        let (task, engine, _) = self.parts();
        engine.end(&task, true);
        if matches!(self.stage, Stage::Exchange | Stage::Relay(_)) {
            return Ok(Turn::Done);
        }
        let Collective { group, call, place, machine, timeout, watched, .. } = self;
        group.counters.moved(machine.engine.moved());
        watched.underway.moved(machine.engine.moved());
        self.stage = match std::mem::replace(&mut self.stage, Stage::Exchange) {
            stage @ (Stage::Exchange | Stage::Relay(_)) => stage,
            Stage::Meet => {
                // Nothing to lay: the watcher makes the links.
                let reach = group.reach.as_ref().ok_or(Fault::Stopped)?;
                self.stage = Stage::Linking(Linking::begin(reach, *place, *timeout));
                return Ok(Turn::Moved);
            }
            Stage::Linking(linking) => Stage::Agree(linking.into_links()),
            Stage::Agree(links) => {
                let all = machine.scratch[..place.size].iter().all(|has_links| *has_links == 1);
                machine.pairs = if all { Pairs::Here } else { Pairs::Nowhere };
                machine.links.extend(links.filter(|_| all).into_iter().flatten());
                match call.goes_direct(place.size, &machine.pairs) || call.kind == Kind::AllToAll {
                    true => Stage::Exchange,
                    false => Stage::Counts(Counts::of(call, *place)),
                }
            }
            Stage::Counts(counts) => {
                counts.compare(&self.header)?;
                Stage::Relay(counts)
            }
        };
        self.lay().map_err(Fault::Refused)?;
        self.start();
        if let Stage::Agree(links) = &self.stage {
            self.machine.scratch[self.place.rank] = links.is_some().into();
        }
        Ok(Turn::Moved)
    }

    fn end(self, result: std::result::Result<(), Fault>) -> (Result<()>, Underway) {
        let Collective { group, call, header, place, timeout, machine, part, watched, .. } = self;
        if group.is_mlx() && result.is_ok() {
            call.finish_for_mlx(place.size);
        }
        let result = result.map_err(|fault| {
            let rank = |link| rank_of_link(place, link);
            group.fail(fault, &Running { header, message: None, timeout, rank: &rank })
        });
        let goes_on = part == Part::FirstRound && result.is_ok();
        match goes_on {
            // What goes over the lanes next is counted anew.
            true => group.health.progress(wire::Traffic::default()),
            false => group.health.leave(result.is_ok()),
        }
        group.counters.moved(machine.engine.moved());
        if result.is_ok() && !goes_on {
            group.counters.succeeded(call.operations());
        }
        let mut underway = watched.underway;
        underway.moved(machine.engine.moved());
        if part == Part::Whole {
            group.trace_collective(std::mem::take(&mut underway), &header, &call, &result);
        }
        group.collectives.home.put(machine);
        (result, underway)
    }
}

impl Stage {
    /// Bytes of what is exchanged.
    fn element(&self, call: &Call<'_>) -> usize {
        match self {
            Stage::Exchange | Stage::Relay(_) => call.element,
            Stage::Meet | Stage::Linking(_) | Stage::Agree(_) => 1,
            Stage::Counts(_) => COUNT_BYTES,
        }
    }
}

impl Operation for Collective<'_, '_> {
    fn turn(&mut self) -> std::result::Result<Turn, Fault> {
        if let Stage::Linking(linking) = &mut self.stage {
            return if linking.turn() { self.advance() } else { Ok(Turn::Idle) };
        }
        let (task, engine, links) = self.parts();
        match engine.turn(&task, links)? {
            Turn::Done => self.advance(),
            turn => Ok(turn),
        }
    }

    fn waits(&mut self, entries: &mut Vec<PollEntry>) -> Option<Duration> {
        if let Stage::Linking(linking) = &self.stage {
            return linking.waits(entries);
        }
        let (task, engine, links) = self.parts();
        engine.waits(&task, links, entries)
    }

    fn sleeps(&mut self) {
        let (task, engine, links) = self.parts();
        let traffic = engine.traffic(&task, links).to_vec();
        self.watched.sleeps(&traffic);
    }

    fn woke(&mut self, slept: Duration) {
        self.watched.woke(slept);
    }

    fn warn(&mut self, standstill: &Standstill) -> Option<Duration> {
        let stalled = self.stalled();
        self.watched.warn(standstill, &stalled)
    }

    fn stalled(&mut self) -> Fault {
        let (task, engine, _) = self.parts();
        engine.stalled(&task)
    }

    fn finish(mut self: Box<Self>, result: std::result::Result<(), Fault>) -> Result<()> {
        if result.is_err() {
            let (task, engine, _) = self.parts();
            engine.end(&task, false);
        }
        self.end(result).0
    }
}

/// A collective as its engine shows it to the other ranks.
struct Watched<'g> {
    group: &'g Group,
    header: CallHeader,
    place: Place,
    /// Whether it waits for the right and for the left neighbour, as it fell asleep.
    awaits: [bool; 2],
    underway: Underway,
}

impl Observer for Watched<'_> {
    fn sleeps(&mut self, traffic: &[Traffic]) {
        let lanes = self.place.lanes;
        let sides = [&traffic[..lanes], &traffic[lanes..2 * lanes]];
        self.awaits = sides.map(|links| links.iter().any(|link| link.awaits || link.sends));
        self.group.health.progress(wire::Traffic {
            sent: sides.map(|links| links.iter().map(|link| link.sent).sum()),
            received: sides.map(|links| links.iter().map(|link| link.received).sum()),
            awaits: sides.map(|links| links.iter().any(|link| link.awaits)),
        });
    }

    fn woke(&mut self, slept: Duration) {
        self.group.counters.waited(self.awaits, slept);
        self.underway.slept(self.awaits, slept);
    }

    fn call_roll(&mut self) {
        self.group.health.call_roll();
    }

    fn warns_after(&self) -> Option<Duration> {
        self.group.stall_warning
    }

    fn warn(&mut self, standstill: &Standstill, stalled: &Fault) -> Option<Duration> {
        let rank = |link| rank_of_link(self.place, link);
        let call = Running { header: self.header, message: None, timeout: None, rank: &rank };
        self.group.warn(standstill, stalled, &call)
    }

    fn consult(&mut self) {
        self.group.health.consult();
    }
}
