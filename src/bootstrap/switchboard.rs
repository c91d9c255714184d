//! Links to ranks that are no neighbours, for the groups of a family: one that processes have formed, and those that
//! were split from it. Calls ask for links here and go on; the watcher, which also sees to the door, makes them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use crate::bootstrap::claims::{Claims, LinkName};
use crate::bootstrap::far_dial::{Deadline, FarDial};
use crate::bootstrap::handshake::Acceptor;
use crate::bootstrap::{Connection, printed};
use crate::error::{Error, Result, Status};
use crate::link::{Arrival, TcpLink};
use crate::sys::{Interest, Wake};
use crate::wire::{Answer, Hello};

use super::visitors::Visitors;

/// A link of a group: its name, and the rank that opens it.
type Key = (LinkName, usize);

/// What a family's groups wait for and have been brought.
pub struct Switchboard {
    state: Mutex<State>,
    /// Wakes the watcher.
    bell: Arc<Wake>,
}

#[derive(Default)]
struct State {
    groups: Vec<Entry>,
    dials: Vec<FarDial>,
}

/// A group that this process is a rank of.
struct Entry {
    claims: Claims,
    awaited: HashMap<Key, Weak<Arrival>>,
    /// Links that nobody has asked for yet. A peer that comes again has given up the former one.
    kept: HashMap<Key, TcpLink>,
}

impl Switchboard {
    pub fn new(bell: Arc<Wake>) -> Switchboard {
        Switchboard { state: Mutex::default(), bell }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this group's links are accepted.
    pub fn open(&self, claims: Claims) {
        self.state().groups.push(Entry { claims, awaited: HashMap::new(), kept: HashMap::new() });
    }

    /// From now on this group is unknown here.
    pub fn close(&self, group: &[u8; 16]) {
        let mut state = self.state();
        state.groups.retain(|entry| entry.claims.group() != *group);
        state.dials.retain(|dial| dial.group() != *group);
    }

    /// Whether no group is known here any more.
    pub fn is_deserted(&self) -> bool {
        self.state().groups.is_empty()
    }

    /// Where the link arrives that `peer` opens.
    pub fn await_link(&self, group: &[u8; 16], link: LinkName, peer: usize) -> Result<Arc<Arrival>> {
        let arrival = arrival()?;
        let mut state = self.state();
        let Some(entry) = state.find(group) else { return Ok(closed(arrival)) };
        match entry.kept.remove(&(link, peer)) {
            Some(kept) => drop(arrival.deliver(kept)),
            None => drop(entry.awaited.insert((link, peer), Arc::downgrade(&arrival))),
        }
        Ok(arrival)
    }

    /// Where the link arrives that this rank opens.
    pub fn dial(
        &self,
        group: &[u8; 16],
        link: LinkName,
        peer: (usize, SocketAddr),
        deadline: Deadline,
    ) -> Result<Arc<Arrival>> {
        let arrival = arrival()?;
        let mut state = self.state();
        let Some(entry) = state.find(group) else { return Ok(closed(arrival)) };
        let dial = FarDial::new(&entry.claims, link, peer, deadline, Arc::downgrade(&arrival));
        state.dials.push(dial);
        self.bell.wake();
        Ok(arrival)
    }

    /// Carries all dials as far as they go; `shed` frees a descriptor, if it can.
    pub fn progress(&self, now: Instant, mut shed: impl FnMut() -> bool) {
        self.state().dials.retain_mut(|dial| dial.progress(now, &mut shed));
    }

    /// What to poll, and until when at most.
    pub fn waits(&self, add: &mut dyn FnMut(&Connection, Interest)) -> Option<Instant> {
        self.state().dials.iter().filter_map(|dial| dial.waits(add)).min()
    }

    /// Answers a visitor that names a group, and takes its link. It is there before the peer knows, so that what the
    /// peer says later over other ways doesn't overtake it.
    fn admit(&self, connection: Connection, handshake: Acceptor, hello: &Hello) -> Admission {
        let mut state = self.state();
        let Some(entry) = state.find(&hello.group) else {
            return Admission::Unknown(connection, handshake);
        };
        let (link, peer) = ((hello.kind, hello.lane), hello.from as usize);
        let answer = |answer| entry.claims.hello(peer, link, answer);
        let differences = entry.claims.differences(peer, hello);
        let differences = differences
            .or_else(|| (!entry.claims.may_open(hello)).then(|| "there is no such link".to_owned()));
        if let Some(differences) = differences {
            let _ = connection.send(handshake.answer(&answer(Answer::Differs)));
            return Admission::Refused(differences);
        }
        // Where this fails the peer has gone, and will come again.
        if connection.send(handshake.answer(&answer(Answer::Accepted))).is_ok()
            && let Ok(made) = connection.into_link()
        {
            entry.take((link, peer), made);
        }
        Admission::Accepted
    }
}

/// What becomes of a visitor that names a group.
enum Admission {
    Accepted,
    Unknown(Connection, Acceptor),
    Refused(String),
}

impl State {
    fn find(&mut self, group: &[u8; 16]) -> Option<&mut Entry> {
        self.groups.iter_mut().find(|entry| entry.claims.group() == *group)
    }
}

impl Entry {
    fn take(&mut self, key: Key, link: TcpLink) {
        let awaited = self.awaited.remove(&key).and_then(|arrival| arrival.upgrade());
        // One that has been told meanwhile that its link doesn't come leaves it to the next.
        let left = match awaited {
            Some(arrival) => arrival.deliver(link).err(),
            None => Some(link),
        };
        if let Some(link) = left {
            self.kept.insert(key, link);
        }
    }
}

fn arrival() -> Result<Arc<Arrival>> {
    Arrival::new().map(Arc::new).map_err(|error| Error::system("making a pipe", &error))
}

/// The group has failed or is being destroyed, which whoever waits learns elsewhere.
fn closed(arrival: Arc<Arrival>) -> Arc<Arrival> {
    arrival.fail(Error::new(Status::Aborted, "the group makes no more links"));
    arrival
}

impl Visitors {
    /// Answers whoever names a group: a rank of one that stands, or will in a moment.
    pub(super) fn answer_member(&mut self, connection: Connection, handshake: Acceptor, hello: &Hello) {
        let from = printed(&connection.address);
        let own = self.claims.hello(hello.from as usize, (hello.kind, hello.lane), Answer::NotYet);
        if !self.claims.same_job(hello) {
            let _ = connection.send(handshake.answer(&Hello { answer: Answer::OtherJob, ..own }));
            let job = self.claims.job_text(&hello.job_id);
            return self
                .count_outsider(format!("rank {} of another job ({job}) connected from {from}", hello.from));
        }
        let admission = match &self.board {
            Some(board) => board.admit(connection, handshake, hello),
            None => Admission::Unknown(connection, handshake),
        };
        match admission {
            Admission::Accepted => {}
            Admission::Unknown(connection, handshake) => {
                let _ = connection.send(handshake.answer(&own));
            }
            Admission::Refused(differences) => self.count_outsider(format!(
                "the process that connected from {from} as rank {} of a group disagrees: {differences}",
                hello.from
            )),
        }
    }
}
