//! What groups share that are split from one: the watcher, and the door at which their links arrive.

use std::sync::Arc;
use std::time::Instant;

use super::Group;
use super::stats::Counters;
use crate::bootstrap::{Door, Reach};
use crate::error::{Error, Result};
use crate::sys::PollEntry;
use crate::watcher::Duties;

/// Keeps the door for as long as a group of the family lives that hasn't failed: afterwards the port is for the
/// next run.
pub struct Doorkeeper {
    door: Option<Door>,
    /// Of the group that processes have formed.
    counters: Arc<Counters>,
}

impl Doorkeeper {
    pub fn new(door: Door, counters: Arc<Counters>) -> Doorkeeper {
        Doorkeeper { door: Some(door), counters }
    }
}

impl Duties for Doorkeeper {
    fn waits(&mut self, entries: &mut Vec<PollEntry>) -> Option<Instant> {
        self.door = self.door.take().filter(|door| !door.is_deserted());
        self.door.as_ref()?.waits(entries)
    }

    fn look(&mut self, now: Instant) -> Option<Error> {
        let door = self.door.as_mut()?;
        let error = door.progress(now);
        self.counters.set_strangers(door.strangers());
        error
    }
}

impl Group {
    /// Has the family's watcher see to this group, until it is destroyed.
    pub(super) fn start_watching(self: &Arc<Group>) -> Result<()> {
        let Some(watcher) = &self.watcher else { return Ok(()) };
        let group = Arc::downgrade(self);
        let on_failure = move || {
            if let Some(group) = group.upgrade() {
                group.reach.iter().for_each(Reach::close);
                group.close_idle_links();
                group.trace_failure_meanwhile();
            }
        };
        let started = watcher.watch(&self.health, Box::new(on_failure));
        started.map_err(|error| self.host_refused("starting a thread", &error))
    }
}
