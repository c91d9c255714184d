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

/// One direction of one lane. At step q a rank sends the segment that started q ranks upstream of
/// it and receives the one that started q + 1 upstream; the last of the n - 1 reductions of a
/// segment ends its chain, and the n - 1 steps after that pass the results around.
fn pass(plan: &mut Plan, place: Place, flow: Flow, lane: usize, part: Stretch, element_bytes: usize) {
    let n = place.size;
    let segment = |steps: usize, buffer: Buffer| {
        let segment = part.part(flow.upstream(place.rank, steps, n), n).part(lane, place.lanes);
        Span { buffer, start: segment.start, len: segment.len }
    };
    plan.begin(flow, lane);
    if plan.wide {
        let chains = Chains {
            block: block_elements(element_bytes),
            longest: (0..n).map(|steps| segment(steps, Buffer::Send).len).max().unwrap_or(0),
            own: &|steps| {
                let Span { start, len, .. } = segment(steps, Buffer::Send);
                Stretch { start, len }
            },
        };
        let reduced = reduce_blocks(plan, n, &chains, |start| start);
        reduced.into_iter().for_each(|(span, at)| plan.pass_on(span, at));
    } else {
        plan.send(segment(0, Buffer::Send));
        for step in 1..n {
            let to = segment(step, Buffer::Recv);
            let at = plan.reduce_into(to, segment(step, Buffer::Send), step, n);
            plan.pass_on(to, at);
        }
    }
    for step in n..2 * n - 1 {
        let to = segment(step, Buffer::Recv);
        let at = plan.store(to);
        if step < 2 * (n - 1) {
            plan.pass_on(to, at);
        }
    }
}
