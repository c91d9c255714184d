//! Forms a ring: listens, connects, shakes hands and gossips at the same time, until all ranks have
//! said that they know the whole ring, or the deadline has come.
//!
//! Who gives up tells its neighbours, and everyone passes that on once. What that means to a rank
//! that hears of it:
//!
//! - CONNECT_FAILED or AUTH_FAILED is a conflict: claims that differ, two processes of one rank, a peer
//!   that is none. It stays until somebody changes a configuration, so that every rank fails with it
//!   at once, or once the neighbours that are about to connect have come to hear of it.
//! - Any other status (TIMEOUT stands for the sender's connect timeout) is the sender's own: its next run
//!   may come, and is waited for, as for one that has ended without a word.
//! - A rank that has confirmed waits for nobody's next run, which would be of another ring: each
//!   record, each end and each change fails it, and it says so as of a conflict.

use std::time::{Duration, Instant};

use crate::bootstrap::claims::{Claims, LinkName};
use crate::bootstrap::config::Config;
use crate::bootstrap::control::{self, Control};
use crate::bootstrap::dial::Dial;
use crate::bootstrap::door::Door;
use crate::bootstrap::gossip::{Gaps, Gossip, LEFT, RIGHT};
use crate::bootstrap::last_word::is_conflict;
use crate::bootstrap::listen::Listening;
use crate::bootstrap::rendezvous::{self, Met};
use crate::bootstrap::visitors::Visitors;
use crate::bootstrap::{Connection, Neighbour, Ring};
use crate::error::{Error, Result, Status};
use crate::sys::{self, PollEntry};
use crate::wire::{Frame, LinkKind, Member};

/// The longest sleep: a look-up's answer has no descriptor to wake the loop.
const TURN: Duration = Duration::from_millis(50);
/// Without a job id a rank confirms no earlier than this after it began to listen: the ranks of
/// another job that shares the hostfile and starts at the same time have found their ports taken,
/// and said so, before any number is computed.
const HOLD: Duration = Duration::from_millis(200);

/// Connects this rank with its two neighbours. The ring has two ranks or more.
pub fn form(config: &Config) -> Result<Ring> {
    let begun = Instant::now();
    let nonce = sys::random().map_err(|error| Error::system("drawing random bytes", &error))?;
    let claims = Claims::new(config, nonce);
    let deadline = config.connect_timeout.and_then(|timeout| begun.checked_add(timeout));
    let Some(at) = &config.rendezvous else {
        let listening = config.entries[config.rank].iter().map(Listening::new).collect();
        let visitors = Visitors::new(claims.clone(), neighbours(config).1);
        return Forming::new(config, claims, deadline, listening, visitors).form();
    };
    let Met { config, listening, listens_since, visitors } = rendezvous::meet(config, at, &claims, deadline)?;
    let mut forming = Forming::new(&config, claims, deadline, listening, visitors);
    forming.listens_since = Some(listens_since);
    forming.form()
}

/// The ranks to the right and to the left.
fn neighbours(config: &Config) -> (usize, usize) {
    let size = config.entries.len();
    ((config.rank + 1) % size, (config.rank + size - 1) % size)
}

pub(super) struct Forming<'c> {
    pub(super) config: &'c Config,
    pub(super) claims: Claims,
    pub(super) right: usize,
    pub(super) left: usize,
    pub(super) deadline: Option<Instant>,
    pub(super) listening: Vec<Listening>,
    listens_since: Option<Instant>,
    pub(super) visitors: Visitors,
    pub(super) dials: Vec<Dial>,
    /// The control link to the right; visitors hold that to the left.
    pub(super) control: Option<Control>,
    pub(super) gossip: Gossip,
    /// What was missing when a rank gave up at its timeout: its end, and that of others behind it,
    /// would look like the cause of what it only followed from.
    pub(super) before: Option<Before>,
    /// A record that has failed this rank's forming, as it is passed on.
    heard: Option<Frame>,
    pub(super) is_late: bool,
}

