//! The ring all-reduce: segments are reduced on their first round and passed around on the
//! second (Patarasu and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
//! workstations", 2009). Each rank sends 2(n-1)/n of the array.

use super::reduce_scatter::{Chains, reduce_blocks};
use super::segment::Stretch;
use super::window::block_elements;
use super::{Buffer, Flow, Place, Plan, Span};

/// All-reduce of `count` elements in one part, which goes right, or two, of which the second goes
/// left. Lanes cut each segment, so that they change no element's order of reduction.
pub fn all_reduce(plan: &mut Plan, place: Place, count: usize, parts: usize, element_bytes: usize) {
    for lane in 0..place.lanes {
        for (flow, part) in Stretch::whole(count).flows(parts) {
            if lane == 0 || part.len > 0 {
                pass(plan, place, flow, lane, part, element_bytes);
            }
        }
    }
}

/// One direction of one lane.
fn pass(plan: &mut Plan, place: Place, flow: Flow, lane: usize, part: Stretch, element_bytes: usize) {
    let n = place.size;
    let segment = |rank: usize, buffer: Buffer| {
        let segment = part.part(rank, n).part(lane, place.lanes);
        Span { buffer, start: segment.start, len: segment.len }
    };
    plan.begin(flow, lane);
    if plan.wide {
        let own = |steps: usize| segment(flow.upstream(place.rank, steps, n), Buffer::Send);
        let chains = Chains {
            block: block_elements(element_bytes),
            longest: (0..n).map(|steps| own(steps).len).max().unwrap_or(0),
            own: &|steps| {
                let Span { start, len, .. } = own(steps);
                Stretch { start, len }
            },
        };
        let reduced = reduce_blocks(plan, n, &chains, |start| start);
        reduced.into_iter().for_each(|(span, at)| plan.pass_on(span, at));
    } else {
        reduce(plan, flow, place, &segment);
    }
    spread(plan, flow, place, &segment);
}

/// The first round: at step q a rank sends the segment that started q ranks upstream of it and receives the one that
/// started q + 1 upstream; the last of the n - 1 reductions of a segment ends its chain. `segment` is by the rank at
/// which it starts.
pub(super) fn reduce(plan: &mut Plan, flow: Flow, place: Place, segment: &dyn Fn(usize, Buffer) -> Span) {
    let n = place.size;
    plan.send(segment(place.rank, Buffer::Send));
    for step in 1..n {
        let first = flow.upstream(place.rank, step, n);
        let to = segment(first, Buffer::Recv);
        let at = plan.reduce_into(to, segment(first, Buffer::Send), step, n);
        plan.pass_on(to, at);
    }
}

/// The second round: n - 1 steps that pass the results around.
pub(super) fn spread(plan: &mut Plan, flow: Flow, place: Place, segment: &dyn Fn(usize, Buffer) -> Span) {
    let n = place.size;
    for step in n..2 * n - 1 {
        let to = segment(flow.upstream(place.rank, step, n), Buffer::Recv);
        let at = plan.store(to);
        if step < 2 * (n - 1) {
            plan.pass_on(to, at);
        }
    }
}
