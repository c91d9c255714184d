//! Forms a ring: listens, connects and shakes hands at the same time, until all links stand or
//! the deadline has come.

use std::time::{Duration, Instant};

use crate::bootstrap::claims::{Claims, LinkName};
use crate::bootstrap::config::Config;
use crate::bootstrap::dial::Dial;
use crate::bootstrap::listen::Listening;
use crate::bootstrap::visitors::Visitors;
use crate::bootstrap::{Connection, Neighbour, Ring};
use crate::error::{Error, Result, Status};
use crate::link::Link;
use crate::memory::Region;
use crate::sys::{self, Interest, PollEntry};
use crate::wire::{Frame, LinkKind};

/// The longest sleep: a look-up's answer has no descriptor to wake the loop.
const TURN: Duration = Duration::from_millis(50);

/// Connects this rank with its two neighbours. The ring has two ranks or more.
pub fn form(config: &Config) -> Result<Ring> {
    let nonce = sys::random().map_err(|error| system("drawing random bytes", &error))?;
    let mut forming = Forming::new(config, Claims::new(config, nonce));
    let formed = forming.run().and_then(|()| forming.ring());
    if let Err(error) = &formed {
        forming.tell(error);
    }
    formed
}

fn system(what: &str, error: &std::io::Error) -> Error {
    Error::new(Status::System, format!("{what}: {}", crate::error::os_words(error))).with_os(error)
}

struct Forming<'c> {
    config: &'c Config,
    claims: Claims,
    right: usize,
    left: usize,
    deadline: Option<Instant>,
    listening: Vec<Listening>,
    visitors: Visitors,
    dials: Vec<Dial>,
}

