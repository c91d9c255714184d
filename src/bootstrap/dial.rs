//! The connecting side: one link to the right neighbour or to another rank of a group that stands, from a
//! look-up to the peer's answer.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use crate::bootstrap::claims::{Claims, LinkName};
use crate::bootstrap::config::Address;
use crate::bootstrap::handshake::{Connector, Heard, Unproved};
use crate::bootstrap::resolve::Lookup;
use crate::bootstrap::{Connection, printed};
use crate::error::{Error, Result, Status, os_words};
use crate::link::close_at_once;
use crate::sys::Interest;
use crate::wire::{Answer, Hello, LinkKind};

/// The next of a name's addresses is tried when the one before has been silent for this long
/// (RFC 8305's connection attempt delay).
const NEXT_ADDRESS: Duration = Duration::from_millis(250);
/// A peer that accepts but doesn't answer is left for another address, where there is one.
pub(super) const SILENT: Duration = Duration::from_secs(2);
/// Pauses between rounds over the addresses: short at first, as ranks mostly start together.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(10);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// One link on its way.
pub struct Dial {
    link: LinkName,
    peer: usize,
    /// What the peer is to this rank, for a text.
    relation: &'static str,
    lookup: Lookup,
    stage: Stage,
    /// What the peer answered last.
    answer: Option<Hello>,
    pause: Duration,
    /// The last error of each address that was tried.
    errors: Vec<(SocketAddr, io::Error)>,
}

enum Stage {
    Paused {
        until: Instant,
    },
    /// Connections under way, the next address to try and when.
    Connecting {
        attempts: Vec<Connection>,
        next: usize,
        next_at: Instant,
    },
    /// The hello is sent; what the peer says to it comes in pieces.
    Greeting {
        connection: Connection,
        handshake: Connector,
        next: usize,
        until: Instant,
    },
    Done(Option<Connection>),
}

impl Dial {
    pub fn new(link: LinkName, peer: usize, address: &Address, now: Instant) -> Dial {
        let relation = if link.0 == LinkKind::Rendezvous { "" } else { " (right neighbour)" };
        Dial::through(Lookup::new(address), link, peer, relation, now)
    }

    /// To a rank of a group that stands.
    pub fn far(link: LinkName, peer: usize, address: SocketAddr, now: Instant) -> Dial {
        Dial::through(Lookup::known(address), link, peer, "", now)
    }

    /// To the process that has this rank's own address: it is asked who it is.
    pub fn rival(address: SocketAddr, rank: usize, now: Instant) -> Dial {
        Dial::through(Lookup::known(address), (LinkKind::Rival, 0), rank, "", now)
    }

    fn through(lookup: Lookup, link: LinkName, peer: usize, relation: &'static str, now: Instant) -> Dial {
        Dial {
            link,
            peer,
            relation,
            lookup,
            stage: Stage::Paused { until: now },
            answer: None,
            pause: FIRST_PAUSE,
            errors: Vec::new(),
        }
    }