/// What a rank lacked when another gave up.
pub(super) struct Before {
    pub gaps: Gaps,
    /// Neighbours that are there, but lack links, in words.
    pub late_links: Vec<(usize, String)>,
    /// Why the other gave up.
    pub first: Error,
}

impl Forming<'_> {
    fn new(
        config: &Config,
        claims: Claims,
        deadline: Option<Instant>,
        listening: Vec<Listening>,
        visitors: Visitors,
    ) -> Forming<'_> {
        let now = Instant::now();
        let size = config.entries.len();
        let (right, left) = neighbours(config);
        // Control and messages go by the first address, lanes by all.
        let address = |(kind, lane): LinkName| match kind {
            LinkKind::Lane => &config.entries[right][usize::from(lane) / config.connections],
            _ => &config.entries[right][0],
        };
        let dials = claims.links().map(|link| Dial::new(link, right, address(link), now)).collect();
        let own = Member {
            rank: config.rank as u32,
            nonce: claims.nonce,
            boot_id: sys::boot_id(),
            cpus: std::thread::available_parallelism().map_or(0, |cpus| cpus.get() as u32),
            ..Member::default()
        };
        Forming {
            config,
            claims,
            right,
            left,
            deadline,
            listening,
            listens_since: None,
            visitors,
            dials,
            control: None,
            gossip: Gossip::new(own, size),
            before: None,
            heard: None,
            is_late: false,
        }
    }

    fn form(mut self) -> Result<Ring> {
        let formed = match self.run() {
            Ok(group) => self.ring(group),
            Err(error) => Err(error),
        };
        if let Err(error) = &formed {
            self.await_neighbours(error);
            self.part(error);
        }
        formed
    }

    /// The group's id, once every rank has confirmed it.
    fn run(&mut self) -> Result<[u8; 16]> {
        loop {
            let now = Instant::now();
            for listening in &mut self.listening {
                listening.progress(Some(&self.claims), now)?;
                for socket in &listening.sockets {
                    self.visitors.accept(socket, now)?;
                }
            }
            self.visitors.progress(now)?;
            self.dial(now)?;
            self.exchange(now)?;
            self.confirm(now);
            if let Some(group) = self.gossip.agreed()
                && self.controls().iter().all(|control| control.is_flushed())
            {
                return Ok(group);
            }
            if self.deadline.is_some_and(|deadline| now >= deadline) {
                self.is_late = true;
                return Err(self.too_late());
            }
            self.sleep(now)?;
        }
    }

    pub(super) fn dial(&mut self, now: Instant) -> Result<()> {
        // A rank whose port another process has may be the same rank twice: only the one that
        // listens goes on. The first dial is the control link: while it fails, the others would.
        if !self.listening.iter().all(Listening::is_listening) {
            return Ok(());
        }
        self.listens_since.get_or_insert(now);
        for i in 0..self.dials.len() {
            if i > 0 && !self.dials[0].is_done() {
                break;
            }
            if let Err(error) = self.dials[i].progress(&self.claims, now) {
                // Descriptors that strangers hold are there for the ring's own links.
                if error.status != Status::System || !self.visitors.shed() {
                    return Err(error);
                }
                self.dials[i].again(now);
            }
        }
        if let Some(connection) = self.dials[0].take() {
            let nonce = self.dials[0].answer().map_or([0; 16], |peer| peer.nonce);
            let taken = Control::new(connection, nonce);
            self.control = Some(taken.map_err(|error| Error::system("taking over a connection", &error))?);
        }
        Ok(())
    }

    fn controls(&mut self) -> Vec<&mut Control> {
        self.control.iter_mut().chain(&mut self.visitors.control).collect()
    }

    /// Tells both sides.
    fn flood(&mut self, frame: Option<Frame>) {
        if let Some(frame) = frame {
            self.controls().into_iter().for_each(|control| control.tell(&frame));
        }
    }

    fn side(&mut self, side: usize) -> &mut Option<Control> {
        if side == RIGHT { &mut self.control } else { &mut self.visitors.control }
    }

    /// Tells and hears what there is, and notes who is connected.
    fn exchange(&mut self, now: Instant) -> Result<()> {
        for side in [RIGHT, LEFT] {
            self.introduce(side);
            // Once all ranks have agreed, what follows is the running group's, its goodbye and end too.
            while self.gossip.agreed().is_none() {
                match self.side(side).as_mut().and_then(Control::next) {
                    Some(frame) => self.hear(side, frame)?,
                    None => break,
                }
            }
        }
        self.controls().into_iter().for_each(Control::flush);
        if self.gossip.agreed().is_some() {
            return Ok(());
        }
        if self.control.as_ref().is_some_and(Control::has_ended) {
            self.control = None;
            self.dials.iter_mut().for_each(|dial| dial.again(now));
        }
        self.visitors.forget_ended();
        for side in [RIGHT, LEFT] {
            let nonce = self.side(side).as_ref().map(|control| control.nonce);
            let news = self.gossip.connected(side, nonce);
            self.flood(news);
        }
        if let Some(address) = self.dials[0].first_address(now) {
            let news = self.gossip.looks_at(address);
            self.flood(news);
        }
        let Some(rank) = self.gossip.broken() else { return Ok(()) };
        let text = format!("rank {rank} has ended, or lost a neighbour, just before the ring had formed");
        Err(Error::new(Status::ConnectFailed, text).at_rank(rank))
    }

    /// Tells a new neighbour all that is known.
    fn introduce(&mut self, side: usize) {
        if self.side(side).as_ref().is_none_or(|control| control.is_introduced) {
            return;
        }
        let known = self.gossip.everything();
        if let Some(control) = self.side(side) {
            known.iter().for_each(|frame| control.tell(frame));
            control.is_introduced = true;
        }
    }

    /// Takes in what came from a side, and passes on what is news.
    fn hear(&mut self, side: usize, frame: Frame) -> Result<()> {
        let other = if side == RIGHT { LEFT } else { RIGHT };
        match frame {
            Frame::Known(_) | Frame::Confirmed { .. } => {
                if self.gossip.is_newcomer(&frame) {
                    self.before = None;
                }
                if self.gossip.hear(&frame)
                    && let Some(control) = self.side(other)
                {
                    control.tell(&frame);
                }
                Ok(())
            }
            Frame::Record(error) => self.hear_record(other, error),
            // Of a running group, which can't be this one's before this rank has confirmed.
            _ => Ok(()),
        }
    }

    fn hear_record(&mut self, other: usize, error: Error) -> Result<()> {
        let frame = Frame::Record(error.clone());
        let teller = error.detected_by.map_or("a rank".to_owned(), |rank| format!("rank {rank}"));
        let is_conflict = is_conflict(&error);
        if is_conflict || self.gossip.has_confirmed() {
            let status = if is_conflict { error.status } else { Status::ConnectFailed };
            let text = format!("{teller} could not form the ring: {}", error.text);
            self.heard = Some(frame);
            return Err(Error { status, text, ..error });
        }
        if self.before.is_none() {
            let (gaps, late_links) = (self.gossip.gaps(), self.late_links());
            self.before = Some(Before { gaps, late_links, first: error });
            if let Some(control) = self.side(other) {
                control.tell(&frame);
            }
        }
        Ok(())
    }

    /// When this rank may confirm at the earliest.
    fn held_until(&self) -> Option<Instant> {
        // A ring that has little time forms all the same.
        let longest = self.config.connect_timeout.map_or(HOLD, |timeout| HOLD.min(timeout / 2));
        let hold = if self.claims.has_job_id() { Duration::ZERO } else { longest };
        self.listens_since.map(|since| since + hold)
    }

    fn confirm(&mut self, now: Instant) {
        let stands =
            self.control.is_some() && self.dials.iter().all(Dial::is_done) && self.visitors.is_complete();
        if stands && self.held_until().is_some_and(|until| now >= until) {
            let word = self.gossip.confirm();
            self.flood(word);
        }
    }

    pub(super) fn sleep(&self, now: Instant) -> Result<()> {
        let mut entries = Vec::new();
        let mut add = |connection: &Connection, interest| {
            entries.push(PollEntry::new(connection.descriptor(), interest));
        };
        self.visitors.waits(self.listening.iter().flat_map(|l| &l.sockets), &mut add);
        let rivals: Vec<_> = self.listening.iter().filter_map(|l| l.waits(&mut add)).collect();
        let active = if self.dials[0].is_done() { &self.dials[..] } else { &self.dials[..1] };
        let dials: Vec<_> = active.iter().filter_map(|dial| dial.waits(&mut add)).collect();
        let controls = self.control.iter().chain(&self.visitors.control);
        entries.extend(controls.filter_map(Control::waits));
        let others = [self.deadline, self.held_until(), self.visitors.next_wake()];
        let ends = rivals.into_iter().chain(dials).chain(others.into_iter().flatten());
        let next = ends.filter(|end| *end > now).min().map_or(TURN, |end| (end - now).min(TURN));
        sys::poll(&mut entries, Some(next)).map_err(|error| Error::system("waiting for peers", &error))?;
        Ok(())
    }

    /// Turns the connections into the ring's links.
    fn ring(&mut self, group: [u8; 16]) -> Result<Ring> {
        let members = self.gossip.ring().ok_or_else(lacking)?.into_iter().cloned().collect();
        let (mut dials, mut visitors) = (Vec::new(), Vec::new());
        for dial in &mut self.dials {
            dials.extend(dial.take().map(|connection| (dial.link(), connection)));
        }
        for link in self.claims.links() {
            visitors.extend(self.visitors.take(link).map(|connection| (link, connection)));
        }
        let right = self.control.take().ok_or_else(lacking)?;
        let left = self.visitors.control.take().ok_or_else(lacking)?;
        // The connector names a message link by its own view.
        let right = neighbour(self.right, right, dials, LinkKind::MessageOut, LinkKind::MessageIn)?;
        let left = neighbour(self.left, left, visitors, LinkKind::MessageIn, LinkKind::MessageOut)?;
        let mut visitors = Visitors::new(self.claims.clone(), self.left);
        std::mem::swap(&mut visitors, &mut self.visitors);
        visitors.close(Instant::now());
        let listeners = self.listening.drain(..).flat_map(|listening| listening.sockets).collect();
        Ok(Ring { right, left, door: Door::new(listeners, visitors), group, members })
    }

    /// Tells the peers that are connected why this rank gives up.
    fn part(&mut self, error: &Error) {
        // To those who haven't confirmed a timeout is this rank's alone.
        let is_own = self.is_late && !self.gossip.has_confirmed();
        let status = if is_own { Status::Timeout } else { error.status };
        let own = Frame::record(&Error { status, ..error.clone() }, self.config.rank);
        let record = self.heard.take().unwrap_or(own);
        self.flood(Some(record));
        let controls = self.control.take().into_iter().chain(self.visitors.control.take());
        control::part(controls);
    }
}

fn lacking() -> Error {
    Error::new(Status::Internal, "an edge of the ring lacks a link")
}

fn neighbour(
    rank: usize,
    control: Control,
    connections: Vec<(LinkName, Connection)>,
    out: LinkKind,
    into: LinkKind,
) -> Result<Neighbour> {
    let taken_over = |error| Error::system("taking over a connection", &error);
    let (mut message_out, mut message_in) = (None, None);
    let mut lanes = Vec::new();
    for ((kind, lane), connection) in connections {
        let link = connection.into_link().map_err(taken_over)?;
        match kind {
            LinkKind::Lane => lanes.push((lane, link)),
            kind if kind == out => message_out = Some(link),
            kind if kind == into => message_in = Some(link),
            _ => {}
        }
    }
    lanes.sort_by_key(|(lane, _)| *lane);
    let lanes = lanes.into_iter().map(|(_, link)| link).collect();
    match (message_out, message_in) {
        (Some(message_out), Some(message_in)) => {
            let control = control.into_link();
            Ok(Neighbour { rank, lanes, control, message_out, message_in })
        }
        _ => Err(lacking()),
    }
}
