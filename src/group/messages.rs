//! Sends and receives between two ranks, on links of their own beside the collectives.

use std::sync::Mutex;

use super::calls::Message;
use super::failure::Running;
use super::turns::{Turn, Turns};
use super::{Group, lock, try_lock};
use crate::engine::{Engine, Observer, Route, Task, Traffic};
use crate::error::{Error, Result, Status};
use crate::link::Link;
use crate::memory::Region;
use crate::plan::{Buffer, Flow, Plan, Span};
use crate::sys;
use crate::watcher::{Health, Side};
use crate::wire::{self, CallHeader, Kind};

/// One direction to or from a neighbour.
struct Way {
    turns: Turns,
    machine: Mutex<Machine>,
}

/// What one message at a time works with.
struct Machine {
    /// One link; a send_recv lends its second one for a call.
    links: Vec<Box<dyn Link>>,
    engine: Engine,
    plan: Plan,
}

/// All ways, by side.
#[derive(Default)]
pub struct Messages {
    out: Vec<Way>,
    into: Vec<Way>,
}

impl Messages {
    /// The links of the next side, right first.
    pub fn add(&mut self, out: Box<dyn Link>, into: Box<dyn Link>) {
        self.out.push(Way::new(out));
        self.into.push(Way::new(into));
    }

    pub fn take_links(&self) -> Vec<Box<dyn Link>> {
        let ways = self.out.iter().chain(&self.into);
        ways.flat_map(|way| std::mem::take(&mut lock(&way.machine).links)).collect()
    }

    /// The links that no call holds.
    pub fn take_idle_links(&self) -> Vec<Box<dyn Link>> {
        let idle = self.out.iter().chain(&self.into).filter_map(|way| try_lock(&way.machine));
        idle.flat_map(|mut machine| std::mem::take(&mut machine.links)).collect()
    }
}

/// A message as its engine shows it to the other ranks.
struct Watched<'h>(&'h Health);

impl Observer for Watched<'_> {
    fn sleeps(&mut self, _: &[Traffic]) {}

    fn call_roll(&mut self) {
        self.0.call_roll();
    }

    fn consult(&mut self) {
        self.0.consult();
    }
}

impl Way {
    fn new(link: Box<dyn Link>) -> Way {
        let machine = Machine { links: vec![link], engine: Engine::default(), plan: Plan::default() };
        Way { turns: Turns::default(), machine: Mutex::new(machine) }
    }
}

/// A message under way: its call, its neighbour and its direction's queue.
struct Half<'g, 'a> {
    message: Message<'a>,
    side: Side,
    way: &'g Way,
    sends: bool,
}

impl Half<'_, '_> {
    fn header(&self, turn: &Turn<'_>) -> CallHeader {
        let (dtype, count) = (Some(self.message.dtype), self.message.count as u64);
        CallHeader { dtype, count, ..CallHeader::new(Kind::Message, turn.number) }
    }

    fn told(&self, header: CallHeader) -> wire::Message {
        wire::Message { peer: self.message.peer as u32, sends: self.sends, header }
    }
}

impl Group {
    /// Sends to a neighbour; may return before the peer has called recv.
    pub fn send(&self, message: Message<'_>) -> Result<()> {
        self.send_recv(Some(message), None)
    }

    /// Receives what a neighbour sends.
    pub fn recv(&self, message: Message<'_>) -> Result<()> {
        self.send_recv(None, Some(message))
    }

    /// Sends and receives at the same time; either may be none.
    pub fn send_recv(&self, send: Option<Message<'_>>, recv: Option<Message<'_>>) -> Result<()> {
        let _entered = self.enter()?;
        let send = send.map(|message| self.half(message, true)).transpose()?;
        let recv = recv.map(|message| self.half(message, false)).transpose()?;
        let result = match (send, recv) {
            (Some(send), Some(recv)) => self.exchange(send, recv),
            (Some(half), None) | (None, Some(half)) => {
                let turn = half.way.turns.take();
                self.one(&half, &turn)
            }
            (None, None) => Ok(()),
        };
        self.leave();
        result
    }

    /// A message to oneself.
    pub fn copy_to_self(&self, from: Region<'_>, to: Region<'_>) -> Result<()> {
        let _entered = self.enter()?;
        to.copy_from(from);
        Ok(())
    }

