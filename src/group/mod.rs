//! A communicator: its numbers, its calls one at a time and in order, its one failure.

mod calls;
mod collectives;
mod control;
mod failure;
mod messages;
mod turns;

pub use calls::{AllGather, AllReduce, Message};

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::bootstrap::config::Config;
use crate::bootstrap::{self, Neighbour};
use crate::engine::Stop;
use crate::error::{Error, Result, Status, os_words};
use crate::link::{Link, TcpLink};
use crate::log;
use crate::memory::Region;
use crate::sys::{self, Interest, PollEntry, fork};

use calls::Running;
use collectives::Collectives;
use control::Control;
use failure::Failure;
use messages::Messages;

/// How long destroy waits for the peers to take what was sent.
const LINGER: Duration = Duration::from_secs(1);

/// The two neighbours; as numbers, the places of their links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Right = 0,
    Left = 1,
}

/// Who is who, for texts.
#[derive(Clone, Debug)]
struct Peers {
    rank: usize,
    size: usize,
    right: usize,
    left: usize,
    /// The right neighbour's as it was reached; of the left one only the host, since the port that
    /// it connected from tells nothing. None in a group of one.
    addresses: Option<[String; 2]>,
}

impl Peers {
    fn rank_at(&self, side: Side) -> usize {
        [self.right, self.left][side as usize]
    }

    fn name(&self, side: Side) -> String {
        let rank = self.rank_at(side);
        match &self.addresses {
            Some(addresses) => format!("rank {rank} ({})", addresses[side as usize]),
            None => format!("rank {rank}"),
        }
    }
}

/// A group of ranks as one of them sees it. Any thread may call any method.
pub struct Group {
    peers: Peers,
    /// Of the process that made the group: a forked child has another.
    generation: u32,
    /// Milliseconds; [`NO_TIMEOUT`] waits for ever.
    timeout_ms: AtomicU64,
    running: Arc<Running>,
    failure: Failure,
    collectives: Collectives,
    messages: Messages,
}

const NO_TIMEOUT: u64 = u64::MAX;

impl Group {
    /// Forms the ring that the configuration describes; blocks until it stands.
    pub fn create(config: &Config) -> Result<Group> {
        let size = config.entries.len();
        let (right, left) = ((config.rank + 1) % size, (config.rank + size - 1) % size);
        let mut peers = Peers { rank: config.rank, size, right, left, addresses: None };
        let stop = Stop::new().map_err(|error| {
            Error::new(Status::System, format!("making a pipe: {}", os_words(&error))).with_os(&error)
        })?;
        let mut lanes: Vec<Box<dyn Link>> = Vec::new();
        let (mut controls, mut messages) = (Vec::new(), Messages::default());
        if size > 1 {
            let ring = bootstrap::form(config)?;
            // Nobody looks after it yet.
            drop(ring.door);
            peers.addresses = Some([ring.right.address.to_string(), ring.left.address.ip().to_string()]);
            for neighbour in [ring.right, ring.left] {
                let Neighbour { lanes: own, control, message_out, message_in, .. } = neighbour;
                lanes.extend(own.into_iter().map(boxed));
                controls.push(Control::new(control));
                messages.add(boxed(message_out), boxed(message_in));
            }
            log::line!(Info, "rank {} of {size}: the ring has formed", config.rank);
        }
        let group = Group {
            peers: peers.clone(),
            generation: fork::generation(),
            timeout_ms: AtomicU64::new(NO_TIMEOUT),
            running: Arc::default(),
            failure: Failure::new(peers, stop, controls),
            collectives: Collectives::new(lanes),
            messages,
        };
        group.set_timeout(config.timeout);
        Ok(group)
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.peers.rank
    }

    /// Ranks in the group.
    pub fn size(&self) -> usize {
        self.peers.size
    }

    /// Refuses use in a forked child of the process that made the group.
    pub fn check_usable(&self) -> Result<()> {
        if self.generation == fork::generation() {
            return Ok(());
        }
        let text = "the group belongs to the process that created it, and this is a forked child";
        Err(Error::new(Status::InvalidState, text))
    }

    /// The sticky failure; it is set once and never changes.
    pub fn failure(&self) -> Option<&Error> {
        self.failure.get()
    }

    /// Without progress for this long, calls that start later fail; None waits for ever.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        let ms = timeout.map_or(NO_TIMEOUT, |timeout| timeout.as_millis() as u64);
        self.timeout_ms.store(ms, Ordering::Relaxed);
    }

    fn timeout(&self) -> Option<Duration> {
        match self.timeout_ms.load(Ordering::Relaxed) {
            NO_TIMEOUT => None,
            ms => Some(Duration::from_millis(ms)),
        }
    }

    /// Fails the group after a fault of the library's own.
    pub fn fail_internally(&self, text: &str) -> Error {
        let first = self.failure.set(Error::new(Status::Internal, text).at_rank(self.peers.rank));
        self.close_data_links();
        first
    }

    /// Makes `error` the group's failure, unless it has one; returns the one that stands. That this
    /// rank destroyed the group is no failure: the goodbye tells it. The data links are closed by
    /// whoever called, once it holds none of them.
    fn settle(&self, error: Error) -> Error {
        let destroyed = error.status == Status::Aborted && self.failure.get().is_none();
        if destroyed { error } else { self.failure.set(error) }
    }

    /// Waits for the calls that hold them, which the stop flag has ended.
    fn close_data_links(&self) {
        drop(self.collectives.take_links());
        drop(self.messages.take_links());
    }

    /// Ends running calls, waits until they have returned, says goodbye, delivers what was sent
    /// if the peers take it within a second, and closes every link.
    pub fn destroy(&self) {
        if self.check_usable().is_err() {
            return;
        }
        self.running.close(|| self.failure.stop.raise());
        if self.failure.get().is_none() {
            self.failure.say_goodbye(self.collectives.ended());
            let mut links = self.collectives.take_links();
            links.extend(self.messages.take_links());
            let controls = self.failure.take_controls();
            links.extend(controls.into_iter().map(|control| boxed(control.into_link())));
            linger(links);
        }
        self.close_data_links();
        drop(self.failure.take_controls());
    }
}

fn boxed(link: TcpLink) -> Box<dyn Link> {
    Box::new(link)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the links' sending sides, and reads until the peers have ended theirs: closing a socket
/// with unread input would reset it, and destroy what was sent on it.
fn linger(mut links: Vec<Box<dyn Link>>) {
    const DISCARD_BYTES: usize = 64 << 10;
    let deadline = Instant::now() + LINGER;
    let mut discarded = vec![0; DISCARD_BYTES];
    links.iter_mut().for_each(|link| link.finish());
    loop {
        links.retain_mut(|link| {
            loop {
                match link.receive(Region::from_slice(&mut discarded)) {
                    Ok(0) => return true,
                    Ok(_) => {}
                    Err(_) => return false,
                }
            }
        });
        let left = deadline.saturating_duration_since(Instant::now());
        if links.is_empty() || left.is_zero() {
            return;
        }
        let read = Interest { read: true, write: false };
        let descriptors = links.iter().filter_map(|link| link.descriptor());
        let mut entries: Vec<_> = descriptors.map(|descriptor| PollEntry::new(descriptor, read)).collect();
        if sys::poll(&mut entries, Some(left)).is_err() {
            return;
        }
    }
}
