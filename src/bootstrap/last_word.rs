//! What a rank does that gives up for good: a neighbour that is just about to connect would find
//! nobody, and wait for the whole of its own time without a cause.

use std::time::{Duration, Instant};

use crate::bootstrap::forming::Forming;
use crate::bootstrap::listen::Listening;
use crate::error::{Error, Status};

/// Ranks that are started together connect within this time.
pub const MOMENT: Duration = Duration::from_millis(500);

/// Whether a failure of forming stays until somebody changes a configuration.
pub fn is_conflict(error: &Error) -> bool {
    matches!(error.status, Status::ConnectFailed | Status::AuthFailed)
}

impl Forming<'_> {
    /// Goes on accepting and dialling until both neighbours are there to be told, or know by
    /// themselves. More conflicts that come of it are theirs to tell.
    pub(super) fn await_neighbours(&mut self, error: &Error) {
        if !is_conflict(error) || self.is_late || !self.listening.iter().all(Listening::is_listening) {
            return;
        }
        let end = Instant::now() + MOMENT;
        let end = self.deadline.map_or(end, |deadline| deadline.min(end));
        loop {
            let now = Instant::now();
            // A dial that is done without a link was answered that the two differ.
            let right = self.control.is_some() || self.dials[0].is_done();
            let left = self.visitors.control.is_some() || self.visitors.has_refused_left();
            if (right && left) || now >= end {
                return;
            }
            for socket in self.listening.iter().flat_map(|listening| &listening.sockets) {
                let _ = self.visitors.accept(socket, now);
            }
            let _ = self.visitors.progress(now);
            if !right {
                let _ = self.dial(now);
            }
            if self.sleep(now).is_err() {
                return;
            }
        }
    }
}
