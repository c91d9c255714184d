//! Which of several records of a failure counts.

use crate::error::{Error, Status};

/// In the order in which they win: what a person did, then what a program did wrong, then what
/// befell a rank. A death explains a missed deadline.
const STATUSES: [Status; 7] = [
    Status::Aborted,
    Status::Mismatch,
    Status::Internal,
    Status::System,
    Status::OutOfMemory,
    Status::PeerLost,
    Status::Timeout,
];

type Key<'e> = (u64, usize, Option<usize>, Option<usize>, &'e str);

/// What was found between calls (0) says least, and comes last.
fn key(error: &Error) -> Key<'_> {
    let status = STATUSES.iter().position(|status| *status == error.status).unwrap_or(STATUSES.len());
    (error.sequence.wrapping_sub(1), status, error.rank, error.detected_by, &error.text)
}

/// A neighbour's record, with nothing in it that a failure of this group can't be.
pub fn checked(error: Error, ranks: usize) -> Error {
    let known = |rank: Option<usize>| rank.filter(|rank| *rank < ranks);
    let fails = STATUSES.contains(&error.status) || error.status == Status::ConnectFailed;
    Error {
        status: if fails { error.status } else { Status::Internal },
        rank: known(error.rank),
        detected_by: known(error.detected_by),
        ..error
    }
}

/// A total order, alike on all ranks, so that all keep the same one of several records. One that
/// blames a link (no rank) goes before one that blames a rank.
pub fn comes_before(one: &Error, other: &Error) -> bool {
    key(one) < key(other)
}

/// Whether `error` says that its detector found this rank's control link ended.
fn accuses(error: &Error, rank: usize) -> Option<usize> {
    let accuser = error.detected_by.filter(|accuser| *accuser != rank)?;
    (error.status == Status::PeerLost && error.rank == Some(rank)).then_some(accuser)
}

/// What a lost link looks like once both its ends are known to live: `error` accuses `rank`, which
/// is alive, or which accuses its accuser.
pub fn broken_link(error: &Error, rank: usize) -> Option<Error> {
    let accuser = accuses(error, rank)?;
    let (low, high) = (rank.min(accuser), rank.max(accuser));
    let text = format!("the link between rank {low} and rank {high} has broken; both ranks are there");
    let sequence = error.sequence;
    let lost = Error::new(Status::PeerLost, text);
    Some(Error { detected_by: Some(low), os_error: error.os_error, sequence, ..lost })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(rank: usize, by: usize) -> Error {
        let text = format!("rank {rank} is gone");
        Error { detected_by: Some(by), sequence: 4, ..Error::new(Status::PeerLost, text).at_rank(rank) }
    }

    #[test]
    fn the_order_is_total_and_starts_with_the_call() {
        let timeout = Error { status: Status::Timeout, ..lost(2, 1) };
        let aborted = Error { status: Status::Aborted, sequence: 9, ..lost(5, 5) };
        let link = broken_link(&lost(2, 1), 2).unwrap();
        let ordered =
            [Error { sequence: 3, ..lost(7, 6) }, link, lost(2, 1), lost(2, 3), lost(3, 0), timeout, aborted];
        let between_calls = Error { sequence: 0, ..lost(0, 1) };
        let ordered: Vec<_> = ordered.into_iter().chain([between_calls]).collect();
        for (i, one) in ordered.iter().enumerate() {
            for (j, other) in ordered.iter().enumerate() {
                assert_eq!(comes_before(one, other), i < j, "{one} {other}");
            }
        }
    }

    #[test]
    fn a_record_holds_only_what_a_failure_can_be() {
        assert_eq!(checked(lost(2, 1), 3), lost(2, 1));
        let odd = Error { status: Status::Pending, ..lost(3, 1) };
        let checked = checked(odd, 3);
        assert_eq!((checked.status, checked.rank, checked.detected_by), (Status::Internal, None, Some(1)));
    }

    #[test]
    fn both_ends_describe_a_broken_link_alike() {
        let (one, other) = (broken_link(&lost(2, 1), 2).unwrap(), broken_link(&lost(1, 2), 1).unwrap());
        assert_eq!(one, other);
        assert_eq!(one.rank, None);
        assert!(one.text.contains("between rank 1 and rank 2"));
        assert_eq!(broken_link(&lost(2, 1), 3), None);
        assert_eq!(broken_link(&Error { status: Status::Timeout, ..lost(2, 1) }, 2), None);
    }
}
