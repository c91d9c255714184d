//! A block from every rank for every rank.

use super::segment::Stretch;
use super::window::Window;
use super::{Buffer, Flow, Path, Place, Plan, Span};

/// Which elements of which buffer: a block's place.
pub type Block = (Buffer, Stretch);

/// The blocks of a personalised exchange.
pub struct Personal<'a> {
    /// Elements of the block from one rank for another.
    pub len: &'a dyn Fn(usize, usize) -> usize,
    /// Where this rank's block for another lies.
    pub from_here: &'a dyn Fn(usize) -> Block,
    /// Where another's block for this rank goes.
    pub to_here: &'a dyn Fn(usize) -> Block,
}

fn span((buffer, place): Block, cut: Stretch) -> Span {
    Span { buffer, start: place.start + cut.start, len: cut.len }
}

impl Personal<'_> {
    /// Blocks go the shortest way round, from neighbour to neighbour, in floor(n/2) steps. Where `halves` is
    /// 2 the block for the rank half-way round goes half this way and half that, otherwise right.
    ///
    /// What is relayed is cut into pieces of `block` elements, piece p of every block before piece p + 1 of
    /// any.
    pub fn relayed(&self, plan: &mut Plan, place: Place, halves: usize, block: usize) {
        let n = place.size;
        for lane in 0..place.lanes {
            for (direction, flow) in [Flow::Right, Flow::Left].into_iter().enumerate() {
                let farthest = if direction == 0 || halves == 2 { n / 2 } else { (n - 1) / 2 };
                // The part of the block from a rank for the one so many hops on.
                let piece = |from: usize, hops: usize| {
                    let whole = Stretch::whole((self.len)(from, flow.downstream(from, hops, n)));
                    let way = if 2 * hops == n { whole.flows(halves)[direction].1 } else { whole };
                    way.part(lane, place.lanes)
                };
                let passing = |hops: usize, steps: usize| piece(flow.upstream(place.rank, steps, n), hops);
                // All that goes over a link to or from this rank.
                let sent =
                    (0..farthest).flat_map(|steps| (steps + 1..=farthest).map(move |hops| (hops, steps)));
                let received =
                    (1..=farthest).flat_map(|steps| (steps..=farthest).map(move |hops| (hops, steps)));
                let longest = sent.chain(received).map(|(hops, steps)| passing(hops, steps).len).max();
                let longest = longest.unwrap_or(0);
                if lane > 0 && longest == 0 {
                    continue;
                }
                plan.begin(flow, lane);
                let block = block.min(longest);
                let mut window = Window::of_elements(plan, if farthest > 1 { block } else { 0 });
                for start in (0..longest).step_by(block.max(1)) {
                    for hops in 1..=farthest {
                        let to = flow.downstream(place.rank, hops, n);
                        plan.send(span((self.from_here)(to), piece(place.rank, hops).cut(start, block)));
                    }
                    for steps in 1..=farthest {
                        let from = flow.upstream(place.rank, steps, n);
                        plan.store(span((self.to_here)(from), passing(steps, steps).cut(start, block)));
                        for hops in steps + 1..=farthest {
                            window.relay(plan, passing(hops, steps).cut(start, block).len);
                        }
                    }
                }
            }
        }
    }

    /// Every block goes straight to its rank: to neighbours over the ring's lanes, to the others over links
    /// of the two. `split` says how many lanes share a block of so many elements, and in how many halves it goes in a
    /// ring of two, where the second takes the other edge. Both ends of a block know its length.
    pub fn direct(&self, plan: &mut Plan, place: Place, split: &dyn Fn(usize) -> (usize, usize)) {
        let n = place.size;
        for lane in 0..place.lanes {
            for (direction, flow) in [Flow::Right, Flow::Left].into_iter().enumerate() {
                let piece = |len: usize| {
                    let whole = Stretch::whole(len);
                    let (lanes, halves) = split(len);
                    let way = if n == 2 { whole.flows(halves)[direction].1 } else { whole };
                    if lane < lanes { way.part(lane, lanes) } else { way.cut(len, 0) }
                };
                let (to, from) = (flow.downstream(place.rank, 1, n), flow.upstream(place.rank, 1, n));
                let (out, into) = (piece((self.len)(place.rank, to)), piece((self.len)(from, place.rank)));
                if lane == 0 || out.len > 0 || into.len > 0 {
                    plan.begin(flow, lane);
                    plan.send(span((self.from_here)(to), out));
                    plan.store(span((self.to_here)(from), into));
                }
            }
        }
        for steps in 2..n.saturating_sub(1) {
            let rank = (place.rank + steps) % n;
            plan.begin_on(Path::Direct { rank });
            plan.send(span((self.from_here)(rank), Stretch::whole((self.len)(place.rank, rank))));
            plan.store(span((self.to_here)(rank), Stretch::whole((self.len)(rank, place.rank))));
        }
    }
}
