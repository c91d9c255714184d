//! Every other rank's side of a rendezvous.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Instant;

use crate::bootstrap::claims::Claims;
use crate::bootstrap::config::{Address, Config};
use crate::bootstrap::control::{self, Control};
use crate::bootstrap::dial::Dial;
use crate::bootstrap::last_word::is_conflict;
use crate::bootstrap::listen::Listening;
use crate::bootstrap::rendezvous::places::{entry, is_one_host};
use crate::bootstrap::rendezvous::{LINK, Met, late, nap};
use crate::bootstrap::too_late::ranks;
use crate::bootstrap::visitors::Visitors;
use crate::bootstrap::{Connection, printed};
use crate::error::{Error, Result, Status};
use crate::sys::{self, PollEntry};
use crate::wire::{Frame, Meeting, Place};

struct Guest<'c> {
    config: &'c Config,
    claims: &'c Claims,
    deadline: Option<Instant>,
    dial: Dial,
    host: Option<Connected>,
    listening: Option<(IpAddr, Listening)>,
    /// By rank, as far as they have been told.
    places: Vec<Option<Place>>,
    /// Ranks that rank 0 waits for: how many, and the first of them.
    absent: (usize, Vec<usize>),
    /// Why rank 0 has given up, at a timeout of its own.
    given_up: Option<Error>,
    is_late: bool,
}

/// To rank 0.
struct Connected {
    control: Control,
    /// This rank's address, and that of rank 0.
    own: SocketAddr,
    reached: SocketAddr,
}

pub fn meet(config: &Config, at: &Address, claims: &Claims, deadline: Option<Instant>) -> Result<Met> {
    let size = config.entries.len();
    let begun = Instant::now();
    let mut guest = Guest {
        config,
        claims,
        deadline,
        dial: Dial::new(LINK, 0, at, begun),
        host: None,
        listening: None,
        places: vec![None; size],
        absent: (0, Vec::new()),
        given_up: None,
        is_late: false,
    };
    match guest.run() {
        Ok(entries) => {
            let listening = guest.listening.into_iter().map(|(_, listening)| listening).collect();
            let visitors = Visitors::new(claims.clone(), config.rank - 1);
            let config = Config { entries, ..config.clone() };
            // No other job looks for its ranks at a port that the system chose: forming need not wait for any.
            Ok(Met { config, listening, listens_since: begun, visitors })
        }
        Err(error) => {
            guest.part(&error);
            Err(error)
        }
    }
}

