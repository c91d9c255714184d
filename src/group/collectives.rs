//! The calls that every rank makes in the same order.

use std::sync::Mutex;

use super::calls::{AllGather, AllReduce};
use super::failure::Running;
use super::turns::{Turn, Turns};
use super::{Group, lock, try_lock};
use crate::dtype::{Dtype, Op};
use crate::engine::{Engine, Observer, Route, Task, Traffic};
use crate::error::{Error, Result, Status};
use crate::kernels::{FloatMode, Reducer};
use crate::link::Link;
use crate::memory::Region;
use crate::plan::{Algorithm, Flow, Place, Plan};
use crate::watcher::{Health, Side};
use crate::wire::{self, CallHeader, Kind};

/// The lanes of both edges, and what collectives keep from call to call.
pub struct Collectives {
    turns: Turns,
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

/// A collective's arguments in the form that all of them share.
struct Call<'a> {
    kind: Kind,
    dtype: Option<Dtype>,
    op: Option<Op>,
    count: usize,
    element: usize,
    send: Region<'a>,
    recv: Region<'a>,
    reducer: Option<Reducer>,
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
    /// Reduces; a call whose arguments were refused takes its number all the same.
    pub fn all_reduce(&self, call: Result<AllReduce<'_>>) -> Result<()> {
        self.collective(
            Kind::AllReduce,
            call.map(|call| Call {
                kind: Kind::AllReduce,
                dtype: Some(call.dtype),
                op: Some(call.op),
                count: call.count,
                element: call.dtype.size(),
                send: call.send,
                recv: call.recv,
                reducer: Reducer::new(call.dtype, call.op),
            }),
        )
    }

    /// Gathers; a call whose arguments were refused takes its number all the same.
    pub fn all_gather(&self, call: Result<AllGather<'_>>) -> Result<()> {
        self.collective(
            Kind::AllGather,
            call.map(|call| Call {
                kind: Kind::AllGather,
                dtype: Some(call.dtype),
                op: None,
                count: call.count,
                element: call.dtype.size(),
                send: call.send,
                recv: call.recv,
                reducer: None,
            }),
        )
    }

    /// Returns when every rank has called it.
    pub fn barrier(&self) -> Result<()> {
        let (send, recv) = (Region::empty(), Region::empty());
        let kind = Kind::Barrier;
        let call = Call { kind, dtype: None, op: None, count: 0, element: 1, send, recv, reducer: None };
        self.collective(Kind::Barrier, Ok(call))
    }

    fn collective(&self, kind: Kind, call: Result<Call<'_>>) -> Result<()> {
        let _entered = self.enter()?;
        let call = match call {
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
            _ => self.run(&call, &turn),
        });
        drop(turn);
        self.leave();
        result
    }

    /// Runs a collective whose turn it is. When it fails, the group has failed before the next
    /// call gets its turn; the links are closed after that.
    fn run(&self, call: &Call<'_>, turn: &Turn<'_>) -> Result<()> {
        let machine = &mut *lock(&self.collectives.machine);
        if machine.links.is_empty() {
            return Err(self.gone());
        }
        let lanes = machine.links.len() / 2;
        let place = Place { rank: self.rank(), size: self.size(), lanes };
        let algorithm = machine.plan(place, call);
        let scratch = machine.plan.scratch * call.element;
        if machine.scratch.len() < scratch {
            let missing = scratch - machine.scratch.len();
            if machine.scratch.try_reserve_exact(missing).is_err() {
                self.collectives.turns.refuse_current(turn, Status::OutOfMemory as i32);
                let text = format!("no memory for {scratch} bytes of scratch space");
                return Err(named(call.kind, turn.number, Error::new(Status::OutOfMemory, text)));
            }
            machine.scratch.resize(scratch, 0);
        }
        let header = CallHeader {
            algorithm: algorithm as u8,
            dtype: call.dtype,
            op: call.op,
            count: call.count as u64,
            refused: turn.refused,
            ..CallHeader::new(call.kind, turn.number)
        };
        machine.route(place, header, call.element);
        let task = Task {
            plan: &machine.plan,
            element: call.element,
            reducer: call.reducer,
            ranks: place.size,
            send: call.send,
            recv: call.recv,
            scratch: Region::from_slice(&mut machine.scratch),
        };
        let floats = call.op.is_some() && call.dtype.is_some_and(Dtype::is_floating);
        let _mode = floats.then(FloatMode::ieee);
        let timeout = self.timeout();
        self.health.enter(header);
        let mut observer = Watched { health: &self.health, lanes };
        let result = machine.engine.run(&task, &mut machine.links, &self.health.stop, timeout, &mut observer);
        let result = result.map_err(|fault| {
            let side = |link| if link < lanes { Side::Right } else { Side::Left };
            let rank = |link| self.health.peers().rank_at(side(link));
            self.fail(fault, &Running { header, message: None, timeout, rank: &rank })
        });
        self.health.leave(result.is_ok());
        result
    }
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

impl Machine {
    fn plan(&mut self, place: Place, call: &Call<'_>) -> Algorithm {
        self.plan.clear();
        match call.kind {
            Kind::AllReduce => self.plan.all_reduce(place, call.count, call.element),
            Kind::AllGather => {
                let algorithm = self.plan.all_gather(place, call.count, call.element);
                let own = call.recv.part(place.rank * call.send.len(), call.send.len());
                if own.as_ptr() == call.send.as_ptr() {
                    self.plan.copies.clear();
                }
                algorithm
            }
            Kind::Barrier | Kind::Message => self.plan.barrier(place),
        }
    }

    /// Lays the plan's passes onto the links. A call header travels first on lane 0 to each
    /// neighbour process; in a ring of two there is only one, and it is reached to the right.
    fn route(&mut self, place: Place, header: CallHeader, element: usize) {
        for pass in &self.plan.passes {
            let (right, left) = (pass.lane, place.lanes + pass.lane);
            let (out, into) = if pass.flow == Flow::Right { (right, left) } else { (left, right) };
            let two = place.size == 2;
            let first = pass.lane == 0 && (pass.flow == Flow::Right || !two);
            let header = first.then_some(header);
            let gate = if two || pass.flow == Flow::Right { 0 } else { 1 };
            let route = Route { out: Some(out), into: Some(into), announce: header, expect: header, gate };
            self.engine.route(pass, route, element);
        }
    }
}

/// A group of one reduces nothing, but makes bools 0 or 1.
fn alone(call: &Call<'_>) {
    match &call.reducer {
        Some(reducer) => reducer.copy(call.recv, call.send),
        None => call.recv.copy_from(call.send),
    }
}

/// A refusal with the call that it is about.
fn named(kind: Kind, number: u64, refusal: Error) -> Error {
    Error { text: format!("{}, call {number}: {}", kind.name(), refusal.text), sequence: number, ..refusal }
}
