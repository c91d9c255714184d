//! Which algorithm a call takes. It comes from bytes, ranks and the collective alone, and is part of the
//! protocol: all ranks must choose alike.

use super::personal::{Block, Personal};
use super::rooted::{self, Rooted};
use super::{Algorithm, Buffer, Parts, Place, Plan, Span, all_gather, exchange, flood, reduce_scatter, ring};

/// A call of fewer bytes is one part that goes right; a larger one has two, so that both
/// directions of each link are in use. Part of the protocol: it decides the order of reduction. On links
/// of their own two parts pay from some 16 KiB on (at 50 us a step and 1 Gbit/s), on one host from some 256 KiB.
pub(super) const TWO_PARTS_FROM_BYTES: usize = 64 << 10;
/// The flood sends every input to every rank, which costs more bytes than the ring's segments but
/// fewer steps. Up to this size it takes 0.5 to 0.8 of the ring's time for 3 to 8 ranks on one host, and
/// at 1 Gbit/s, where bytes count most, as long as the ring. At 64 KiB it takes 0.9 on one host, but
/// twice as long at 1 Gbit/s; from 128 KiB on it is slower everywhere.
pub(super) const FLOOD_MAX_BYTES: usize = 32 << 10;
/// In a ring of two the flood moves as many bytes as the segments would, in one step of two: 0.7 to
/// 0.85 of the time up to this size. Each rank reduces all, which costs more above.
pub(super) const FLOOD_MAX_BYTES_OF_TWO: usize = 1 << 20;
/// The flood holds every rank's input.
pub(super) const FLOOD_MAX_SCRATCH: usize = 2 << 20;
/// A flood folds each segment once a rank: so many folds are a megabyte of plan, all segments of 128 ranks.
pub(super) const FLOOD_MAX_FOLDS: usize = 128 * 128;

/// An all-to-all in which a rank has more bytes for all ranks together goes over direct links: from where on others
/// don't flood either. Below, a link for each pair of ranks isn't worth its descriptors.
const DIRECT_FROM_BYTES: usize = 32 << 10;

/// A lane takes part where at least so many bytes of a segment are its own. A message of its own costs some
/// 5 us of CPU, so that smaller pieces make calls of 64 KiB take 1.4 times as long on one host, while so
/// many bytes take 26 us at 10 Gbit/s and are worth a link of their own.
pub(super) const LANE_MIN_BYTES: usize = 32 << 10;

impl Place {
    /// Whether calls in which a rank's input has so many bytes are floods. One rule for all collectives, though
    /// an all-gather has neither scratch nor folds: the crossovers are then one table.
    fn floods(self, bytes: usize) -> bool {
        let most = if self.size == 2 { FLOOD_MAX_BYTES_OF_TWO } else { FLOOD_MAX_BYTES };
        let segments = bytes.min(self.size);
        bytes <= most && bytes * self.size <= FLOOD_MAX_SCRATCH && segments * self.size <= FLOOD_MAX_FOLDS
    }

    /// Whether blocks of so many bytes for each of so many ranks go straight to them.
    pub fn sends_direct(size: usize, block_bytes: usize) -> bool {
        size * block_bytes > DIRECT_FROM_BYTES
    }

    /// Whether the inputs of a call of so many bytes are relayed to where they are reduced. In a ring of two
    /// nothing is relayed, and what arrives is reduced at once.
    fn relays_whole(self, bytes: usize) -> bool {
        self.size > 2 && self.floods(bytes)
    }

    /// The same place with the lanes that share segments of so many bytes.
    fn with_lanes_for(self, bytes: usize) -> Place {
        Place { lanes: (bytes / LANE_MIN_BYTES).clamp(1, self.lanes), ..self }
    }
}

