//! Sends and receives between two ranks, on links of their own beside the collectives.

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use super::Group;
use super::calls::Message;
use super::collective::Collective;
use super::delivery::{Delivery, add};
use super::driver::{Driver, Pending, Work};
use super::failure::Running;
use super::machine::{Home, Machine};
use super::request::Request;
use super::turns::{Ticket, Turns};
use crate::bootstrap::Deadline;
use crate::engine::{Fault, Observer, Standstill, Task, Traffic, Waking};
use crate::error::{Error, Result, Status};
use crate::link::{Arrival, Link};
use crate::memory::Region;
use crate::trace::Underway;
use crate::watcher::Side;
use crate::wire::{self, CallHeader, Kind, LinkKind};

/// One direction to or from another rank.
pub struct Way {
    /// The link was made with the ring; others are made at first use.
    is_near: bool,
    pub turns: Arc<Turns>,
    /// One link at most; a send_recv lends its second one for a call.
    pub home: Home,
}

/// All ways, by the peer's rank; each is made at first use.
pub struct Messages {
    out: Vec<OnceLock<Box<Way>>>,
    into: Vec<OnceLock<Box<Way>>>,
    /// See [`Turns::new`].
    is_timed: bool,
}

impl Messages {
    pub fn new(size: usize, is_timed: bool) -> Messages {
        let ways = || (0..size).map(|_| OnceLock::new()).collect();
        Messages { out: ways(), into: ways(), is_timed }
    }

    /// Links to and from a neighbour.
    pub fn add(&mut self, rank: usize, out: Option<Box<dyn Link>>, into: Option<Box<dyn Link>>) {
        let is_timed = self.is_timed;
        for (ways, link) in [(&mut self.out, out), (&mut self.into, into)] {
            if let (Some(way), Some(link)) = (ways.get_mut(rank), link) {
                *way = OnceLock::from(Box::new(Way::near(link, is_timed)));
            }
        }
    }

    fn ways(&self) -> impl Iterator<Item = &Way> {
        self.out.iter().chain(&self.into).filter_map(|way| way.get()).map(Box::as_ref)
    }

    /// The links that no call has.
    pub fn take_links(&self) -> Vec<Box<dyn Link>> {
        self.ways().flat_map(|way| way.home.take_links()).collect()
    }
}

/// Messages as their engine shows them to the other ranks.
pub struct Watched<'g, 'm> {
    pub group: &'g Group,
    /// By link.
    pub messages: &'m [wire::Message],
    /// Whether they wait for the right and for the left neighbour, as they fell asleep.
    pub awaits: [bool; 2],
    /// Of which message a trace tells these waits: of the first one that waits for the side.
    blamed: [[bool; 2]; 2],
    /// By message.
    pub underway: [Underway; 2],
}

impl<'g, 'm> Watched<'g, 'm> {
    pub fn new(group: &'g Group, messages: &'m [wire::Message]) -> Watched<'g, 'm> {
        let (blamed, underway) = ([[false; 2]; 2], <[Underway; 2]>::default());
        Watched { group, messages, awaits: [false; 2], blamed, underway }
    }
}

impl Observer for Watched<'_, '_> {
    fn sleeps(&mut self, traffic: &[Traffic]) {
        (self.awaits, self.blamed) = ([false; 2], [[false; 2]; 2]);
        for ((message, link), blamed) in self.messages.iter().zip(traffic).zip(&mut self.blamed) {
            if link.awaits || link.sends {
                let sides = self.group.sides_of(message);
                *blamed = [sides[0] && !self.awaits[0], sides[1] && !self.awaits[1]];
                self.awaits = [self.awaits[0] || sides[0], self.awaits[1] || sides[1]];
            }
        }
    }

    fn woke(&mut self, slept: Duration) {
        self.group.counters.waited(self.awaits, slept);
        for (underway, sides) in self.underway.iter_mut().zip(self.blamed) {
            underway.slept(sides, slept);
        }
    }

