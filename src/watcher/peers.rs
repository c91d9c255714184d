//! Who is who around a rank, for links and texts.

use std::net::SocketAddr;

/// The two neighbours; as numbers, the places of their links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The neighbour of the next rank.
    Right = 0,
    /// The neighbour of the rank before.
    Left = 1,
}

impl Side {
    /// Right and left.
    pub const BOTH: [Side; 2] = [Side::Right, Side::Left];

    /// As the neighbour there calls the way back.
    pub fn opposite(self) -> Side {
        match self {
            Side::Right => Side::Left,
            Side::Left => Side::Right,
        }
    }
}

/// A rank and its neighbours.
#[derive(Clone, Debug)]
pub struct Peers {
    /// This rank.
    pub rank: usize,
    /// Ranks in the group.
    pub size: usize,
    /// Where each rank was reached by its left neighbour; empty in a group of one.
    pub addresses: Vec<Option<SocketAddr>>,
}

impl Peers {
    /// The neighbour at this side.
    pub fn rank_at(&self, side: Side) -> usize {
        match side {
            Side::Right => (self.rank + 1) % self.size,
            Side::Left => (self.rank + self.size - 1) % self.size,
        }
    }

    /// A neighbour with its side, for a text. In a ring of two it is at both.
    pub fn neighbour(&self, rank: usize) -> String {
        let is_at = |side: Side| self.size > 2 && self.rank_at(side) == rank;
        match (is_at(Side::Right), is_at(Side::Left)) {
            (true, _) => format!("{} (right neighbour)", self.name(rank)),
            (_, true) => format!("{} (left neighbour)", self.name(rank)),
            _ => self.name(rank),
        }
    }

    /// A rank with its address, for a text.
    pub fn name(&self, rank: usize) -> String {
        match self.addresses.get(rank) {
            Some(Some(address)) => format!("rank {rank} ({address})"),
            _ => format!("rank {rank}"),
        }
    }
}
