//! Messages between two ranks.

use super::collectives::{dtype, rank};
use super::element::Element;
use super::group::Group;
use crate::error::Result;
use crate::memory::{Input, Output};
use crate::untyped::{self, SendRecv, accepted};

/// Messages.
impl Group {
    /// Sends to any other rank. It may return before the peer has asked for it, and blocks while the connection takes no
    /// more. Messages from one rank to another arrive in the order of the calls, independent of collectives.
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT: no other rank of the group. CONNECT_FAILED: the rank can't be reached; both of this call alone,
    /// as are UNSUPPORTED (on MLX's wire, a rank that is no neighbour) and INVALID_STATE. Else as
    /// [`Group::all_reduce`].
    pub fn send<T: Element>(&self, buffer: &[T], dst: usize) -> Result<()> {
        let (count, buffer) = (buffer.len(), Input::of(buffer));
        self.checked(|core| {
            let place = (core.rank(), core.size());
            let message = untyped::send(place, buffer, count, dtype::<T>(), rank(dst));
            core.send(accepted("send", core, message)?)
        })
    }

    /// Receives the next message of any other rank, which must have as many elements of this type.
    ///
    /// # Errors
    ///
    /// As [`Group::send`]; MISMATCH where the message has another count or type.
    pub fn recv<T: Element>(&self, buffer: &mut [T], src: usize) -> Result<()> {
        let (count, buffer) = (buffer.len(), Output::of(buffer));
        self.checked(|core| {
            let place = (core.rank(), core.size());
            let message = untyped::recv(place, buffer, count, dtype::<T>(), rank(src));
            core.recv(accepted("recv", core, message)?)
        })
    }

    /// Sends and receives at the same time, as two ranks that send to each other must; None is no rank. With both equal
    /// to this rank it copies.
    ///
    /// # Errors
    ///
    /// As [`Group::send`] and [`Group::recv`].
    pub fn send_recv<T: Element>(
        &self,
        send: &[T],
        dst: Option<usize>,
        recv: &mut [T],
        src: Option<usize>,
    ) -> Result<()> {
        let number = |peer: Option<usize>| peer.map_or(-1, rank);
        let out = (Input::of(send), send.len(), number(dst));
        let (count, recv) = (recv.len(), Output::of(recv));
        self.checked(|core| {
            let place = (core.rank(), core.size());
            let arguments = untyped::send_recv(place, out, (recv, count, number(src)), dtype::<T>());
            match accepted("send_recv", core, arguments)? {
                SendRecv::Messages(send, recv) => core.send_recv(send, recv),
                SendRecv::Copy { from, to } => core.copy_to_self(from, to),
            }
        })
    }
}
