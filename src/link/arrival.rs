//! A link that another thread makes, from the wish for it to the link or to why there is none.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::TcpLink;
use crate::error::{Error, Result};
use crate::sys::{Interest, PollEntry, Wake};

/// Where a link is delivered, once.
pub struct Arrival {
    slot: Mutex<Slot>,
    wake: Wake,
}

enum Slot {
    Empty,
    Full(Result<TcpLink>),
    /// What was in it has been taken.
    Used,
}

impl Arrival {
    /// Nothing has come yet.
    pub fn new() -> io::Result<Arrival> {
        Ok(Arrival { slot: Mutex::new(Slot::Empty), wake: Wake::new()? })
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers the link, or gives it back where something has come before.
    pub fn deliver(&self, link: TcpLink) -> std::result::Result<(), TcpLink> {
        match &mut *self.slot() {
            slot @ Slot::Empty => *slot = Slot::Full(Ok(link)),
            _ => return Err(link),
        }
        self.wake.wake();
        Ok(())
    }

    /// Says why no link comes, unless something has come before.
    pub fn fail(&self, error: Error) {
        if let slot @ Slot::Empty = &mut *self.slot() {
            *slot = Slot::Full(Err(error));
            self.wake.wake();
        }
    }

    /// What has come, once.
    pub fn take(&self) -> Option<Result<TcpLink>> {
        let mut slot = self.slot();
        match std::mem::replace(&mut *slot, Slot::Used) {
            Slot::Full(come) => Some(come),
            other => {
                *slot = other;
                None
            }
        }
    }

    /// What to poll until something has come.
    pub fn waits(&self) -> PollEntry {
        PollEntry::new(self.wake.descriptor(), Interest { read: true, write: false })
    }
}
