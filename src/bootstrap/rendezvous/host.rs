//! Rank 0's side of a rendezvous.

use std::time::Instant;

use crate::bootstrap::Connection;
use crate::bootstrap::claims::Claims;
use crate::bootstrap::config::Config;
use crate::bootstrap::control;
use crate::bootstrap::last_word::{MOMENT, is_conflict};
use crate::bootstrap::listen::Listening;
use crate::bootstrap::rendezvous::guests::Guests;
use crate::bootstrap::rendezvous::places::entry;
use crate::bootstrap::rendezvous::{Met, late, nap};
use crate::bootstrap::resolve::is_loopback;
use crate::bootstrap::too_late::ranks;
use crate::bootstrap::visitors::Visitors;
use crate::error::{Error, Result, Status, os_words};
use crate::sys::{self, PollEntry};
use crate::wire::{Frame, Place};

struct Host<'c> {
    config: &'c Config,
    claims: &'c Claims,
    deadline: Option<Instant>,
    listening: Listening,
    listens_since: Option<Instant>,
    visitors: Visitors,
    is_late: bool,
}

pub fn meet(config: &Config, claims: &Claims, deadline: Option<Instant>) -> Result<Met> {
    let size = config.entries.len();
    let mut visitors = Visitors::new(claims.clone(), size - 1);
    visitors.guests = Some(Guests::new(size, Instant::now()));
    let listening = Listening::new(&config.entries[0][0]);
    let mut host =
        Host { config, claims, deadline, listening, listens_since: None, visitors, is_late: false };
    match host.run() {
        Ok(places) => {
            let mut entries: Vec<_> = places.into_iter().map(|place| vec![entry(place, None)]).collect();
            entries[0] = config.entries[0].clone();
            let config = Config { entries, ..config.clone() };
            // Closing loses nothing that they were told: they have nothing more to say that could be unread.
            host.guests().take_controls();
            let listens_since = host.listens_since.unwrap_or_else(Instant::now);
            Ok(Met { config, listening: vec![host.listening], listens_since, visitors: host.visitors })
        }
        Err(error) => {
            host.part(&error);
            Err(error)
        }
    }
}

/// Most often this is what a wrong rendezvous looks like.
fn misplaced(error: Error) -> Error {
    if error.os_error != libc::EADDRNOTAVAIL {
        return error;
    }
    let text = format!("{} (a rendezvous is an address of rank 0's own host)", error.text);
    Error { text, ..error }
}

impl Host<'_> {
    /// Where all ranks are for rank 0, once all have been told.
    fn run(&mut self) -> Result<Vec<Place>> {
        let mut places: Option<Vec<Place>> = None;
        loop {
            let now = Instant::now();
            self.listening.progress(Some(self.claims), now).map_err(misplaced)?;
            if self.listening.is_listening() {
                self.listens_since.get_or_insert(now);
            }
            self.guests().is_everywhere = self.is_everywhere();
            self.receive(now)?;
            let port = self.config.entries[0][0].port;
            if places.is_none()
                && let Some(mut all) = self.guests().places(port)
            {
                self.guests().tell_places(&all);
                places = Some(all.swap_remove(0));
            }
            if self.guests().behind().is_empty()
                && let Some(places) = places.take()
            {
                return Ok(places);
            }
            if self.deadline.is_some_and(|deadline| now >= deadline) {
                self.is_late = true;
                return Err(self.too_late());
            }
            self.sleep(now, self.deadline)?;
        }
    }

    /// Whether others may come to an address that a guest doesn't know of.
    fn is_everywhere(&self) -> bool {
        let addresses = || self.listening.sockets.iter().map(|socket| socket.address.ip());
        let several = addresses().count() > 1 || addresses().any(|ip| ip.is_unspecified());
        several && !addresses().all(is_loopback)
    }

    fn guests(&mut self) -> &mut Guests {
        self.visitors.guests.get_or_insert_with(|| Guests::new(self.config.entries.len(), Instant::now()))
    }

    fn receive(&mut self, now: Instant) -> Result<()> {
        for socket in &self.listening.sockets {
            self.visitors.accept(socket, now)?;
        }
        self.visitors.progress(now)?;
        self.guests().progress(now)
    }

    fn sleep(&self, now: Instant, end: Option<Instant>) -> Result<()> {
        let mut entries = Vec::new();
        let mut add = |connection: &Connection, interest| {
            entries.push(PollEntry::new(connection.descriptor(), interest));
        };
        self.visitors.waits(self.listening.sockets.iter(), &mut add);
        let rival = self.listening.waits(&mut add);
        entries.extend(self.visitors.guests.iter().flat_map(Guests::waits));
        let news = self.visitors.guests.as_ref().and_then(Guests::next_wake);
        let due = [rival, news, end, self.visitors.next_wake()].into_iter().flatten();
        sys::poll(&mut entries, Some(nap(due, now)))
            .map_err(|error| Error::system("waiting for ranks", &error))?;
        Ok(())
    }

    fn too_late(&mut self) -> Error {
        if !self.listening.is_listening() {
            return self.listening.error();
        }
        if let Some(error) = self.visitors.exhausted() {
            let text = format!("accepting connections: {}", os_words(error));
            return late(self.config, Status::System, &[text]).with_os(error);
        }
        let at = &self.config.entries[0][0];
        let (absent, behind) = (self.guests().absent(), self.guests().behind());
        let mut parts = vec![match absent.is_empty() {
            false => format!(
                "{} {} not come to {at}",
                ranks(&absent),
                if absent.len() == 1 { "has" } else { "have" }
            ),
            true => format!("{} can't be told where the others are", ranks(&behind)),
        }];
        let (mut status, mut rank) = (Status::ConnectFailed, absent.first().or(behind.first()).copied());
        if let Some((claimed, told)) = self.guests().impostor() {
            (status, rank) = (Status::AuthFailed, Some(claimed));
            parts.insert(0, told);
        }
        parts.extend(self.visitors.strangers_text());
        Error { rank, ..late(self.config, status, &parts) }
    }

    /// Tells the guests why this rank gives up; of a conflict also those that are just about to come.
    fn part(&mut self, error: &Error) {
        let status = if self.is_late { Status::Timeout } else { error.status };
        let record = Frame::record(&Error { status, ..error.clone() }, 0);
        self.guests().tell_failure(&record);
        if is_conflict(error) && !self.is_late && self.listening.is_listening() {
            let end = Instant::now() + MOMENT;
            let end = self.deadline.map_or(end, |deadline| deadline.min(end));
            while !self.guests().have_all_been_told() && Instant::now() < end {
                let now = Instant::now();
                // More conflicts that come of it are theirs to tell.
                let _ = self.receive(now);
                self.guests().tell_failure(&record);
                if self.sleep(now, Some(end)).is_err() {
                    break;
                }
            }
        }
        control::part(self.guests().take_controls().into_iter());
    }
}
