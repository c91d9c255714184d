//! Every rank's block to every other rank, in floor(n/2) steps: for small calls, where a step costs
//! more than the bytes.
//!
//! In a ring of an even number each step is one exchange with one neighbour, turn and turn about (Chen,
//! Zhang et al., "Performance evaluation of allgather algorithms on terascale Linux cluster with fast
//! Ethernet", 2005: neighbour exchange): n/2 messages a rank. Otherwise blocks travel both ways, half-way
//! round: as many steps, but n - 1 messages.

use super::segment::Stretch;
use super::{Buffer, Flow, Place, Plan, Span};

/// Sends `own` to every other rank and receives theirs: rank r's to elements
/// [r * `count`, (r + 1) * `count`) of `slots`. The blocks of even rings of more than two are small
/// enough for one lane.
pub fn exchange(plan: &mut Plan, place: Place, count: usize, own: Span, slots: Buffer) {
    if place.size > 2 && place.size.is_multiple_of(2) {
        by_neighbours(plan, place, count, own, slots);
    } else {
        let slot = |rank: usize| (slots, Stretch { start: rank * count, len: count });
        both_ways(plan, place, own.buffer, own.start, &slot);
    }
}

/// Blocks of any lengths: rank r's goes to `slot(r)`, this rank's lies at element `own` of `from`. Ranks half-way
/// round are reached rightwards only. Lanes cut each block.
pub fn both_ways(
    plan: &mut Plan,
    place: Place,
    from: Buffer,
    own: usize,
    slot: &dyn Fn(usize) -> (Buffer, Stretch),
) {
    for lane in 0..place.lanes {
        for (flow, steps) in [(Flow::Right, place.size / 2), (Flow::Left, (place.size - 1) / 2)] {
            let block = |hops: usize| {
                let (buffer, block) = slot(flow.upstream(place.rank, hops, place.size));
                let piece = block.part(lane, place.lanes);
                Span { buffer, start: piece.start, len: piece.len }
            };
            if lane > 0 && (0..=steps).all(|hops| block(hops).len == 0) {
                continue;
            }
            plan.begin(flow, lane);
            if steps > 0 {
                let piece = Stretch::whole(slot(place.rank).1.len).part(lane, place.lanes);
                plan.send(Span { buffer: from, start: own + piece.start, len: piece.len });
            }
            for step in 1..=steps {
                let at = plan.store(block(step));
                if step < steps {
                    plan.pass_on(block(step), at);
                }
            }
        }
    }
}

/// Ranks 2p and 2p + 1 are pair p. A rank exchanges own blocks with its partner first, then pairs of
/// blocks with its other neighbour and its partner in turn: what it sends, the partner's step before
/// brought it. Ranks of a pair go opposite ways, so that each pair of blocks travels half-way round both ways.
fn by_neighbours(plan: &mut Plan, place: Place, count: usize, own: Span, slots: Buffer) {
    let pairs = place.size / 2;
    let pair = |pair: usize| Span { buffer: slots, start: 2 * pair * count, len: 2 * count };
    let (mine, is_lower) = (place.rank / 2, place.rank.is_multiple_of(2));
    let partner = place.rank ^ 1;
    // The pair so many places from this rank's own, on the side of its partner.
    let beyond = |steps: usize| pair(if is_lower { mine + steps } else { mine + pairs - steps } % pairs);
    // Likewise on the side of its other neighbour.
    let outside = |steps: usize| beyond(pairs - steps);
    let (exchanges_outside, exchanges_beyond) = (pairs / 2, (pairs - 1) / 2);
    for flow in [Flow::Right, Flow::Left] {
        if (flow == Flow::Right) == is_lower {
            // To the partner: received from outside.
            plan.begin(flow, 0);
            plan.send(own);
            for steps in 1..=exchanges_outside {
                let at = plan.store(outside(steps));
                if steps <= exchanges_beyond {
                    plan.pass_on(outside(steps), at);
                }
            }
        } else {
            // Outside: received from the partner, and its block leaves together with the own one.
            plan.begin(flow, 0);
            plan.hold(count);
            let theirs = Span { buffer: slots, start: partner * count, len: count };
            let at = plan.store(theirs);
            if is_lower {
                plan.send(own);
                plan.pass_on(theirs, at);
            } else {
                plan.pass_on(theirs, at);
                plan.send(own);
            }
            for steps in 1..=exchanges_beyond {
                let at = plan.store(beyond(steps));
                if steps < exchanges_outside {
                    plan.pass_on(beyond(steps), at);
                }
            }
        }
    }
}