    /// Finds the way of a message. In a ring of two a rank sends on the edge to its right.
    fn half<'a>(&self, message: Message<'a>, sends: bool) -> Result<Half<'_, 'a>> {
        let peers = self.health.peers();
        let near = if sends { [Side::Right, Side::Left] } else { [Side::Left, Side::Right] };
        let side = near
            .into_iter()
            .find(|side| self.size() > 1 && peers.rank_at(*side) == message.peer)
            .ok_or_else(|| {
                let text = format!(
                    "messages go between neighbours so far: rank {} is none of rank {}'s in a ring of {}",
                    message.peer, peers.rank, peers.size
                );
                Error::new(Status::Unsupported, text)
            })?;
        let ways = if sends { &self.messages.out } else { &self.messages.into };
        match ways.get(side as usize) {
            Some(way) => Ok(Half { message, side, way, sends }),
            None => Err(Error::new(Status::InvalidArgument, "a group of one has no peers")),
        }
    }

    /// Both halves in one thread where both have their turn now. Where one has to wait for its
    /// turn, the other must not: it gets a thread for as long as the call lasts.
    fn exchange(&self, send: Half<'_, '_>, recv: Half<'_, '_>) -> Result<()> {
        let (send_turn, recv_turn) = (send.way.turns.try_take(), recv.way.turns.try_take());
        if let (Some(send_turn), Some(recv_turn)) = (&send_turn, &recv_turn) {
            return self.both(&send, send_turn, &recv, recv_turn);
        }
        let run = |half: Half<'_, '_>, turn: Option<Turn<'_>>| {
            let turn = turn.unwrap_or_else(|| half.way.turns.take());
            self.one(&half, &turn)
        };
        std::thread::scope(|scope| {
            let receiving = sys::spawn_scoped(scope, "ring-recv", move || run(recv, recv_turn));
            let sent = run(send, send_turn);
            let received = match receiving.map(|thread| thread.join()) {
                Ok(Ok(received)) => received,
                Ok(Err(_)) => {
                    let text = "a receiving thread panicked";
                    Err(self.health.fail(Error::new(Status::Internal, text).at_rank(self.rank())))
                }
                Err(error) => Err(self.host_refused("starting a thread", &error)),
            };
            sent.and(received)
        })
    }

    fn one(&self, half: &Half<'_, '_>, turn: &Turn<'_>) -> Result<()> {
        let machine = &mut *lock(&half.way.machine);
        let Machine { links, engine, plan } = machine;
        if links.is_empty() {
            return Err(self.gone());
        }
        plan.clear();
        let header = half.header(turn);
        add(plan, engine, half, header, 0);
        let buffers = if half.sends {
            (half.message.buffer, Region::empty())
        } else {
            (Region::empty(), half.message.buffer)
        };
        self.drive(engine, plan, links, buffers, half.message.dtype.size(), &[(half.side, half.told(header))])
    }

    fn both(&self, send: &Half<'_, '_>, out: &Turn<'_>, recv: &Half<'_, '_>, into: &Turn<'_>) -> Result<()> {
        // The order of these two locks matters to nobody: both turns are held.
        let machine = &mut *lock(&send.way.machine);
        let lent = &mut lock(&recv.way.machine).links;
        let Machine { links, engine, plan } = machine;
        if links.is_empty() || lent.is_empty() {
            return Err(self.gone());
        }
        links.append(lent);
        plan.clear();
        let (send_header, recv_header) = (send.header(out), recv.header(into));
        add(plan, engine, send, send_header, 0);
        add(plan, engine, recv, recv_header, 1);
        let buffers = (send.message.buffer, recv.message.buffer);
        let element = send.message.dtype.size();
        let told = [(send.side, send.told(send_header)), (recv.side, recv.told(recv_header))];
        let result = self.drive(engine, plan, links, buffers, element, &told);
        lent.extend(links.drain(1..));
        result
    }

    fn drive(
        &self,
        engine: &mut Engine,
        plan: &Plan,
        links: &mut [Box<dyn Link>],
        (send, recv): (Region<'_>, Region<'_>),
        element: usize,
        of_link: &[(Side, wire::Message)],
    ) -> Result<()> {
        let task = Task { plan, element, reduction: None, ranks: 2, send, recv, scratch: Region::empty() };
        let timeout = self.timeout();
        of_link.iter().for_each(|(_, message)| self.health.begin(*message));
        let mut observer = Watched(&self.health);
        let result = engine.run(&task, links, &self.health.stop, timeout, &mut observer);
        let result = result.map_err(|fault| {
            let message = of_link[fault.link()].1;
            let side = |link: usize| of_link[link].0;
            self.fail(
                fault,
                &Running { header: message.header, message: Some(message), timeout, side: &side },
            )
        });
        of_link.iter().for_each(|(_, message)| self.health.end(message));
        result
    }
}

/// Adds a message to the plan: one pass that only sends or only receives, on the link `link`.
fn add(plan: &mut Plan, engine: &mut Engine, half: &Half<'_, '_>, header: CallHeader, link: usize) {
    let count = half.message.count;
    let mut route = Route { out: None, into: None, announce: None, expect: None, gate: link };
    let span = |buffer| Span { buffer, start: 0, len: count };
    if half.sends {
        (route.out, route.announce) = (Some(link), Some(header));
        plan.begin(Flow::Right, 0);
        plan.send(span(Buffer::Send));
    } else {
        (route.into, route.expect) = (Some(link), Some(header));
        plan.begin(Flow::Left, 0);
        plan.store(span(Buffer::Recv));
    }
    engine.route(&plan.passes[link], route);
}
