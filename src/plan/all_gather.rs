//! All-gather: every rank's block travels round until all have it.

use super::exchange::{both_ways, exchange};
use super::segment::Stretch;
use super::{Buffer, Flow, Parts, Place, Plan, Span};

/// Small blocks travel whole, in floor(n/2) steps.
pub fn whole(plan: &mut Plan, place: Place, count: usize) {
    keep_own(plan, place, &Parts::Equal(count));
    let own = Span { buffer: Buffer::Send, start: 0, len: count };
    exchange(plan, place, count, own, Buffer::Recv);
}

/// Likewise small blocks of different lengths.
pub fn parts_whole(plan: &mut Plan, place: Place, parts: &Parts) {
    keep_own(plan, place, parts);
    both_ways(plan, place, Buffer::Send, 0, &|rank| (Buffer::Recv, parts.of(rank)));
}

/// Large blocks are cut in two halves, of which the first goes all the way right and the second
/// left, so that both directions of a link carry the same; lanes cut each half.
pub fn halves(plan: &mut Plan, place: Place, parts: &Parts) {
    keep_own(plan, place, parts);
    for lane in 0..place.lanes {
        for flow in [Flow::Right, Flow::Left] {
            let piece = |part: Stretch| part.flows(2)[flow as usize].1.part(lane, place.lanes);
            if lane > 0 && piece(Stretch::whole(parts.longest())).len == 0 {
                continue;
            }
            let Stretch { start, len } = piece(Stretch::whole(parts.of(place.rank).len));
            plan.begin(flow, lane);
            round(plan, place, flow, Span { buffer: Buffer::Send, start, len }, &|rank| {
                piece(parts.of(rank))
            });
        }
    }
}

/// Every rank's piece travels all the way round in one direction; `piece` is its place in Recv, by rank.
pub(super) fn round(plan: &mut Plan, place: Place, flow: Flow, own: Span, piece: &dyn Fn(usize) -> Stretch) {
    plan.send(own);
    for hops in 1..place.size {
        let Stretch { start, len } = piece(flow.upstream(place.rank, hops, place.size));
        let to = Span { buffer: Buffer::Recv, start, len };
        let at = plan.store(to);
        if hops < place.size - 1 {
            plan.pass_on(to, at);
        }
    }
}

/// A rank's own part needs no link.
pub(super) fn keep_own(plan: &mut Plan, place: Place, parts: &Parts) {
    let own = parts.of(place.rank);
    plan.copy(
        Span { buffer: Buffer::Send, start: 0, len: own.len },
        Span { buffer: Buffer::Recv, start: own.start, len: own.len },
    );
}
