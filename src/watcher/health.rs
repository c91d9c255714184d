//! What the threads of a rank share of their group's health: the one failure, the control links,
//! and what the ranks do. Any thread may report, ask and wait; the watcher thread reads.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::control::Control;
use super::peers::{Peers, Side};
use super::record::broken_link;
use super::spread::Spread;
use crate::error::{Error, Status, os_words};
use crate::link::{Arrival, TcpLink};
use crate::log;
use crate::sys::{PollEntry, Stop, Wake};
use crate::wire::{CallHeader, Message, Traffic};

/// A rank waits this long for a record that comes before the one it has: two ranks that see one
/// failure, or two failures of one moment, then end in one cause.
const WINDOW: Duration = Duration::from_millis(20);
/// A call that runs when a failure of another becomes known may still end well: its ranks may all have
/// done their part. It ends with its links, which failed ranks close, or after this time.
const GRACE: Duration = Duration::from_millis(250);
/// A dead process's sockets are closed one after the other: its control link's end follows a data
/// link's within this time, a packet of it lost and sent again (200 ms on Linux) included, or the
/// process is alive.
pub(super) const SETTLES: Duration = Duration::from_millis(500);
/// Frames that are read from a link before what came of them is sent and others have their turn: a
/// peer that floods this rank must neither fill its memory nor hold up its calls.
const FRAMES: usize = 64;

/// A group's health as this rank knows it.
pub struct Health {
    peers: Peers,
    /// Whether ranks hear of each other: there are control links. Otherwise each knows what its own links tell it.
    hears: bool,
    pub stop: Stop,
    failing: AtomicBool,
    settled: OnceLock<Error>,
    announced: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
    bell: Arc<Wake>,
}

/// Descriptors that a group needs besides its links. They are made before its ring forms, since
/// strangers may take what is left afterwards.
pub struct Signals {
    /// Ends running calls: raised by a failure that leaves them no hope, and by destroy.
    stop: Stop,
    /// Wakes the watcher.
    bell: Arc<Wake>,
}

impl Signals {
    /// Of a family's first group.
    pub fn new() -> io::Result<Signals> {
        Ok(Signals { stop: Stop::new()?, bell: Arc::new(Wake::new()?) })
    }

    /// Of a group whose watcher is there.
    pub fn with_bell(bell: Arc<Wake>) -> io::Result<Signals> {
        Ok(Signals { stop: Stop::new()?, bell })
    }

    /// What wakes the watcher.
    pub fn bell(&self) -> Arc<Wake> {
        self.bell.clone()
    }
}

pub(super) struct State {
    pub spread: Spread,
    links: [Option<Control>; 2],
    /// Messages whose links are to come.
    pub expected: Vec<(Message, Weak<Arrival>)>,
    pub failing_since: Option<Instant>,
    closing: bool,
}

/// Why a data link has ended, by the word of its peer's control link.
pub enum Cause {
    /// The group has failed for this reason.
    Failed(Error),
    /// The peer has destroyed its group after this collective.
    Left(u64),
    /// The sender gave the link up before it knew that this rank had it.
    Unreached(Error),
}

impl Health {
    /// `controls` are the links to the right and to the left; a group of one has none, nor has one on stock MLX's wire.
    pub fn new(peers: Peers, controls: Vec<TcpLink>, signals: Signals) -> io::Result<Health> {
        let hears = !controls.is_empty();
        let mut links = [None, None];
        for (link, control) in links.iter_mut().zip(controls) {
            *link = Some(Control::new(control)?);
        }
        let spread = Spread::new(peers.clone());
        Ok(Health {
            peers,
            hears,
            stop: signals.stop,
            failing: AtomicBool::new(false),
            settled: OnceLock::new(),
            announced: AtomicBool::new(false),
            state: Mutex::new(State {
                spread,
                links,
                expected: Vec::new(),
                failing_since: None,
                closing: false,
            }),
            changed: Condvar::new(),
            bell: signals.bell,
        })
    }

    /// Who is who.
    pub fn peers(&self) -> &Peers {
        &self.peers
    }

