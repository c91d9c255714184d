//! Sends and receives between two ranks, on links of their own beside the collectives.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::calls::Message;
use super::failure::Running;
use super::turns::{Turn, Turns};
use super::{Group, lock, try_lock};
use crate::bootstrap::Deadline;
use crate::engine::{Engine, Fault, Observer, Route, Task, Traffic};
use crate::error::{Error, Result, Status};
use crate::link::{Arrival, ComingLink, Link};
use crate::memory::Region;
use crate::plan::{Buffer, Flow, Plan, Span};
use crate::sys;
use crate::watcher::Health;
use crate::wire::{self, CallHeader, Kind, LinkKind};

/// One direction to or from another rank.
#[derive(Default)]
struct Way {
    /// The link was made with the ring; others are made at first use.
    is_near: bool,
    turns: Turns,
    machine: Mutex<Machine>,
}

/// What one message at a time works with.
#[derive(Default)]
struct Machine {
    /// One link at most; a send_recv lends its second one for a call.
    links: Vec<Box<dyn Link>>,
    engine: Engine,
    plan: Plan,
    /// What the link is known to bring next, where the messages before it could not be sent.
    ahead: Option<CallHeader>,
}

/// All ways, by the peer's rank; each is made at first use.
pub struct Messages {
    out: Vec<OnceLock<Box<Way>>>,
    into: Vec<OnceLock<Box<Way>>>,
}

impl Messages {
    pub fn new(size: usize) -> Messages {
        let ways = || (0..size).map(|_| OnceLock::new()).collect();
        Messages { out: ways(), into: ways() }
    }

    /// Links to and from a neighbour.
    pub fn add(&mut self, rank: usize, out: Option<Box<dyn Link>>, into: Option<Box<dyn Link>>) {
        for (ways, link) in [(&mut self.out, out), (&mut self.into, into)] {
            if let (Some(way), Some(link)) = (ways.get_mut(rank), link) {
                *way = OnceLock::from(Box::new(Way::near(link)));
            }
        }
    }

    fn ways(&self) -> impl Iterator<Item = &Way> {
        self.out.iter().chain(&self.into).filter_map(|way| way.get()).map(Box::as_ref)
    }

    pub fn take_links(&self) -> Vec<Box<dyn Link>> {
        self.ways().flat_map(|way| std::mem::take(&mut lock(&way.machine).links)).collect()
    }

    /// The links that no call holds.
    pub fn take_idle_links(&self) -> Vec<Box<dyn Link>> {
        let idle = self.ways().filter_map(|way| try_lock(&way.machine));
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
    fn near(link: Box<dyn Link>) -> Way {
        let machine = Machine { links: vec![link], ..Machine::default() };
        Way { is_near: true, machine: Mutex::new(machine), ..Way::default() }
    }

    /// Whether the next message can move on it now, or at once when the peer comes.
    fn is_open(&self) -> bool {
        let open = |machine: &Machine| !machine.links.is_empty() && machine.ahead.is_none();
        self.is_near || try_lock(&self.machine).is_some_and(|machine| open(&machine))
    }
}

/// A message that has failed.
struct Missed {
    error: Error,
    what: What,
}

/// What is left of its way.
enum What {
    /// Nothing: the group has failed, or is being destroyed.
    Failed,
    /// There is no link; the next message makes one.
    NoLink,
    /// The link brings this later message.
    Later(Box<CallHeader>),
}

/// A message under way: its call and its direction's queue.
struct Half<'g, 'a> {
    message: Message<'a>,
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

    /// Finds the way of a message.
    fn half<'a>(&self, message: Message<'a>, sends: bool) -> Result<Half<'_, 'a>> {
        let ways = if sends { &self.messages.out } else { &self.messages.into };
        match ways.get(message.peer).filter(|_| message.peer != self.rank()) {
            Some(way) => Ok(Half { message, way: way.get_or_init(Box::default), sends }),
            None => {
                let text = format!("rank {} is no other rank of the group", message.peer);
                Err(Error::new(Status::InvalidArgument, text))
            }
        }
    }

