//! What a caller asks for, and the count of calls that run.

use std::sync::{Arc, Condvar, Mutex};

use super::lock;
use crate::dtype::{Dtype, Op};
use crate::error::{Error, Result, Status};
use crate::kernels::{Custom, ReduceElements, Reducer, Reduction, WideReducer};
use crate::memory::Region;
use crate::plan::Parts;
use crate::wire::{CallHeader, Kind, digest};

/// A collective's arguments, which have been checked, in the form that all of them share. Regions stay inside: in other
/// hands they would be memory that may be written, whatever it was lent for.
pub struct Call<'a> {
    pub kind: Kind,
    /// None where elements are the host program's own, or where there are none.
    pub(crate) dtype: Option<Dtype>,
    pub(crate) op: Option<Op>,
    /// The rank that has or gets all, where there is one.
    pub(crate) root: Option<usize>,
    /// The count that ranks compare: see [`Call::header`].
    pub(crate) count: usize,
    /// Bytes of an element.
    pub(crate) element: usize,
    /// Empty where this rank has no input. Of a broadcast both are its one buffer.
    pub(crate) send: Region<'a>,
    /// Empty where this rank has no output.
    pub(crate) recv: Region<'a>,
    /// Which part of `send` is for which rank, or `count` elements each.
    pub(crate) send_parts: Parts,
    /// Which part of `recv` comes from which rank, or `count` elements each.
    pub(crate) recv_parts: Parts,
    /// None where nothing is reduced.
    pub(crate) reduction: Option<Reduction<'a>>,
    /// Of a message that goes over the links of collectives: the neighbour to which `send` goes.
    pub(crate) to: Option<usize>,
    /// Likewise: the neighbour from which `recv` comes.
    pub(crate) from: Option<usize>,
}

impl<'a> Call<'a> {
    /// A call of `count` elements, without buffers so far.
    pub fn new(kind: Kind, count: usize) -> Call<'a> {
        Call {
            kind,
            dtype: None,
            op: None,
            root: None,
            count,
            element: 1,
            send: Region::empty(),
            recv: Region::empty(),
            send_parts: Parts::Equal(count),
            recv_parts: Parts::Equal(count),
            reduction: None,
            to: None,
            from: None,
        }
    }

    /// With these buffers, for tests.
    #[doc(hidden)]
    pub fn between(self, send: Region<'a>, recv: Region<'a>) -> Call<'a> {
        Call { send, recv, ..self }
    }

    /// Elements of this type.
    pub fn of(self, dtype: Dtype) -> Call<'a> {
        Call { dtype: Some(dtype), element: dtype.size(), ..self }
    }

    /// Elements of this type, reduced by an op that it has.
    pub fn by_op(self, dtype: Dtype, op: Op) -> Call<'a> {
        let reduction = Reducer::new(dtype, op).map(Reduction::Op);
        Call { op: Some(op), reduction, ..self.of(dtype) }
    }

    /// Elements of so many bytes of the host program's own, reduced by its function: see [`ReduceElements`].
    pub fn by_function(self, element: usize, function: Box<ReduceElements<'a>>) -> Result<Call<'a>> {
        let mut custom = Custom::new(element, function);
        // Of no elements the size may be any.
        if self.count > 0 && custom.reserve().is_none() {
            let text = format!("no memory for two elements of {element} bytes");
            return Err(Error::new(Status::OutOfMemory, text));
        }
        Ok(Call { element, reduction: Some(Reduction::Custom(custom)), ..self })
    }

    /// With partial sums that are wider than elements, where the reduction has such.
    pub fn widened(self) -> Call<'a> {
        let wide = self.dtype.zip(self.op).and_then(|(dtype, op)| WideReducer::new(dtype, op));
        Call { reduction: wide.map(Reduction::Wide).or(self.reduction), ..self }
    }

    /// What it counts for: a message that is sent and one that is received are two.
    pub fn operations(&self) -> u64 {
        let messages = u64::from(self.to.is_some()) + u64::from(self.from.is_some());
        messages.max(1)
    }

    /// What the neighbours compare with their own. Where all ranks must agree on an array of counts, the
    /// header has their total and a digest.
    pub fn header(&self, sequence: u64) -> CallHeader {
        let listed = match (self.kind, &self.send_parts, &self.recv_parts) {
            (Kind::AllGatherV, _, Parts::Listed(parts)) => Some(parts),
            (Kind::ReduceScatterV | Kind::ReduceScatterVCustom, Parts::Listed(parts), _) => Some(parts),
            _ => None,
        };
        CallHeader {
            dtype: self.dtype,
            op: self.op,
            count: self.count as u64,
            digest: listed.map_or(0, |parts| digest(parts.iter().map(|part| part.len))),
            root: self.root.map_or(-1, |root| root as i32),
            element: if self.kind.is_custom() { u32::try_from(self.element).unwrap_or(u32::MAX) } else { 0 },
            ..CallHeader::new(self.kind, sequence)
        }
    }
}

/// Elements to or from one peer.
pub struct Message<'a> {
    pub(crate) buffer: Region<'a>,
    pub(crate) count: usize,
    pub(crate) dtype: Dtype,
    pub peer: usize,
}

impl<'a> Message<'a> {
    /// As many elements as a region holds, for tests.
    #[doc(hidden)]
    pub fn of(buffer: Region<'a>, dtype: Dtype, peer: usize) -> Message<'a> {
        Message { buffer, count: buffer.len() / dtype.size(), dtype, peer }
    }
}

/// Counts the calls that are inside the group, so that destroy can wait for them. It is shared
/// with each call, since the last one to leave may still touch it when the group is gone.
#[derive(Default)]
pub struct Running {
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Default)]
struct State {
    calls: usize,
    closing: bool,
}

/// A call inside the group, until dropped.
pub struct Entered(Arc<Running>);

impl Running {
    /// Lets a call in, unless the group is being destroyed.
    pub fn enter(self: &Arc<Running>) -> Result<Entered> {
        let mut state = lock(&self.state);
        if state.closing {
            return Err(Error::new(Status::Aborted, "the group is being destroyed"));
        }
        state.calls += 1;
        Ok(Entered(self.clone()))
    }

    /// Whether no call is inside.
    pub fn is_empty(&self) -> bool {
        lock(&self.state).calls == 0
    }

    /// Lets no more calls in, runs `stop`, and waits until those inside have left.
    pub fn close(&self, stop: impl FnOnce()) {
        let mut state = lock(&self.state);
        state.closing = true;
        stop();
        while state.calls > 0 {
            state = self.left.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.calls -= 1;
        if state.closing {
            self.0.left.notify_all();
        }
    }
}
