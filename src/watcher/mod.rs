//! The watcher: one thread a group, asleep in poll, that reads the control links and the door
//! whether its rank is in a call or computes. What it learns stands in [`Health`], which the calls'
//! threads share: they report, ask and wait there, and never need the watcher to be quick.

mod control;
mod health;
mod peers;
mod record;
mod roll;
mod spread;
#[cfg(test)]
mod tests;
mod unreached;
mod verdict;

pub use health::{Cause, Health, Signals};
pub use peers::{Peers, Side};
pub use verdict::Verdict;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Error, Status};
use crate::panics;
use crate::sys::{self, PollEntry};

/// Where the system can't poll for want of memory, the links are looked at this often.
const PAUSE: Duration = Duration::from_millis(50);

/// What else the watcher sees to.
pub trait Duties: Send {
    /// Adds what is polled; when to look again at the latest.
    fn waits(&self, entries: &mut Vec<PollEntry>) -> Option<Instant>;
    /// Looks; an error fails the group.
    fn look(&mut self, now: Instant) -> Option<Error>;
    /// The group has failed, and its failure is settled.
    fn failed(&mut self);
}

/// Starts a group's watcher. It ends after [`Health::close`].
pub fn start(health: Arc<Health>, duties: Box<dyn Duties>) -> io::Result<JoinHandle<()>> {
    sys::spawn("ring-watcher", move || {
        if let Err(text) = panics::caught(|| watch(&health, duties)) {
            health.report(Error::new(Status::Internal, text).at_rank(health.peers().rank));
            // Nobody else ends what runs when its grace is over.
            health.stop.raise();
        }
    })
}

fn watch(health: &Health, mut duties: Box<dyn Duties>) {
    let mut entries = Vec::new();
    let mut told = false;
    while !health.is_closing() {
        entries.clear();
        let ends = [health.waits(&mut entries), duties.waits(&mut entries)];
        if !told && health.failure().is_some() {
            told = true;
            duties.failed();
        }
        let now = Instant::now();
        let limit = ends.into_iter().flatten().min().map(|end| end.saturating_duration_since(now));
        if sys::poll(&mut entries, limit).is_err() {
            std::thread::sleep(PAUSE);
        }
        health.clear_bell();
        health.attend();
        if let Some(error) = duties.look(Instant::now()) {
            health.report(error);
        }
    }
}
