//! A communicator: its numbers, its calls one at a time and in order, its one failure.

mod calls;
mod collective;
mod collectives;
mod counts;
mod delivery;
mod driver;
mod failure;
mod family;
mod machine;
mod messages;
mod mlx;
mod operation;
mod pairs;
mod planning;
mod request;
mod requests;
mod split;
mod stall;
mod stats;
mod traced;
mod turns;

pub use crate::plan::{Parts, Stretch};
pub use crate::wire::Kind;
pub use calls::{Call, Message};
pub use request::Request;
pub use stats::Stats;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::bootstrap::config::{Config, Wire};
use crate::bootstrap::mlx::MlxLane;
use crate::bootstrap::{self, Neighbour, Reach};
use crate::error::{Error, Result, Status};
use crate::link::{Link, TcpLink, linger};
use crate::log;
use crate::sys::fork;
use crate::trace::Trace;
use crate::watcher::{Health, Peers, Side, Signals, Watcher};

use calls::{Entered, Running};
use collectives::Collectives;
use family::Doorkeeper;
use messages::Messages;
use requests::Requests;
use stats::Counters;

/// How long destroy waits for the peers to take what was sent.
const LINGER: Duration = Duration::from_secs(1);

/// A group of ranks as one of them sees it. Any thread may call any method.
pub struct Group {
    /// Of the process that made the group: a forked child has another.
    generation: u32,
    /// Milliseconds; [`NO_TIMEOUT`] waits for ever.
    timeout_ms: AtomicU64,
    running: Arc<Running>,
    health: Arc<Health>,
    collectives: Collectives,
    messages: Messages,
    requests: Requests,
    counters: Arc<Counters>,
    wide: bool,
    wire: Wire,
    /// None in a group of one, and on stock MLX's wire.
    reach: Option<Reach>,
    connect_timeout: Option<Duration>,
    /// A call that stands still for so long is worth a line in the log; None: none is.
    stall_warning: Option<Duration>,
    /// Of all groups of the family; None in a group of one, and on stock MLX's wire, which has nothing to watch.
    watcher: Option<Arc<Watcher>>,
    trace: Option<Trace>,
}

const NO_TIMEOUT: u64 = u64::MAX;

impl Group {
    /// Forms the ring that the configuration describes; blocks until it stands.
    pub fn create(config: &Config) -> Result<Arc<Group>> {
        let size = config.entries.len();
        let peers = Peers { rank: config.rank, size, addresses: Vec::new() };
        let signals = Signals::new().map_err(|error| Error::system("making a pipe", &error))?;
        let Config { timeout, connect_timeout, stall_warning, wide, wire, .. } = *config;
        let settings = Settings { timeout, connect_timeout, stall_warning, wide, wire };
        let counters = Arc::default();
        let trace = |id| config.trace_dir.as_ref().map(|path| Trace::new(path, config.rank, size, id));
        let is_timed = config.trace_dir.is_some();
        if size == 1 {
            let links = Links::new(1, is_timed);
            return Ok(Arc::new(Group::new(peers, links, signals, settings, None, counters, trace(None))?));
        }
        if wire == Wire::Mlx {
            let bootstrap::mlx::Lanes { right, left, right_address } = bootstrap::mlx::form(config)?;
            let mut peers = Peers { addresses: vec![None; size], ..peers };
            peers.addresses[(config.rank + 1) % size] = right_address;
            let mut links = Links::new(size, is_timed);
            for (side, lanes) in [(Side::Right, right), (Side::Left, left)] {
                let rank = peers.rank_at(side);
                let lane = |link| mlx_lane(link, rank, peers.neighbour(rank));
                links.lanes.extend(lanes.into_iter().map(lane));
            }
            log::line!(Info, "rank {} of {size}: connected in an MLX ring", config.rank);
            return Ok(Arc::new(Group::new(peers, links, signals, settings, None, counters, trace(None))?));
        }
        let mut ring = bootstrap::form(config)?;
        let left_of = |rank: usize| &ring.members[(rank + size - 1) % size];
        let addresses: Vec<_> = (0..size).map(|rank| left_of(rank).right_address).collect();
        let peers = Peers { addresses: addresses.clone(), ..peers };
        let reach = ring.door.reach(ring.group, addresses, signals.bell());
        let mut links = Links::new(size, is_timed);
        links.add_right(ring.right);
        links.add_left(ring.left);
        log::line!(Info, "rank {} of {size}: the ring has formed", config.rank);
        let watcher = Watcher::new(signals.bell(), Box::new(Doorkeeper::new(ring.door, counters.clone())));
        let family = Some((reach, watcher));
        let trace = trace(Some(ring.group));
        let group = Arc::new(Group::new(peers, links, signals, settings, family, counters, trace)?);
        group.start_watching()?;
        Ok(group)
    }

    fn new(
        peers: Peers,
        links: Links,
        signals: Signals,
        settings: Settings,
        family: Option<(Reach, Arc<Watcher>)>,
        counters: Arc<Counters>,
        trace: Option<Trace>,
    ) -> Result<Group> {
        let health = Health::new(peers, links.controls, signals);
        let health = health.map_err(|error| Error::system("watching a connection", &error))?;
        let (reach, watcher) = family.unzip();
        let group = Group {
            generation: fork::generation(),
            timeout_ms: AtomicU64::new(NO_TIMEOUT),
            running: Arc::default(),
            health: Arc::new(health),
            collectives: Collectives::new(links.lanes, trace.is_some()),
            messages: links.messages,
            requests: Requests::default(),
            counters,
            wide: settings.wide,
            wire: settings.wire,
            reach,
            connect_timeout: settings.connect_timeout,
            stall_warning: settings.stall_warning,
            watcher,
            trace,
        };
        group.set_timeout(settings.timeout);
        Ok(group)
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.health.peers().rank
    }

