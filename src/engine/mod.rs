//! Runs plans on links to their end: moves bytes, calls kernels, watches the clock and the stop
//! flag. One thread, the caller's, drives all passes of a call; nothing waits for a step to end.

mod clock;
mod course;
mod patience;
#[cfg(test)]
mod tests;

use std::io;
use std::time::Duration;

use crate::error::{Error, Status};
use crate::kernels::{self, Reduction, WIDE_BYTES};
use crate::link::Link;
use crate::memory::Region;
use crate::plan::{Buffer, Pass, Plan, Receipt, Span, Take};
use crate::sys::{self, Interest, PollEntry, Stop};
use crate::wire::CallHeader;

use course::{Course, Owed};
use patience::{Next, Patience};

pub use clock::{Clock, Due, Standstill};
pub use patience::Waking;

/// A sender that sleeps looks this often whether its link takes more: poll tells only when a third of the
/// system's buffer is free, and less is progress, too, from which the timeout counts.
const SEND_LOOK: Duration = Duration::from_millis(100);

/// The links that an engine drives, by index.
pub type Links = [Box<dyn Link>];

/// What a plan runs on: the caller's memory and the arithmetic.
pub struct Task<'a> {
    pub plan: &'a Plan,
    /// Bytes of an element.
    pub element: usize,
    /// None where nothing is reduced.
    pub reduction: Option<&'a Reduction<'a>>,
    /// Ranks whose values a chain holds at its end.
    pub ranks: usize,
    pub send: Region<'a>,
    pub recv: Region<'a>,
    pub scratch: Region<'a>,
    /// Memory of [`Buffer::Sums`].
    pub sums: Region<'a>,
}

impl<'a> Task<'a> {
    /// Bytes of an element of a span.
    fn width(&self, span: Span) -> usize {
        if span.buffer == Buffer::Sums { WIDE_BYTES } else { self.element }
    }

    /// Bytes of an element as it arrives.
    fn arriving_width(&self, receipt: &Receipt) -> usize {
        match receipt.take {
            Take::Copy => self.width(receipt.to),
            Take::Reduce { begins: false, .. } if self.plan.wide => WIDE_BYTES,
            Take::Reduce { .. } => self.element,
        }
    }

    /// The memory of a span.
    fn memory(&self, span: Span) -> Region<'a> {
        let buffer = match span.buffer {
            Buffer::Send => self.send,
            Buffer::Recv => self.recv,
            Buffer::Scratch => self.scratch,
            Buffer::Sums => self.sums,
        };
        let width = self.width(span);
        buffer.part(span.start * width, span.len * width)
    }

    /// A step of a chain: `to = own op received`.
    fn reduce(&self, to: Region<'_>, own: Region<'_>, received: Region<'_>, begins: bool, last: bool) {
        if let Some(reduction) = self.reduction {
            reduction.step(to, own, received, kernels::Turn { begins, last, ranks: self.ranks });
        }
    }
}

/// The links of one pass, and the call headers that travel ahead of its data.
pub struct Route {
    /// Index of the link to send on; None if the pass only receives.
    pub out: Option<usize>,
    /// Index of the link to receive on; None if the pass only sends.
    pub into: Option<usize>,
    /// Sent before the data.
    pub announce: Option<CallHeader>,
    /// Compared with what is received before the data.
    pub expect: Option<CallHeader>,
    /// The pass whose header, once accepted, opens this one's data: the same neighbour's.
    pub gate: usize,
    /// Where the pass receives no data it may end without its header; the next call compares it.
    pub may_owe: bool,
}

/// Why a call ended early.
#[derive(Debug)]
pub enum Fault {
    /// The peer ended the link, or the OS did.
    Ended { link: usize, error: io::Error },
    /// The link could not be made.
    Unreached { link: usize, error: Error },
    /// The peer makes another call, whose header is left in the link.
    Differs { link: usize, ours: CallHeader, theirs: CallHeader },
    /// Two ranks make calls that don't fit each other, as all ranks have learnt.
    Unequal { calls: Box<[(usize, CallHeader); 2]> },
    /// What should have been a header is none.
    Garbled { link: usize },
    /// Nothing moved for the whole timeout; the links that were waited for.
    Stalled { sending: Vec<usize>, receiving: Vec<usize> },
    /// The group failed or was destroyed meanwhile.
    Stopped,
    /// The OS refused to wait.
    System(io::Error),
    /// This rank could not go on.
    Refused(Error),
}

