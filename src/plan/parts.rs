//! Where each rank's part of a buffer lies.

use super::segment::Stretch;

/// The parts of a buffer, by rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parts {
    /// So many elements each, in the order of ranks.
    Equal(usize),
    /// Each where the caller has put it.
    Listed(Vec<Stretch>),
}

impl Parts {
    /// A rank's part.
    pub fn of(&self, rank: usize) -> Stretch {
        match self {
            Parts::Equal(len) => Stretch { start: rank * len, len: *len },
            Parts::Listed(parts) => parts[rank],
        }
    }

    /// Elements of all parts of so many ranks.
    pub fn total(&self, ranks: usize) -> usize {
        match self {
            Parts::Equal(len) => len * ranks,
            Parts::Listed(parts) => parts.iter().map(|part| part.len).sum(),
        }
    }

    /// Elements of the longest part.
    pub fn longest(&self) -> usize {
        match self {
            Parts::Equal(len) => *len,
            Parts::Listed(parts) => parts.iter().map(|part| part.len).max().unwrap_or(0),
        }
    }
}