    fn call_roll(&mut self) {
        self.group.health.call_roll();
    }

    fn warns_after(&self) -> Option<Duration> {
        self.group.stall_warning
    }

    fn warn(&mut self, standstill: &Standstill, stalled: &Fault) -> Option<Duration> {
        self.group.warn_of_message(standstill, stalled, self.messages)
    }

    fn consult(&mut self) {
        self.group.health.consult();
    }
}

impl Way {
    fn near(link: Box<dyn Link>, is_timed: bool) -> Way {
        Way { is_near: true, turns: Turns::new(is_timed), home: Home::new(vec![link]) }
    }

    fn far(is_timed: bool) -> Way {
        Way { is_near: false, turns: Turns::new(is_timed), home: Home::default() }
    }

    /// Whether the next message can move on it now, or at once when the peer comes.
    fn is_open(&self) -> bool {
        self.is_near || self.home.is(|machine| !machine.links.is_empty() && machine.ahead.is_none())
    }
}

/// A message that has failed.
pub struct Missed {
    pub error: Error,
    pub what: What,
}

/// What is left of its way.
pub enum What {
    /// Nothing: the group has failed, or is being destroyed.
    Failed,
    /// There is no link; the next message makes one.
    NoLink,
    /// The link brings this later message.
    Later(Box<CallHeader>),
}

/// A message under way: its call and its direction's queue.
pub struct Half<'g, 'a> {
    pub message: Message<'a>,
    pub way: &'g Way,
    pub sends: bool,
    pub timeout: Option<Duration>,
}

impl Half<'_, '_> {
    /// As the other ranks know it.
    pub fn told(&self, number: u64, is_request: bool) -> wire::Message {
        let (dtype, count) = (Some(self.message.dtype), self.message.count as u64);
        let header = CallHeader { dtype, count, ..CallHeader::new(Kind::Message, number) };
        wire::Message { peer: self.message.peer as u32, sends: self.sends, is_request, header }
    }
}

impl Group {
    /// Sends to another rank; may return before the peer has called recv.
    pub fn send(&self, message: Message<'_>) -> Result<()> {
        self.send_recv(Some(message), None)
    }

    /// Receives what another rank sends.
    pub fn recv(&self, message: Message<'_>) -> Result<()> {
        self.send_recv(None, Some(message))
    }

    /// Sends and receives at the same time; either may be none.
    pub fn send_recv(&self, send: Option<Message<'_>>, recv: Option<Message<'_>>) -> Result<()> {
        let _entered = self.enter()?;
        let _busy = self.counters.busy();
        if self.is_mlx() {
            return self.send_recv_in_turn(send, recv);
        }
        let send = send.map(|message| self.half(message, true, self.timeout())).transpose()?;
        let recv = recv.map(|message| self.half(message, false, self.timeout())).transpose()?;
        let result = match (send, recv) {
            (Some(send), Some(recv)) => self.exchange(send, recv),
            (Some(half), None) | (None, Some(half)) => {
                let ticket = half.way.turns.take();
                Delivery::begin(self, half, &ticket, false)?.run()
            }
            (None, None) => Ok(()),
        };
        self.leave();
        result
    }

    /// On the links of collectives, in one order with these.
    fn send_recv_in_turn(&self, send: Option<Message<'_>>, recv: Option<Message<'_>>) -> Result<()> {
        if send.is_none() && recv.is_none() {
            return Ok(());
        }
        let call = self.message_call(send, recv)?;
        let ticket = self.collectives.turns.take_for(|| self.message_number(&call));
        let collective =
            self.check_health().and_then(|()| Collective::begin(self, call, &ticket, self.timeout()));
        let result = collective.and_then(Collective::run);
        drop(ticket);
        self.leave();
        result
    }

