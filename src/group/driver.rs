//! One thread that drives many operations: in each queue one at a time, and those of all queues together, so that
//! none holds up another.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Group;
use super::calls::{Call, Entered, Message};
use super::collective::Collective;
use super::collectives::named;
use super::delivery::Delivery;
use super::operation::Operation;
use super::request::Reply;
use super::stats::Busy;
use super::turns::Ticket;
use crate::engine::{Clock, Due, Fault, Turn, Waking};
use crate::error::{Error, Result, Status};
use crate::sys::{self, Interest, PollEntry, Wake};
use crate::wire::Kind;

/// While the roll of a deadline is waited for, its answers are looked for this often: they come to the watcher.
const ROLL_LOOK: Duration = Duration::from_millis(10);
/// Where the system can't poll for want of memory, the links are looked at this often.
const PAUSE: Duration = Duration::from_millis(10);

/// What a call asks for, with checked arguments.
pub enum Work<'a> {
    Collective(Call<'a>),
    Message {
        message: Message<'a>,
        sends: bool,
        /// Whether no thread of the caller's is blocked in it.
        is_request: bool,
    },
}

impl Work<'_> {
    fn kind(&self) -> Kind {
        match self {
            Work::Collective(call) => call.kind,
            Work::Message { .. } => Kind::Message,
        }
    }
}

/// A call that waits for its turn.
pub struct Pending<'a> {
    pub work: Work<'a>,
    pub ticket: Ticket,
    pub timeout: Option<Duration>,
    pub reply: Reply,
    /// Keeps the group from being destroyed around it; None where its caller does.
    pub entered: Option<Entered>,
}

/// The calls of one queue, in the order of their numbers.
struct Queue<'a> {
    waiting: VecDeque<Pending<'a>>,
    running: Option<Running<'a>>,
}

/// An operation under way.
struct Running<'a> {
    /// Of a request, whose time no call of the host program's counts.
    busy: Option<Busy<'a>>,
    operation: Box<dyn Operation + 'a>,
    clock: Clock,
    /// Since when the others' word at its deadline is waited for.
    hearing: Option<Instant>,
    moved: bool,
    ticket: Ticket,
    reply: Reply,
    entered: Option<Entered>,
}

/// Drives operations of a group.
pub struct Driver<'a> {
    group: &'a Group,
    bell: Arc<Wake>,
    queues: Vec<Queue<'a>>,
    entries: Vec<PollEntry>,
}

impl<'a> Driver<'a> {
    /// One with a bell of its own.
    pub fn new(group: &'a Group) -> io::Result<Driver<'a>> {
        Ok(Driver::with_bell(group, Arc::new(Wake::new()?)))
    }

    /// One that the bell wakes.
    pub fn with_bell(group: &'a Group, bell: Arc<Wake>) -> Driver<'a> {
        Driver { group, bell, queues: Vec::new(), entries: Vec::new() }
    }

    /// Takes in a call. Those of one queue come in the order of their numbers.
    pub fn add(&mut self, pending: Pending<'a>) {
        let is_of = |queue: &Queue<'_>| queue.ticket().is_some_and(|ticket| ticket.is_of(&pending.ticket));
        let i = self.queues.iter().position(is_of).unwrap_or_else(|| {
            self.queues.push(Queue { waiting: VecDeque::new(), running: None });
            self.queues.len() - 1
        });
        self.queues[i].waiting.push_back(pending);
    }

    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        self.queues.is_empty()
    }

    /// Runs what it has to the end.
    pub fn run(&mut self, waking: &mut Waking) {
        let mut idle_since = None;
        while !self.is_idle() {
            if let Some(limit) = self.step(waking, &mut idle_since) {
                self.sleep(limit);
            }
        }
    }

    /// Moves what can be moved now. If that is nothing, gives up the core, and says how long to sleep at most once
    /// nothing has moved for a while; `idle_since` is kept from step to step.
    pub fn step(
        &mut self,
        waking: &mut Waking,
        idle_since: &mut Option<Instant>,
    ) -> Option<Option<Duration>> {
        let moved = self.turn();
        let now = if moved { Instant::now() } else { waking.missed() };
        let limit = self.look_at_clocks(now);
        if moved {
            waking.moved();
            *idle_since = None;
            return None;
        }
        let idle = now - *idle_since.get_or_insert(now);
        let is_due = limit == Some(Duration::ZERO);
        (!is_due && !waking.stays_awake(idle)).then_some(limit)
    }

    /// Gives every operation its turn; whether anything moved, began or ended.
    fn turn(&mut self) -> bool {
        let is_over = self.group.health.stop.is_raised() || self.group.failure().is_some();
        let mut moved = false;
        for queue in &mut self.queues {
            moved |= queue.begin(self.group, &self.bell, is_over);
            let Some(running) = &mut queue.running else { continue };
            let ended = match running.operation.turn() {
                Ok(Turn::Done) => Ok(()),
                Err(fault) => Err(fault),
                // It has had this turn: what had arrived before the end is not lost.
                Ok(_) if self.group.health.stop.is_raised() => Err(Fault::Stopped),
                Ok(turn) => {
                    running.moved = turn == Turn::Moved;
                    moved |= running.moved;
                    continue;
                }
            };
            queue.end(self.group, ended);
            moved = true;
        }
        self.queues.retain(|queue| queue.ticket().is_some());
        moved
    }

    /// Sees to what is due where nothing has moved; for how long nothing will be.
    fn look_at_clocks(&mut self, now: Instant) -> Option<Duration> {
        let mut limit: Option<Duration> = None;
        for queue in &mut self.queues {
            let Some(running) = &mut queue.running else { continue };
            if std::mem::take(&mut running.moved) {
                running.clock.moved();
                running.hearing = None;
                continue;
            }
            let wait = match running.due(self.group, now) {
                Due::Nothing(wait) => wait,
                Due::GiveUp => {
                    let fault = running.operation.stalled();
                    queue.end(self.group, Err(fault));
                    Some(Duration::ZERO)
                }
                Due::CallRoll | Due::Warn(_) | Due::Consult => Some(Duration::ZERO),
            };
            limit = limit.into_iter().chain(wait).min();
        }
        limit
    }

    /// Sleeps until a link is ready, the bell rings, the group is stopped or `limit` is over.
    pub fn sleep(&mut self, limit: Option<Duration>) {
        let read = Interest { read: true, write: false };
        let Driver { group, bell, queues, entries } = self;
        entries.clear();
        entries.push(PollEntry::new(bell.descriptor(), read));
        entries.push(PollEntry::new(group.health.stop.descriptor(), read));
        let mut limit = limit;
        for running in queues.iter_mut().filter_map(|queue| queue.running.as_mut()) {
            running.operation.sleeps();
            limit = limit.into_iter().chain(running.operation.waits(entries)).min();
        }
        let since = Instant::now();
        if sys::poll(entries, limit).is_err() {
            std::thread::sleep(PAUSE);
        }
        let slept = since.elapsed();
        if entries[0].is_ready() {
            bell.clear();
        }
        for running in queues.iter_mut().filter_map(|queue| queue.running.as_mut()) {
            running.operation.woke(slept);
        }
    }

    /// Ends everything by a failure that has let go of the operations' links.
    pub fn abandon(&mut self, error: &Error) {
        for queue in self.queues.drain(..) {
            let Queue { waiting, running } = queue;
            let running = running.map(|Running { operation, ticket, reply, entered, .. }| {
                drop(operation);
                (ticket, reply, entered)
            });
            let waiting = waiting.into_iter().map(|pending| (pending.ticket, pending.reply, pending.entered));
            for (ticket, reply, entered) in running.into_iter().chain(waiting) {
                reply.done(Err(error.clone()));
                drop(ticket);
                drop(entered);
            }
        }
    }
}

impl<'a> Queue<'a> {
    /// Of the call that is first; None where there is none.
    fn ticket(&self) -> Option<&Ticket> {
        let waiting = self.waiting.front().map(|pending| &pending.ticket);
        self.running.as_ref().map(|running| &running.ticket).or(waiting)
    }

