//! Forms a ring with stock MLX processes. There is no handshake: whoever connects to an address is the left neighbour's
//! connection of that address, and one more would be taken for data.
//!
//! The order is MLX's (`mlx/distributed/ring/ring.cpp`): every rank but the last accepts from the left and then
//! connects to the right, the last one connects first; connections are made one at a time, in the order of the
//! addresses. MLX tries a connection for 31 s; here it is the connect timeout. All own addresses are listened on from
//! the start, where MLX opens the next one after it has accepted: a neighbour never finds one closed.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::bootstrap::config::{Address, Config};
use crate::bootstrap::dial::{self, FIRST_PAUSE, LONGEST_PAUSE, SILENT};
use crate::bootstrap::listen::Listening;
use crate::bootstrap::mlx_lane::speaks_native;
use crate::bootstrap::resolve::Lookup;
use crate::bootstrap::{Connection, printed};
use crate::error::{Error, Result, Status, os_words};
use crate::link::TcpLink;
use crate::memory::Region;
use crate::sys::{self, Interest, PollEntry};
use crate::wire::{HELLO_MAGIC, begins_native};

/// The longest sleep: a look-up's answer and a port that becomes free have no descriptor to wake the loop.
const TURN: Duration = Duration::from_millis(50);

/// The links of a rank, one per address.
pub struct Lanes {
    pub right: Vec<TcpLink>,
    pub left: Vec<TcpLink>,
    /// Where the right neighbour was reached.
    pub right_address: Option<SocketAddr>,
}

/// Connects this rank with its two neighbours. The ring has two ranks or more.
pub fn form(config: &Config) -> Result<Lanes> {
    let deadline = config.connect_timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut forming = Forming::new(config);
    while !forming.progress(Instant::now())? {
        let now = Instant::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Err(forming.too_late());
        }
        forming.sleep(now, deadline)?;
    }
    forming.lanes().map_err(|error| Error::system("taking over a connection", &error))
}

struct Forming<'c> {
    config: &'c Config,
    right: usize,
    left: usize,
    doors: Vec<Door>,
    ways: Vec<Way>,
}