impl Fault {
    /// What a link's error means: a link to come says so where it could not be made.
    fn of(link: usize, error: io::Error) -> Fault {
        match error.downcast::<Error>() {
            Ok(error) => Fault::Unreached { link, error },
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                Fault::Refused(Error::new(Status::OutOfMemory, "no memory for one element that arrives"))
            }
            Err(error) => Fault::Ended { link, error },
        }
    }

    /// A link that it is about; the first where it is about none.
    pub fn link(&self) -> usize {
        match self {
            Fault::Ended { link, .. }
            | Fault::Unreached { link, .. }
            | Fault::Differs { link, .. }
            | Fault::Garbled { link } => *link,
            Fault::Stalled { sending, receiving } => {
                receiving.iter().chain(sending).copied().next().unwrap_or(0)
            }
            Fault::Unequal { .. } | Fault::Stopped | Fault::System(_) | Fault::Refused(_) => 0,
        }
    }
}

/// What came of a turn over all passes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Something moved.
    Moved,
    /// Nothing can be moved now.
    Idle,
    /// All passes have ended.
    Done,
}

/// What has gone over one link in a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes, headers included.
    pub sent: u64,
    /// Bytes, headers included.
    pub received: u64,
    /// Whether more is waited for.
    pub awaits: bool,
    /// Whether the link is to take more.
    pub sends: bool,
}

/// What the engine tells of a call that waits. Nothing is called before its first sleep.
pub trait Observer {
    /// The call goes to sleep.
    fn sleeps(&mut self, traffic: &[Traffic]);
    /// It has slept for so long.
    fn woke(&mut self, slept: Duration);
    /// Half the timeout is over without progress, or another second.
    fn call_roll(&mut self);
    /// A standstill for so long is worth a warning; None is for ever.
    fn warns_after(&self) -> Option<Duration>;
    /// It has lasted that long, and here it is as a deadline would find it: a [`Fault::Stalled`]. Returns after how
    /// long to ask again, if the warning has not been given.
    fn warn(&mut self, standstill: &Standstill, stalled: &Fault) -> Option<Duration>;
    /// The timeout is over; the links are looked at once more after this.
    fn consult(&mut self);
}

/// Drives the passes of one call at a time; keeps its memory between calls.
#[derive(Default)]
pub struct Engine {
    courses: Vec<Course>,
    entries: Vec<PollEntry>,
    /// By link.
    traffic: Vec<Traffic>,
    /// Bytes of the passes that have ended last.
    moved: (u64, u64),
    patience: Patience,
    owed: Owed,
}

impl Engine {
    /// Adds the next pass of the coming call, in the plan's order.
    pub fn route(&mut self, pass: &Pass, route: Route) {
        self.courses.push(Course::new(pass, route));
    }

    /// Runs the routed passes to their end: when this returns Ok, everything has been received and
    /// handed to the links, and every header was accepted that is not owed.
    pub fn run(
        &mut self,
        task: &Task<'_>,
        links: &mut Links,
        stop: &Stop,
        timeout: Option<Duration>,
        observer: &mut dyn Observer,
    ) -> Result<(), Fault> {
        self.begin(task);
        let result = self.drive(task, links, stop, timeout, observer);
        self.end(task, result.is_ok());
        result
    }

    /// Starts the routed passes.
    pub fn begin(&mut self, task: &Task<'_>) {
        debug_assert_eq!(self.courses.len(), task.plan.passes.len());
        for i in 0..self.courses.len() {
            if self.courses[i].may_owe() {
                let is_needed = self.courses.iter().any(|course| course.gate() == i && course.receives());
                self.courses[i].settle_owing(is_needed, &self.owed);
            }
        }
        for (from, to) in &task.plan.copies {
            task.memory(*to).copy_from(task.memory(*from));
        }
    }

    /// Moves what can be moved now.
    pub fn turn(&mut self, task: &Task<'_>, links: &mut Links) -> Result<Turn, Fault> {
        let (mut moved, mut running) = (false, false);
        for i in 0..self.courses.len() {
            let open = self.courses[self.courses[i].gate()].is_accepted();
            let course = &mut self.courses[i];
            if !course.is_done() {
                moved |= course.send(task, links)?;
                moved |= course.receive(task, links, &mut self.owed, open)?;
                running |= !course.is_done();
            }
        }
        Ok(match (running, moved) {
            (false, _) => Turn::Done,
            (true, true) => Turn::Moved,
            (true, false) => Turn::Idle,
        })
    }

