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
use crate::error::{Error, Result, Status};
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

/// How long to sleep when these are the next things due.
fn nap(due: impl Iterator<Item = Instant>, now: Instant) -> Duration {
    due.filter(|end| *end > now).min().map_or(TURN, |end| (end - now).min(TURN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::config::Settings;
    use crate::bootstrap::{Ring, form};
    use std::net::TcpListener;

    fn rendezvous() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    }

    fn config(rank: i32, size: i32, at: &str) -> Config {
        let settings = Settings {
            rank,
            size,
            rendezvous: Some(at.into()),
            job_id: b"job".to_vec(),
            connect_timeout_ms: 10_000,
            ..Settings::default()
        };
        settings.check().unwrap()
    }

    fn all(configs: Vec<Config>) -> Vec<Result<Ring>> {
        std::thread::scope(|scope| {
            let ranks: Vec<_> = configs.iter().map(|config| scope.spawn(|| form(config))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn ranks_meet_and_form_one_ring() {
        let at = rendezvous();
        let rings: Vec<_> =
            all((0..4).map(|rank| config(rank, 4, &at)).collect()).into_iter().map(Result::unwrap).collect();
        for (rank, ring) in rings.iter().enumerate() {
            assert_eq!((ring.group, &ring.members), (rings[0].group, &rings[0].members));
            assert_eq!((ring.right.rank, ring.left.rank), ((rank + 1) % 4, (rank + 3) % 4));
            assert_eq!(ring.door.strangers(), 0);
        }
        // Rank 0's port is the one that all knew.
        assert_eq!(rings[0].members[3].right_address.unwrap().to_string(), at);
    }

    #[test]
    fn who_comes_when_the_ring_has_formed_is_told_so() {
        let at = rendezvous();
        let mut rings = all((0..2).map(|rank| config(rank, 2, &at)).collect());
        let door = &mut rings[0].as_mut().unwrap().door;
        let late = Config { connect_timeout: Some(Duration::from_millis(400)), ..config(1, 2, &at) };
        let error = std::thread::scope(|scope| {
            let newcomer = scope.spawn(|| form(&late).map(drop).unwrap_err());
            while !newcomer.is_finished() {
                assert_eq!(door.progress(Instant::now()), None, "it is no rival");
                std::thread::sleep(Duration::from_millis(5));
            }
            newcomer.join().unwrap()
        });
        assert_eq!((error.status, error.rank), (Status::ConnectFailed, Some(0)));
        assert!(error.text.contains(&format!("{at}: it is in a ring that has formed already")), "{error}");
        assert!(door.strangers() > 0);
    }

    #[test]
    fn what_ranks_claim_is_told_to_all() {
        let at = rendezvous();
        let odd = Config { connections: 2, ..config(2, 3, &at) };
        let errors = all(vec![config(0, 3, &at), config(1, 3, &at), odd]);
        let parts = ["is 2 there, 1 here", "rank 0 could not form the ring: ", "is 1 there, 2 here"];
        for (error, part) in errors.into_iter().map(|ring| ring.map(drop).unwrap_err()).zip(parts) {
            assert_eq!(error.status, Status::ConnectFailed);
            assert!(error.text.contains(part), "{} lacks {part}", error.text);
        }
    }
}