    pub fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done(_))
    }

    /// Starts anew: the peer may come again, as another process.
    pub fn again(&mut self, now: Instant) {
        self.stage = Stage::Paused { until: now + FIRST_PAUSE };
    }

    pub fn link(&self) -> LinkName {
        self.link
    }

    /// What the peer said of itself, once done.
    pub fn answer(&self) -> Option<&Hello> {
        self.answer.as_ref().filter(|_| self.is_done())
    }

    pub fn awaits_answer(&self) -> bool {
        matches!(self.stage, Stage::Greeting { .. })
    }

    /// Where the peer is looked for first.
    pub fn first_address(&mut self, now: Instant) -> Option<SocketAddr> {
        self.lookup.addresses(now)?.first().copied()
    }

    /// The link, once done.
    pub fn take(&mut self) -> Option<Connection> {
        match &mut self.stage {
            Stage::Done(connection) => connection.take(),
            _ => None,
        }
    }

    /// Goes as far as it can; an error ends the forming.
    pub fn progress(&mut self, claims: &Claims, now: Instant) -> Result<()> {
        // Each stage falls into the next at once where it can.
        for _ in 0..3 {
            let stage = std::mem::replace(&mut self.stage, Stage::Done(None));
            let before = std::mem::discriminant(&stage);
            self.stage = match stage {
                Stage::Paused { until } => self.start(until, now),
                Stage::Connecting { attempts, next, next_at } => {
                    self.connect(claims, attempts, next, next_at, now)?
                }
                Stage::Greeting { connection, handshake, next, until } => {
                    self.greet(claims, connection, handshake, next, until, now)?
                }
                done => done,
            };
            if std::mem::discriminant(&self.stage) == before {
                break;
            }
        }
        Ok(())
    }

    fn start(&mut self, until: Instant, now: Instant) -> Stage {
        if now >= until && self.lookup.addresses(now).is_some() {
            return Stage::Connecting { attempts: Vec::new(), next: 0, next_at: now };
        }
        Stage::Paused { until }
    }

    /// Every address has failed: after a pause they are tried anew.
    fn pause(&mut self, now: Instant) -> Stage {
        let until = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Stage::Paused { until }
    }

    fn connect(
        &mut self,
        claims: &Claims,
        mut attempts: Vec<Connection>,
        mut next: usize,
        mut next_at: Instant,
        now: Instant,
    ) -> Result<Stage> {
        let addresses = self.lookup.addresses(now).unwrap_or(&[]).to_vec();
        loop {
            let mut i = 0;
            while i < attempts.len() {
                match connected(&attempts[i]) {
                    Ok(false) => i += 1,
                    Ok(true) => {
                        let connection = attempts.swap_remove(i);
                        return self.hello(claims, connection, next, now);
                    }
                    Err(error) => {
                        let failed = attempts.swap_remove(i);
                        self.note(failed.address, error);
                    }
                }
            }
            if next == addresses.len() || !(attempts.is_empty() || now >= next_at) {
                break;
            }
            match begin(addresses[next]) {
                Ok(connection) => attempts.push(connection),
                Err(error) if is_out_of_descriptors(&error) => {
                    let text = format!("connecting to {}: {}", printed(&addresses[next]), os_words(&error));
                    return Err(Error::new(Status::System, text).with_os(&error));
                }
                Err(error) => self.note(addresses[next], error),
            }
            next += 1;
            next_at = now + NEXT_ADDRESS;
        }
        if attempts.is_empty() {
            return Ok(self.pause(now));
        }
        Ok(Stage::Connecting { attempts, next, next_at })
    }

    fn hello(&mut self, claims: &Claims, connection: Connection, next: usize, now: Instant) -> Result<Stage> {
        let handshake = claims.connector(self.peer, self.link)?;
        match connection.send(handshake.hello()) {
            Ok(()) => Ok(Stage::Greeting { connection, handshake, next, until: now + SILENT }),
            Err(error) => Ok(self.try_next(connection.address, error, next, now)),
        }
    }

    /// After an address that connected but was no use: the one behind it.
    fn try_next(&mut self, address: SocketAddr, error: io::Error, next: usize, now: Instant) -> Stage {
        self.note(address, error);
        match self.lookup.addresses(now) {
            Some(addresses) if next < addresses.len() => {
                Stage::Connecting { attempts: Vec::new(), next, next_at: now }
            }
            _ => self.pause(now),
        }
    }

    fn greet(
        &mut self,
        claims: &Claims,
        connection: Connection,
        mut handshake: Connector,
        next: usize,
        until: Instant,
        now: Instant,
    ) -> Result<Stage> {
        let address = connection.address;
        let hello = match hear(&connection, &mut handshake) {
            // It has just started or is about to end: its next run may be the right one.
            Err(error) => return Ok(self.try_next(address, error, next, now)),
            Ok(Heard::NotAPeer) => {
                return Err(self.failed(
                    address,
                    "does not speak this library's protocol (the stock MLX ring, for which wire must be mlx, or another program)",
                ));
            }
            Ok(Heard::Unproved(why)) => return Err(self.unproved(address, why)),
            Ok(Heard::More | Heard::Send(_)) => {
                let others = self.lookup.addresses(now).is_some_and(|addresses| addresses.len() > 1);
                if others && now >= until {
                    let error =
                        io::Error::new(io::ErrorKind::TimedOut, "it accepts connections but does not answer");
                    return Ok(self.try_next(address, error, next, now));
                }
                return Ok(Stage::Greeting { connection, handshake, next, until });
            }
            Ok(Heard::Peer(hello)) => hello,
        };
        if self.link.0 == LinkKind::Rival {
            self.answer = Some(hello);
            return Ok(Stage::Done(None));
        }
        if hello.answer == Answer::Formed {
            // Of an old run, which is about to end.
            let job = claims.job_text(&hello.job_id);
            let which =
                if claims.same_job(&hello) { String::new() } else { format!(" of another job ({job})") };
            let error = io::Error::other(format!("it is in a ring{which} that has formed already"));
            return Ok(self.try_next(address, error, next, now));
        }
        if hello.answer == Answer::NotYet {
            // Its rank may be about to make the same group.
            let error = io::Error::other("it knows no such group");
            return Ok(self.try_next(address, error, next, now));
        }
        if hello.answer == Answer::Myself {
            close_at_once(connection.socket);
            let error = io::Error::other("the address leads to this rank itself");
            return Ok(self.try_next(address, error, next, now));
        }
        if !claims.same_job(&hello) {
            let (theirs, ours) = (claims.job_text(&hello.job_id), claims.own_job());
            return Err(self.failed(address, &format!("is of another job: {theirs} there, {ours} here")));
        }
        if let Some(differences) = claims.differences(self.peer, &hello) {
            return Err(self.failed(address, &format!("disagrees: {differences}")));
        }
        match hello.answer {
            Answer::Accepted => {
                self.answer = Some(hello);
                Ok(Stage::Done(Some(connection)))
            }
            Answer::Taken => {
                let text = format!("is connected with another process of rank {} already", hello.to);
                Err(self.failed(address, &text))
            }
            Answer::Differs if self.link.0 == LinkKind::Rendezvous => {
                Err(self.failed(address, "has a hostfile, and awaits nobody at a rendezvous"))
            }
            _ => Err(self.failed(address, "refused the connection")),
        }
    }

    fn failed(&self, address: SocketAddr, why: &str) -> Error {
        let text = format!("rank {}{} at {} {why}", self.peer, self.relation, printed(&address));
        Error::new(Status::ConnectFailed, text).at_rank(self.peer)
    }

    fn unproved(&self, address: SocketAddr, why: Unproved) -> Error {
        Error { status: Status::AuthFailed, ..self.failed(address, &why.to_string()) }
    }

    fn note(&mut self, address: SocketAddr, error: io::Error) {
        self.errors.retain(|(known, _)| *known != address);
        self.errors.push((address, error));
    }

    /// Whether the last that was heard of the peer's address is the system's refusal, and not silence, a word of the
    /// peer, or the end of a connection that had come to stand.
    pub fn is_refused(&self) -> bool {
        const NO_REFUSALS: [i32; 3] = [libc::ETIMEDOUT, libc::ECONNRESET, libc::EPIPE];
        let is_refusal = |(_, error): &(SocketAddr, io::Error)| {
            error.raw_os_error().is_some_and(|number| !NO_REFUSALS.contains(&number))
        };
        matches!(self.stage, Stage::Paused { .. }) && self.errors.last().is_some_and(is_refusal)
    }

    /// Whether an attempt is under way that may still succeed.
    pub fn is_under_way(&self) -> bool {
        matches!(self.stage, Stage::Connecting { .. } | Stage::Greeting { .. })
    }

    /// What stood in the way, at the deadline: each address that was tried, and its error.
    pub fn trouble(&self) -> (String, i32) {
        let mut tried: Vec<_> =
            self.errors.iter().map(|(a, e)| format!("{}: {}", printed(a), os_words(e))).collect();
        if let Stage::Greeting { connection, .. } = &self.stage {
            tried.push(format!(
                "{}: it accepts connections but does not answer",
                printed(&connection.address)
            ));
        }
        if let Stage::Connecting { attempts, .. } = &self.stage {
            tried.extend(attempts.iter().map(|a| format!("{}: no answer", printed(&a.address))));
        }
        if let Some(error) = self.lookup.error() {
            tried.push(format!("{}: {}", self.lookup.address(), os_words(error)));
        }
        if tried.is_empty() {
            tried.push(format!("{}: not tried", self.lookup.address()));
        }
        let os_error = self.errors.iter().rev().find_map(|(_, e)| e.raw_os_error()).unwrap_or(0);
        (tried.join("; "), os_error)
    }

    /// What to poll, and until when at most.
    pub fn waits(&self, add: &mut dyn FnMut(&Connection, Interest)) -> Option<Instant> {
        match &self.stage {
            Stage::Paused { until } => Some(*until),
            Stage::Connecting { attempts, next_at, .. } => {
                attempts.iter().for_each(|a| add(a, Interest { read: false, write: true }));
                Some(*next_at)
            }
            Stage::Greeting { connection, until, .. } => {
                add(connection, Interest { read: true, write: false });
                Some(*until)
            }
            Stage::Done(_) => None,
        }
    }
}

