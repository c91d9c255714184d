//! Collectives that reduce by a function of the program's own.

use super::group::Group;
use crate::error::Result;
use crate::kernels::over_slices;
use crate::memory::{Input, Output, Plain};
use crate::untyped::{self, Call, Function, Group as Core, Kind, Place, callback};

/// Reductions by a function: `reduce(acc, input)` computes `acc[i] = acc[i] op input[i]`, where acc holds this rank's values
/// and input those received, as many. It is associative and commutative, runs on the thread that made the call, on any
/// number of elements at a time, and makes no calls on groups, which are refused with INVALID_STATE. If it panics, the
/// group is aborted (the other ranks' calls are ABORTED, with this rank named), and the panic goes on.
impl Group {
    /// As [`Group::all_reduce`], of elements of any plain type. In a group of one the function isn't called.
    ///
    /// ```
    /// # fn main() -> ring::Result<()> {
    /// # let group = ring::Group::create(&ring::Config::hosts(0, r#"[["127.0.0.1:5000"]]"#))?;
    /// #[derive(Clone, Copy)]
    /// #[repr(C)]
    /// struct Score {
    ///     value: f32,
    ///     rank: u32,
    /// }
    /// // SAFETY: two numbers of 4 bytes without padding, of which any bits are one.
    /// unsafe impl ring::Plain for Score {}
    ///
    /// let mut best = [Score { value: 0.7, rank: group.rank() as u32 }];
    /// group.all_reduce_by(&mut best, |acc, input| {
    ///     for (acc, input) in acc.iter_mut().zip(input) {
    ///         if input.value > acc.value {
    ///             *acc = *input;
    ///         }
    ///     }
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
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
        self.by_function(Kind::AllReduceCustom, |_| {
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
        self.by_function(Kind::ReduceScatterVCustom, |place| {
            let (counts, function) = (Some(recv_counts), Some(function(reduce)));
            untyped::reduce_scatter_v_custom(place, send, recv, counts, size_of::<T>(), function)
        })
    }

    /// As any collective, but that a panic is the program's: it has wished for what the others hear.
    fn by_function<'a>(&self, kind: Kind, call: impl FnOnce(Place) -> Result<Call<'a>>) -> Result<()> {
        self.guarded(|core| core.collective(kind, call((core.rank(), core.size()))), Core::abort)
    }
}

fn function<'a, T: Plain>(reduce: impl Fn(&mut [T], &[T]) + Send + Sync + 'a) -> Function<'a> {
    over_slices(move |acc: &mut [T], input: &[T]| callback(|| reduce(acc, input)))
}
