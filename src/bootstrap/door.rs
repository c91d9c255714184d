//! The listening sockets of a rank whose ring has formed: whoever comes too late is told so.

use std::time::Instant;

use crate::bootstrap::Connection;
use crate::bootstrap::visitors::Visitors;
use crate::error::Error;
use crate::sys::PollEntry;

/// A formed ring's listener, for one thread that polls it.
pub struct Door {
    listeners: Vec<Connection>,
    visitors: Visitors,
}

impl Door {
    pub(super) fn new(listeners: Vec<Connection>, visitors: Visitors) -> Door {
        Door { listeners, visitors }
    }

    /// Adds what is to be polled.
    pub fn waits(&self, entries: &mut Vec<PollEntry>) {
        self.visitors.waits(self.listeners.iter(), &mut |connection, interest| {
            entries.push(PollEntry::new(connection.descriptor(), interest));
        });
    }

    /// When to call [`Door::progress`] at the latest, though nothing polled is ready.
    pub fn next_wake(&self) -> Option<Instant> {
        self.visitors.next_wake()
    }

    /// Lets visitors in and answers them. An error is a second process of this rank, which has shown
    /// itself so soon that the ring may be made of two jobs: the group fails with it.
    pub fn progress(&mut self, now: Instant) -> Option<Error> {
        let taken = self.listeners.iter().try_for_each(|listener| self.visitors.accept(listener, now));
        taken.and_then(|()| self.visitors.progress(now)).err()
    }

    /// Connections so far that were no peer's.
    pub fn strangers(&self) -> u64 {
        self.visitors.strangers()
    }
}
