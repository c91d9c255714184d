//! Calls that go on beside their caller, and own their buffers until they are done.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use super::collectives::{dtype, number, rank};
use super::element::Element;
use super::group::Group;
use crate::dtype::Op;
use crate::error::{Error, Result, Status};
use crate::memory::{Input, Output};
use crate::untyped::{self, Call, Kind, Message, Place, accepted, refuse_callback};

/// What a request keeps until it is done: vectors, pairs of them, or nothing. Sealed.
pub trait Buffers: sealed::Buffers {}

mod sealed {
    pub trait Buffers: Send + 'static {}
}

impl<T: Element> Buffers for Vec<T> {}
impl<T: Element> sealed::Buffers for Vec<T> {}
impl<T: Element> Buffers for (Vec<T>, Vec<T>) {}
impl<T: Element> sealed::Buffers for (Vec<T>, Vec<T>) {}
impl Buffers for () {}
impl sealed::Buffers for () {}

/// A collective or a message that was started and goes on beside its caller. It owns the call's buffers until it is
/// done, and may outlive its group. One that is dropped is waited for.
///
/// ```
/// # fn main() -> ring::Result<()> {
/// # let group = ring::Group::create(&ring::Config::hosts(0, r#"[["127.0.0.1:5000"]]"#))?;
/// let request = group.all_reduce_async(vec![1.0_f32; 1000], ring::Op::Sum)?;
/// // ... compute something else ...
/// let sums = request.wait()?;
/// # Ok(())
/// # }
/// ```
pub struct Request<B: Buffers> {
    running: Arc<untyped::Request>,
    buffers: Option<B>,
}

impl<B: Buffers> Request<B> {
    /// Whether it is done, with success or without. Never waits.
    pub fn is_done(&self) -> bool {
        self.running.is_done()
    }

    /// Waits for so long at most; whether it is done.
    pub fn wait_for(&self, at_most: Duration) -> bool {
        self.running.wait(Some(at_most)).is_some()
    }

    /// Waits until it is done, which the group's timeout brings about, and gives its buffers back.
    ///
    /// # Errors
    ///
    /// As the blocking call; ABORTED where the group was dropped first. INVALID_STATE: in a forked child, or a callback.
    pub fn wait(mut self) -> Result<B> {
        let lost = || Error::new(Status::Internal, "a request's result was lost");
        refuse_callback()?;
        self.running.check_usable()?;
        self.running.wait(None).unwrap_or_else(|| Err(lost()))?;
        self.buffers.take().ok_or_else(lost)
    }
}

impl<B: Buffers> Drop for Request<B> {
    fn drop(&mut self) {
        if self.running.check_usable().is_err() {
            // In a forked child nothing ends it, and nothing uses its memory.
            return;
        }
        if refuse_callback().is_err() && !self.is_done() {
            // It may wait for the call that runs the callback: its memory is never freed.
            return std::mem::forget(self.buffers.take());
        }
        self.running.wait(None);
    }
}

/// A vector's elements, to be read until its request is done.
fn read<T: Element>(buffer: &[T]) -> Input<'static> {
    // SAFETY: the request keeps the vector, untouched, and waits for its end before it lets go of it. Elements are where
    // they were when the vector itself is moved.
    unsafe { Input::at(buffer.as_ptr().cast()) }
}

/// Likewise, to write them.
fn write<T: Element>(buffer: &mut [T]) -> Output<'static> {
    // SAFETY: as in `read`; the request owns the vector, so that nobody else has these elements.
    unsafe { Output::at(buffer.as_mut_ptr().cast::<c_void>()) }
}

/// Calls that return at once. They have their place in the order of the group's calls when they are made; collectives
/// run one after the other, messages beside them. What a blocking call refuses is refused at once.
impl Group {
    fn start<B: Buffers>(
        &self,
        kind: Kind,
        mut buffers: B,
        call: impl FnOnce(Place, &mut B) -> Result<Call<'static>>,
    ) -> Result<Request<B>> {
        self.checked(|core| {
            let call = call((core.rank(), core.size()), &mut buffers);
            let running = core.collective_async(kind, call)?;
            Ok(Request { running, buffers: Some(buffers) })
        })
    }

    fn start_message<B: Buffers>(
        &self,
        sends: bool,
        mut buffers: B,
        message: impl FnOnce(Place, &mut B) -> Result<Message<'static>>,
    ) -> Result<Request<B>> {
        self.checked(|core| {
            let message = message((core.rank(), core.size()), &mut buffers);
            let name = if sends { "send_async" } else { "recv_async" };
            let running = core.message_async(accepted(name, core, message)?, sends)?;
            Ok(Request { running, buffers: Some(buffers) })
        })
    }

