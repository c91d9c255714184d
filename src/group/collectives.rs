//! The calls that every rank makes in the same order.

use std::sync::Arc;
use std::time::Duration;

use super::Group;
use super::calls::Call;
use super::failure::Running;
use super::machine::{Home, Machine};
use super::operation::Operation;
use super::turns::{Ticket, Turns};
use crate::dtype::Dtype;
use crate::engine::{Engine, Fault, Observer, Route, Task, Traffic, Turn};
use crate::error::{Error, Result, Status};
use crate::kernels::{FloatMode, Reduction, WIDE_BYTES};
use crate::link::Link;
use crate::memory::Region;
use crate::plan::{Algorithm, Buffer, Flow, Path, Place, Plan, Span};
use crate::sys::PollEntry;
use crate::watcher::Side;
use crate::wire::{self, CallHeader, Kind};

/// The lanes of both edges, and what collectives keep from call to call.
pub struct Collectives {
    pub(super) turns: Arc<Turns>,
    home: Home,
}

impl Collectives {
    /// Links: all lanes to the right neighbour, then all to the left one.
    pub fn new(links: Vec<Box<dyn Link>>) -> Collectives {
        Collectives { turns: Arc::default(), home: Home::new(links) }
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
        let call = call.map_err(|refusal| self.refuse(kind, refusal))?;
        let _busy = self.counters.busy();
        let ticket = self.collectives.turns.ticket();
        ticket.wait();
        let result = self.check_health().and_then(|()| match self.size() {
            1 => {
                alone(&call);
                self.counters.succeeded(1);
                Ok(())
            }
            _ => Collective::begin(self, call, &ticket, self.timeout())?.run(),
        });
        drop(ticket);
        self.leave();
        result
    }

    /// A collective whose arguments were refused takes its number.
    pub(super) fn refuse(&self, kind: Kind, refusal: Error) -> Error {
        named(kind, self.collectives.turns.refuse(refusal.status as i32), refusal)
    }
}

/// A collective that has its turn. When it fails, the group has failed before the next call gets its turn; the
/// links are closed after that.
pub struct Collective<'g, 'a> {
    group: &'g Group,
    call: Call<'a>,
    header: CallHeader,
    place: Place,
    timeout: Option<Duration>,
    machine: Box<Machine>,
    watched: Watched<'g>,
}

impl<'g, 'a> Collective<'g, 'a> {
    /// Plans a call and lays it onto the lanes.
    pub fn begin(
        group: &'g Group,
        call: Call<'a>,
        ticket: &Ticket,
        timeout: Option<Duration>,
    ) -> Result<Collective<'g, 'a>> {
        let call = if group.is_wide() { call.widened() } else { call };
        let home = &group.collectives.home;
        let mut machine = home.take().ok_or_else(|| group.gone())?;
        if machine.links.is_empty() {
            home.put(machine);
            return Err(group.gone());
        }
        let place = Place { rank: group.rank(), size: group.size(), lanes: machine.links.len() / 2 };
        let algorithm = match prepare(&mut machine, place, &call) {
            Ok(algorithm) => algorithm,
            Err(refusal) => {
                home.put(machine);
                ticket.refuse(refusal.status as i32);
                return Err(named(call.kind, ticket.number, refusal));
            }
        };
        let header = CallHeader {
            algorithm: algorithm as u8,
            refused: ticket.refused(),
            ..call.header(ticket.number)
        };
        route(&mut machine, place, header);
        group.health.enter(header);
        let watched = Watched { group, lanes: place.lanes, awaits: [false; 2] };
        Ok(Collective { group, call, header, place, timeout, machine, watched })
    }

    /// Starts it for a thread that drives several.
    pub fn start(&mut self) {
        let (task, engine, _) = parts(&mut self.machine, &self.call, self.place);
        engine.begin(&task);
    }

    /// Runs it to its end on the caller's thread.
    fn run(mut self) -> Result<()> {
        let floats = self.call.op.is_some() && self.call.dtype.is_some_and(Dtype::is_floating);
        let _mode = floats.then(FloatMode::ieee);
        let (task, engine, links) = parts(&mut self.machine, &self.call, self.place);
        let stop = &self.group.health.stop;
        let result = engine.run(&task, links, stop, self.timeout, &mut self.watched);
        self.end(result)
    }

    fn end(self, result: std::result::Result<(), Fault>) -> Result<()> {
        let Collective { group, header, place, timeout, machine, .. } = self;
        let result = result.map_err(|fault| {
            let side = |link| if link < place.lanes { Side::Right } else { Side::Left };
            let rank = |link| group.health.peers().rank_at(side(link));
            group.fail(fault, &Running { header, message: None, timeout, rank: &rank })
        });
        group.health.leave(result.is_ok());
        group.counters.moved(machine.engine.moved());
        group.counters.succeeded(u64::from(result.is_ok()));
        group.collectives.home.put(machine);
        result
    }
}

