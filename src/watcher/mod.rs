//! The watcher: one thread a family of groups, asleep in poll, that reads the control links and sees to the door
//! whether its rank is in a call or computes. What it learns stands in each group's [`Health`], which the calls'
//! threads share: they report, ask and wait there, and never need the watcher to be quick.

mod control;
mod deadline;
mod health;
mod messages;
mod peers;
mod record;
mod roll;
mod spread;
#[cfg(test)]
mod tests;
mod unreached;
mod verdict;
mod waiting;

pub use health::{Cause, Health, Signals};
pub use peers::{Peers, Side};
pub use verdict::Verdict;
pub use waiting::listed;

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, Status};
use crate::panics;
use crate::sys::{self, Interest, PollEntry, Wake};

/// Where the system can't poll for want of memory, the links are looked at this often.
const PAUSE: Duration = Duration::from_millis(50);

/// What else the watcher sees to, for all groups of the family.
pub trait Duties: Send {
    /// Adds what is polled; when to look again at the latest.
    fn waits(&mut self, entries: &mut Vec<PollEntry>) -> Option<Instant>;
    /// Looks; an error fails the groups.
    fn look(&mut self, now: Instant) -> Option<Error>;
}

/// What is done once when a group has failed and its failure is settled.
pub type OnFailure = Box<dyn FnOnce() + Send>;

/// The watcher of a family: of a group that processes have formed, and of those that were split from it. Its thread
/// runs as long as it has a group to watch.
pub struct Watcher {
    /// Wakes the thread.
    bell: Arc<Wake>,
    registry: Mutex<Registry>,
    changed: Condvar,
}

struct Registry {
    /// What the thread is to see to besides; it takes it along.
    duties: Option<Box<dyn Duties>>,
    newcomers: Vec<Watched>,
    /// All that are watched, newcomers included.
    present: Vec<Arc<Health>>,
    thread: Option<JoinHandle<()>>,
}

struct Watched {
    health: Arc<Health>,
    on_failure: Option<OnFailure>,
}

impl Watcher {
    /// Of a family whose groups all have this bell.
    pub fn new(bell: Arc<Wake>, duties: Box<dyn Duties>) -> Arc<Watcher> {
        let registry =
            Registry { duties: Some(duties), newcomers: Vec::new(), present: Vec::new(), thread: None };
        Arc::new(Watcher { bell, registry: Mutex::new(registry), changed: Condvar::new() })
    }

    /// What wakes the thread.
    pub fn bell(&self) -> Arc<Wake> {
        self.bell.clone()
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a group until [`Health::close`]. Starts the thread for the family's first; only this can fail.
    pub fn watch(self: &Arc<Watcher>, health: &Arc<Health>, on_failure: OnFailure) -> io::Result<()> {
        let mut registry = self.registry();
        if let Some(duties) = registry.duties.take() {
            let watcher = self.clone();
            registry.thread = Some(sys::spawn("ring-watcher", move || watcher.run(duties))?);
        }
        registry.newcomers.push(Watched { health: health.clone(), on_failure: Some(on_failure) });
        registry.present.push(health.clone());
        self.bell.wake();
        Ok(())
    }

    /// Waits until a group that was closed is no longer watched, and for the thread's end if it was the last.
    pub fn leave(&self, health: &Arc<Health>) {
        let mut registry = self.registry();
        while registry.present.iter().any(|present| Arc::ptr_eq(present, health)) {
            registry = self.changed.wait(registry).unwrap_or_else(PoisonError::into_inner);
        }
        let last = registry.present.is_empty();
        let thread = registry.thread.take_if(|_| last);
        drop(registry);
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    fn run(&self, duties: Box<dyn Duties>) {
        let Err(text) = panics::caught(|| self.look_after(duties)) else { return };
        let (newcomers, present) = {
            let mut registry = self.registry();
            (std::mem::take(&mut registry.newcomers), std::mem::take(&mut registry.present))
        };
        drop(newcomers);
        for health in present {
            health.report(Error::new(Status::Internal, text.clone()).at_rank(health.peers().rank));
            // Nobody else ends what runs when its grace is over.
            health.stop.raise();
        }
        self.changed.notify_all();
    }

    fn look_after(&self, mut duties: Box<dyn Duties>) {
        let (mut watched, mut entries) = (Vec::new(), Vec::new());
        while self.update(&mut watched) {
            entries.clear();
            entries.push(PollEntry::new(self.bell.descriptor(), Interest { read: true, write: false }));
            let mut ends = Vec::new();
            for Watched { health, on_failure } in &mut watched {
                ends.extend(health.waits(&mut entries));
                if health.failure().is_some()
                    && let Some(on_failure) = on_failure.take()
                {
                    on_failure();
                }
            }
            ends.extend(duties.waits(&mut entries));
            let now = Instant::now();
            let limit = ends.into_iter().min().map(|end| end.saturating_duration_since(now));
            if sys::poll(&mut entries, limit).is_err() {
                std::thread::sleep(PAUSE);
            }
            self.bell.clear();
            watched.iter().for_each(|watched| watched.health.attend());
            if let Some(error) = duties.look(Instant::now()) {
                watched.iter().for_each(|watched| watched.health.report(error.clone()));
            }
        }
    }

    /// Takes in who has come and lets go who has closed; false once there is nobody left.
    fn update(&self, watched: &mut Vec<Watched>) -> bool {
        let mut registry = self.registry();
        watched.append(&mut registry.newcomers);
        watched.retain(|watched| !watched.health.is_closing());
        if watched.len() < registry.present.len() {
            registry.present.retain(|health| !health.is_closing());
            self.changed.notify_all();
        }
        !watched.is_empty()
    }
}
