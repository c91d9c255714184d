//! The rendezvous: every rank but the first listens at a port of its own, comes to rank 0, which listens at an
//! address that all know, and tells it the port. When all have come, rank 0 tells each where the others are,
//! and the ring forms as it does with a hostfile. What is said stands in [`wire`](crate::wire::Meeting).
//!
//! Rank 0's listener is its ring's as well, and nobody's port is given up in between: what a rank has told
//! stays true.
//!
//! Who fails while the ranks meet tells, as while the ring forms: a conflict fails all, at once; a timeout is
//! that rank's own, and its next run may come.

mod guest;
mod guests;
mod host;
mod places;

pub use guests::Guests;

use std::time::{Duration, Instant};

use crate::bootstrap::claims::{Claims, LinkName};
use crate::bootstrap::config::{Address, Config};
use crate::bootstrap::listen::Listening;
use crate::bootstrap::visitors::Visitors;
use crate::error::{Error, Result, Status, os_words};
use crate::wire::LinkKind;

/// The longest sleep: a look-up's answer has no descriptor to wake the loop.
const TURN: Duration = Duration::from_millis(50);

const LINK: LinkName = (LinkKind::Rendezvous, 0);

/// What stands when the ranks have met.
pub struct Met {
    /// With every rank's address as this one reaches it.
    pub config: Config,
    pub listening: Vec<Listening>,
    pub listens_since: Instant,
    pub visitors: Visitors,
}

/// Waits until every rank has come to rank 0, and knows where the others are.
pub fn meet(config: &Config, at: &Address, claims: &Claims, deadline: Option<Instant>) -> Result<Met> {
    if config.rank == 0 {
        host::meet(config, claims, deadline)
    } else {
        guest::meet(config, at, claims, deadline)
    }
}

/// The error at the deadline; the text is made of these.
fn late(config: &Config, status: Status, parts: &[String]) -> Error {
    let waited = config.connect_timeout.unwrap_or_default().as_millis();
    Error::new(status, format!("the ring did not form within {waited} ms: {}", parts.join("; ")))
}

fn system(what: &str, error: &std::io::Error) -> Error {
    Error::new(Status::System, format!("{what}: {}", os_words(error))).with_os(error)
}

/// How long to sleep when these are the next things due.
fn nap(due: impl Iterator<Item = Instant>, now: Instant) -> Duration {
    due.filter(|end| *end > now).min().map_or(TURN, |end| (end - now).min(TURN))
}
