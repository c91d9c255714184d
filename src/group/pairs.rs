//! Direct links between ranks that aren't neighbours. All ranks have all of theirs, or none uses any: that is agreed on
//! once, in the first call that wants them.

use std::time::{Duration, Instant};

use crate::bootstrap::{Deadline, Reach};
use crate::link::{ComingLink, Link};
use crate::plan::Place;
use crate::sys::{Interest, PollEntry};
use crate::wire::LinkKind;

/// Links that need longer are done without: blocks can take the ring as well.
const MOST_PATIENCE: Duration = Duration::from_secs(5);
/// Links are waited for no longer than this part of the group's timeout, since ranks that have theirs wait for the
/// others.
const PART_OF_TIMEOUT: u32 = 4;
/// A group of more ranks makes no direct links: they would be as many descriptors in each process.
const MOST_RANKS: usize = 64;

/// Whether there are direct links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairs {
    /// Nobody has wanted them yet.
    #[default]
    Untried,
    /// Behind the lanes, in the order of the steps to the right.
    Here,
    /// Some rank can't reach some other.
    Nowhere,
}

impl Pairs {
    /// Whether a ring of so many ranks is to try.
    pub fn is_worth_trying(self, size: usize) -> bool {
        self == Pairs::Untried && (4..=MOST_RANKS).contains(&size)
    }
}

/// Links on their way.
pub struct Linking {
    /// The next one in order is the last.
    coming: Vec<ComingLink>,
    here: Vec<ComingLink>,
    /// One of them will not come.
    failed: bool,
    until: Instant,
}

impl Linking {
    /// Opens the links to higher ranks, and expects those of lower ones.
    pub fn begin(reach: &Reach, place: Place, timeout: Option<Duration>) -> Linking {
        let patience = timeout.map_or(MOST_PATIENCE, |timeout| MOST_PATIENCE.min(timeout / PART_OF_TIMEOUT));
        let until = Instant::now() + patience;
        let mut linking = Linking { coming: Vec::new(), here: Vec::new(), failed: false, until };
        for steps in (2..place.size - 1).rev() {
            let peer = (place.rank + steps) % place.size;
            let arrival = match place.rank < peer {
                true => reach.dial((LinkKind::Pair, 0), peer, Deadline::Final(Some(until))),
                false => reach.await_link((LinkKind::Pair, 0), peer),
            };
            match arrival {
                Ok(arrival) => linking.coming.push(ComingLink::new(arrival)),
                // This host has no descriptor for it: all do without.
                Err(_) => linking.failed = true,
            }
        }
        linking
    }

    /// Takes in what has come; whether nothing is waited for any more.
    pub fn turn(&mut self) -> bool {
        while let Some(link) = self.coming.last_mut().filter(|_| !self.failed) {
            match link.has_come() {
                Ok(true) => self.here.extend(self.coming.pop()),
                Ok(false) if Instant::now() < self.until => return false,
                Ok(false) | Err(_) => self.failed = true,
            }
        }
        true
    }

    /// Adds what is waited for, and for how long.
    pub fn waits(&self, entries: &mut Vec<PollEntry>) -> Option<Duration> {
        let next = self.coming.last()?;
        entries.extend(next.waits(Interest { read: true, write: false }));
        Some(self.until.saturating_duration_since(Instant::now()))
    }

    /// All links, in the order of the steps to the right; None where one is missing.
    pub fn into_links(self) -> Option<Vec<Box<dyn Link>>> {
        let boxed = |link| Box::new(link) as Box<dyn Link>;
        (!self.failed).then(|| self.here.into_iter().map(boxed).collect())
    }
}
