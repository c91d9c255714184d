//! Plans with a root: broadcast, reduce, gather, scatter. Everything goes both ways round, so that both of
//! the root's edges carry the same.

use super::reduce_scatter;
use super::segment::Stretch;
use super::window::{Window, block_elements};
use super::{Buffer, Flow, Parts, Place, Plan, Span};

/// A rank's part in a plan with a root.
#[derive(Clone, Copy)]
pub struct Rooted {
    pub place: Place,
    pub root: usize,
}

impl Rooted {
    fn is_root(self) -> bool {
        self.place.rank == self.root
    }

    /// Hops in this direction from the root to this rank.
    fn hops_from_root(self, flow: Flow) -> usize {
        let Place { rank, size, .. } = self.place;
        match flow {
            Flow::Right => (rank + size - self.root) % size,
            Flow::Left => (self.root + size - rank) % size,
        }
    }

    /// Hops in this direction from this rank to the root.
    fn hops_to_root(self, flow: Flow) -> usize {
        (self.place.size - self.hops_from_root(flow)) % self.place.size
    }

    /// How far from the root blocks go in this direction, if they take the shortest way.
    fn reach(self, flow: Flow, halves: usize) -> usize {
        let n = self.place.size;
        if flow == Flow::Right || halves == 2 { n / 2 } else { (n - 1) / 2 }
    }

    /// The part that takes this direction of the block of a rank that lies so many hops from the root that
    /// way: of the block of the rank half-way round the half.
    fn share(self, flow: Flow, hops: usize, halves: usize, count: usize) -> Stretch {
        let whole = Stretch::whole(count);
        if 2 * hops == self.place.size { whole.flows(halves)[flow as usize].1 } else { whole }
    }

    /// Calls `pass` for each direction of each lane.
    fn passes(self, mut pass: impl FnMut(Flow, usize)) {
        for lane in 0..self.place.lanes {
            pass(Flow::Right, lane);
            pass(Flow::Left, lane);
        }
    }

    fn piece(self, whole: Stretch, lane: usize) -> Stretch {
        whole.part(lane, self.place.lanes)
    }
}

/// Large arrays: the first half goes all the way right, the second all the way left, each element sent on as
/// soon as it is there. Every rank but the last sends and receives each half once, the least that any
/// broadcast over a ring can (the pipelined ring of van de Geijn and Watts, "SUMMA", 1997, in both directions).
pub fn broadcast_halves(plan: &mut Plan, rooted: Rooted, count: usize) {
    rooted.passes(|flow, lane| {
        let piece = rooted.piece(Stretch::whole(count).flows(2)[flow as usize].1, lane);
        broadcast_pass(plan, rooted, flow, lane, piece, rooted.place.size - 1);
    });
}

/// Small arrays go whole, half-way round each way.
pub fn broadcast_whole(plan: &mut Plan, rooted: Rooted, count: usize) {
    rooted.passes(|flow, lane| {
        let piece = rooted.piece(Stretch::whole(count), lane);
        broadcast_pass(plan, rooted, flow, lane, piece, rooted.reach(flow, 1));
    });
}

fn broadcast_pass(plan: &mut Plan, rooted: Rooted, flow: Flow, lane: usize, piece: Stretch, reach: usize) {
    if lane > 0 && piece.len == 0 {
        return;
    }
    let span = Span { buffer: Buffer::Recv, start: piece.start, len: piece.len };
    let hops = rooted.hops_from_root(flow);
    plan.begin(flow, lane);
    match hops {
        0 if reach > 0 => plan.send(span),
        0 => {}
        hops if hops <= reach => {
            let at = plan.store(span);
            if hops < reach {
                plan.pass_on(span, at);
            }
        }
        _ => {}
    }
}

/// A reduction to the root as a chain each way, which starts behind the root and ends at it: of the part
/// that goes right rank root + 1's values, into which root + 2, ..., root reduce; of the other root - 1's.
pub fn reduce_chains(plan: &mut Plan, rooted: Rooted, count: usize, parts: usize, element_bytes: usize) {
    let n = rooted.place.size;
    rooted.passes(|flow, lane| {
        let piece = rooted.piece(Stretch::whole(count).flows(parts)[flow as usize].1, lane);
        if lane > 0 && piece.len == 0 {
            return;
        }
        let span = |buffer| Span { buffer, start: piece.start, len: piece.len };
        plan.begin(flow, lane);
        match rooted.hops_from_root(flow) {
            1 => plan.send(span(Buffer::Send)),
            0 => {
                plan.reduce_into(span(Buffer::Recv), span(Buffer::Send), n - 1, n);
            }
            hops => {
                let mut window = Window::of_sums(plan, block_elements(element_bytes).min(piece.len));
                for cut in piece.blocks(block_elements(element_bytes)) {
                    let own = Span { buffer: Buffer::Send, start: cut.start, len: cut.len };
                    window.reduce(plan, own, hops - 1);
                }
            }
        }
    });
}