impl Forming<'_> {
    fn new(config: &Config) -> Forming<'_> {
        let (rank, size) = (config.rank, config.entries.len());
        let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
        let doors = config.entries[rank].iter().map(Door::new).collect();
        let ways = config.entries[right].iter().map(Way::new).collect();
        Forming { config, right, left, doors, ways }
    }

    /// Goes as far as it can; whether the ring stands here.
    fn progress(&mut self, now: Instant) -> Result<bool> {
        for door in &mut self.doors {
            door.progress(now)?;
        }
        if self.connects() {
            for way in &mut self.ways {
                way.progress(now)?;
                if !way.is_done() {
                    break;
                }
            }
        }
        self.refuse_native()?;
        let is_in_ring = |way: &Way| way.is_done() || (self.is_last() && way.left.is_some());
        Ok(self.doors.iter().all(Door::is_done) && self.ways.iter().all(is_in_ring))
    }

    /// A neighbour that was told to speak the other wire says so with its first bytes, if they are here already;
    /// otherwise its lane finds it out.
    fn refuse_native(&self) -> Result<()> {
        let came = self.doors.iter().filter_map(|door| Some((self.left, "left", door.came.as_ref()?)));
        let made = self.ways.iter().filter_map(|way| Some((self.right, "right", way.made.as_ref()?)));
        for (rank, side, connection) in came.chain(made) {
            if begins_native(&arrived(connection).unwrap_or_default()) {
                let neighbour = format!("rank {rank} ({side} neighbour) at {}", printed(&connection.address));
                return Err(speaks_native(rank, &neighbour, Status::ConnectFailed));
            }
        }
        Ok(())
    }

    /// Whether it is this rank's turn to connect. The last rank begins.
    fn connects(&self) -> bool {
        self.doors.iter().all(|door| door.is_done() || (self.is_last() && door.listening.is_listening()))
    }

    fn is_last(&self) -> bool {
        self.right == 0
    }

    fn sleep(&self, now: Instant, deadline: Option<Instant>) -> Result<()> {
        let mut entries = Vec::new();
        self.doors.iter().for_each(|door| door.waits(&mut entries));
        self.ways.iter().for_each(|way| way.waits(&mut entries));
        let pauses = self.ways.iter().filter_map(|way| way.not_before.filter(|until| *until > now));
        let limit =
            pauses.chain(deadline).map(|until| until - now).min().map_or(TURN, |limit| limit.min(TURN));
        let slept = sys::poll(&mut entries, Some(limit));
        slept.map(|_| ()).map_err(|error| Error::system("waiting for connections", &error))
    }

    /// Who is missing.
    fn too_late(&self) -> Error {
        if let Some(door) = self.doors.iter().find(|door| !door.is_done() && !door.listening.is_listening()) {
            return door.listening.error();
        }
        let (mut parts, mut rank, mut os_error) = (Vec::new(), None, 0);
        let missing = self.doors.iter().filter(|door| !door.is_done());
        let missing: Vec<_> = missing.map(|door| door.address.to_string()).collect();
        if !missing.is_empty() {
            let addresses = missing.join(", ");
            parts.push(format!("rank {} (left neighbour) has not connected to {addresses}", self.left));
            rank = Some(self.left);
        }
        // It may be only now that the left neighbour has left, at a timeout like this one.
        let tried = |way: &&Way| self.connects() || way.has_tried();
        if let Some(way) = self.ways.iter().find(|way| !way.is_done()).filter(tried) {
            let (trouble, number) = way.trouble();
            parts.push(format!("rank {} (right neighbour) could not be reached at {trouble}", self.right));
            // The last rank's left neighbour waits, over all the others, for the right one. One that was there, and has
            // given up, waited for somebody else.
            rank = rank.filter(|_| way.left.is_some()).or(Some(self.right));
            os_error = number;
        }
        let waited = self.config.connect_timeout.unwrap_or_default().as_millis();
        let text = format!("the MLX ring did not form within {waited} ms: {}", parts.join("; "));
        Error { rank, os_error, ..Error::new(Status::ConnectFailed, text) }
    }

    fn lanes(self) -> io::Result<Lanes> {
        let first = self.ways.first().and_then(|way| way.made.as_ref().or(way.left.as_ref()));
        let right_address = first.map(|first| first.address);
        let left = self.doors.into_iter().filter_map(|door| door.came).map(Connection::into_link);
        let right = self.ways.into_iter().filter_map(|way| way.made.or(way.left)).map(Connection::into_link);
        Ok(Lanes {
            right: right.collect::<io::Result<_>>()?,
            left: left.collect::<io::Result<_>>()?,
            right_address,
        })
    }
}

/// One own address: listened on until the left neighbour has connected to it.
struct Door {
    address: Address,
    listening: Listening,
    came: Option<Connection>,
}

impl Door {
    fn new(address: &Address) -> Door {
        Door { address: address.clone(), listening: Listening::new(address), came: None }
    }

    fn is_done(&self) -> bool {
        self.came.is_some()
    }

    /// One connection is accepted and the listener closed. A visitor that leaves before the ring stands was no
    /// neighbour, or is one that comes again.
    fn progress(&mut self, now: Instant) -> Result<()> {
        if self.came.take_if(|came| has_ended(came)).is_some() {
            self.listening = Listening::new(&self.address);
        }
        if self.is_done() {
            return Ok(());
        }
        self.listening.progress(None, now)?;
        for listener in &self.listening.sockets {
            let (socket, address) = match listener.socket.accept() {
                Ok(accepted) => accepted,
                Err(error) if dial::is_out_of_descriptors(&error) => {
                    return Err(Error::system("accepting a connection", &error));
                }
                // Nobody is there, or whoever was has left.
                Err(_) => continue,
            };
            let address = address.as_socket().unwrap_or(listener.address);
            // Fails if the visitor has left already.
            if let Ok(connection) = Connection::new(socket, address) {
                self.came = Some(connection);
                break;
            }
        }
        if self.is_done() {
            self.listening.sockets.clear();
        }
        Ok(())
    }

