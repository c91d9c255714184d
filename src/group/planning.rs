//! From a call to passes on links.

use super::calls::Call;
use super::counts::{COUNT_BYTES, COUNTS_A_PAIR};
use super::machine::Machine;
use super::pairs::Pairs;
use crate::engine::Route;
use crate::kernels::{Reduction, WIDE_BYTES};
use crate::plan::{Algorithm, Buffer, Flow, Parts, Path, Place, Plan, Span};
use crate::wire::{CallHeader, Kind};

/// Plans a call whose blocks take what links there are.
pub fn plan_call(plan: &mut Plan, place: Place, call: &Call<'_>, pairs: &Pairs) -> Algorithm {
    plan.clear();
    plan.wide = matches!(call.reduction, Some(Reduction::Wide(_)));
    let Call { count, element, .. } = *call;
    let root = call.root.unwrap_or(0);
    let algorithm = match call.kind {
        Kind::AllReduce | Kind::AllReduceCustom => plan.all_reduce(place, count, element),
        Kind::AllGather | Kind::Split => plan.all_gather(place, count, element),
        Kind::AllGatherV => plan.all_gather_v(place, &call.recv_parts, element),
        Kind::ReduceScatter | Kind::ReduceScatterV | Kind::ReduceScatterVCustom => {
            plan.reduce_scatter(place, &call.send_parts, element)
        }
        Kind::Broadcast => plan.broadcast(place, root, count, element),
        Kind::Reduce => plan.reduce(place, root, count, element),
        Kind::Gather => plan.gather(place, root, count, element),
        Kind::Scatter => plan.scatter(place, root, count, element),
        Kind::AllToAll | Kind::AllToAllV if call.goes_direct(place.size, pairs) => {
            plan.all_to_all_direct(place, (&call.send_parts, &call.recv_parts), element)
        }
        Kind::AllToAll | Kind::AllToAllV => plan.all_to_all(place, count, element),
        Kind::Barrier | Kind::Message => plan.barrier(place),
    };
    leave_in_place(plan, call);
    algorithm
}

/// Plans an all_to_all_v along the ring, where all ranks know all counts: `len` is of a block by its two ranks.
pub fn plan_relayed(
    plan: &mut Plan,
    place: Place,
    call: &Call<'_>,
    len: &dyn Fn(usize, usize) -> usize,
) -> Algorithm {
    plan.clear();
    plan.relay_blocks(place, len, (&call.send_parts, &call.recv_parts), call.element);
    Algorithm::Ring
}

/// Plans that every rank hears a byte of every other, in scratch memory.
pub fn plan_meeting(plan: &mut Plan, place: Place, why: Algorithm) -> Algorithm {
    plan.clear();
    plan.barrier(place);
    why
}

/// Plans that every rank hears every other's counts.
pub fn plan_counts(plan: &mut Plan, place: Place) -> Algorithm {
    plan.clear();
    plan.all_gather(place, COUNTS_A_PAIR * place.size, COUNT_BYTES);
    Algorithm::Counts
}

/// Drops the copies of a call in place, whose own part lies where it is to go.
pub fn leave_in_place(plan: &mut Plan, call: &Call<'_>) {
    let element = call.element;
    let start_of = |span: Span| match span.buffer {
        Buffer::Send => call.send.part(span.start * element, span.len * element).as_ptr(),
        Buffer::Recv => call.recv.part(span.start * element, span.len * element).as_ptr(),
        Buffer::Scratch | Buffer::Sums => std::ptr::null_mut(),
    };
    plan.copies.retain(|(from, to)| start_of(*from) != start_of(*to));
}

/// Bytes of scratch memory that a plan uses: of elements, and of partial sums behind them.
pub fn scratch_bytes(plan: &Plan, element: usize) -> (usize, usize) {
    (plan.scratch.saturating_mul(element), plan.sums.saturating_mul(WIDE_BYTES))
}

/// The index of the link to a rank: of its first lane if it is a neighbour, otherwise of the direct link.
pub fn link_to(place: Place, rank: usize) -> usize {
    match (rank + place.size - place.rank) % place.size {
        1 => 0,
        steps if steps == place.size - 1 => place.lanes,
        steps => 2 * place.lanes + steps - 2,
    }
}

/// The rank that a link leads to.
pub fn rank_of_link(place: Place, link: usize) -> usize {
    let steps = match link {
        link if link < place.lanes => 1,
        link if link < 2 * place.lanes => place.size - 1,
        link => link - 2 * place.lanes + 2,
    };
    (place.rank + steps) % place.size
}

/// The links of a pass along the ring: to send on, and to receive on.
pub fn ring_links(place: Place, flow: Flow, lane: usize) -> (usize, usize) {
    let (right, left) = (lane, place.lanes + lane);
    if flow == Flow::Right { (right, left) } else { (left, right) }
}

/// Lays the plan's passes onto the links. A call header travels first on lane 0 to each neighbour process, and on
/// every direct link; in a ring of two there is only one neighbour, and it is reached to the right. `blocks` has the
/// counts of blocks that differ by rank: those for others and those from them.
pub fn route(machine: &mut Machine, place: Place, header: CallHeader, blocks: Option<(&Parts, &Parts)>) {
    let len = |parts: &Parts, rank: usize| parts.of(rank).len as u64;
    let to = |rank: usize| match blocks {
        Some((send, recv)) => CallHeader { count: len(send, rank), digest: len(recv, rank), ..header },
        None => header,
    };
    let from = |rank: usize| match blocks {
        Some((send, recv)) => CallHeader { count: len(recv, rank), digest: len(send, rank), ..header },
        None => header,
    };
    let may_owe = matches!(header.kind, Kind::Broadcast | Kind::Reduce | Kind::Gather | Kind::Scatter);
    for (number, pass) in machine.plan.passes.iter().enumerate() {
        let (out, into, is_first, gate) = match pass.path {
            Path::Direct { rank } => {
                let link = link_to(place, rank);
                (link, link, true, number)
            }
            Path::Ring { flow, lane } => {
                let (out, into) = ring_links(place, flow, lane);
                let two = place.size == 2;
                let is_first = lane == 0 && (flow == Flow::Right || !two);
                // What arrives from the right has its header on the second pass, if there is one.
                (out, into, is_first, if two || flow == Flow::Right { 0 } else { 1 })
            }
        };
        let announce = is_first.then(|| to(rank_of_link(place, out)));
        let expect = is_first.then(|| from(rank_of_link(place, into)));
        let (out, into) = (Some(out), Some(into));
        machine.engine.route(pass, Route { out, into, announce, expect, gate, may_owe });
    }
}