impl Plan {
    /// Plans an all-reduce of `count` elements from Send to Recv.
    pub fn all_reduce(&mut self, place: Place, count: usize, element_bytes: usize) -> Algorithm {
        let bytes = count * element_bytes;
        let parts = parts_of(bytes);
        if place.floods(bytes) {
            flood::all_reduce(self, place.with_lanes_for(bytes), count, parts);
            return Algorithm::Flood;
        }
        ring::all_reduce(self, place.with_lanes_for(bytes / parts / place.size), count, parts, element_bytes);
        Algorithm::Ring
    }

    /// The flood, whatever the size and the lanes.
    #[cfg(test)]
    pub fn flood_all_reduce(&mut self, place: Place, count: usize, parts: usize) {
        flood::all_reduce(self, place, count, parts);
    }

    /// The ring of one or two parts, whatever the size.
    #[cfg(test)]
    pub fn ring_all_reduce(&mut self, place: Place, count: usize, parts: usize) {
        ring::all_reduce(self, place, count, parts, 4);
    }

    /// Plans an all-gather of `count` elements a rank from Send to Recv. In place, the copy of the
    /// own part is left out by the caller.
    pub fn all_gather(&mut self, place: Place, count: usize, element_bytes: usize) -> Algorithm {
        let bytes = count * element_bytes;
        if place.floods(bytes) {
            all_gather::whole(self, place.with_lanes_for(bytes), count);
            return Algorithm::Flood;
        }
        all_gather::halves(self, place.with_lanes_for(bytes / 2), &Parts::Equal(count));
        Algorithm::Ring
    }

    /// Plans a barrier: one scratch byte of every rank reaches every other.
    pub fn barrier(&mut self, place: Place) -> Algorithm {
        let own = Span { buffer: Buffer::Scratch, start: place.rank, len: 1 };
        exchange::exchange(self, place.with_lanes_for(1), 1, own, Buffer::Scratch);
        self.scratch = place.size;
        Algorithm::Flood
    }

    /// Plans an all-gather of parts of different lengths, this rank's from Send.
    pub fn all_gather_v(&mut self, place: Place, parts: &Parts, element_bytes: usize) -> Algorithm {
        let longest = parts.longest() * element_bytes;
        if place.floods(longest) {
            all_gather::parts_whole(self, place.with_lanes_for(longest), parts);
            return Algorithm::Flood;
        }
        all_gather::halves(self, place.with_lanes_for(longest / 2), parts);
        Algorithm::Ring
    }

    /// Plans a reduce-scatter of the parts of Send; this rank's goes to Recv.
    pub fn reduce_scatter(&mut self, place: Place, parts: &Parts, element_bytes: usize) -> Algorithm {
        let bytes = parts.total(place.size) * element_bytes;
        let halves = parts_of(bytes);
        let longest = place.with_lanes_for(parts.longest() * element_bytes / halves);
        if place.relays_whole(bytes) {
            reduce_scatter::flood(self, longest, parts, halves);
            return Algorithm::Flood;
        }
        reduce_scatter::ring(self, longest, parts, halves, element_bytes);
        Algorithm::Ring
    }

    /// Plans a broadcast of `count` elements of Recv.
    pub fn broadcast(&mut self, place: Place, root: usize, count: usize, element_bytes: usize) -> Algorithm {
        let bytes = count * element_bytes;
        if parts_of(bytes) == 1 {
            rooted::broadcast_whole(self, Rooted { place: place.with_lanes_for(bytes), root }, count);
            return Algorithm::Flood;
        }
        rooted::broadcast_halves(self, Rooted { place: place.with_lanes_for(bytes / 2), root }, count);
        Algorithm::Ring
    }

    /// Plans a reduction of `count` elements of Send to the root's Recv.
    pub fn reduce(&mut self, place: Place, root: usize, count: usize, element_bytes: usize) -> Algorithm {
        let bytes = count * element_bytes;
        let parts = parts_of(bytes);
        let rooted = Rooted { place: place.with_lanes_for(bytes / parts), root };
        if place.relays_whole(bytes) {
            rooted::reduce_flood(self, rooted, count, parts, element_bytes);
            return Algorithm::Flood;
        }
        rooted::reduce_chains(self, rooted, count, parts, element_bytes);
        Algorithm::Ring
    }

