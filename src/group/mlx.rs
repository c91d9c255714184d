//! What a group does otherwise whose ranks speak stock MLX's wire. It carries little: sums, maxima and minima,
//! all-gathers, and messages between neighbours, all one after the other on the same links, without a header. A mean is
//! a sum that each rank divides for itself, and a barrier is the sum of one number.

use super::Group;
use super::calls::{Call, Message};
use super::machine::Machine;
use super::planning::{leave_in_place, ring_links};
use crate::bootstrap::config::Wire;
use crate::dtype::{Dtype, Op};
use crate::engine::Route;
use crate::error::{Error, Result, Status};
use crate::kernels::{Reducer, Reduction};
use crate::memory::Region;
use crate::plan::{Algorithm, Flow, Path, Place, Plan};
use crate::wire::Kind;

/// What each rank adds in a barrier: an MLX rank that sums ones as its barrier gets the number of ranks.
const ONE: f32 = 1.0;

impl Group {
    /// Whether the ranks speak stock MLX's wire.
    pub(super) fn is_mlx(&self) -> bool {
        self.wire == Wire::Mlx
    }

    /// A collective, unless the group's wire can't carry it.
    pub(super) fn carried<'a>(&self, call: Call<'a>) -> Result<Call<'a>> {
        match self.is_mlx().then(|| obstacle(&call, self.size())).flatten() {
            Some(obstacle) => Err(unsupported(&obstacle)),
            None => Ok(call),
        }
    }

    /// A split, unless the group's wire can't carry it.
    pub(super) fn splittable<T>(&self, request: T) -> Result<T> {
        if self.is_mlx() { Err(unsupported("it has no groups within a group")) } else { Ok(request) }
    }

    /// A send, a receive, or both at a time, as a call that takes its turn among the collectives.
    pub(super) fn message_call<'a>(
        &self,
        send: Option<Message<'a>>,
        recv: Option<Message<'a>>,
    ) -> Result<Call<'a>> {
        for (message, way) in
            send.iter().map(|send| (send, "to")).chain(recv.iter().map(|recv| (recv, "from")))
        {
            let steps = (message.peer + self.size() - self.rank()) % self.size();
            if steps != 1 && steps != self.size() - 1 {
                let text = format!("a message {way} rank {}, which is no neighbour", message.peer);
                return Err(unsupported(&text));
            }
        }
        let first = send.as_ref().or(recv.as_ref());
        Ok(Call {
            dtype: first.map(|message| message.dtype),
            to: send.as_ref().map(|message| message.peer),
            from: recv.as_ref().map(|message| message.peer),
            send: send.as_ref().map_or(Region::empty(), |message| message.buffer),
            recv: recv.as_ref().map_or(Region::empty(), |message| message.buffer),
            ..Call::new(Kind::Message, first.map_or(0, |message| message.count))
        })
    }

    /// The number of a message in its pair; of two at a time, that of the send. To be taken with the place.
    pub(super) fn message_number(&self, call: &Call<'_>) -> u64 {
        let number = |peer: Option<usize>, sends| Some(self.way(peer?, sends).ok()?.turns.number());
        let (sent, received) = (number(call.to, true), number(call.from, false));
        sent.or(received).unwrap_or(0)
    }
}

fn unsupported(text: &str) -> Error {
    Error::new(Status::Unsupported, format!("the MLX wire can't carry it: {text}"))
}

/// Why the wire can't carry a call.
fn obstacle(call: &Call<'_>, size: usize) -> Option<String> {
    let (count, element) = match call.kind {
        Kind::AllReduce => (call.count, call.element),
        Kind::Barrier => (1, size_of_val(&ONE)),
        Kind::AllGather => return None,
        kind => return Some(format!("{} is none of its calls", kind.name())),
    };
    let reduces = match (call.dtype, call.op) {
        (Some(dtype), Some(op)) => Reducer::mlx(dtype, op).is_some(),
        _ => true,
    };
    if !reduces {
        return Some(format!("it has no {}", call.op.map_or("reduction", Op::name)));
    }
    (!Plan::mlx_reduces(size, count, element)).then(|| {
        format!(
            "{count} elements among {size} ranks are filled up to {} bytes, more than it has room for",
            size * element
        )
    })
}