    /// Ends the passes, and reduces what is reduced at the end if they have succeeded.
    pub fn end(&mut self, task: &Task<'_>, succeeded: bool) {
        if succeeded {
            self.courses.iter().for_each(|course| course.leave_owed(&mut self.owed));
        }
        let moved = self.courses.drain(..).map(|course| course.moved());
        self.moved = moved.fold((0, 0), |(sent, received), (s, r)| (sent + s, received + r));
        if succeeded {
            for fold in &task.plan.folds {
                let (to, own) = (task.memory(fold.to), task.memory(fold.own));
                let begins = fold.received.buffer != Buffer::Sums;
                task.reduce(to, own, task.memory(fold.received), begins, fold.last);
            }
        }
    }

    fn drive(
        &mut self,
        task: &Task<'_>,
        links: &mut Links,
        stop: &Stop,
        timeout: Option<Duration>,
        observer: &mut dyn Observer,
    ) -> Result<(), Fault> {
        self.patience.start(timeout, observer.warns_after());
        self.make_room(links);
        loop {
            if stop.is_raised() {
                return Err(Fault::Stopped);
            }
            match self.turn(task, links)? {
                Turn::Done => return Ok(()),
                Turn::Moved => {
                    self.patience.moved();
                    continue;
                }
                Turn::Idle => {}
            }
            let (next, now) = self.patience.missed();
            match next {
                Next::Retry => {}
                Next::Sleep(limit) => {
                    observer.sleeps(self.traffic(task, links));
                    self.sleep(task, links, stop, limit)?;
                    observer.woke(now.elapsed());
                }
                Next::CallRoll => {
                    observer.sleeps(self.traffic(task, links));
                    observer.call_roll();
                }
                Next::Warn(standstill) => {
                    observer.sleeps(self.traffic(task, links));
                    let again = observer.warn(&standstill, &self.stalled(task));
                    self.patience.warned(&standstill, again);
                }
                Next::Consult => observer.consult(),
                Next::GiveUp => return Err(self.stalled(task)),
            }
        }
    }

    /// Gets the memory for waiting before anything is waited for: in the first call, not in one that happens
    /// to be the first to sleep.
    fn make_room(&mut self, links: &Links) {
        let descriptors = 1 + 2 * self.courses.len();
        self.entries.clear();
        self.entries.reserve(descriptors);
        self.traffic.clear();
        self.traffic.reserve(links.len());
    }

    /// What has gone over the links so far, and what they are waited for.
    pub fn traffic(&mut self, task: &Task<'_>, links: &Links) -> &[Traffic] {
        self.traffic.clear();
        self.traffic.resize(links.len(), Traffic::default());
        for course in &self.courses {
            course.add_to(task, &mut self.traffic);
        }
        &self.traffic
    }

    /// Bytes that were sent and received in the passes that have ended last, headers included.
    pub fn moved(&self) -> (u64, u64) {
        self.moved
    }

    /// Sleeps until a link that is waited for is ready, the group is stopped or `limit` is over.
    fn sleep(
        &mut self,
        task: &Task<'_>,
        links: &Links,
        stop: &Stop,
        limit: Option<Duration>,
    ) -> Result<(), Fault> {
        let mut entries = std::mem::take(&mut self.entries);
        entries.clear();
        entries.push(PollEntry::new(stop.descriptor(), Interest { read: true, write: false }));
        let look = self.waits(task, links, &mut entries);
        let slept = sys::poll(&mut entries, limit.into_iter().chain(look).min());
        self.entries = entries;
        slept.map(|_| ()).map_err(Fault::System)
    }

    /// Adds what is waited for to what is polled; after how long to look again, though nothing is ready.
    pub fn waits(&self, task: &Task<'_>, links: &Links, entries: &mut Vec<PollEntry>) -> Option<Duration> {
        let (mut unwaitable, mut sending) = (false, false);
        let mut add = |link: usize, interest: Interest| match links[link].waits(interest) {
            Some(entry) => entries.push(entry),
            None => unwaitable = true,
        };
        for course in self.courses.iter().filter(|course| !course.is_done()) {
            if let Some(link) = course.wants_to_send(task) {
                add(link, Interest { read: false, write: true });
                sending = true;
            }
            if let Some(link) = course.wants_to_receive(task) {
                add(link, Interest { read: true, write: false });
            }
        }
        // A link in memory has nothing to poll: look again soon.
        if unwaitable { Some(Duration::ZERO) } else { sending.then_some(SEND_LOOK) }
    }

    /// What it means that nothing has moved for the whole timeout.
    pub fn stalled(&self, task: &Task<'_>) -> Fault {
        let running = || self.courses.iter().filter(|course| !course.is_done());
        Fault::Stalled {
            sending: running().filter_map(|course| course.wants_to_send(task)).collect(),
            receiving: running().filter_map(|course| course.wants_to_receive(task)).collect(),
        }
    }
}