    /// Plans a gather of `count` elements a rank, from Send to the root's Recv.
    pub fn gather(&mut self, place: Place, root: usize, count: usize, element_bytes: usize) -> Algorithm {
        let bytes = count * element_bytes;
        let rooted = Rooted { place: place.with_lanes_for(bytes), root };
        rooted::gather(self, rooted, &Parts::Equal(count), parts_of(bytes), element_bytes);
        Algorithm::Ring
    }

    /// Plans a scatter of `count` elements a rank, from the root's Send to Recv.
    pub fn scatter(&mut self, place: Place, root: usize, count: usize, element_bytes: usize) -> Algorithm {
        let bytes = count * element_bytes;
        let rooted = Rooted { place: place.with_lanes_for(bytes), root };
        rooted::scatter(self, rooted, &Parts::Equal(count), parts_of(bytes), element_bytes);
        Algorithm::Ring
    }

    /// Plans an all-to-all of `count` elements a pair, along the ring.
    pub fn all_to_all(&mut self, place: Place, count: usize, element_bytes: usize) -> Algorithm {
        self.relay_blocks(place, &|_, _| count, (&Parts::Equal(count), &Parts::Equal(count)), element_bytes);
        Algorithm::Ring
    }

    /// Plans an all-to-all along the ring of blocks whose lengths, by pair, all ranks know.
    pub fn relay_blocks(
        &mut self,
        place: Place,
        len: &dyn Fn(usize, usize) -> usize,
        (send, recv): (&Parts, &Parts),
        element_bytes: usize,
    ) {
        keep_own(self, place, (send, recv));
        let pairs = || (0..place.size).flat_map(|from| (0..place.size).map(move |to| (from, to)));
        let longest = pairs().map(|(from, to)| len(from, to)).max().unwrap_or(0) * element_bytes;
        let blocks = Personal { len, from_here: &|to| sent(send, to), to_here: &|from| received(recv, from) };
        let block = super::window::block_elements(element_bytes);
        blocks.relayed(self, place.with_lanes_for(longest), parts_of(longest), block);
    }

    /// Plans an all-to-all in which every block goes straight to its rank.
    pub fn all_to_all_direct(
        &mut self,
        place: Place,
        (send, recv): (&Parts, &Parts),
        element_bytes: usize,
    ) -> Algorithm {
        keep_own(self, place, (send, recv));
        let len = |from: usize, to: usize| {
            if from == place.rank { send.of(to).len } else { recv.of(from).len }
        };
        let blocks =
            Personal { len: &len, from_here: &|to| sent(send, to), to_here: &|from| received(recv, from) };
        blocks.direct(self, place, &|len| {
            let bytes = len * element_bytes;
            let halves = if place.size == 2 { parts_of(bytes) } else { 1 };
            (place.with_lanes_for(bytes / halves).lanes, halves)
        });
        Algorithm::Direct
    }
}

/// A call of so many bytes has so many parts.
fn parts_of(bytes: usize) -> usize {
    if bytes < TWO_PARTS_FROM_BYTES { 1 } else { 2 }
}

fn sent(parts: &Parts, to: usize) -> Block {
    (Buffer::Send, parts.of(to))
}

fn received(parts: &Parts, from: usize) -> Block {
    (Buffer::Recv, parts.of(from))
}

/// The block that a rank has for itself.
fn keep_own(plan: &mut Plan, place: Place, (send, recv): (&Parts, &Parts)) {
    let (from, to) = (send.of(place.rank), recv.of(place.rank));
    plan.copy(
        Span { buffer: Buffer::Send, start: from.start, len: from.len },
        Span { buffer: Buffer::Recv, start: to.start, len: to.len },
    );
}
