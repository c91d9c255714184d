//! The counts of an all_to_all_v, where blocks are relayed: a rank on the way must know how long they are.

use super::calls::Call;
use crate::engine::Fault;
use crate::memory::Region;
use crate::plan::Place;
use crate::wire::CallHeader;

/// Bytes of a count as it travels.
pub const COUNT_BYTES: usize = size_of::<u64>();
/// Counts that a rank tells of each rank: what it sends there, and what it expects from there.
pub const COUNTS_A_PAIR: usize = 2;

/// What each rank sends to each and expects of each, as all ranks learn it.
pub struct Counts {
    size: usize,
    /// This rank's, by the other rank.
    own: Vec<u8>,
    /// Every rank's, in the order of ranks.
    all: Vec<u8>,
}

impl Counts {
    /// This rank's, before it knows the others'.
    pub fn of(call: &Call<'_>, place: Place) -> Counts {
        let size = place.size;
        let pair = |rank: usize| [call.send_parts.of(rank).len, call.recv_parts.of(rank).len];
        let own: Vec<u8> = (0..size).flat_map(pair).flat_map(|count| (count as u64).to_ne_bytes()).collect();
        let all = vec![0; size * own.len()];
        Counts { size, own, all }
    }

    /// What is gathered, and where.
    pub fn buffers(&mut self) -> (Region<'_>, Region<'_>) {
        (Region::from_slice(&mut self.own), Region::from_slice(&mut self.all))
    }

    fn told(&self, by: usize, of: usize, which: usize) -> u64 {
        let start = ((by * self.size + of) * COUNTS_A_PAIR + which) * COUNT_BYTES;
        u64::from_ne_bytes(std::array::from_fn(|i| self.all[start + i]))
    }

    /// Elements that one rank sends to another.
    pub fn of_block(&self, from: usize, to: usize) -> usize {
        self.told(from, to, 0) as usize
    }

    /// Compares what each rank sends with what the other expects: on every rank, since all are to plan with it.
    pub fn compare(&self, header: &CallHeader) -> Result<(), Fault> {
        let pairs = (0..self.size).flat_map(|from| (0..self.size).map(move |to| (from, to)));
        for (from, to) in pairs {
            let (sent, expected) = (self.told(from, to, 0), self.told(to, from, 1));
            if sent != expected {
                let of_sender = CallHeader { count: sent, digest: self.told(from, to, 1), ..*header };
                let of_receiver = CallHeader { count: expected, digest: self.told(to, from, 0), ..*header };
                return Err(Fault::Unequal { calls: Box::new([(from, of_sender), (to, of_receiver)]) });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::{Kind, Parts};
    use crate::plan::Stretch;

    #[test]
    fn every_rank_finds_the_pair_that_differs() {
        let of = |lens: [usize; 2]| Parts::Listed(lens.map(|len| Stretch { start: 0, len }).to_vec());
        let call = |send, recv| {
            let parts = (of(send), of(recv));
            Call { send_parts: parts.0, recv_parts: parts.1, ..Call::new(Kind::AllToAllV, 0) }
        };
        let place = Place { rank: 0, size: 2, lanes: 1 };
        let told = |calls: [Call<'_>; 2]| {
            let [mut one, other] = calls.map(|call| Counts::of(&call, place));
            one.all = [one.own.clone(), other.own].concat();
            one
        };
        let header = CallHeader::new(Kind::AllToAllV, 3);
        let alike = told([call([1, 5], [1, 7]), call([7, 2], [5, 2])]);
        assert!(alike.compare(&header).is_ok());
        assert_eq!((alike.of_block(0, 1), alike.of_block(1, 0)), (5, 7));
        let odd = told([call([1, 5], [1, 7]), call([6, 2], [5, 2])]);
        let Err(Fault::Unequal { calls }) = odd.compare(&header) else { panic!("it was not found") };
        assert_eq!(calls.map(|(rank, call)| (rank, call.count, call.digest)), [(1, 6, 5), (0, 7, 5)]);
    }
}