impl Operation for Collective<'_, '_> {
    fn turn(&mut self) -> std::result::Result<Turn, Fault> {
        let (task, engine, links) = parts(&mut self.machine, &self.call, self.place);
        engine.turn(&task, links)
    }

    fn waits(&mut self, entries: &mut Vec<PollEntry>) -> Option<Duration> {
        let (task, engine, links) = parts(&mut self.machine, &self.call, self.place);
        engine.waits(&task, links, entries)
    }

    fn sleeps(&mut self) {
        let (task, engine, links) = parts(&mut self.machine, &self.call, self.place);
        self.watched.sleeps(engine.traffic(&task, links));
    }

    fn woke(&mut self, slept: Duration) {
        self.watched.woke(slept);
    }

    fn stalled(&mut self) -> Fault {
        let (task, engine, _) = parts(&mut self.machine, &self.call, self.place);
        engine.stalled(&task)
    }

    fn finish(mut self: Box<Self>, result: std::result::Result<(), Fault>) -> Result<()> {
        let (task, engine, _) = parts(&mut self.machine, &self.call, self.place);
        engine.end(&task, result.is_ok());
        self.end(result)
    }
}

/// What a machine runs, and the rest of it.
fn parts<'m>(
    machine: &'m mut Machine,
    call: &'m Call<'_>,
    place: Place,
) -> (Task<'m>, &'m mut Engine, &'m mut Vec<Box<dyn Link>>) {
    let Machine { links, engine, plan, scratch, .. } = machine;
    let elements = plan.scratch.saturating_mul(call.element);
    let memory = Region::from_slice(scratch);
    let task = Task {
        plan,
        element: call.element,
        reduction: call.reduction.as_ref(),
        ranks: place.size,
        send: call.send,
        recv: call.recv,
        scratch: memory.part(0, elements),
        sums: memory.part(elements, plan.sums * WIDE_BYTES),
    };
    (task, engine, links)
}

/// A collective as its engine shows it to the other ranks.
struct Watched<'g> {
    group: &'g Group,
    lanes: usize,
    /// Whether it waits for the right and for the left neighbour, as it fell asleep.
    awaits: [bool; 2],
}

impl Observer for Watched<'_> {
    fn sleeps(&mut self, traffic: &[Traffic]) {
        let sides = [&traffic[..self.lanes], &traffic[self.lanes..]];
        self.awaits = sides.map(|links| links.iter().any(|link| link.awaits || link.sends));
        self.group.health.progress(wire::Traffic {
            sent: sides.map(|links| links.iter().map(|link| link.sent).sum()),
            received: sides.map(|links| links.iter().map(|link| link.received).sum()),
            awaits: sides.map(|links| links.iter().any(|link| link.awaits)),
        });
    }

    fn woke(&mut self, slept: Duration) {
        self.group.counters.waited(self.awaits, slept);
    }

    fn call_roll(&mut self) {
        self.group.health.call_roll();
    }

    fn consult(&mut self) {
        self.group.health.consult();
    }
}

/// Plans a call and gets its scratch space; or the call is refused.
fn prepare(machine: &mut Machine, place: Place, call: &Call<'_>) -> Result<Algorithm> {
    let algorithm = planned(&mut machine.plan, place, call).ok_or_else(|| {
        Error::new(Status::Unsupported, format!("{} is not in this build", call.kind.name()))
    })?;
    let scratch = scratch_bytes(&machine.plan, call.element);
    let missing = scratch.saturating_sub(machine.scratch.len());
    if machine.scratch.try_reserve_exact(missing).is_err() {
        let text = format!("no memory for {scratch} bytes of scratch space");
        return Err(Error::new(Status::OutOfMemory, text));
    }
    machine.scratch.resize(machine.scratch.len() + missing, 0);
    Ok(algorithm)
}

fn scratch_bytes(plan: &Plan, element: usize) -> usize {
    plan.scratch.saturating_mul(element).saturating_add(plan.sums.saturating_mul(WIDE_BYTES))
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
        Kind::AllToAllV | Kind::Split | Kind::Message => return None,
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

/// Lays the plan's passes onto the links. A call header travels first on lane 0 to each neighbour process; in
/// a ring of two there is only one, and it is reached to the right.
fn route(machine: &mut Machine, place: Place, header: CallHeader) {
    for pass in &machine.plan.passes {
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
        machine.engine.route(pass, route);
    }
}

/// A group of one reduces nothing, but makes bools 0 or 1. What a rank has for itself lies in its part.
pub(super) fn alone(call: &Call<'_>) {
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
