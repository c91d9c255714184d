//! The flood: every rank's whole input reaches every other, and each reduces for itself. For small
//! arrays, where a step costs more than the bytes.

use super::exchange::exchange;
use super::segment::Stretch;
use super::{Buffer, Flow, Fold, Place, Plan, Span};

/// All-reduce in exactly the order of the ring of one part or two: rightwards, segment j starts as
/// rank j's values, and ranks j+1, ..., j+n-1 reduce into it in turn; leftwards, ranks j-1, ..., j-n+1.
pub fn all_reduce(plan: &mut Plan, place: Place, count: usize, parts: usize) {
    let n = place.size;
    exchange(plan, place, count, Span { buffer: Buffer::Send, start: 0, len: count }, Buffer::Scratch);
    plan.scratch = n * count;
    for (flow, part) in Stretch::whole(count).flows(parts) {
        for first in 0..n {
            fold(plan, place, count, part.part(first, n), first, flow);
        }
    }
}

/// Reduces one segment of what all ranks sent.
fn fold(plan: &mut Plan, place: Place, count: usize, segment: Stretch, first: usize, flow: Flow) {
    if segment.len == 0 {
        return;
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
    let sums = plan.wide.then(|| plan.set_aside(segment.len));
    let mut received = slot(first);
    for turn in 1..place.size {
        let rank = flow.downstream(first, turn, place.size);
        let last = turn == place.size - 1;
        let to = if last { at(Buffer::Recv, 0) } else { sums.unwrap_or(slot(rank)) };
        plan.folds.push(Fold { to, own: input(rank), received, last });
        received = to;
    }
}