impl Guest<'_> {
    /// Every rank's entry, once it is known.
    fn run(&mut self) -> Result<Vec<Vec<Address>>> {
        loop {
            let now = Instant::now();
            self.dial.progress(self.claims, now)?;
            if let Some(connection) = self.dial.take() {
                self.host = Some(
                    self.take_over(connection).map_err(|e| Error::system("taking over a connection", &e))?,
                );
            }
            while let Some(frame) = self.host.as_mut().and_then(|host| host.control.next()) {
                self.hear(frame)?;
            }
            if let Some(entries) = self.entries() {
                return Ok(entries);
            }
            if self.host.as_ref().is_some_and(|host| host.control.has_ended()) {
                // Its next run may come.
                self.host = None;
                self.places.fill(None);
                self.absent = (0, Vec::new());
                self.dial.again(now);
            }
            if self.deadline.is_some_and(|deadline| now >= deadline) {
                self.is_late = true;
                return Err(self.too_late());
            }
            self.sleep(now)?;
        }
    }

    fn take_over(&self, connection: Connection) -> std::io::Result<Connected> {
        let reached = connection.address;
        let own = connection.socket.local_addr()?.as_socket().ok_or(std::io::ErrorKind::Unsupported)?;
        let nonce = self.dial.answer().map_or([0; 16], |host| host.nonce);
        Ok(Connected { control: Control::new(connection, nonce)?, own, reached })
    }

    fn hear(&mut self, frame: Frame) -> Result<()> {
        match frame {
            Frame::Meeting(Meeting::Host { is_everywhere }) => self.listen(is_everywhere)?,
            Frame::Meeting(Meeting::Absent { count, ranks }) => {
                let others =
                    ranks.into_iter().map(|rank| rank as usize).filter(|rank| *rank != self.config.rank);
                self.absent = (count as usize, others.collect());
            }
            Frame::Meeting(Meeting::Places { first, places }) => {
                let known = self.places.iter_mut().skip(first as usize);
                known.zip(places).for_each(|(known, place)| *known = Some(place));
            }
            Frame::Record(error) if is_conflict(&error) => {
                let text = format!("rank 0 could not form the ring: {}", error.text);
                return Err(Error { text, ..error });
            }
            Frame::Record(error) => self.given_up = Some(error),
            _ => {}
        }
        Ok(())
    }

    /// Listens where the others will look for this rank, and says at which port.
    fn listen(&mut self, is_everywhere: bool) -> Result<()> {
        let Some(host) = &mut self.host else { return Ok(()) };
        // Others may reach rank 0's host at addresses that a rank beside it doesn't know of. Elsewhere, and where
        // there are no others, nobody can come to any address but this one.
        let mut at = host.own;
        if is_everywhere && is_one_host(at.ip(), host.reached.ip()) {
            at = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
        }
        if self.listening.as_ref().is_none_or(|(ip, _)| *ip != at.ip()) {
            let no_ipv6 = |_| Listening::anywhere(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0));
            let listening = match at.ip().is_unspecified() {
                true => Listening::anywhere(at).or_else(no_ipv6),
                false => Listening::anywhere(at),
            };
            self.listening = Some((at.ip(), listening?));
        }
        let port = self.listening.as_ref().map_or(0, |(_, listening)| listening.port());
        host.control.tell(&Frame::Meeting(Meeting::Listening { port }));
        Ok(())
    }

    fn entries(&self) -> Option<Vec<Vec<Address>>> {
        let reached = self.host.as_ref()?.reached;
        self.places.iter().map(|place| Some(vec![entry((*place)?, Some(reached))])).collect()
    }

    fn sleep(&self, now: Instant) -> Result<()> {
        let mut entries = Vec::new();
        let dial = self.dial.waits(&mut |connection, interest| {
            entries.push(PollEntry::new(connection.descriptor(), interest));
        });
        entries.extend(self.host.iter().filter_map(|host| host.control.waits()));
        let due = [dial, self.deadline].into_iter().flatten();
        sys::poll(&mut entries, Some(nap(due, now)))
            .map_err(|error| Error::system("waiting for rank 0", &error))?;
        Ok(())
    }

    fn too_late(&self) -> Error {
        let (count, absent) = &self.absent;
        let (mut rank, mut os_error) = (absent.first().copied(), 0);
        let mut parts = Vec::new();
        if let Some(error) = &self.given_up {
            parts.push(format!("rank 0 gave up: {}", error.text));
            rank = error.rank;
        } else if let Some(host) = &self.host {
            let at = printed(&host.reached);
            parts.push(match absent.len() {
                0 => format!("rank 0 at {at} has not told where the other ranks are"),
                named => {
                    let more = count.saturating_sub(named);
                    let more = if more > 1 { format!(" and {more} more") } else { String::new() };
                    let has = if named == 1 && more.is_empty() { "has" } else { "have" };
                    format!("{}{more} {has} not come to rank 0 at {at}", ranks(absent))
                }
            });
        } else {
            let (trouble, number) = self.dial.trouble();
            parts.push(format!("rank 0 could not be reached at {trouble}"));
            (rank, os_error) = (Some(0), number);
        }
        Error { rank, os_error, ..late(self.config, Status::ConnectFailed, &parts) }
    }

    /// Tells rank 0 why this rank gives up; a timeout is its own.
    fn part(&mut self, error: &Error) {
        let Some(Connected { mut control, .. }) = self.host.take() else { return };
        let status = if self.is_late { Status::Timeout } else { error.status };
        control.tell(&Frame::record(&Error { status, ..error.clone() }, self.config.rank));
        control::part([control].into_iter());
    }
}
