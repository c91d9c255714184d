//! Calls that every rank makes in the same order.

use std::ops::Range;

use super::element::Element;
use super::group::Group;
use crate::dtype::Op;
use crate::error::Result;
use crate::memory::{Input, Output};
use crate::untyped::{self, Kind};

/// A type's number, as calls have it.
pub(super) fn dtype<T: Element>() -> i32 {
    T::DTYPE.number().into()
}

/// A reduction's number, as calls have it.
pub(super) fn number(op: Op) -> i32 {
    op.number().into()
}

/// A rank, as calls have it; what is none is refused by its number.
pub(super) fn rank(rank: usize) -> i32 {
    i32::try_from(rank).unwrap_or(i32::MAX)
}

/// Collectives.
impl Group {
    /// Reduces the ranks' arrays element by element, in place: every rank ends with the same bits. Blocks until
    /// this rank has its result and has handed on what its neighbours need. After a failure the contents are
    /// unspecified.
    ///
    /// # Errors
    ///
    /// UNSUPPORTED: the type has no such reduction. INVALID_ARGUMENT: slices whose lengths don't fit each other, a root
    /// that is no rank. OUT_OF_MEMORY: before anything moved. These are this call's alone, but it takes its number. Of
    /// the group: MISMATCH (ranks made calls that differ), PEER_LOST, TIMEOUT, ABORTED, SYSTEM, INTERNAL. INVALID_STATE:
    /// in a forked child.
    pub fn all_reduce<T: Element>(&self, buffer: &mut [T], op: Op) -> Result<()> {
        let count = buffer.len();
        let recv = Output::of(buffer);
        let send = recv.as_input();
        self.collective(Kind::AllReduce, |_| untyped::all_reduce(send, recv, count, dtype::<T>(), number(op)))
    }

    /// Likewise from one slice into another, of the same length.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce`].
    pub fn all_reduce_into<T: Element>(&self, send: &[T], recv: &mut [T], op: Op) -> Result<()> {
        let (count, send, recv) = (send.len(), Input::of(send), Output::of(recv));
        self.collective(Kind::AllReduce, |_| untyped::all_reduce(send, recv, count, dtype::<T>(), number(op)))
    }

    /// Reduces the ranks' arrays and gives each rank its part of the result: rank r gets, reduced, the elements from
    /// r * recv.len() on of `send`, which has recv.len() for each rank.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce`].
    pub fn reduce_scatter<T: Element>(&self, send: &[T], recv: &mut [T], op: Op) -> Result<()> {
        let (count, send, recv) = (recv.len(), Input::of(send), Output::of(recv));
        self.collective(Kind::ReduceScatter, |place| {
            untyped::reduce_scatter(place, send, recv, count, dtype::<T>(), number(op))
        })
    }

    /// Likewise in place, of equal parts: only this rank's part is written; where it lies.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce`]; INVALID_ARGUMENT also where the length is no multiple of the number of ranks.
    pub fn reduce_scatter_in_place<T: Element>(&self, buffer: &mut [T], op: Op) -> Result<Range<usize>> {
        let own = self.own_part(buffer.len());
        let (start, count) = (own.start * size_of::<T>(), own.len());
        let whole = Output::of(buffer);
        self.collective(Kind::ReduceScatter, |place| {
            let (send, recv) = (whole.as_input(), whole.part(start, count * size_of::<T>()));
            untyped::reduce_scatter(place, send, recv, count, dtype::<T>(), number(op))
        })?;
        Ok(own)
    }

    /// Gathers the ranks' arrays, of one length: rank r's arrives at element r * send.len() of `recv` on every rank.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce`].
    pub fn all_gather<T: Element>(&self, send: &[T], recv: &mut [T]) -> Result<()> {
        let (count, send, recv) = (send.len(), Input::of(send), Output::of(recv));
        self.collective(Kind::AllGather, |place| untyped::all_gather(place, send, recv, count, dtype::<T>()))
    }

    /// Likewise in place, of equal parts, of which this rank gives its own.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce`]; INVALID_ARGUMENT also where the length is no multiple of the number of ranks.
    pub fn all_gather_in_place<T: Element>(&self, buffer: &mut [T]) -> Result<()> {
        let own = self.own_part(buffer.len());
        let (start, count) = (own.start * size_of::<T>(), own.len());
        let recv = Output::of(buffer);
        self.collective(Kind::AllGather, |place| {
            let send = recv.part_as_input(start, count * size_of::<T>());
            untyped::all_gather(place, send, recv, count, dtype::<T>())
        })
    }

    /// Gives every rank the root's array; it is read on the root and written elsewhere. A mismatch may come in a
    /// later collective. The root may return before the last rank has called.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce`].
    pub fn broadcast<T: Element>(&self, buffer: &mut [T], root: usize) -> Result<()> {
        let (count, buffer) = (buffer.len(), Output::of(buffer));
        self.collective(Kind::Broadcast, |place| {
            untyped::broadcast(place, buffer, count, dtype::<T>(), rank(root))
        })
    }

    /// Reduces the ranks' arrays into the root's `recv`, which is ignored elsewhere and may be empty.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce`].
    pub fn reduce<T: Element>(&self, send: &[T], recv: &mut [T], op: Op, root: usize) -> Result<()> {
        let (count, send, recv) = (send.len(), Input::of(send), Output::of(recv));
        self.collective(Kind::Reduce, |place| {
            untyped::reduce(place, send, recv, count, (dtype::<T>(), number(op)), rank(root))
        })
    }

    /// Gathers the ranks' arrays, of one length, in the root's `recv`, which is ignored elsewhere and may be empty.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce`].
    pub fn gather<T: Element>(&self, send: &[T], recv: &mut [T], root: usize) -> Result<()> {
        let (count, send, recv) = (send.len(), Input::of(send), Output::of(recv));
        self.collective(Kind::Gather, |place| {
            untyped::gather(place, send, recv, count, dtype::<T>(), rank(root))
        })
    }

    /// Gives each rank its part of the root's `send`, which is ignored elsewhere and may be empty.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce`].
    pub fn scatter<T: Element>(&self, send: &[T], recv: &mut [T], root: usize) -> Result<()> {
        let (count, send, recv) = (recv.len(), Input::of(send), Output::of(recv));
        self.collective(Kind::Scatter, |place| {
            untyped::scatter(place, send, recv, count, dtype::<T>(), rank(root))
        })
    }

    /// Sends a block to every rank and receives one from each, all of one length: block d of `send` goes to rank d,
    /// rank s's arrives as block s of `recv`. Both hold one for each rank.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce`]; INVALID_ARGUMENT also where the length is no multiple of the number of ranks.
    pub fn all_to_all<T: Element>(&self, send: &[T], recv: &mut [T]) -> Result<()> {
        let count = send.len() / self.size();
        let (send, recv) = (Input::of(send), Output::of(recv));
        self.collective(Kind::AllToAll, |place| untyped::all_to_all(place, send, recv, count, dtype::<T>()))
    }

    /// Blocks until every rank of the group has called it.
    ///
    /// # Errors
    ///
    /// Those of the group: see [`Group::all_reduce`].
    pub fn barrier(&self) -> Result<()> {
        self.collective(Kind::Barrier, |_| untyped::barrier())
    }

    /// This rank's part of an array of so many elements in equal parts.
    fn own_part(&self, len: usize) -> Range<usize> {
        let part = len / self.size();
        self.rank() * part..(self.rank() + 1) * part
    }
}
