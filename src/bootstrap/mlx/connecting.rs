//! The connection to one address of the right neighbour in a stock MLX ring.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::{arrived, has_ended, watch};
use crate::bootstrap::config::Address;
use crate::bootstrap::dial::{self, FIRST_PAUSE, LONGEST_PAUSE, SILENT};
use crate::bootstrap::resolve::Lookup;
use crate::bootstrap::{Connection, printed};
use crate::error::{Error, Result, os_words};
use crate::sys::{Interest, PollEntry};

/// It is tried until it stands.
pub struct Connecting {
    lookup: Lookup,
    /// The attempt under way and when it began; a name's addresses are tried one after the other.
    attempt: Option<(Connection, Instant)>,
    /// The address that is tried next, and not before then.
    next: usize,
    pub not_before: Option<Instant>,
    pause: Duration,
    /// The last address that was tried in vain.
    failed: Option<(SocketAddr, io::Error)>,
    pub made: Option<Connection>,
    /// One that was made and that the neighbour has ended in order. To the last rank the first one may have been in
    /// the ring before it stands here, and may have left; what it sent to others is theirs all the same.
    pub left: Option<Connection>,
}

impl Connecting {
    pub fn new(address: &Address) -> Connecting {
        Connecting {
            lookup: Lookup::new(address),
            attempt: None,
            next: 0,
            not_before: None,
            pause: FIRST_PAUSE,
            failed: None,
            made: None,
            left: None,
        }
    }

    pub fn is_done(&self) -> bool {
        self.made.is_some()
    }

    pub fn progress(&mut self, now: Instant) -> Result<()> {
        if let Some(ended) = self.made.take_if(|made| has_ended(made)) {
            self.fail(ended.address, io::Error::other("it ended the connection"), now);
            let in_order = arrived(&ended).is_err_and(|end| end.kind() == io::ErrorKind::UnexpectedEof);
            self.left = in_order.then_some(ended);
        }
        if self.is_done() {
            return Ok(());
        }
        let found = self.lookup.addresses(now).unwrap_or_default();
        let addresses: Vec<_> = found.iter().copied().filter(SocketAddr::is_ipv4).collect();
        if let Some((connection, since)) = self.attempt.take() {
            match dial::connected(&connection) {
                Ok(true) => (self.made, self.left) = (Some(connection), None),
                Ok(false) if addresses.len() > 1 && now >= since + SILENT => {
                    self.fail(connection.address, io::ErrorKind::TimedOut.into(), now);
                }
                Ok(false) => self.attempt = Some((connection, since)),
                Err(error) => self.fail(connection.address, error, now),
            }
        } else if self.not_before.is_none_or(|until| now >= until) && !addresses.is_empty() {
            let address = addresses[self.next % addresses.len()];
            match dial::begin(address) {
                Ok(connection) => self.attempt = Some((connection, now)),
                Err(error) if dial::is_out_of_descriptors(&error) => {
                    return Err(Error::system(&format!("connecting to {}", printed(&address)), &error));
                }
                Err(error) => self.fail(address, error, now),
            }
        }
        Ok(())
    }

    fn fail(&mut self, address: SocketAddr, error: io::Error, now: Instant) {
        self.failed = Some((address, error));
        self.next += 1;
        self.not_before = Some(now + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    pub fn has_tried(&self) -> bool {
        self.attempt.is_some() || self.failed.is_some()
    }

    /// What stands in the way, and the OS error.
    pub fn trouble(&self) -> (String, i32) {
        match (&self.failed, &self.attempt, self.lookup.error()) {
            (Some((address, error)), ..) => {
                (format!("{}: {}", printed(address), os_words(error)), error.raw_os_error().unwrap_or(0))
            }
            (None, Some((attempt, _)), _) => (format!("{}: no answer", printed(&attempt.address)), 0),
            (None, None, Some(error)) => (format!("{}: {}", self.lookup.address(), os_words(error)), 0),
            (None, None, None) => (format!("{}: no IPv4 address is known", self.lookup.address()), 0),
        }
    }

    pub fn waits(&self, entries: &mut Vec<PollEntry>) {
        if let Some(made) = &self.made {
            watch(made, entries);
        } else if let Some((attempt, _)) = &self.attempt {
            entries.push(PollEntry::new(attempt.descriptor(), Interest { read: false, write: true }));
        }
    }
}