    /// Starts [`Group::all_reduce`].
    ///
    /// # Errors
    ///
    /// What is refused at once, and the group's failure; all else is what [`Request::wait`] returns.
    pub fn all_reduce_async<T: Element>(&self, buffer: Vec<T>, op: Op) -> Result<Request<Vec<T>>> {
        self.start(Kind::AllReduce, buffer, |_, buffer| {
            let recv = write(buffer);
            untyped::all_reduce(recv.as_input(), recv, buffer.len(), dtype::<T>(), number(op))
        })
    }

    /// Starts [`Group::reduce_scatter`]; `recv` is the second of the vectors that come back.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce_async`].
    pub fn reduce_scatter_async<T: Element>(
        &self,
        send: Vec<T>,
        recv: Vec<T>,
        op: Op,
    ) -> Result<Request<(Vec<T>, Vec<T>)>> {
        self.start(Kind::ReduceScatter, (send, recv), |place, (send, recv)| {
            check_len("send", send, recv.len() * place.1)?;
            untyped::reduce_scatter(place, read(send), write(recv), recv.len(), dtype::<T>(), number(op))
        })
    }

    /// Starts [`Group::all_gather`]; `recv` is the second of the vectors that come back.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce_async`].
    pub fn all_gather_async<T: Element>(
        &self,
        send: Vec<T>,
        recv: Vec<T>,
    ) -> Result<Request<(Vec<T>, Vec<T>)>> {
        self.start(Kind::AllGather, (send, recv), |place, (send, recv)| {
            check_len("recv", recv, send.len() * place.1)?;
            untyped::all_gather(place, read(send), write(recv), send.len(), dtype::<T>())
        })
    }

    /// Starts [`Group::broadcast`].
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce_async`].
    pub fn broadcast_async<T: Element>(&self, buffer: Vec<T>, root: usize) -> Result<Request<Vec<T>>> {
        self.start(Kind::Broadcast, buffer, |place, buffer| {
            untyped::broadcast(place, write(buffer), buffer.len(), dtype::<T>(), rank(root))
        })
    }

    /// Starts [`Group::all_to_all`]; `recv` is the second of the vectors that come back.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce_async`].
    pub fn all_to_all_async<T: Element>(
        &self,
        send: Vec<T>,
        recv: Vec<T>,
    ) -> Result<Request<(Vec<T>, Vec<T>)>> {
        self.start(Kind::AllToAll, (send, recv), |place, (send, recv)| {
            let count = send.len() / place.1;
            check_len("send", send, count * place.1)?;
            check_len("recv", recv, count * place.1)?;
            untyped::all_to_all(place, read(send), write(recv), count, dtype::<T>())
        })
    }

    /// Starts [`Group::send`]. It is done when the connection has taken everything.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce_async`].
    pub fn send_async<T: Element>(&self, buffer: Vec<T>, dst: usize) -> Result<Request<Vec<T>>> {
        self.start_message(true, buffer, |place, buffer| {
            untyped::send(place, read(buffer), buffer.len(), dtype::<T>(), rank(dst))
        })
    }

    /// Starts [`Group::recv`] of as many elements as the vector has. No collective waits for it.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce_async`].
    pub fn recv_async<T: Element>(&self, buffer: Vec<T>, src: usize) -> Result<Request<Vec<T>>> {
        self.start_message(false, buffer, |place, buffer| {
            untyped::recv(place, write(buffer), buffer.len(), dtype::<T>(), rank(src))
        })
    }

    /// Starts [`Group::barrier`]: it is done once every rank has started or called this barrier.
    ///
    /// # Errors
    ///
    /// As [`Group::all_reduce_async`].
    pub fn barrier_async(&self) -> Result<Request<()>> {
        self.start(Kind::Barrier, (), |_, ()| untyped::barrier())
    }
}

/// Refuses a vector of another length than the call has: at its pointer alone no length stands.
fn check_len<T>(name: &str, buffer: &[T], needed: usize) -> Result<()> {
    match buffer.len() == needed {
        true => Ok(()),
        false => {
            let text = format!("{name} has {} elements and needs {needed}", buffer.len());
            Err(Error::new(Status::InvalidArgument, text))
        }
    }
}
