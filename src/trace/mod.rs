//! A trace: the last calls of a rank, of the group that processes have formed and of those that were split from it,
//! in a file of Chrome's trace format.
//!
//! It is kept in memory, and written when a group is destroyed (see `REST`) and when one has failed: no call waits for a
//! disk but the first ones that return a failure.

mod call;
mod file;
mod json;

pub use call::{Call, Underway};

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::error::{Error, Status, os_words};
use crate::log;
use crate::sys;

use call::{Kept, Record, nanoseconds};

/// Calls of a rank that are kept, of all groups of the family together: at most 2.4 MB of memory and some 4 MB in the file.
const MOST_CALLS: usize = 10_000;
/// While other groups of the family are open, destroyed ones write the file no sooner after the last time: it takes some
/// 10 ms, and a program may split and destroy groups at every step.
const REST: Duration = Duration::from_secs(1);

/// A group's part of its family's trace.
#[derive(Clone)]
pub struct Trace {
    family: Arc<Family>,
    group: u32,
}

/// What a family of groups shares.
struct Family {
    about: About,
    path: PathBuf,
    origin: Instant,
    state: Mutex<State>,
    /// For the next calls.
    #[allow(clippy::vec_box, reason = "calls have the boxes")]
    spare: Mutex<Vec<Box<Kept>>>,
    /// Held while the file is written: who comes meanwhile finds it whole. When that was done last.
    writing: Mutex<Option<Instant>>,
    writers: Mutex<Vec<JoinHandle<()>>>,
    /// A writer has been started that will tell all that has happened until it begins.
    has_writer: AtomicBool,
}

/// What stays the same from the first write to the last.
#[derive(Clone, Debug)]
struct About {
    /// Of the group that processes have formed.
    rank: usize,
    size: usize,
    /// What the files of its ranks have in common.
    ring: String,
    host: String,
    /// Nanoseconds of the wall clock when the trace began.
    epoch: u64,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// By number.
    groups: Vec<Member>,
    calls: VecDeque<Record>,
    /// Calls that there were, those that are kept included.
    recorded: u64,
    next_group: u32,
}

/// A group of the family.
#[derive(Clone, Debug)]
struct Member {
    number: u32,
    /// Empty for the group that processes have formed.
    name: String,
    rank: usize,
    size: usize,
    is_open: bool,
    failure: Option<Failure>,
    /// As many calls as there were when its last one was recorded.
    last: u64,
}

#[derive(Clone, Debug)]
struct Failure {
    error: Error,
    /// Since the trace began.
    at: u64,
    is_written: bool,
}

impl State {
    fn add(&mut self, name: String, rank: usize, size: usize) -> u32 {
        // A program may make and destroy groups for ever.
        let gone = self.dropped();
        self.groups.retain(|group| group.is_open || group.last > gone);
        let number = self.next_group;
        self.next_group += 1;
        let last = self.recorded;
        self.groups.push(Member { number, name, rank, size, is_open: true, failure: None, last });
        number
    }

    /// The group that has this number.
    fn group(&mut self, number: u32) -> Option<&mut Member> {
        let at = self.groups.binary_search_by_key(&number, |group| group.number).ok()?;
        Some(&mut self.groups[at])
    }

    fn record(&mut self, record: Record) {
        if self.calls.len() == MOST_CALLS {
            self.calls.pop_front();
        }
        self.recorded += 1;
        let last = self.recorded;
        if let Some(group) = self.group(record.group) {
            group.last = last;
        }
        self.calls.push_back(record);
    }

    fn dropped(&self) -> u64 {
        self.recorded - self.calls.len() as u64
    }
}

/// The clocks are read together this often, since another program may have the core between two readings.
const CLOCK_TRIES: usize = 5;