    /// A message to oneself.
    pub fn copy_to_self(&self, from: Region<'_>, to: Region<'_>) -> Result<()> {
        let _entered = self.enter()?;
        let _busy = self.counters.busy();
        let underway = self.underway_now();
        to.copy_from(from);
        self.counters.succeeded(2);
        self.trace_own(underway);
        Ok(())
    }

    /// Finds the way of a message.
    pub(super) fn half<'a>(
        &self,
        message: Message<'a>,
        sends: bool,
        timeout: Option<Duration>,
    ) -> Result<Half<'_, 'a>> {
        let way = self.way(message.peer, sends)?;
        Ok(Half { message, way, sends, timeout })
    }

    pub(super) fn way(&self, peer: usize, sends: bool) -> Result<&Way> {
        let ways = if sends { &self.messages.out } else { &self.messages.into };
        let way = ways.get(peer).filter(|_| peer != self.rank()).ok_or_else(|| {
            let text = format!("rank {peer} is no other rank of the group");
            Error::new(Status::InvalidArgument, text)
        })?;
        Ok(way.get_or_init(|| Box::new(Way::far(self.messages.is_timed))))
    }

    /// The neighbours, right and left, that a message goes to or comes from. In a ring of two they are one rank, and
    /// a rank sends on the edge to its right.
    fn sides_of(&self, message: &wire::Message) -> [bool; 2] {
        let peers = self.health.peers();
        match peers.size {
            2 => [message.sends, !message.sends],
            _ => Side::BOTH.map(|side| peers.rank_at(side) == message.peer as usize),
        }
    }

    /// Both halves on one engine where both have their turn and their link now. Where one has to wait, the other
    /// must not, and goes on if there will be no link.
    fn exchange(&self, send: Half<'_, '_>, recv: Half<'_, '_>) -> Result<()> {
        let (mut out, mut into) = (send.way.turns.ticket(), recv.way.turns.ticket());
        if out.is_next() && into.is_next() && send.way.is_open() && recv.way.is_open() {
            return self.both(&send, &out, &recv, &into);
        }
        match self.apart(send, out, recv, into) {
            // A failure of the group goes before that of a link.
            [Err(error), Err(other)] if error.status == Status::ConnectFailed => Err(other),
            [sent, received] => sent.and(received),
        }
    }

    /// Each half as an operation of its own.
    fn apart(&self, send: Half<'_, '_>, out: Ticket, recv: Half<'_, '_>, into: Ticket) -> [Result<()>; 2] {
        let mut driver = match Driver::new(self) {
            Ok(driver) => driver,
            Err(error) => return [Err(self.host_refused("making a pipe", &error)), Ok(())],
        };
        let halves = [(send, out), (recv, into)];
        let results = halves.map(|(half, ticket)| {
            let (request, reply) = Request::new(Weak::new(), self.generation);
            let work = Work::Message { message: half.message, sends: half.sends, is_request: false };
            driver.add(Pending { work, ticket, timeout: half.timeout, reply, entered: None });
            request
        });
        driver.run(&mut Waking::default());
        results.map(|request| request.outcome())
    }

    /// What a fault of messages means. One that could not be sent is told to its receiver, whose call of the same
    /// number then fails, too; the group goes on.
    pub(super) fn missed(
        &self,
        fault: Fault,
        messages: &[wire::Message],
        timeout: Option<Duration>,
    ) -> Missed {
        let message = messages[fault.link()];
        if let Fault::Differs { ours, theirs, .. } = &fault
            && theirs.kind == Kind::Message
            && theirs.sequence > ours.sequence
            && let Some(error) = self.health.await_never_comes(&message)
        {
            return Missed { error, what: What::Later(Box::new(*theirs)) };
        }
        let rank = |link: usize| messages[link].peer as usize;
        let call = Running { header: message.header, message: Some(message), timeout, rank: &rank };
        let error = self.fail(fault, &call);
        if error.status != Status::ConnectFailed || self.health.failure().is_some() {
            return Missed { error, what: What::Failed };
        }
        if message.sends {
            self.health.tell_unreached(&message, &error);
        }
        Missed { error, what: What::NoLink }
    }

    /// Where the link of a way arrives whose first message this is, or the first after one that failed.
    pub(super) fn connect(
        &self,
        way: &Way,
        message: &wire::Message,
        timeout: Option<Duration>,
    ) -> Result<Arc<Arrival>> {
        let is_over = || self.health.stop.is_raised() || self.health.failure().is_some();
        let Some(reach) = self.reach.as_ref().filter(|_| !way.is_near && !is_over()) else {
            return Err(self.gone());
        };
        // A word that has come already, while a link for a later message may have come as well.
        if let Some(error) = self.health.never_comes(message) {
            return Err(error);
        }
        let (link, peer) = ((LinkKind::MessageOut, 0), message.peer as usize);
        let arrival = match message.sends {
            true => reach.dial(link, peer, self.dial_deadline(timeout)),
            false => reach.await_link(link, peer),
        };
        arrival.map_err(|error| {
            let text = format!("{}, call {}: {}", message.header, message.header.sequence, error.text);
            self.health.fail(Error { sequence: message.header.sequence, text, ..error }.at_rank(self.rank()))
        })
    }

    /// The receiver waits as long as its own timeout for what the sender tries: it is to hear in time of a failure.
    fn dial_deadline(&self, timeout: Option<Duration>) -> Deadline {
        let limit = self.connect_limit(timeout);
        let health = self.health.clone();
        let has_answered = move |rank, since| health.has_answered(rank, since);
        Deadline::IfAlive(limit.and_then(|limit| Instant::now().checked_add(limit)), Box::new(has_answered))
    }

    fn both(&self, send: &Half<'_, '_>, out: &Ticket, recv: &Half<'_, '_>, into: &Ticket) -> Result<()> {
        let (Some(mut machine), Some(mut lent)) = (send.way.home.take(), recv.way.home.take()) else {
            return Err(self.gone());
        };
        let result = match machine.links.is_empty() || lent.links.is_empty() {
            true => Err(self.gone()),
            false => {
                machine.links.append(&mut lent.links);
                let messages = [send.told(out.number, false), recv.told(into.number, false)];
                let result = self.drive_both(&mut machine, send, recv, &messages, [out, into]);
                lent.links.extend(machine.links.drain(1..));
                result
            }
        };
        send.way.home.put(machine);
        recv.way.home.put(lent);
        result
    }

    fn drive_both(
        &self,
        machine: &mut Machine,
        send: &Half<'_, '_>,
        recv: &Half<'_, '_>,
        messages: &[wire::Message; 2],
        tickets: [&Ticket; 2],
    ) -> Result<()> {
        let Machine { links, engine, plan, .. } = machine;
        plan.clear();
        messages.iter().enumerate().for_each(|(link, message)| add(plan, engine, message, link));
        let task = Task {
            plan,
            element: send.message.dtype.size(),
            reduction: None,
            ranks: 2,
            send: send.message.buffer,
            recv: recv.message.buffer,
            scratch: Region::empty(),
            sums: Region::empty(),
        };
        messages.iter().for_each(|message| self.health.begin(*message));
        let mut observer = Watched::new(self, messages);
        observer.underway = tickets.map(|ticket| self.underway(ticket));
        let result = engine.run(&task, links, &self.health.stop, send.timeout, &mut observer);
        let result = result.map_err(|fault| self.missed(fault, messages, send.timeout).error);
        messages.iter().for_each(|message| self.health.end(message));
        self.counters.moved(engine.moved());
        self.counters.succeeded(2 * u64::from(result.is_ok()));
        let (sent, received) = engine.moved();
        let moved = [(sent, 0), (0, received)];
        for ((mut underway, moved), message) in observer.underway.into_iter().zip(moved).zip(messages) {
            underway.moved(moved);
            self.trace_message(underway, message, &result);
        }
        result
    }
}
