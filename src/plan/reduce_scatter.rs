//! Reduce-scatter: the first half of the ring all-reduce, with a part for every rank.
//!
//! Each rank sends (n-1)/n of the array, the least that any reduce-scatter can (Patarasu and Yuan, 2009).

use super::personal::Personal;
use super::segment::Stretch;
use super::window::{Window, block_elements};
use super::{Buffer, Flow, Fold, Parts, Place, Plan, Span};

/// The chains of one pass.
pub struct Chains<'a> {
    /// What is relayed is cut into blocks of so many elements: block b of every chain comes before block
    /// b + 1 of any, so that a rank can take in one block while another waits to be sent.
    pub block: usize,
    /// Elements of the longest chain.
    pub longest: usize,
    /// What this rank adds to the chain that began so many ranks upstream of it; 0 is the one that begins here.
    pub own: &'a dyn Fn(usize) -> Stretch,
}

/// Reduces the pass under way's n chains block by block, in a window of scratch memory: a partial result has no
/// home but its end's. The chain that ends here goes to Recv, where `home` says that its own element lies; the
/// blocks of it, and their places in the received stream.
pub fn reduce_blocks(
    plan: &mut Plan,
    n: usize,
    chains: &Chains<'_>,
    home: impl Fn(usize) -> usize,
) -> Vec<(Span, usize)> {
    let block = chains.block.min(chains.longest);
    let mut window = Window::of_sums(plan, if n > 2 { block } else { 0 });
    let mut reduced = Vec::new();
    for start in (0..chains.longest).step_by(block.max(1)) {
        let own = |steps: usize| {
            let cut = (chains.own)(steps).cut(start, block);
            Span { buffer: Buffer::Send, start: cut.start, len: cut.len }
        };
        plan.send(own(0));
        for steps in 1..n - 1 {
            window.reduce(plan, own(steps), steps);
        }
        let last = own(n - 1);
        let to = Span { buffer: Buffer::Recv, start: home(last.start), ..last };
        reduced.push((to, plan.reduce_into(to, last, n - 1, n)));
    }
    reduced
}

/// Of rank r's part what goes right starts as rank r + 1's values, and ranks r + 2, ..., r reduce into it in
/// turn; what goes left starts at r - 1 and goes down.
pub fn ring(plan: &mut Plan, place: Place, parts: &Parts, halves: usize, element_bytes: usize) {
    let (n, own_part) = (place.size, parts.of(place.rank));
    for lane in 0..place.lanes {
        for flow in [Flow::Right, Flow::Left] {
            let piece = |rank: usize| parts.of(rank).flows(halves)[flow as usize].1.part(lane, place.lanes);
            let longest = (0..n).map(|rank| piece(rank).len).max().unwrap_or(0);
            if lane == 0 || longest > 0 {
                plan.begin(flow, lane);
                let own = |steps: usize| piece(flow.upstream(place.rank, steps + 1, n));
                let chains = Chains { block: block_elements(element_bytes), longest, own: &own };
                reduce_blocks(plan, n, &chains, |start| start - own_part.start);
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
    let sums = plan.wide.then(|| plan.set_aside(half.len));
    let mut received = input(first);
    for turn in 1..place.size {
        let own = input(flow.downstream(first, turn, place.size));
        let last = turn == place.size - 1;
        // The own input is the last, and lies apart from all others.
        let to = match last {
            true => Span { buffer: Buffer::Recv, start: to, len: half.len },
            false => sums.unwrap_or(own),
        };
        plan.folds.push(Fold { to, own, received, last });
        received = to;
    }
}