    /// What made the group fail; it never changes.
    pub fn failure(&self) -> Option<&Error> {
        self.settled.get()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with what is known, and sends what came of it.
    pub(super) fn act<T>(&self, act: impl FnOnce(&mut Spread) -> T) -> T {
        let mut state = self.state();
        let done = act(&mut state.spread);
        self.publish(&mut state);
        done
    }

    pub(super) fn publish(&self, state: &mut State) {
        let frames = state.spread.take_outbox();
        if frames.is_empty() && state.failing_since.is_some() == state.spread.failure().is_some() {
            return;
        }
        for (side, frame) in frames {
            if let Some(link) = &mut state.links[side as usize] {
                link.send(&frame, self.peers.size);
            }
        }
        if state.spread.failure().is_some() {
            state.failing_since.get_or_insert_with(Instant::now);
            self.failing.store(true, Ordering::Release);
            // Where nobody else comes to hear of it, what runs has nothing to hope for.
            if state.spread.is_hopeless() || !self.hears {
                self.stop.raise();
            }
        }
        self.changed.notify_all();
        self.bell.wake();
    }

    /// Reads the control links and sends what had to wait; settles a failure that is due.
    pub fn attend(&self) {
        let mut state = self.state();
        self.read(&mut state);
        self.settle(&mut state);
        drop(state);
        self.announce();
    }

    /// Tells the log once of a settled failure; not under the lock, since the log is the host's.
    fn announce(&self) {
        if let Some(first) = self.settled.get()
            && !self.announced.swap(true, Ordering::Relaxed)
        {
            log::line!(Error, "rank {}: the group has failed: {first}", self.peers.rank);
        }
    }

    pub(super) fn read(&self, state: &mut State) {
        let State { spread, links, expected, .. } = state;
        for side in Side::BOTH {
            let Some(link) = &mut links[side as usize] else { continue };
            link.flush();
            let mut frames = 0;
            loop {
                match link.read() {
                    Ok(Some(frame)) => spread.hear(side, frame, Instant::now()),
                    Ok(None) => break,
                    Err(why) => {
                        spread.ended(side, &why);
                        links[side as usize] = None;
                        break;
                    }
                }
                frames += 1;
                if frames == FRAMES {
                    // What the link has buffered makes no descriptor ready.
                    self.bell.wake();
                    break;
                }
            }
        }
        for (message, arrival) in expected {
            if let (Some(error), Some(arrival)) = (spread.no_link(message), arrival.upgrade()) {
                arrival.fail(error);
            }
        }
        self.publish(state);
        self.changed.notify_all();
    }

    /// Makes the failure final once its window is over, and ends what runs after its grace; what is
    /// open yet, and until when.
    fn settle(&self, state: &mut State) -> Option<Instant> {
        let since = state.failing_since?;
        let now = Instant::now();
        if self.settled.get().is_none() && self.hears && now < since + WINDOW {
            return Some(since + WINDOW);
        }
        if let (None, Some(verdict)) = (self.settled.get(), state.spread.verdict()) {
            let _ = self.settled.set(verdict);
            self.changed.notify_all();
        }
        if now < since + GRACE {
            return (!self.stop.is_raised()).then_some(since + GRACE);
        }
        self.stop.raise();
        None
    }

    /// Waits for a failure that has begun to be settled; None, at once, if there is none.
    pub fn settled(&self) -> Option<Error> {
        if !self.failing.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.state();
        while let (Some(until), None) = (self.settle(&mut state), self.settled.get()) {
            let left = until.saturating_duration_since(Instant::now());
            state = self.wait(state, left);
        }
        drop(state);
        self.announce();
        self.settled.get().cloned()
    }

    pub(super) fn wait<'s>(
        &'s self,
        state: MutexGuard<'s, State>,
        at_most: Duration,
    ) -> MutexGuard<'s, State> {
        self.changed.wait_timeout(state, at_most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Fails the group, tells everyone, and returns the failure that stands.
    pub fn fail(&self, error: Error) -> Error {
        self.report(error.clone());
        self.settled().unwrap_or(error)
    }

    /// Fails the group and tells everyone, without waiting for the failure to be settled.
    pub fn report(&self, error: Error) {
        let detected_by = error.detected_by.or(Some(self.peers.rank));
        self.act(|spread| spread.learn(Error { detected_by, ..error }, None));
    }

    /// Fails the group at this rank's own wish, unless it has failed, and ends what runs. Waits for
    /// nothing: what this rank does itself comes first here.
    pub fn abort(&self) {
        let mut state = self.state();
        let (at, sequence) = state.spread.at();
        let text = format!("{at}: rank {} has aborted the group", self.peers.rank);
        let error = Error::new(Status::Aborted, text).at_rank(self.peers.rank);
        if state.spread.failure().is_none() {
            state.spread.learn(Error { sequence, detected_by: Some(self.peers.rank), ..error }, None);
            self.publish(&mut state);
            state.spread.verdict().map(|first| self.settled.set(first));
        }
        drop(state);
        // Of a group that had failed, what is still in its grace.
        self.stop.raise();
        self.announce();
    }

    /// Reads from the control links why the data link of this rank has ended; None where this rank
    /// destroys its group meanwhile.
    pub fn cause(
        &self,
        rank: usize,
        call: &CallHeader,
        message: Option<&Message>,
        error: &io::Error,
    ) -> Option<Cause> {
        let deadline = Instant::now() + SETTLES;
        let mut state = self.state();
        loop {
            self.read(&mut state);
            if state.failing_since.is_some() {
                drop(state);
                break;
            }
            if let Some(error) = message.and_then(|message| state.spread.never_comes(message)) {
                return Some(Cause::Unreached(error));
            }
            if let Some(last) = state.spread.departed(rank) {
                return Some(Cause::Left(last));
            }
            if self.stop.is_raised() {
                return None;
            }
            if !self.hears {
                drop(state);
                self.report(self.neighbour_lost(rank, call, error));
                break;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(state);
                self.report(self.silent_link(rank, call, error));
                break;
            }
            state = self.wait(state, left);
        }
        let unknown = || Error::new(Status::Internal, "a failure without a cause");
        Some(Cause::Failed(self.settled().unwrap_or_else(unknown)))
    }

    fn silent_link(&self, rank: usize, call: &CallHeader, error: &io::Error) -> Error {
        let lost = Error::new(Status::PeerLost, "").at_rank(rank).with_os(error);
        let lost = Error { sequence: call.sequence, detected_by: Some(self.peers.rank), ..lost };
        let broken = broken_link(&lost, rank).unwrap_or(lost);
        let text = format!("{call}, call {}: {} ({})", call.sequence, broken.text, os_words(error));
        Error { text, ..broken }
    }

    /// What the end of a link says where there is no other word of the peer.
    fn neighbour_lost(&self, rank: usize, call: &CallHeader, error: &io::Error) -> Error {
        let how = match error.kind() {
            io::ErrorKind::UnexpectedEof => String::new(),
            _ => format!(" ({})", os_words(error)),
        };
        let name = self.peers.neighbour(rank);
        let text = format!("{call}, call {}: {name} has ended the connection{how}", call.sequence);
        let lost = Error::new(Status::PeerLost, text).at_rank(rank).with_os(error);
        Error { sequence: call.sequence, ..lost }
    }

    /// Whether ranks hear of each other; otherwise nobody can be asked at a deadline.
    pub fn hears(&self) -> bool {
        self.hears
    }

    /// A collective begins, waits, ends.
    pub fn enter(&self, header: CallHeader) {
        self.act(|spread| spread.enter(header));
    }

    /// So much of the running collective has gone over the lanes.
    pub fn progress(&self, traffic: Traffic) {
        self.state().spread.progress(traffic);
    }

    /// The running collective has ended.
    pub fn leave(&self, succeeded: bool) {
        self.state().spread.leave(succeeded);
    }

    /// Says goodbye, unless the group has failed, and has the watcher end.
    pub fn close(&self) {
        self.act(Spread::say_goodbye);
        self.state().closing = true;
        self.bell.wake();
    }

    /// Whether the watcher is to end.
    pub fn is_closing(&self) -> bool {
        self.state().closing
    }

    /// The control links, to be closed.
    pub fn take_controls(&self) -> Vec<TcpLink> {
        let mut state = self.state();
        state.links.iter_mut().filter_map(|link| Some(link.take()?.into_link())).collect()
    }

    /// What the watcher polls, and until when at most.
    pub fn waits(&self, entries: &mut Vec<PollEntry>) -> Option<Instant> {
        let mut state = self.state();
        entries.extend(state.links.iter().flatten().filter_map(Control::waits));
        self.settle(&mut state)
    }

    /// The latest round of the roll.
    #[cfg(test)]
    pub fn round(&self) -> u32 {
        self.state().spread.roll().round()
    }

    /// Bytes that wait for the neighbours to take them.
    #[cfg(test)]
    pub fn unsent(&self) -> usize {
        self.state().links.iter().flatten().map(Control::unsent).sum()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::frames::FrameLink;
    use crate::wire::Kind;
    use std::net::{TcpListener, TcpStream};

    fn connected() -> [TcpLink; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let theirs = listener.accept().unwrap().0;
        [ours, theirs].map(|socket| TcpLink::new(socket.into()).unwrap())
    }

    /// Rank 0 of two, and what rank 1 has of the link to it.
    pub fn rank_and_peer() -> (Health, FrameLink) {
        let [ours, theirs] = connected();
        let peers = Peers { rank: 0, size: 2, addresses: Vec::new() };
        (Health::new(peers, vec![ours], Signals::new().unwrap()).unwrap(), FrameLink::new(theirs))
    }

    #[test]
    fn an_abort_ends_what_is_in_its_grace() {
        let (health, _peer) = rank_and_peer();
        health.enter(CallHeader::new(Kind::Barrier, 1));
        let lost = health.fail(Error::new(Status::PeerLost, "on purpose").at_rank(1));
        assert!(!health.stop.is_raised());
        health.abort();
        assert!(health.stop.is_raised());
        assert_eq!(health.failure(), Some(&lost));
    }
}
