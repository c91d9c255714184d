//! Collectives in which ranks' parts have lengths of their own.

use super::collectives::{dtype, number};
use super::element::Element;
use super::group::Group;
use crate::dtype::Op;
use crate::error::Result;
use crate::memory::{Input, Output};
use crate::untyped::{self, Kind};

/// Collectives with parts of different lengths. Counts and displacements are in elements and have an entry for each
/// rank; without displacements parts are packed in the order of ranks.
impl Group {
    /// As [`Group::all_gather`]: rank r gives `recv_counts[r]` elements, which arrive at element `recv_displs[r]` of
    /// `recv`. The counts are alike on all ranks; what lies between parts stays as it is.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce`]; INVALID_ARGUMENT also where parts overlap or go beyond `recv`.
    pub fn all_gather_v<T: Element>(
        &self,
        send: &[T],
        recv: &mut [T],
        recv_counts: &[usize],
        recv_displs: Option<&[usize]>,
    ) -> Result<()> {
        let (own, recv) = ((Input::of(send), send.len()), Output::of(recv));
        self.collective(Kind::AllGatherV, |place| {
            untyped::all_gather_v(place, own, recv, (Some(recv_counts), recv_displs), dtype::<T>())
        })
    }

    /// As [`Group::reduce_scatter`]: `send` has the parts of all ranks packed, and rank r gets the
    /// `recv_counts[r]` elements of its own. The counts are alike on all ranks.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce`].
    pub fn reduce_scatter_v<T: Element>(
        &self,
        send: &[T],
        recv: &mut [T],
        recv_counts: &[usize],
        op: Op,
    ) -> Result<()> {
        let (send, recv) = (Input::of(send), Output::of(recv));
        self.collective(Kind::ReduceScatterV, |place| {
            untyped::reduce_scatter_v(place, send, recv, Some(recv_counts), dtype::<T>(), number(op))
        })
    }

    /// As [`Group::all_to_all`]: of the send array (its elements, counts and displacements) `counts[d]` elements go to
    /// rank d, those of rank s arrive in the receive array. `counts[d]` here is rank d's count for this rank there.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce`]; INVALID_ARGUMENT also where blocks of the receive array overlap, or go beyond an array.
    pub fn all_to_all_v<T: Element>(
        &self,
        (send, send_counts, send_displs): (&[T], &[usize], Option<&[usize]>),
        (recv, recv_counts, recv_displs): (&mut [T], &[usize], Option<&[usize]>),
    ) -> Result<()> {
        let out = (Input::of(send), Some(send_counts), send_displs);
        let into = (Output::of(recv), Some(recv_counts), recv_displs);
        self.collective(Kind::AllToAllV, |place| untyped::all_to_all_v(place, out, into, dtype::<T>()))
    }
}