    fn waits(&self, entries: &mut Vec<PollEntry>) {
        match &self.came {
            Some(came) => watch(came, entries),
            None => self.listening.sockets.iter().for_each(|listener| {
                entries.push(PollEntry::new(listener.descriptor(), Interest { read: true, write: false }));
            }),
        }
    }
}

/// The connection to one address of the right neighbour.
struct Way {
    lookup: Lookup,
    /// The attempt under way and when it began; a name's addresses are tried one after the other.
    attempt: Option<(Connection, Instant)>,
    /// The address that is tried next, and not before then.
    next: usize,
    not_before: Option<Instant>,
    pause: Duration,
    /// The last address that was tried in vain.
    failed: Option<(SocketAddr, io::Error)>,
    made: Option<Connection>,
    /// One that was made and that the neighbour has ended in order. To the last rank the first one may have been in
    /// the ring before it stands here, and may have left; what it sent to others is theirs all the same.
    left: Option<Connection>,
}

impl Way {
    fn new(address: &Address) -> Way {
        Way {
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

    fn is_done(&self) -> bool {
        self.made.is_some()
    }

    fn progress(&mut self, now: Instant) -> Result<()> {
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

    fn has_tried(&self) -> bool {
        self.attempt.is_some() || self.failed.is_some()
    }

    /// What stands in the way, and the OS error.
    fn trouble(&self) -> (String, i32) {
        match (&self.failed, &self.attempt, self.lookup.error()) {
            (Some((address, error)), ..) => {
                (format!("{}: {}", printed(address), os_words(error)), error.raw_os_error().unwrap_or(0))
            }
            (None, Some((attempt, _)), _) => (format!("{}: no answer", printed(&attempt.address)), 0),
            (None, None, Some(error)) => (format!("{}: {}", self.lookup.address(), os_words(error)), 0),
            (None, None, None) => (format!("{}: no IPv4 address is known", self.lookup.address()), 0),
        }
    }

    fn waits(&self, entries: &mut Vec<PollEntry>) {
        if let Some(made) = &self.made {
            watch(made, entries);
        } else if let Some((attempt, _)) = &self.attempt {
            entries.push(PollEntry::new(attempt.descriptor(), Interest { read: false, write: true }));
        }
    }
}

/// Waits for the end of a connection. One whose peer sends already is not waited for: its ring stands.
fn watch(connection: &Connection, entries: &mut Vec<PollEntry>) {
    if arrived(connection).is_ok_and(|first| first.is_empty()) {
        entries.push(PollEntry::new(connection.descriptor(), Interest { read: true, write: false }));
    }
}

fn has_ended(connection: &Connection) -> bool {
    arrived(connection).is_err()
}

/// The first bytes that wait to be read, or how the connection has ended.
fn arrived(connection: &Connection) -> io::Result<Vec<u8>> {
    let mut first = vec![0; HELLO_MAGIC.len()];
    let bytes = sys::peek(connection.descriptor(), Region::from_slice(&mut first))?;
    first.truncate(bytes);
    Ok(first)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::bootstrap::config::{Host, Wire};

    #[test]
    fn a_name_without_an_ipv4_address_is_what_the_last_rank_fails_at() {
        let entry = |ip: IpAddr| vec![Address { host: Host::Ip(ip), port: 0 }];
        let config = Config {
            rank: 1,
            entries: vec![entry(Ipv6Addr::LOCALHOST.into()), entry(Ipv4Addr::LOCALHOST.into())],
            rendezvous: None,
            job_id: Vec::new(),
            secret: None,
            connect_timeout: Some(Duration::ZERO),
            timeout: None,
            connections: 1,
            wide: false,
            wire: Wire::Mlx,
        };
        let error = form(&config).err().expect("no ring");
        assert_eq!((error.status, error.rank), (Status::ConnectFailed, Some(0)));
        let why = "rank 0 (right neighbour) could not be reached at [::1]:0: no IPv4 address is known";
        assert!(error.text.ends_with(why), "{error}");
    }
}
