//! The counts of an all_to_all_v, where blocks are relayed: a rank on the way must know how long they are.

use super::calls::Call;
use super::planning::link_to;
use crate::engine::Fault;
use crate::memory::Region;
use crate::plan::Place;
use crate::wire::CallHeader;

/// Bytes of a count as it travels.
pub const COUNT_BYTES: usize = size_of::<u64>();

/// What each rank sends to each, as all ranks learn it.
pub struct Counts {
    size: usize,
    /// This rank's, for each other rank.
    own: Vec<u8>,
    /// Every rank's, in the order of ranks.
    all: Vec<u8>,
}

impl Counts {
    /// This rank's, before it knows the others'.
    pub fn of(call: &Call<'_>, place: Place) -> Counts {
        let size = place.size;
        let own = (0..size).flat_map(|rank| (call.send_parts.of(rank).len as u64).to_ne_bytes()).collect();
        Counts { size, own, all: vec![0; size * size * COUNT_BYTES] }
    }

    /// What is gathered, and where.
    pub fn buffers(&mut self) -> (Region<'_>, Region<'_>) {
        (Region::from_slice(&mut self.own), Region::from_slice(&mut self.all))
    }

    /// Elements that one rank sends to another.
    pub fn of_block(&self, from: usize, to: usize) -> usize {
        let start = (from * self.size + to) * COUNT_BYTES;
        let bytes = self.all[start..start + COUNT_BYTES].try_into().unwrap_or_default();
        u64::from_ne_bytes(bytes) as usize
    }

    /// Compares what others send with what this rank expects of them.
    pub fn compare(&self, call: &Call<'_>, place: Place, header: &CallHeader) -> Result<(), Fault> {
        for from in (0..place.size).filter(|from| *from != place.rank) {
            let (expected, sent) = (call.recv_parts.of(from).len, self.of_block(from, place.rank));
            if expected != sent {
                let back = self.of_block(place.rank, from) as u64;
                let of = |count: usize| CallHeader { count: count as u64, digest: back, ..*header };
                let link = link_to(place, from);
                return Err(Fault::Differs { link, ours: of(expected), theirs: of(sent) });
            }
        }
        Ok(())
    }
}
