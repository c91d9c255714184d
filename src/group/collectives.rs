//! The calls that every rank makes in the same order.

use std::sync::Mutex;

use super::calls::Call;
use super::failure::Running;
use super::turns::{Turn, Turns};
use super::{Group, lock, try_lock};
use crate::dtype::Dtype;
use crate::engine::{Engine, Observer, Route, Task, Traffic};
use crate::error::{Error, Result, Status};
use crate::kernels::{FloatMode, Reduction, WIDE_BYTES};
use crate::link::Link;
use crate::memory::Region;
use crate::plan::{Algorithm, Buffer, Flow, Path, Place, Plan, Span};
use crate::watcher::{Health, Side};
use crate::wire::{self, CallHeader, Kind};

/// The lanes of both edges, and what collectives keep from call to call.
pub struct Collectives {
    pub(super) turns: Turns,
    machine: Mutex<Machine>,
}

/// Everything that one collective at a time works with.
struct Machine {
    /// All lanes to the right neighbour, then all to the left one.
    links: Vec<Box<dyn Link>>,
    engine: Engine,
    plan: Plan,
    scratch: Vec<u8>,
}

impl Collectives {
    pub fn new(links: Vec<Box<dyn Link>>) -> Collectives {
        let machine =
            Machine { links, engine: Engine::default(), plan: Plan::default(), scratch: Vec::new() };
        Collectives { turns: Turns::default(), machine: Mutex::new(machine) }
    }

    pub fn take_links(&self) -> Vec<Box<dyn Link>> {
        std::mem::take(&mut lock(&self.machine).links)
    }

    /// The links, unless a call holds them.
    pub fn take_idle_links(&self) -> Vec<Box<dyn Link>> {
        try_lock(&self.machine).map_or(Vec::new(), |mut machine| std::mem::take(&mut machine.links))
    }
}

impl Group {
    /// Runs a collective; a call whose arguments were refused takes its number all the same.
    pub fn collective(&self, kind: Kind, call: Result<Call<'_>>) -> Result<()> {
        let _entered = self.enter()?;
        let call = match call {
            Ok(call) if self.is_wide() => call.widened(),
            Ok(call) => call,
            Err(refusal) => {
                let number = self.collectives.turns.refuse(refusal.status as i32);
                return Err(named(kind, number, refusal));
            }
        };
        let turn = self.collectives.turns.take();
        let result = self.check_health().and_then(|()| match self.size() {
            1 => {
                alone(&call);
                Ok(())
            }
            _ => self.run(&call, &turn, Part::Whole),
        });
        drop(turn);
        self.leave();
        result
    }

    /// Runs a collective whose turn it is. When it fails, the group has failed before the next
    /// call gets its turn; the links are closed after that.
    pub(super) fn run(&self, call: &Call<'_>, turn: &Turn<'_>, part: Part) -> Result<()> {
        let machine = &mut *lock(&self.collectives.machine);
        if machine.links.is_empty() {
            return Err(self.gone());
        }
        let lanes = machine.links.len() / 2;
        let place = Place { rank: self.rank(), size: self.size(), lanes };
        let Some(algorithm) = planned(&mut machine.plan, place, call) else {
            let text = format!("{} is not in this build", call.kind.name());
            self.collectives.turns.refuse_current(turn, Status::Unsupported as i32);
            return Err(named(call.kind, turn.number, Error::new(Status::Unsupported, text)));
        };
        let elements = machine.plan.scratch.saturating_mul(call.element);
        let scratch = elements.saturating_add(machine.plan.sums.saturating_mul(WIDE_BYTES));
        if machine.scratch.len() < scratch {
            let missing = scratch - machine.scratch.len();
            if machine.scratch.try_reserve_exact(missing).is_err() {
                self.collectives.turns.refuse_current(turn, Status::OutOfMemory as i32);
                let text = format!("no memory for {scratch} bytes of scratch space");
                return Err(named(call.kind, turn.number, Error::new(Status::OutOfMemory, text)));
            }
            machine.scratch.resize(scratch, 0);
        }
        let header =
            CallHeader { algorithm: algorithm as u8, refused: turn.refused, ..call.header(turn.number) };
        machine.route(place, header);
        let memory = Region::from_slice(&mut machine.scratch);
        let task = Task {
            plan: &machine.plan,
            element: call.element,
            reduction: call.reduction.as_ref(),
            ranks: place.size,
            send: call.send,
            recv: call.recv,
            scratch: memory.part(0, elements),
            sums: memory.part(elements, scratch - elements),
        };
        let floats = call.op.is_some() && call.dtype.is_some_and(Dtype::is_floating);
        let _mode = floats.then(FloatMode::ieee);
        let timeout = self.timeout();
        match part {
            Part::Whole | Part::First => self.health.enter(header),
            Part::Last => {}
        }
        let mut observer = Watched { health: &self.health, lanes };
        let result = machine.engine.run(&task, &mut machine.links, &self.health.stop, timeout, &mut observer);
        let result = result.map_err(|fault| {
            let side = |link| if link < lanes { Side::Right } else { Side::Left };
            let rank = |link| self.health.peers().rank_at(side(link));
            self.fail(fault, &Running { header, message: None, timeout, rank: &rank })
        });
        match part {
            // What goes over the lanes next is counted anew.
            Part::First if result.is_ok() => self.health.progress(wire::Traffic::default()),
            _ => self.health.leave(result.is_ok()),
        }
        result
    }
}

