//! A link on its way to a rank of a group that stands: when to give up.

use std::net::SocketAddr;
use std::sync::Weak;
use std::time::{Duration, Instant};

use crate::bootstrap::Connection;
use crate::bootstrap::claims::{Claims, LinkName};
use crate::bootstrap::dial::Dial;
use crate::error::{Error, Status, os_words};
use crate::link::{Arrival, TcpLink};
use crate::sys::Interest;

/// A refusal is final after this long: the peer's ring has formed, so that it listens, and what stands between may
/// be a route or a filter that is just being changed. Silence is waited for until the deadline.
const REFUSED: Duration = Duration::from_secs(1);

/// An answer to a roll that was called so long before the deadline shows as well that the peer is there: whoever waits
/// for the link calls one at about the same time.
const JUST_BEFORE: Duration = Duration::from_millis(250);
/// A roll is asked for anew after this time.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Tells whether a rank has answered a roll that was called since then, and has one called if it hasn't.
pub type HasAnswered = Box<dyn Fn(usize, Instant) -> bool + Send>;

/// When a silent peer is given up.
pub enum Deadline {
    /// Then.
    Final(Option<Instant>),
    /// Then, if the peer answers over the control links. One that doesn't is stopped or dead, and not the link is at
    /// fault: whoever waits for it has a timeout of its own, which names the rank.
    IfAlive(Option<Instant>, HasAnswered),
}

/// A dial, and who waits for it.
pub struct FarDial {
    claims: Claims,
    peer: usize,
    dial: Dial,
    deadline: Deadline,
    refused_since: Option<Instant>,
    arrival: Weak<Arrival>,
}

impl FarDial {
    pub fn new(
        claims: &Claims,
        link: LinkName,
        (peer, address): (usize, SocketAddr),
        deadline: Deadline,
        arrival: Weak<Arrival>,
    ) -> FarDial {
        let dial = Dial::far(link, peer, address, Instant::now());
        FarDial { claims: claims.clone(), peer, dial, deadline, refused_since: None, arrival }
    }

    pub fn group(&self) -> [u8; 16] {
        self.claims.group()
    }

    /// Goes as far as it can; false once there is nothing more to do. `shed` frees a descriptor, if it can.
    pub fn progress(&mut self, now: Instant, shed: &mut dyn FnMut() -> bool) -> bool {
        let Some(arrival) = self.arrival.upgrade() else { return false };
        let outcome = match self.dial.progress(&self.claims, now) {
            // Descriptors that strangers hold are there for the group's own links.
            Err(error) if error.status == Status::System && shed() => {
                self.dial.again(now);
                None
            }
            Err(error) => Some(Err(self.failure(&error.text, error.os_error, error.status))),
            Ok(()) => self.outcome(now),
        };
        match outcome {
            None => return true,
            Some(Ok(link)) => drop(arrival.deliver(link)),
            Some(Err(error)) => arrival.fail(error),
        }
        false
    }

    fn outcome(&mut self, now: Instant) -> Option<Result<TcpLink, Error>> {
        if let Some(connection) = self.dial.take() {
            return Some(connection.into_link().map_err(|error| {
                let text = format!("the connection ended at once ({})", os_words(&error));
                self.failure(&text, error.raw_os_error().unwrap_or(0), Status::ConnectFailed)
            }));
        }
        let is_late = match &self.deadline {
            Deadline::Final(deadline) => deadline.is_some_and(|deadline| now >= deadline),
            Deadline::IfAlive(deadline, has_answered) => deadline.is_some_and(|deadline| {
                let since = deadline.checked_sub(JUST_BEFORE).unwrap_or(deadline);
                now >= deadline && has_answered(self.peer, since)
            }),
        };
        let (is_refused, is_under_way) = (self.dial.is_refused(), self.dial.is_under_way());
        let for_long = (is_refused || !is_under_way) && self.is_refused_for_long(is_refused, now);
        if is_late || for_long {
            let (trouble, os_error) = self.dial.trouble();
            return Some(Err(self.failure(&trouble, os_error, Status::ConnectFailed)));
        }
        None
    }

    /// Whether nothing but refusals has come for as long as is waited for anything else.
    fn is_refused_for_long(&mut self, is_refused: bool, now: Instant) -> bool {
        if !is_refused {
            self.refused_since = None;
            return false;
        }
        now >= *self.refused_since.get_or_insert(now) + REFUSED
    }

    /// What stood in the way; whoever waits knows between which ranks.
    fn failure(&self, trouble: &str, os_error: i32, status: Status) -> Error {
        let status = if status == Status::System { status } else { Status::ConnectFailed };
        Error { os_error, ..Error::new(status, trouble).at_rank(self.peer) }
    }

    /// What to poll, and until when at most.
    pub fn waits(&self, add: &mut dyn FnMut(&Connection, Interest)) -> Option<Instant> {
        let next = self.dial.waits(add);
        let now = Instant::now();
        let end = match &self.deadline {
            Deadline::Final(deadline) => *deadline,
            Deadline::IfAlive(deadline, _) => {
                deadline.map(|end| if end > now { end } else { now + ASK_AGAIN })
            }
        };
        next.into_iter().chain(end).min()
    }
}