/// The two clocks at one moment, and the wall clock's nanoseconds.
fn now() -> (Instant, u64) {
    let tries = (0..CLOCK_TRIES).map(|_| (Instant::now(), SystemTime::now(), Instant::now()));
    let best = tries.min_by_key(|(before, _, after)| *after - *before);
    let (origin, wall) = best.map_or((Instant::now(), SystemTime::now()), |(before, wall, _)| (before, wall));
    (origin, wall.duration_since(UNIX_EPOCH).map_or(0, nanoseconds))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Trace {
    /// Of a group that processes have formed; `id` is alike on all its ranks, where they have one.
    pub fn new(directory: &Path, rank: usize, size: usize, id: Option<[u8; 16]>) -> Trace {
        let (origin, epoch) = now();
        let ring = match id {
            Some([a, b, c, d, ..]) => format!("{:08x}", u32::from_be_bytes([a, b, c, d])),
            // The ranks of one ring are found by about the same time.
            None => format!("{}.{:09}-{}", epoch / 1_000_000_000, epoch % 1_000_000_000, std::process::id()),
        };
        let path = directory.join(format!("ring-{ring}-rank-{rank}.json"));
        let mut state = State::default();
        let group = state.add(String::new(), rank, size);
        let family = Family {
            about: About { rank, size, ring, host: sys::host_name(), epoch },
            path,
            origin,
            state: Mutex::new(state),
            spare: Mutex::default(),
            writing: Mutex::default(),
            writers: Mutex::default(),
            has_writer: AtomicBool::new(false),
        };
        Trace { family: Arc::new(family), group }
    }

    /// Of a group that this group's split with this number has made.
    pub fn of_split(&self, number: u64, color: i32, rank: usize, size: usize) -> Trace {
        let mut state = lock(&self.family.state);
        let parent = state.group(self.group).map_or(String::new(), |group| group.name.clone());
        let between = if parent.is_empty() { "" } else { ", " };
        let name = format!("{parent}{between}split {number} color {color}");
        let group = state.add(name, rank, size);
        Trace { family: self.family.clone(), group }
    }

    fn now(&self) -> u64 {
        nanoseconds(self.family.origin.elapsed())
    }

    /// A call that came then has its turn now.
    pub fn begin(&self, came: Option<Instant>) -> Underway {
        let mut kept = lock(&self.family.spare).pop().unwrap_or_else(|| Box::new(Kept::begin(None)));
        *kept = Kept::begin(came);
        Underway(Some(kept))
    }

    /// A call has ended.
    pub fn ended(&self, underway: Underway, call: Call, status: Status) {
        if let Some(kept) = underway.0 {
            let record = kept.end(self.group, call, status, self.family.origin);
            lock(&self.family.state).record(record);
            lock(&self.family.spare).push(kept);
        }
    }

    /// A call was refused as it came, and has taken its number.
    pub fn refused(&self, call: Call, status: Status) {
        let record = Kept::begin(None).end(self.group, call, status, self.family.origin);
        lock(&self.family.state).record(Record { is_refusal: true, start: record.end, ..record });
    }

    /// Keeps the group's first failure.
    fn note(&self, error: &Error, is_written: bool) {
        let at = self.now();
        if let Some(group) = lock(&self.family.state).group(self.group) {
            group.failure.get_or_insert_with(|| Failure { error: error.clone(), at, is_written });
        }
    }

    /// The group has failed: writes the file, unless that has been done for this failure.
    pub fn failed(&self, error: &Error) {
        self.note(error, false);
        self.family.write_failures();
    }

    /// The same on a thread of its own, for who may not wait for a disk.
    pub fn failed_meanwhile(&self, error: &Error) {
        self.note(error, false);
        // Groups of a family fail together.
        if self.family.has_writer.swap(true, Ordering::SeqCst) {
            return;
        }
        let family = self.family.clone();
        match sys::spawn("ring-trace", move || family.write_failures()) {
            Ok(writer) => lock(&self.family.writers).push(writer),
            // Where the host has no thread left the next call or destroy does it.
            Err(_) => self.family.has_writer.store(false, Ordering::SeqCst),
        }
    }

    /// The group has been destroyed, which may have failed before: writes the file, but see [`REST`].
    pub fn close(&self, failure: Option<&Error>) {
        for writer in std::mem::take(&mut *lock(&self.family.writers)) {
            let _ = writer.join();
        }
        failure.into_iter().for_each(|error| self.note(error, true));
        let is_last = {
            let mut state = lock(&self.family.state);
            state.group(self.group).into_iter().for_each(|group| group.is_open = false);
            // A program may leave out to destroy those that were split.
            self.group == 0 || state.groups.iter().all(|group| !group.is_open)
        };
        let writing = lock(&self.family.writing);
        if is_last || writing.is_none_or(|last| last.elapsed() >= REST) {
            self.family.write(writing);
        }
    }
}

impl Family {
    /// Unless all failures are in the file.
    fn write_failures(&self) {
        let writing = lock(&self.writing);
        self.has_writer.store(false, Ordering::SeqCst);
        let is_new = |group: &Member| group.failure.as_ref().is_some_and(|failure| !failure.is_written);
        let has_new = lock(&self.state).groups.iter().any(is_new);
        if has_new {
            self.write(writing);
        }
    }

    fn write(&self, mut writing: MutexGuard<'_, Option<Instant>>) {
        // A copy, so that other groups' calls go on meanwhile.
        let state = {
            let mut state = lock(&self.state);
            let failures = state.groups.iter_mut().filter_map(|group| group.failure.as_mut());
            failures.for_each(|failure| failure.is_written = true);
            state.clone()
        };
        let written = file::replace(&self.path, json::text(&self.about, &state).as_bytes());
        *writing = Some(Instant::now());
        drop(writing);
        let (rank, path) = (self.about.rank, self.path.display());
        match written {
            Ok(()) => log::line!(Info, "rank {rank}: the trace is in {path}"),
            Err(error) => log::line!(Warn, "rank {rank}: the trace {path}: {}", os_words(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{CallHeader, Kind};

    fn barrier(number: u64) -> Call {
        Call::of(&CallHeader::new(Kind::Barrier, number))
    }

    #[test]
    fn the_last_calls_are_kept_and_what_is_gone_is_counted() {
        let trace = Trace::new(Path::new("nowhere"), 0, 1, None);
        for number in 1..=MOST_CALLS as u64 + 1 {
            trace.ended(trace.begin(None), barrier(number), Status::Ok);
        }
        let state = lock(&trace.family.state);
        assert_eq!((state.calls.len(), state.dropped()), (MOST_CALLS, 1));
        assert!(state.calls.iter().zip(2..).all(|(record, number)| record.call.number == number));
        assert!(size_of::<Record>() <= 176, "{}", size_of::<Record>());
    }

    #[test]
    fn groups_that_are_gone_are_forgotten_with_their_calls() {
        let trace = Trace::new(Path::new("/dev/null"), 0, 2, Some([0xab; 16]));
        assert_eq!(trace.family.path, Path::new("/dev/null/ring-abababab-rank-0.json"));
        let child = trace.of_split(1, 0, 1, 2);
        let grandchild = child.of_split(3, 2, 0, 1);
        assert_eq!(lock(&trace.family.state).groups[2].name, "split 1 color 0, split 3 color 2");
        child.ended(child.begin(None), barrier(1), Status::Ok);
        child.close(None);
        grandchild.close(None);
        trace.of_split(2, 0, 0, 1);
        let known = |trace: &Trace| {
            lock(&trace.family.state).groups.iter().map(|group| group.number).collect::<Vec<_>>()
        };
        assert_eq!(known(&trace), [0, 1, 3]);
        for number in 3..=MOST_CALLS as u64 + 3 {
            trace.ended(trace.begin(None), barrier(number), Status::Ok);
        }
        trace.of_split(2, 0, 0, 1);
        assert_eq!(known(&trace), [0, 3, 4]);
    }

    #[test]
    fn a_failure_is_written_once() {
        let folder = std::env::temp_dir().join(format!("ring-trace-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let trace = Trace::new(&folder, 1, 2, Some([7; 16]));
        let path = trace.family.path.clone();
        let error = Error::new(Status::PeerLost, "on purpose").at_rank(0);
        trace.failed_meanwhile(&error);
        trace.failed(&error);
        let read = || std::fs::read_to_string(&path).unwrap();
        assert!(read().contains("on purpose"));
        std::fs::remove_file(&path).unwrap();
        trace.failed(&error);
        assert!(!path.exists());
        trace.ended(trace.begin(None), barrier(1), Status::PeerLost);
        trace.close(Some(&Error::new(Status::Internal, "never seen")));
        assert!(read().contains("on purpose") && !read().contains("never seen"));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn groups_that_fail_together_are_written_by_few_threads() {
        let folder = std::env::temp_dir().join(format!("ring-together-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let trace = Trace::new(&folder, 0, 2, Some([9; 16]));
        let splits: Vec<_> = (0..100).map(|number| trace.of_split(number, 0, 0, 2)).collect();
        let writing = lock(&trace.family.writing);
        splits.iter().for_each(|split| split.failed_meanwhile(&Error::new(Status::PeerLost, "on purpose")));
        assert_eq!(lock(&trace.family.writers).len(), 1);
        drop(writing);
        for writer in std::mem::take(&mut *lock(&trace.family.writers)) {
            writer.join().unwrap();
        }
        let text = std::fs::read_to_string(&trace.family.path).unwrap();
        assert_eq!(text.matches("failed: ").count(), splits.len());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn groups_that_come_and_go_do_not_write_each_time() {
        let folder = std::env::temp_dir().join(format!("ring-rest-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let trace = Trace::new(&folder, 0, 2, Some([8; 16]));
        let path = trace.family.path.clone();
        let is_written_by = |closed: Trace| {
            let _ = std::fs::remove_file(&path);
            closed.close(None);
            path.exists()
        };
        assert!(is_written_by(trace.of_split(1, 0, 0, 2)));
        *lock(&trace.family.writing) = Some(Instant::now() + REST);
        assert!(!is_written_by(trace.of_split(2, 0, 0, 2)));
        *lock(&trace.family.writing) = Instant::now().checked_sub(REST);
        assert!(is_written_by(trace.of_split(3, 0, 0, 2)));
        *lock(&trace.family.writing) = Some(Instant::now() + REST);
        assert!(is_written_by(trace));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