impl Forming<'_> {
    fn new(config: &Config, claims: Claims) -> Forming<'_> {
        let now = Instant::now();
        let size = config.entries.len();
        let (right, left) = ((config.rank + 1) % size, (config.rank + size - 1) % size);
        let listening = config.entries[config.rank].iter().map(|a| Listening::new(a, now)).collect();
        // Control and messages go by the first address, lanes by all.
        let address = |(kind, lane): LinkName| match kind {
            LinkKind::Lane => &config.entries[right][usize::from(lane) / config.connections],
            _ => &config.entries[right][0],
        };
        let dials = claims.links().map(|link| Dial::new(link, right, address(link), now)).collect();
        let visitors = Visitors::new(claims.clone(), left);
        let deadline = config.connect_timeout.and_then(|timeout| now.checked_add(timeout));
        Forming { config, claims, right, left, deadline, listening, visitors, dials }
    }

    fn run(&mut self) -> Result<()> {
        loop {
            let now = Instant::now();
            for listening in &mut self.listening {
                listening.progress(now)?;
                for socket in &listening.sockets {
                    self.visitors.accept(socket)?;
                }
            }
            self.visitors.progress()?;
            // A rank whose port another process has may be the same rank twice: only the one that
            // listens goes on. The first dial is the control link: while it fails, the others would.
            let listens = self.listening.iter().all(Listening::is_listening);
            for i in 0..self.dials.len() {
                if listens && (i == 0 || self.dials[0].is_done()) {
                    self.dials[i].progress(&self.claims, now)?;
                }
            }
            if self.dials.iter().all(Dial::is_done) && self.visitors.is_complete() {
                return Ok(());
            }
            self.visitors.forget_ended();
            if self.dials[0].has_ended() {
                self.dials.iter_mut().for_each(|dial| dial.again(now));
            }
            if self.deadline.is_some_and(|deadline| now >= deadline) {
                return Err(self.too_late());
            }
            self.sleep(now)?;
        }
    }

    fn sleep(&self, now: Instant) -> Result<()> {
        let read = Interest { read: true, write: false };
        let mut entries = Vec::new();
        let mut add = |connection: &Connection, interest| {
            entries.push(PollEntry::new(connection.descriptor(), interest));
        };
        self.listening.iter().flat_map(|l| &l.sockets).for_each(|c| add(c, read));
        self.visitors.connections().for_each(|c| add(c, read));
        let active = if self.dials[0].is_done() { &self.dials[..] } else { &self.dials[..1] };
        let ends = active.iter().filter_map(|dial| dial.waits(&mut add)).chain(self.deadline);
        let next = ends.filter(|end| *end > now).min().map_or(TURN, |end| (end - now).min(TURN));
        sys::poll(&mut entries, Some(next)).map_err(|error| system("waiting for peers", &error))?;
        Ok(())
    }

    fn too_late(&self) -> Error {
        if let Some(deaf) = self.listening.iter().find(|l| !l.is_listening()) {
            return deaf.error();
        }
        let mut missing = Vec::new();
        let mut os_error = 0;
        let mut rank = None;
        let late: Vec<_> = self.dials.iter().filter(|dial| !dial.is_done()).collect();
        if let Some(dial) = late.first() {
            let (trouble, code) = dial.trouble();
            missing.push(format!("rank {} (right neighbour) could not be reached at {trouble}", self.right));
            (os_error, rank) = (code, Some(self.right));
        }
        if !self.visitors.is_complete() {
            let own: Vec<_> = self.config.entries[self.config.rank].iter().map(|a| a.to_string()).collect();
            missing.push(format!(
                "rank {} (left neighbour) has not connected to {}",
                self.left,
                own.join(", ")
            ));
            rank = rank.or(Some(self.left));
        }
        let impostor = self.visitors.impostor();
        let status = if impostor.is_some() { Status::AuthFailed } else { Status::ConnectFailed };
        if let Some(impostor) = impostor {
            missing.push(impostor);
            rank = Some(self.left);
        }
        if self.visitors.strangers() > 0 {
            missing.push(format!("connections refused that were no peer's: {}", self.visitors.strangers()));
        }
        let waited = self.config.connect_timeout.unwrap_or_default();
        let text = format!("the ring did not form within {} ms: {}", waited.as_millis(), missing.join("; "));
        Error { rank, os_error, ..Error::new(status, text) }
    }

    /// Turns the connections into the ring's links.
    fn ring(&mut self) -> Result<Ring> {
        let (mut dials, mut visitors) = (Vec::new(), Vec::new());
        for dial in &mut self.dials {
            dials.extend(dial.take().map(|connection| (dial.link(), connection)));
        }
        for link in self.claims.links() {
            visitors.extend(self.visitors.take(link).map(|connection| (link, connection)));
        }
        // The connector names a message link by its own view.
        let right = neighbour(self.right, dials, LinkKind::MessageOut, LinkKind::MessageIn)?;
        let left = neighbour(self.left, visitors, LinkKind::MessageIn, LinkKind::MessageOut)?;
        Ok(Ring { right, left })
    }

    /// Tells the peers that are connected already why this rank gives up.
    fn tell(&mut self, error: &Error) {
        let control = (LinkKind::Control, 0);
        let visitor = self.visitors.take(control);
        let dialled = self.dials[0].take();
        for connection in [visitor, dialled].into_iter().flatten() {
            let frame = Frame::record(error, self.config.rank);
            if let Ok(mut link) = connection.into_link() {
                let _ = link.send(&[Region::from_slice(&mut frame.encode())]);
                link.finish();
            }
        }
    }
}

fn neighbour(
    rank: usize,
    connections: Vec<(LinkName, Connection)>,
    out: LinkKind,
    into: LinkKind,
) -> Result<Neighbour> {
    let taken_over = |error| system("taking over a connection", &error);
    let mut address = None;
    let (mut control, mut message_out, mut message_in) = (None, None, None);
    let mut lanes = Vec::new();
    for ((kind, lane), connection) in connections {
        address.get_or_insert(connection.address);
        let link = connection.into_link().map_err(taken_over)?;
        match kind {
            LinkKind::Control => control = Some(link),
            LinkKind::Lane => lanes.push((lane, link)),
            kind if kind == out => message_out = Some(link),
            kind if kind == into => message_in = Some(link),
            _ => {}
        }
    }
    lanes.sort_by_key(|(lane, _)| *lane);
    let lanes = lanes.into_iter().map(|(_, link)| link).collect();
    match (address, control, message_out, message_in) {
        (Some(address), Some(control), Some(message_out), Some(message_in)) => {
            Ok(Neighbour { rank, address, lanes, control, message_out, message_in })
        }
        _ => Err(Error::new(Status::Internal, "an edge of the ring lacks a link")),
    }
}
