//! All-gather: every rank's block travels round until all have it.

use super::exchange::exchange;
use super::segment::Stretch;
use super::{Buffer, Place, Plan, Span};

/// Small blocks travel whole, in floor(n/2) steps.
pub fn whole(plan: &mut Plan, place: Place, count: usize) {
    keep_own(plan, place, count);
    let own = Span { buffer: Buffer::Send, start: 0, len: count };
    exchange(plan, place, count, own, Buffer::Recv);
}

/// Large blocks are cut in two halves, of which the first goes all the way right and the second
/// left, so that both directions of a link carry the same; lanes cut each half.
pub fn halves(plan: &mut Plan, place: Place, count: usize) {
    keep_own(plan, place, count);
    for lane in 0..place.lanes {
        for (flow, half) in Stretch::whole(count).flows(2) {
            let piece = half.part(lane, place.lanes);
            if lane > 0 && piece.len == 0 {
                continue;
            }
            let block = |hops: usize| {
                let rank = flow.upstream(place.rank, hops, place.size);
                Span { buffer: Buffer::Recv, start: rank * count + piece.start, len: piece.len }
            };
            plan.begin(flow, lane);
            plan.send(Span { buffer: Buffer::Send, start: piece.start, len: piece.len });
            for hops in 1..place.size {
                let at = plan.store(block(hops));
                if hops < place.size - 1 {
                    plan.pass_on(block(hops), at);
                }
            }
        }
    }
}

fn keep_own(plan: &mut Plan, place: Place, count: usize) {
    if count > 0 {
        let from = Span { buffer: Buffer::Send, start: 0, len: count };
        plan.copies.push((from, Span { buffer: Buffer::Recv, start: place.rank * count, len: count }));
    }
}
