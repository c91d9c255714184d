//! Forms a ring with stock MLX processes. There is no handshake: whoever connects to an address is the left neighbour's
//! connection of that address, and one more would be taken for data.
//!
//! The order is MLX's (`mlx/distributed/ring/ring.cpp`): every rank but the last accepts from the left and then
//! connects to the right, the last one connects first; connections are made one at a time, in the order of the
//! addresses. MLX tries a connection for 31 s; here it is the connect timeout. All own addresses are listened on from
//! the start, where MLX opens the next one after it has accepted: a neighbour never finds one closed.

mod accepting;
mod connecting;
mod lane;

pub use lane::MlxLane;

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::bootstrap::config::Config;
use crate::bootstrap::{Connection, printed};
use crate::error::{Error, Result, Status};
use crate::link::TcpLink;
use crate::memory::Region;
use crate::sys::{self, Interest, PollEntry};
use crate::wire::{HELLO_MAGIC, begins_native};

use accepting::Accepting;
use connecting::Connecting;
use lane::speaks_native;

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
    from_left: Vec<Accepting>,
    to_right: Vec<Connecting>,
}

impl Forming<'_> {
    fn new(config: &Config) -> Forming<'_> {
        let (rank, size) = (config.rank, config.entries.len());
        let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
        let from_left = config.entries[rank].iter().map(Accepting::new).collect();
        let to_right = config.entries[right].iter().map(Connecting::new).collect();
        Forming { config, right, left, from_left, to_right }
    }

    /// Goes as far as it can; whether the ring stands here.
    fn progress(&mut self, now: Instant) -> Result<bool> {
        // A neighbour that has sent and left has been here, though some lanes of it end without a byte.
        let has_sent = self.from_left.iter().filter_map(|lane| lane.came.as_ref()).any(has_sent);
        for lane in &mut self.from_left {
            lane.progress(now, has_sent)?;
        }
        if self.connects() {
            for lane in &mut self.to_right {
                lane.progress(now)?;
                if !lane.is_done() {
                    break;
                }
            }
        }
        self.refuse_native()?;
        let is_in_ring = |lane: &Connecting| lane.is_done() || (self.is_last() && lane.left.is_some());
        Ok(self.from_left.iter().all(Accepting::is_done) && self.to_right.iter().all(is_in_ring))
    }

    /// A neighbour that was told to speak the other wire says so with its first bytes, if they are here already;
    /// otherwise its lane finds it out.
    fn refuse_native(&self) -> Result<()> {
        let came = self.from_left.iter().filter_map(|lane| Some((self.left, "left", lane.came.as_ref()?)));
        let made = self.to_right.iter().filter_map(|lane| Some((self.right, "right", lane.made.as_ref()?)));
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
        self.from_left.iter().all(|lane| lane.is_done() || (self.is_last() && !lane.is_deaf()))
    }

    fn is_last(&self) -> bool {
        self.right == 0
    }

    fn sleep(&self, now: Instant, deadline: Option<Instant>) -> Result<()> {
        let mut entries = Vec::new();
        self.from_left.iter().for_each(|lane| lane.waits(&mut entries));
        self.to_right.iter().for_each(|lane| lane.waits(&mut entries));
        let pauses = self.to_right.iter().filter_map(|lane| lane.not_before.filter(|until| *until > now));
        let limit =
            pauses.chain(deadline).map(|until| until - now).min().map_or(TURN, |limit| limit.min(TURN));
        let slept = sys::poll(&mut entries, Some(limit));
        slept.map(|_| ()).map_err(|error| Error::system("waiting for connections", &error))
    }

    /// Who is missing.
    fn too_late(&self) -> Error {
        if let Some(lane) = self.from_left.iter().find(|lane| lane.is_deaf()) {
            return lane.error();
        }
        let (mut parts, mut rank, mut os_error) = (Vec::new(), None, 0);
        let missing = self.from_left.iter().filter(|lane| !lane.is_done());
        let missing: Vec<_> = missing.map(|lane| lane.address.to_string()).collect();
        if !missing.is_empty() {
            let addresses = missing.join(", ");
            parts.push(format!("rank {} (left neighbour) has not connected to {addresses}", self.left));
            rank = Some(self.left);
        }
        // It may be only now that the left neighbour has left, at a timeout like this one.
        let tried = |lane: &&Connecting| self.connects() || lane.has_tried();
        if let Some(lane) = self.to_right.iter().find(|lane| !lane.is_done()).filter(tried) {
            let (trouble, number) = lane.trouble();
            parts.push(format!("rank {} (right neighbour) could not be reached at {trouble}", self.right));
            // The last rank's left neighbour waits, over all the others, for the right one. One that was there, and has
            // given up, waited for somebody else.
            rank = rank.filter(|_| lane.left.is_some()).or(Some(self.right));
            os_error = number;
        }
        let waited = self.config.connect_timeout.unwrap_or_default().as_millis();
        let text = format!("the MLX ring did not form within {waited} ms: {}", parts.join("; "));
        Error { rank, os_error, ..Error::new(Status::ConnectFailed, text) }
    }

    fn lanes(self) -> io::Result<Lanes> {
        let first = self.to_right.first().and_then(|lane| lane.made.as_ref().or(lane.left.as_ref()));
        let right_address = first.map(|first| first.address);
        let left = self.from_left.into_iter().filter_map(|lane| lane.came).map(Connection::into_link);
        let right =
            self.to_right.into_iter().filter_map(|lane| lane.made.or(lane.left)).map(Connection::into_link);
        Ok(Lanes {
            right: right.collect::<io::Result<_>>()?,
            left: left.collect::<io::Result<_>>()?,
            right_address,
        })
    }
}

/// Waits for the end of a connection. One whose peer sends already is not waited for: its ring stands.
fn watch(connection: &Connection, entries: &mut Vec<PollEntry>) {
    if arrived(connection).is_ok_and(|first| first.is_empty()) {
        entries.push(PollEntry::new(connection.descriptor(), Interest { read: true, write: false }));
    }
}

fn has_sent(connection: &Connection) -> bool {
    arrived(connection).is_ok_and(|first| !first.is_empty())
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
    use crate::bootstrap::config::{Address, Host, Wire};

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
            stall_warning: None,
            connections: 1,
            wide: false,
            wire: Wire::Mlx,
            trace_dir: None,
        };
        let error = form(&config).err().expect("no ring");
        assert_eq!((error.status, error.rank), (Status::ConnectFailed, Some(0)));
        let why = "rank 0 (right neighbour) could not be reached at [::1]:0: no IPv4 address is known";
        assert!(error.text.ends_with(why), "{error}");
    }
}