/// What of a collective runs: a split does something else between its two rounds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Whole,
    First,
    Last,
}

/// A collective as its engine shows it to the other ranks.
struct Watched<'h> {
    health: &'h Health,
    lanes: usize,
}

impl Observer for Watched<'_> {
    fn sleeps(&mut self, traffic: &[Traffic]) {
        let sides = [&traffic[..self.lanes], &traffic[self.lanes..]];
        self.health.progress(wire::Traffic {
            sent: sides.map(|links| links.iter().map(|link| link.sent).sum()),
            received: sides.map(|links| links.iter().map(|link| link.received).sum()),
            awaits: sides.map(|links| links.iter().any(|link| link.awaits)),
        });
    }

    fn call_roll(&mut self) {
        self.health.call_roll();
    }

    fn consult(&mut self) {
        self.health.consult();
    }
}

/// Plans a call; None where this build has no plan for it.
fn planned(plan: &mut Plan, place: Place, call: &Call<'_>) -> Option<Algorithm> {
    plan.clear();
    plan.wide = matches!(call.reduction, Some(Reduction::Wide(_)));
    let Call { count, element, .. } = *call;
    let root = call.root.unwrap_or(0);
    let algorithm = match call.kind {
        Kind::AllReduce | Kind::AllReduceCustom => plan.all_reduce(place, count, element),
        Kind::AllGather => plan.all_gather(place, count, element),
        Kind::AllGatherV => plan.all_gather_v(place, &call.recv_parts, element),
        Kind::ReduceScatter | Kind::ReduceScatterV | Kind::ReduceScatterVCustom => {
            plan.reduce_scatter(place, &call.send_parts, element)
        }
        Kind::Broadcast => plan.broadcast(place, root, count, element),
        Kind::Reduce => plan.reduce(place, root, count, element),
        Kind::Gather => plan.gather(place, root, count, element),
        Kind::Scatter => plan.scatter(place, root, count, element),
        Kind::AllToAll => plan.all_to_all(place, count, element),
        Kind::Barrier => plan.barrier(place),
        Kind::Split => plan.all_gather(place, count, element),
        Kind::AllToAllV | Kind::Message => return None,
    };
    let start_of = |span: Span| match span.buffer {
        Buffer::Send => call.send.part(span.start * element, span.len * element).as_ptr(),
        Buffer::Recv => call.recv.part(span.start * element, span.len * element).as_ptr(),
        Buffer::Scratch | Buffer::Sums => std::ptr::null_mut(),
    };
    // In place the own part lies where it is to go.
    plan.copies.retain(|(from, to)| start_of(*from) != start_of(*to));
    Some(algorithm)
}

impl Machine {
    /// Lays the plan's passes onto the links. A call header travels first on lane 0 to each
    /// neighbour process; in a ring of two there is only one, and it is reached to the right.
    fn route(&mut self, place: Place, header: CallHeader) {
        for pass in &self.plan.passes {
            // A direct link comes with the plans that use it.
            let Path::Ring { flow, lane } = pass.path else { continue };
            let (right, left) = (lane, place.lanes + lane);
            let (out, into) = if flow == Flow::Right { (right, left) } else { (left, right) };
            let two = place.size == 2;
            let first = lane == 0 && (flow == Flow::Right || !two);
            let header = first.then_some(header);
            // What arrives from the right has its header on the second pass, if there is one.
            let gate = if two || flow == Flow::Right { 0 } else { 1 };
            let route = Route { out: Some(out), into: Some(into), announce: header, expect: header, gate };
            self.engine.route(pass, route);
        }
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
