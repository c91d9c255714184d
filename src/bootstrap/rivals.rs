//! Two processes that claim one rank: the one that finds the rank's port taken asks the occupant
//! who it is, and tells it that there are two of it. And what a rank whose ring has formed says to
//! whoever comes too late.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use crate::bootstrap::claims::Claims;
use crate::bootstrap::dial::Dial;
use crate::bootstrap::handshake::Acceptor;
use crate::bootstrap::visitors::Visitors;
use crate::bootstrap::{Connection, printed};
use crate::error::{Error, Result, Status};
use crate::sys::Interest;
use crate::wire::{Answer, Hello, LinkKind};

/// A ring that has stood for less than this may have been formed out of two jobs that were started
/// together: it fails when the others' ranks come. An older one is a run in its own right.
const RECENT: Duration = Duration::from_secs(5);

const HINT: &str = "two jobs that share a hostfile or a rendezvous need job ids";

/// The question to the process that has this rank's port.
pub struct Rival {
    dial: Dial,
    /// Once it is known who it is, and that is no cause to give up at once, since an old run may be
    /// about to end: what it is, if that can be told.
    found: Option<Option<String>>,
}

impl Rival {
    pub fn new(mut taken: SocketAddr, rank: usize, now: Instant) -> Rival {
        if taken.ip().is_unspecified() {
            taken.set_ip(match taken.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        Rival { dial: Dial::rival(taken, rank, now), found: None }
    }

    /// Goes as far as it can; an error is final.
    pub fn progress(&mut self, claims: &Claims, shown: &str, now: Instant) -> Result<()> {
        if self.found.is_some() {
            return Ok(());
        }
        if let Err(error) = self.dial.progress(claims, now) {
            // Without a descriptor there is no answer, and binding will say why soon enough.
            self.found = Some(match error.status {
                Status::ConnectFailed => Some("another program".to_owned()),
                Status::AuthFailed => Some("a process that has another secret".to_owned()),
                _ => None,
            });
            return Ok(());
        }
        let Some(theirs) = self.dial.answer() else { return Ok(()) };
        let own_port = |text: String| Error::new(Status::ConnectFailed, text).at_rank(claims.rank());
        let found = match theirs.answer {
            Answer::Taken => {
                let rank = claims.rank();
                return Err(own_port(format!(
                    "two processes claim to be rank {rank} of this ring: one listens on {shown}, the other \
                     found that port taken; {HINT}"
                )));
            }
            Answer::Differs => {
                let differences = claims.rival_differences(theirs).unwrap_or_default();
                return Err(own_port(format!(
                    "this rank can't listen on {shown}, where a process of a ring that differs does: {differences}"
                )));
            }
            Answer::OtherJob => {
                let (theirs, ours) = (claims.job_text(&theirs.job_id), claims.own_job());
                format!("another job ({theirs} there, {ours} here)")
            }
            Answer::Formed => {
                format!("rank {} of a ring that has formed already; {HINT}", theirs.from)
            }
            _ => return Ok(()),
        };
        self.found = Some(Some(found));
        Ok(())
    }

    /// The port is free by now: an occupant that has failed because of this rank has answered before.
    pub fn last_word(&mut self, claims: &Claims, shown: &str, now: Instant) -> Result<()> {
        if self.dial.awaits_answer() { self.progress(claims, shown, now) } else { Ok(()) }
    }

    /// Who has the port, where that is known.
    pub fn found(&self) -> Option<&str> {
        self.found.as_ref()?.as_deref()
    }

    pub fn waits(&self, add: &mut dyn FnMut(&Connection, Interest)) -> Option<Instant> {
        self.dial.waits(add)
    }
}

impl Visitors {
    /// Answers a rival, and whoever comes when the ring has formed. An error fails this rank's ring.
    pub(super) fn answer_outsider(
        &mut self,
        connection: Connection,
        handshake: Acceptor,
        hello: &Hello,
    ) -> Result<()> {
        let is_recent = self.formed.is_none_or(|formed| formed.elapsed() < RECENT);
        let answer = match hello.kind {
            LinkKind::Rival if !self.claims.same_job(hello) => Answer::OtherJob,
            LinkKind::Rival if self.claims.rival_differences(hello).is_some() => Answer::Differs,
            LinkKind::Rival if is_recent => Answer::Taken,
            _ => Answer::Formed,
        };
        let own = self.claims.hello(hello.from as usize, (hello.kind, hello.lane), answer);
        // One that has gone has said what it had to say.
        let _ = connection.send(handshake.answer(&own));
        let (from, rank) = (printed(&connection.address), self.claims.rank());
        if answer == Answer::Taken {
            let own = connection.socket.local_addr().ok().and_then(|address| address.as_socket());
            let own = own.map_or("the port".to_owned(), |address| printed(&address));
            let text = format!(
                "two processes claim to be rank {rank} of this ring: one listens on {own}, the other found that \
                 port taken and connected from {from}; {HINT}"
            );
            return Err(Error::new(Status::ConnectFailed, text).at_rank(rank));
        }
        self.count_outsider(format!("rank {} of another ring or run connected from {from}", hello.from));
        Ok(())
    }
}