    /// Both halves in one thread where both have their turn and their link now. Where one has to wait, the other
    /// must not, and goes on if there will be no link: it gets a thread for as long as the call lasts.
    fn exchange(&self, send: Half<'_, '_>, recv: Half<'_, '_>) -> Result<()> {
        let (send_turn, recv_turn) = (send.way.turns.try_take(), recv.way.turns.try_take());
        if let (Some(send_turn), Some(recv_turn)) = (&send_turn, &recv_turn)
            && send.way.is_open()
            && recv.way.is_open()
        {
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
            match (sent, received) {
                // A failure of the group goes before that of a link.
                (Err(error), Err(other)) if error.status == Status::ConnectFailed => Err(other),
                (sent, received) => sent.and(received),
            }
        })
    }

    fn one(&self, half: &Half<'_, '_>, turn: &Turn<'_>) -> Result<()> {
        let machine = &mut *lock(&half.way.machine);
        let header = half.header(turn);
        let message = half.told(header);
        machine.ahead = machine.ahead.filter(|ahead| ahead.sequence != header.sequence);
        if let Some(theirs) = machine.ahead {
            let fault = Fault::Differs { link: 0, ours: header, theirs };
            return Err(self.missed(fault, &[message], self.timeout()).error);
        }
        let arrival = match machine.links.is_empty() {
            true => Some(self.connect(half.way, &message)?),
            false => None,
        };
        if let Some(arrival) = &arrival {
            machine.links.push(Box::new(ComingLink::new(arrival.clone())));
        }
        let Machine { links, engine, plan, ahead } = machine;
        plan.clear();
        add(plan, engine, half, header, 0);
        let buffers = if half.sends {
            (half.message.buffer, Region::empty())
        } else {
            (Region::empty(), half.message.buffer)
        };
        let element = half.message.dtype.size();
        let result = self.drive(engine, plan, links, buffers, element, &[message], arrival.as_ref());
        result.map_err(|missed| {
            match missed.what {
                What::Failed => {}
                What::NoLink => links.clear(),
                What::Later(theirs) => *ahead = Some(*theirs),
            }
            missed.error
        })
    }

    /// What a fault of messages means. One that could not be sent is told to its receiver, whose call of the same
    /// number then fails, too; the group goes on.
    fn missed(&self, fault: Fault, messages: &[wire::Message], timeout: Option<Duration>) -> Missed {
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
    fn connect(&self, way: &Way, message: &wire::Message) -> Result<Arc<Arrival>> {
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
            true => reach.dial(link, peer, self.dial_deadline()),
            false => reach.await_link(link, peer),
        };
        arrival.map_err(|error| {
            let text = format!("{}, call {}: {}", message.header, message.header.sequence, error.text);
            self.health.fail(Error { sequence: message.header.sequence, text, ..error }.at_rank(self.rank()))
        })
    }

    /// The receiver waits as long as its own timeout for what the sender tries: it is to hear in time of a failure.
    fn dial_deadline(&self) -> Deadline {
        let limit = self.connect_limit();
        let health = self.health.clone();
        let has_answered = move |rank, since| health.has_answered(rank, since);
        Deadline::IfAlive(limit.and_then(|limit| Instant::now().checked_add(limit)), Box::new(has_answered))
    }

    fn both(&self, send: &Half<'_, '_>, out: &Turn<'_>, recv: &Half<'_, '_>, into: &Turn<'_>) -> Result<()> {
        // The order of these two locks matters to nobody: both turns are held.
        let machine = &mut *lock(&send.way.machine);
        let lent = &mut lock(&recv.way.machine).links;
        let Machine { links, engine, plan, .. } = machine;
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
        let messages = [send.told(send_header), recv.told(recv_header)];
        let result = self.drive(engine, plan, links, buffers, element, &messages, None);
        lent.extend(links.drain(1..));
        result.map_err(|missed| missed.error)
    }

    /// Runs messages, one a link. `arrival` is that of the first one's link, if it is to come.
    #[allow(clippy::too_many_arguments, reason = "the parts of a machine, borrowed apart")]
    fn drive(
        &self,
        engine: &mut Engine,
        plan: &Plan,
        links: &mut [Box<dyn Link>],
        (send, recv): (Region<'_>, Region<'_>),
        element: usize,
        messages: &[wire::Message],
        arrival: Option<&Arc<Arrival>>,
    ) -> std::result::Result<(), Missed> {
        let (scratch, sums) = (Region::empty(), Region::empty());
        let task = Task { plan, element, reduction: None, ranks: 2, send, recv, scratch, sums };
        let timeout = self.timeout();
        messages.iter().for_each(|message| self.health.begin(*message));
        if let Some(arrival) = arrival {
            self.health.expect(messages[0], arrival);
        }
        let mut observer = Watched(&self.health);
        let result = engine.run(&task, links, &self.health.stop, timeout, &mut observer);
        let result = result.map_err(|fault| self.missed(fault, messages, timeout));
        messages.iter().for_each(|message| self.health.end(message));
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