    /// Begins the next call if its turn has come, or ends it where there is nothing left to run on; whether
    /// anything has changed.
    fn begin(&mut self, group: &'a Group, bell: &Arc<Wake>, is_over: bool) -> bool {
        let mut changed = false;
        while self.running.is_none()
            && self.waiting.front_mut().is_some_and(|next| is_over || next.ticket.is_next_or_rings(bell))
            && let Some(pending) = self.waiting.pop_front()
        {
            changed = true;
            let Pending { work, ticket, timeout, reply, entered } = pending;
            let busy = entered.is_some().then(|| group.counters.busy());
            let mut clock = Clock::default();
            clock.start(timeout, group.stall_warning);
            match operation(group, work, &ticket, timeout) {
                Ok(operation) => {
                    let (hearing, moved) = (None, false);
                    self.running =
                        Some(Running { busy, operation, clock, hearing, moved, ticket, reply, entered });
                }
                Err(error) => release(group, ticket, reply, entered, Err(error)),
            }
        }
        changed
    }

    fn end(&mut self, group: &Group, result: std::result::Result<(), Fault>) {
        if let Some(Running { busy, operation, ticket, reply, entered, .. }) = self.running.take() {
            let result = operation.finish(result);
            drop(busy);
            release(group, ticket, reply, entered, result);
        }
    }
}

impl Running<'_> {
    /// What is due; where others are to be asked, they have been.
    fn due(&mut self, group: &Group, now: Instant) -> Due {
        if let Some(since) = self.hearing {
            let left = group.health.hear(since);
            if !left.is_zero() {
                return Due::Nothing(Some(left.min(ROLL_LOOK)));
            }
            self.hearing = None;
            return Due::Consult;
        }
        let due = self.clock.missed(now);
        match due {
            Due::CallRoll => {
                self.operation.sleeps();
                group.health.call_roll();
            }
            Due::Warn(standstill) => {
                self.operation.sleeps();
                let again = self.operation.warn(&standstill);
                self.clock.warned(&standstill, again);
            }
            Due::Consult => self.hearing = Some(now),
            Due::Nothing(_) | Due::GiveUp => {}
        }
        due
    }
}

/// Begins a call whose turn has come, if the group is well.
fn operation<'a>(
    group: &'a Group,
    work: Work<'a>,
    ticket: &Ticket,
    timeout: Option<Duration>,
) -> Result<Box<dyn Operation + 'a>> {
    group.check_health()?;
    if group.health.stop.is_raised() {
        let error = Error::new(Status::Aborted, "this rank destroyed the group before the call had its turn");
        let kind = work.kind();
        return Err(named(kind, ticket.number, error.at_rank(group.rank())));
    }
    Ok(match work {
        Work::Collective(call) => {
            let mut collective = Collective::begin(group, call, ticket, timeout)?;
            collective.start();
            Box::new(collective)
        }
        Work::Message { message, sends, is_request } => {
            let half = group.half(message, sends, timeout)?;
            Box::new(Delivery::begin(group, half, ticket, is_request)?)
        }
    })
}

/// A call is over: whoever waits for it is told, and the next one has its turn.
fn release(group: &Group, ticket: Ticket, reply: Reply, entered: Option<Entered>, result: Result<()>) {
    // Before the host program hears of a failure, and may exit.
    group.leave();
    reply.done(result);
    drop(ticket);
    drop(entered);
}
