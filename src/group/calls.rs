//! What a caller asks for, and the count of calls that run.

use std::sync::{Arc, Condvar, Mutex};

use super::lock;
use crate::dtype::{Dtype, Op};
use crate::error::{Error, Result, Status};
use crate::memory::Region;

/// Reduce `count` elements of every rank to the same result on every rank.
pub struct AllReduce<'a> {
    pub send: Region<'a>,
    pub recv: Region<'a>,
    pub count: usize,
    pub dtype: Dtype,
    pub op: Op,
}

/// Gather every rank's `count` elements, in rank order, in every rank's `recv`.
pub struct AllGather<'a> {
    pub send: Region<'a>,
    /// Size x `count` elements; in place `send` is this rank's part of it.
    pub recv: Region<'a>,
    pub count: usize,
    pub dtype: Dtype,
}

/// Elements to or from one peer.
pub struct Message<'a> {
    pub buffer: Region<'a>,
    pub count: usize,
    pub dtype: Dtype,
    pub peer: usize,
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