    /// Ranks in the group.
    pub fn size(&self) -> usize {
        self.health.peers().size
    }

    /// Whether sums and means of 16-bit floats are kept in f32 until the end of a chain.
    pub fn is_wide(&self) -> bool {
        self.wide
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
        self.health.failure()
    }

    /// Without progress for this long, calls that start later fail; None waits for ever.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        let ms = timeout.map_or(NO_TIMEOUT, |timeout| timeout.as_millis() as u64);
        self.timeout_ms.store(ms, Ordering::Relaxed);
    }

    /// How long links are tried whose making others wait for: they are to hear of a failure before their own
    /// timeout is over.
    fn connect_limit(&self, timeout: Option<Duration>) -> Option<Duration> {
        let half = timeout.map(|timeout| timeout / 2);
        self.connect_timeout.into_iter().chain(half).min()
    }

    fn timeout(&self) -> Option<Duration> {
        match self.timeout_ms.load(Ordering::Relaxed) {
            NO_TIMEOUT => None,
            ms => Some(Duration::from_millis(ms)),
        }
    }

    /// Fails the group at this rank's wish: every call on it, here and on the other ranks, returns
    /// ABORTED. A group that has failed stays as it is.
    pub fn abort(&self) {
        self.health.abort();
        // On stock MLX's wire there is no watcher to close the links.
        self.close_idle_links();
    }

    /// Fails the group after a fault of the library's own.
    pub fn fail_internally(&self, text: &str) -> Error {
        let text = format!("rank {}: a fault of the library: {text}", self.rank());
        let first = self.health.fail(Error::new(Status::Internal, text).at_rank(self.rank()));
        self.close_idle_links();
        first
    }

    /// Fails the group, which stands, by what this host alone refuses.
    fn host_refused(&self, what: &str, error: &std::io::Error) -> Error {
        let rank = self.rank();
        self.health.fail(Error::system(&format!("rank {rank}, {what}"), error).at_rank(rank))
    }

    /// Lets a call in; what follows it is [`Group::leave`].
    fn enter(&self) -> Result<Entered> {
        let entered = self.running.enter()?;
        self.check_health().inspect_err(|error| self.trace_failure(error)).map(|()| entered)
    }

    fn check_health(&self) -> Result<()> {
        self.health.settled().map_or(Ok(()), Err)
    }

    /// A call has ended. Where the group has failed meanwhile, each call closes the links that no
    /// other holds, and the watcher those that no call uses; and the first one writes the trace.
    fn leave(&self) {
        if let Some(error) = self.health.failure() {
            self.close_idle_links();
            self.trace_failure(error);
        }
    }

    /// Leaves to running calls what they hold.
    fn close_idle_links(&self) {
        drop(self.collectives.take_links());
        drop(self.messages.take_links());
    }

    /// Ends running calls, waits until they have returned, says goodbye, delivers what was sent
    /// if the peers take it within a second, and closes every link.
    pub fn destroy(&self) {
        if self.check_usable().is_err() {
            return;
        }
        self.running.close(|| self.health.stop.raise());
        if let Some(requests) = self.requests.close() {
            // A panic of the thread has failed the group.
            let _ = requests.join();
        }
        self.health.close();
        if let Some(watcher) = &self.watcher {
            watcher.leave(&self.health);
        }
        self.reach.iter().for_each(Reach::close);
        let mut links = self.collectives.take_links();
        links.extend(self.messages.take_links());
        links.extend(self.health.take_controls().into_iter().map(|link| Box::new(link) as Box<dyn Link>));
        linger(links, if self.health.settled().is_none() { LINGER } else { Duration::ZERO });
        if let Some(trace) = &self.trace {
            trace.close(self.failure());
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Ends the threads of a group that nobody has destroyed.
        self.health.close();
        drop(self.requests.close());
    }
}

/// What a group is given by those who made it, and gives to the groups that are split from it.
#[derive(Clone, Copy)]
struct Settings {
    timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
    stall_warning: Option<Duration>,
    wide: bool,
    wire: Wire,
}

/// A ring's links in the order in which its parts want them.
struct Links {
    size: usize,
    /// To the right, then to the left.
    lanes: Vec<Box<dyn Link>>,
    controls: Vec<TcpLink>,
    messages: Messages,
}

impl Links {
    /// See [`Turns::new`] for `is_timed`.
    fn new(size: usize, is_timed: bool) -> Links {
        let messages = Messages::new(size, is_timed);
        Links { size, lanes: Vec::new(), controls: Vec::new(), messages }
    }

    /// In a ring of two both sides lead to one rank: each sends on the edge to its right.
    fn add_right(&mut self, right: Neighbour) {
        let into = (self.size > 2).then(|| data_link(right.message_in));
        self.messages.add(right.rank, Some(data_link(right.message_out)), into);
        self.lanes.extend(right.lanes.into_iter().map(data_link));
        self.controls.push(right.control);
    }

    fn add_left(&mut self, left: Neighbour) {
        let out = (self.size > 2).then(|| data_link(left.message_out));
        self.messages.add(left.rank, out, Some(data_link(left.message_in)));
        self.lanes.extend(left.lanes.into_iter().map(data_link));
        self.controls.push(left.control);
    }
}

/// A link that carries data.
fn data_link(link: TcpLink) -> Box<dyn Link> {
    link.suit_data();
    Box::new(link)
}

fn mlx_lane(link: TcpLink, rank: usize, neighbour: String) -> Box<dyn Link> {
    link.suit_data();
    Box::new(MlxLane::new(link, rank, neighbour))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