impl<'a> Call<'a> {
    /// As it is carried out on MLX's wire. Bools are made 0 or 1 in the output, from where they are then sent.
    pub fn for_mlx(self) -> Call<'a> {
        let reducer = |dtype, op| Reducer::mlx(dtype, op).map(Reduction::Op);
        match (self.kind, self.dtype, self.op) {
            // MLX reckons with the byte that comes, which for a bool of this library's callers may be any.
            (Kind::AllReduce, Some(Dtype::Bool), Some(op)) => {
                let reduction = reducer(Dtype::Bool, op);
                if let Some(reduction) = &reduction {
                    reduction.copy(self.recv, self.send);
                }
                Call { reduction, send: self.recv, ..self }
            }
            (Kind::AllReduce, Some(dtype), Some(Op::Mean)) => {
                Call { reduction: reducer(dtype, Op::Sum), ..self }
            }
            (Kind::AllReduce, Some(dtype), Some(op)) => Call { reduction: reducer(dtype, op), ..self },
            (Kind::Barrier, ..) => {
                Call { element: size_of_val(&ONE), reduction: reducer(Dtype::Float32, Op::Sum), ..self }
            }
            // It cuts between bytes.
            _ => Call { element: 1, ..self },
        }
    }

    /// What each rank does for itself at the end.
    pub fn finish_for_mlx(&self, ranks: usize) {
        if let (Kind::AllReduce, Some(dtype), Some(Op::Mean)) = (self.kind, self.dtype, self.op)
            && let Some(mean) = Reducer::new(dtype, Op::Mean)
        {
            mean.finish(self.recv, ranks);
        }
    }
}

/// Plans a call.
pub fn plan(plan: &mut Plan, place: Place, call: &Call<'_>) -> Algorithm {
    plan.clear();
    let right = (place.rank + 1) % place.size;
    let left = (place.rank + place.size - 1) % place.size;
    match call.kind {
        Kind::AllReduce => plan.mlx_all_reduce(place, call.count, call.element),
        Kind::Barrier => plan.mlx_barrier(place),
        Kind::AllGather => plan.mlx_all_gather(place, call.send.len()),
        _ => {
            // In a ring of two a rank sends to the right and receives from the left.
            if let Some(to) = call.to {
                let flow = if to == right { Flow::Right } else { Flow::Left };
                plan.mlx_send(place, flow, call.send.len());
            }
            if let Some(from) = call.from {
                let flow = if from == left { Flow::Right } else { Flow::Left };
                plan.mlx_receive(place, flow, call.recv.len());
            }
        }
    }
    leave_in_place(plan, call);
    Algorithm::Ring
}

/// Lays the plan's passes onto the links: no header travels ahead.
pub fn route(machine: &mut Machine, place: Place) {
    for (number, pass) in machine.plan.passes.iter().enumerate() {
        if let Path::Ring { flow, lane } = pass.path {
            let (out, into) = ring_links(place, flow, lane);
            let (out, into) = (Some(out), Some(into));
            machine
                .engine
                .route(pass, Route { out, into, announce: None, expect: None, gate: number, may_owe: false });
        }
    }
}

/// What scratch memory holds at first: zeros, and this rank's number of a barrier.
pub fn fill(scratch: &mut [u8], plan: &Plan, call: &Call<'_>) {
    scratch[..plan.blank * call.element].fill(0);
    if call.kind == Kind::Barrier {
        scratch[..size_of_val(&ONE)].copy_from_slice(&ONE.to_ne_bytes());
    }
}