/// Carries the handshake as far as the peer's words go.
fn hear(connection: &Connection, handshake: &mut Connector) -> io::Result<Heard> {
    loop {
        let words = connection.receive(handshake.wanted())?;
        if words.is_empty() {
            return Ok(Heard::More);
        }
        match handshake.take(&words) {
            Heard::More => {}
            Heard::Send(bytes) => connection.send(bytes)?,
            heard => return Ok(heard),
        }
    }
}

pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Starts to connect.
pub(super) fn begin(address: SocketAddr) -> io::Result<Connection> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    let connection = Connection::new(socket, address)?;
    match connection.socket.connect(&address.into()) {
        Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) || e.kind() == io::ErrorKind::WouldBlock => {}
        Err(e) => return Err(e),
        Ok(()) => {}
    }
    Ok(connection)
}

/// Whether a connection under way has come to stand.
pub(super) fn connected(connection: &Connection) -> io::Result<bool> {
    if let Some(error) = connection.socket.take_error()? {
        return Err(error);
    }
    let peer = match connection.socket.peer_addr() {
        Ok(peer) => peer,
        Err(e) if e.kind() == io::ErrorKind::NotConnected => return Ok(false),
        Err(e) => return Err(e),
    };
    // Without a listener, a connect to a port of this host may meet itself.
    if connection.socket.local_addr()?.as_socket() == peer.as_socket() {
        let _ = connection.socket.set_linger(Some(Duration::ZERO));
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(true)
}
