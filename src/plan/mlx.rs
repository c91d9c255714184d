//! What stock MLX's ring sends, span by span (`mlx/distributed/ring/ring.cpp`, MLX 0.32.4), so that a rank of its
//! kind and this library's ranks can be in one ring. Nothing but elements goes over a link, and each direction of a
//! link has one pass of a call at most. The constants are MLX's.

use super::segment::Stretch;
use super::{Buffer, Flow, Parts, Place, Plan, Span, all_gather, ring};

/// A call has one part for so many bytes of each of its segments, up to two parts a lane, one each way.
const PART_BYTES: usize = 256 << 10;
/// A call of fewer elements than ranks is filled up to one element a rank; these fit into so many bytes.
const SMALL_BYTES: usize = 1024;
/// A message has at least so many bytes on each lane that it uses.
const LANE_BYTES: usize = 1024;

impl Plan {
    /// Whether MLX's ring of so many ranks can reduce so many elements.
    pub fn mlx_reduces(size: usize, count: usize, element_bytes: usize) -> bool {
        count >= size || size.saturating_mul(element_bytes) <= SMALL_BYTES
    }

    /// Plans an all-reduce of `count` elements from Send to Recv.
    pub fn mlx_all_reduce(&mut self, place: Place, count: usize, element_bytes: usize) {
        if count < place.size {
            return self.mlx_small(place, count);
        }
        let segment_bytes = count * element_bytes / place.size;
        for (flow, lane, part) in parts(place, count, segment_bytes) {
            let segment = |rank: usize, buffer: Buffer| {
                let len = part.len.div_ceil(place.size);
                let Stretch { start, len } = part.cut(rank * len, len);
                Span { buffer, start, len }
            };
            self.begin(flow, lane);
            ring::reduce(self, flow, place, &segment);
            ring::spread(self, flow, place, &segment);
        }
    }

    /// Fewer elements than ranks: one a segment, and zeros in the segments that are left.
    fn mlx_small(&mut self, place: Place, count: usize) {
        self.mlx_single(place, place.size - count, &|rank, buffer| match rank.checked_sub(count) {
            None => Span { buffer, start: rank, len: 1 },
            Some(start) => Span { buffer: Buffer::Scratch, start, len: 1 },
        });
    }

    /// Plans the sum of one element, the first of scratch memory.
    pub fn mlx_barrier(&mut self, place: Place) {
        self.mlx_single(place, place.size, &|rank, _| Span { buffer: Buffer::Scratch, start: rank, len: 1 });
    }

    /// One part of one element a segment, some of them in scratch memory.
    fn mlx_single(&mut self, place: Place, scratch: usize, segment: &dyn Fn(usize, Buffer) -> Span) {
        (self.scratch, self.blank) = (scratch, scratch);
        self.begin(Flow::Right, 0);
        ring::reduce(self, Flow::Right, place, segment);
        ring::spread(self, Flow::Right, place, segment);
    }

    /// Plans an all-gather of `bytes` a rank from Send to Recv: elements may be cut.
    pub fn mlx_all_gather(&mut self, place: Place, bytes: usize) {
        let blocks = Parts::Equal(bytes);
        all_gather::keep_own(self, place, &blocks);
        for (flow, lane, part) in parts(place, bytes, bytes) {
            let own = Span { buffer: Buffer::Send, start: part.start, len: part.len };
            self.begin(flow, lane);
            all_gather::round(self, place, flow, own, &|rank| blocks.of(rank).cut(part.start, part.len));
        }
    }

    /// Plans to send `bytes` of Send to the neighbour in this direction.
    pub fn mlx_send(&mut self, place: Place, flow: Flow, bytes: usize) {
        for (lane, Stretch { start, len }) in lanes(place, bytes) {
            self.begin(flow, lane);
            self.send(Span { buffer: Buffer::Send, start, len });
        }
    }

    /// Plans to receive `bytes` into Recv from the neighbour that sends in this direction.
    pub fn mlx_receive(&mut self, place: Place, flow: Flow, bytes: usize) {
        for (lane, Stretch { start, len }) in lanes(place, bytes) {
            self.begin(flow, lane);
            self.store(Span { buffer: Buffer::Recv, start, len });
        }
    }
}

/// The parts of a collective, each with its direction and lane: the first goes left, the second right.
fn parts(place: Place, len: usize, segment_bytes: usize) -> impl Iterator<Item = (Flow, usize, Stretch)> {
    let parts = (segment_bytes / PART_BYTES).clamp(1, 2 * place.lanes);
    let flow = |part: usize| if part.is_multiple_of(2) { Flow::Left } else { Flow::Right };
    let cut = Stretch::whole(len).blocks(len.div_ceil(parts)).enumerate();
    cut.map(move |(number, part)| (flow(number), number / 2, part))
}

/// The lanes that a message uses, and what each carries.
fn lanes(place: Place, bytes: usize) -> impl Iterator<Item = (usize, Stretch)> {
    Stretch::whole(bytes).blocks(bytes.div_ceil(place.lanes).max(LANE_BYTES)).enumerate()
}
