//! The flood: whole inputs travel both ways, half-way round the ring, and every rank reduces for
//! itself. For small arrays, where a step costs more than the bytes.

use super::segment::Stretch;
use super::{Buffer, Flow, Fold, Place, Plan, Span};

/// Sends `own` to every other rank and receives theirs: rank r's to elements
/// [r * `count`, (r + 1) * `count`) of `slots`. Ranks half-way round are reached rightwards only.
pub fn exchange(plan: &mut Plan, place: Place, count: usize, own: Span, slots: Buffer) {
    for (flow, steps) in [(Flow::Right, place.size / 2), (Flow::Left, (place.size - 1) / 2)] {
        let slot = |hops: usize| {
            let rank = flow.upstream(place.rank, hops, place.size);
            Span { buffer: slots, start: rank * count, len: count }
        };
        plan.begin(flow, 0, if steps > 0 { count } else { 0 });
        for step in 1..=steps {
            plan.send(if step == 1 { own } else { slot(step - 1) });
        }
        for step in 1..=steps {
            plan.store(slot(step));
        }
    }
}

/// All-reduce in exactly the order of the ring's one part that goes right: segment j starts as
/// rank j's values, and ranks j+1, ..., j+n-1 reduce into it in turn.
pub fn all_reduce(plan: &mut Plan, place: Place, count: usize) {
    let n = place.size;
    exchange(plan, place, count, Span { buffer: Buffer::Send, start: 0, len: count }, Buffer::Scratch);
    plan.scratch = n * count;
    for first in 0..n {
        let segment = Stretch { start: 0, len: count }.part(first, n);
        if segment.len == 0 {
            continue;
        }
        let at = |buffer, start| Span { buffer, start: start + segment.start, len: segment.len };
        // The own input is never written: its result goes to the own slot, which nobody fills.
        let slot = |rank: usize| at(Buffer::Scratch, rank * count);
        let input = |rank: usize| if rank == place.rank { at(Buffer::Send, 0) } else { slot(rank) };
        // In place the last fold could write where the chain of the own segment begins: it begins
        // in the own slot, too.
        if first == place.rank {
            plan.copies.push((input(first), slot(first)));
        }
        let mut received = slot(first);
        for turn in 1..n {
            let rank = (first + turn) % n;
            let last = turn == n - 1;
            let to = if last { at(Buffer::Recv, 0) } else { slot(rank) };
            plan.folds.push(Fold { to, own: input(rank), received, last });
            received = to;
        }
    }
}
