//! Who is who around a rank, for links and texts.

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
    /// The right neighbour's address as it was reached; of the left one only the host, since the
    /// port that it connected from tells nothing. None in a group of one.
    pub addresses: Option<[String; 2]>,
}

impl Peers {
    /// The neighbour at this side.
    pub fn rank_at(&self, side: Side) -> usize {
        match side {
            Side::Right => (self.rank + 1) % self.size,
            Side::Left => (self.rank + self.size - 1) % self.size,
        }
    }

    /// Rank and address of the neighbour at this side, for a text.
    pub fn name(&self, side: Side) -> String {
        let rank = self.rank_at(side);
        match &self.addresses {
            Some(addresses) => format!("rank {rank} ({})", addresses[side as usize]),
            None => format!("rank {rank}"),
        }
    }

    /// Any rank, with its address where it is a neighbour.
    pub fn name_of(&self, rank: usize) -> String {
        match Side::BOTH.into_iter().find(|side| self.size > 1 && self.rank_at(*side) == rank) {
            Some(side) => self.name(side),
            None => format!("rank {rank}"),
        }
    }
}
