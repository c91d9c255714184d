//! Collectives that reduce by a function of the program's own.

use super::group::Group;
use crate::error::Result;
use crate::kernels::over_slices;
use crate::memory::{Input, Output, Plain};
use crate::untyped::{self, Function, Kind, callback};

/// Reductions by a function: `reduce(acc, input)` computes `acc[i] = acc[i] op input[i]`, where acc holds this rank's values
/// and input those received, as many. It is associative and commutative, runs on the thread that made the call, on any
/// number of elements at a time, and makes no calls on groups, which are refused with INVALID_STATE. If it panics, the group fails on all ranks.
impl Group {
    /// As [`Group::all_reduce`], of elements of any plain type. In a group of one the function isn't called.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce`]. A mismatch may come in a later collective.
    pub fn all_reduce_by<T: Plain>(
        &self,
        buffer: &mut [T],
        reduce: impl Fn(&mut [T], &[T]) + Send + Sync,
    ) -> Result<()> {
        let count = buffer.len();
        let recv = Output::of(buffer);
        let send = recv.as_input();
        self.collective(Kind::AllReduceCustom, |_| {
            untyped::all_reduce_custom(send, recv, count, size_of::<T>(), Some(function(reduce)))
        })
    }

    /// As [`Group::reduce_scatter_v`], of elements of any plain type. In a group of one the function isn't called.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce_by`].
    pub fn reduce_scatter_v_by<T: Plain>(
        &self,
        send: &[T],
        recv: &mut [T],
        recv_counts: &[usize],
        reduce: impl Fn(&mut [T], &[T]) + Send + Sync,
    ) -> Result<()> {
        let (send, recv) = (Input::of(send), Output::of(recv));
        self.collective(Kind::ReduceScatterVCustom, |place| {
            let (counts, function) = (Some(recv_counts), Some(function(reduce)));
            untyped::reduce_scatter_v_custom(place, send, recv, counts, size_of::<T>(), function)
        })
    }
}

fn function<'a, T: Plain>(reduce: impl Fn(&mut [T], &[T]) + Send + Sync + 'a) -> Function<'a> {
    over_slices(move |acc: &mut [T], input: &[T]| callback(|| reduce(acc, input)))
}