/// Relays a stream through a window.
fn relay(plan: &mut Plan, len: usize, element_bytes: usize) {
    let mut window = Window::of_elements(plan, block_elements(element_bytes).min(len));
    for cut in Stretch::whole(len).blocks(block_elements(element_bytes)) {
        window.relay(plan, cut.len);
    }
}

/// Small arrays: all inputs reach the root, which reduces them in the chains' order.
pub fn reduce_flood(plan: &mut Plan, rooted: Rooted, count: usize, parts: usize, element_bytes: usize) {
    let slot = |rank: usize| Stretch { start: rank * count, len: count };
    plan.scratch = if rooted.is_root() { rooted.place.size * count } else { 0 };
    let home = |rank: usize| Span { buffer: Buffer::Scratch, start: slot(rank).start, len: count };
    gather_blocks(plan, rooted, count, 1, element_bytes, &home);
    if rooted.is_root() {
        for (flow, half) in Stretch::whole(count).flows(parts) {
            if half.len > 0 {
                reduce_scatter::chain(plan, rooted.place, half.start, half, flow, &slot);
            }
        }
    }
}

/// Every rank's block goes the shortest way to the root, the nearest first, so that the root's edges never
/// wait. In even rings the block from half-way round goes half each way where `halves` is 2.
pub fn gather(plan: &mut Plan, rooted: Rooted, parts: &Parts, halves: usize, element_bytes: usize) {
    let count = parts.of(rooted.root).len;
    if rooted.is_root() {
        let own = parts.of(rooted.root);
        plan.copy(
            Span { buffer: Buffer::Send, start: 0, len: count },
            Span { buffer: Buffer::Recv, start: own.start, len: own.len },
        );
    }
    gather_blocks(plan, rooted, count, halves, element_bytes, &|rank| {
        let part = parts.of(rank);
        Span { buffer: Buffer::Recv, start: part.start, len: part.len }
    });
}

fn gather_blocks(
    plan: &mut Plan,
    rooted: Rooted,
    count: usize,
    halves: usize,
    element_bytes: usize,
    home: &dyn Fn(usize) -> Span,
) {
    let n = rooted.place.size;
    rooted.passes(|flow, lane| {
        let reach = rooted.reach(flow, halves);
        let hops = rooted.hops_to_root(flow);
        let piece = |hops: usize| rooted.piece(rooted.share(flow, hops, halves, count), lane);
        if lane > 0 && (1..=reach).all(|hops| piece(hops).len == 0) {
            return;
        }
        plan.begin(flow, lane);
        if hops == 0 {
            for hops in 1..=reach {
                let (rank, piece) = (flow.upstream(rooted.root, hops, n), piece(hops));
                plan.store(Span { start: home(rank).start + piece.start, len: piece.len, ..home(rank) });
            }
        } else if hops <= reach {
            let own = piece(hops);
            plan.send(Span { buffer: Buffer::Send, start: own.start, len: own.len });
            let behind = (hops + 1..=reach).map(|hops| piece(hops).len).sum();
            relay(plan, behind, element_bytes);
        }
    });
}

/// Every rank's block goes the shortest way from the root, the farthest first, so that it arrives as the
/// nearest does.
pub fn scatter(plan: &mut Plan, rooted: Rooted, parts: &Parts, halves: usize, element_bytes: usize) {
    let n = rooted.place.size;
    let count = parts.of(rooted.root).len;
    if rooted.is_root() {
        let own = parts.of(rooted.root);
        plan.copy(
            Span { buffer: Buffer::Send, start: own.start, len: own.len },
            Span { buffer: Buffer::Recv, start: 0, len: count },
        );
    }
    rooted.passes(|flow, lane| {
        let reach = rooted.reach(flow, halves);
        let hops = rooted.hops_from_root(flow);
        let piece = |hops: usize| rooted.piece(rooted.share(flow, hops, halves, count), lane);
        if lane > 0 && (1..=reach).all(|hops| piece(hops).len == 0) {
            return;
        }
        plan.begin(flow, lane);
        if hops == 0 {
            for hops in (1..=reach).rev() {
                let (part, piece) = (parts.of(flow.downstream(rooted.root, hops, n)), piece(hops));
                plan.send(Span { buffer: Buffer::Send, start: part.start + piece.start, len: piece.len });
            }
        } else if hops <= reach {
            let beyond = (hops + 1..=reach).map(|hops| piece(hops).len).sum();
            relay(plan, beyond, element_bytes);
            let own = piece(hops);
            plan.store(Span { buffer: Buffer::Recv, start: own.start, len: own.len });
        }
    });
}
