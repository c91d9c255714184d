//! Reduce-scatter: the first half of the ring all-reduce, with a part for every rank.
//!
//! Each rank sends (n-1)/n of the array, the least that any reduce-scatter can (Patarasu and Yuan, 2009).

use super::personal::Personal;
use super::segment::Stretch;
use super::window::{Window, block_elements};
use super::{Buffer, Flow, Fold, Parts, Place, Plan, Span};

/// Of rank r's part what goes right starts as rank r + 1's values, and ranks r + 2, ..., r reduce into it in
/// turn; what goes left starts at r - 1 and goes down.
///
/// A partial result has no home but its destination's: it is relayed block by block, block b of every part
/// before block b + 1 of any, so that a rank can take in one block while another waits to be sent.
pub fn ring(plan: &mut Plan, place: Place, parts: &Parts, halves: usize, element_bytes: usize) {
    let (n, own_part) = (place.size, parts.of(place.rank));
    for lane in 0..place.lanes {
        for direction in 0..2 {
            let piece = |rank: usize| {
                let (flow, half) = parts.of(rank).flows(halves)[direction];
                (flow, half.part(lane, place.lanes))
            };
            let longest = (0..n).map(|rank| piece(rank).1.len).max().unwrap_or(0);
            if lane > 0 && longest == 0 {
                continue;
            }
            let flow = piece(0).0;
            let block = block_elements(element_bytes).min(longest);
            plan.begin(flow, lane);
            let mut window = Window::new(plan, if n > 2 { block } else { 0 });
            for start in (0..longest).step_by(block.max(1)) {
                // What this rank adds to the part of the rank that lies so far upstream.
                let own = |steps: usize| {
                    let cut = piece(flow.upstream(place.rank, steps, n)).1.cut(start, block);
                    Span { buffer: Buffer::Send, start: cut.start, len: cut.len }
                };
                plan.send(own(1));
                for steps in 2..n {
                    window.relay(plan, own(steps).len, Some(own(steps)));
                }
                let last = own(n);
                let to = Span { buffer: Buffer::Recv, start: last.start - own_part.start, ..last };
                plan.reduce_into(to, last, true);
            }
        }
    }
}

/// Small parts: every rank's values reach the part's rank, which reduces them in the ring's order.
pub fn flood(plan: &mut Plan, place: Place, parts: &Parts, halves: usize) {
    let (n, own) = (place.size, parts.of(place.rank));
    let slot = |rank: usize| Stretch { start: rank * own.len, len: own.len };
    plan.scratch = n * own.len;
    let blocks = Personal {
        len: &|_, to| parts.of(to).len,
        from_here: &|to| (Buffer::Send, parts.of(to)),
        to_here: &|from| (Buffer::Scratch, slot(from)),
    };
    blocks.relayed(plan, place, 1, usize::MAX);
    for (flow, half) in own.flows(halves) {
        if half.len > 0 {
            chain(plan, place, half.start - own.start, half, flow, &slot);
        }
    }
}

/// Reduces what all ranks have sent, in the order of a chain that ends here, to Recv from element `to` on.
pub fn chain(
    plan: &mut Plan,
    place: Place,
    to: usize,
    half: Stretch,
    flow: Flow,
    slot: &dyn Fn(usize) -> Stretch,
) {
    let input = |rank: usize| match rank == place.rank {
        true => Span { buffer: Buffer::Send, start: half.start, len: half.len },
        false => Span { buffer: Buffer::Scratch, start: slot(rank).start + to, len: half.len },
    };
    let first = flow.downstream(place.rank, 1, place.size);
    let mut received = input(first);
    for turn in 1..place.size {
        let own = input(flow.downstream(first, turn, place.size));
        let last = turn == place.size - 1;
        // The own input is the last, and lies apart from all others.
        let to = if last { Span { buffer: Buffer::Recv, start: to, len: half.len } } else { own };
        plan.folds.push(Fold { to, own, received, last });
        received = to;
    }
}
