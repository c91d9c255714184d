//! Messages between two ranks.

use super::{InPlace, Place, bytes, check_overlap, dtype, invalid, rank};
use crate::error::{Error, Result};
use crate::group::{Group, Message};
use crate::memory::{Input, Output, Region};

/// A peer other than this rank; `name` is the argument's.
fn peer(name: &str, (own, size): Place, number: i32) -> Result<usize> {
    let peer = rank(name, number, size)?;
    if peer == own {
        return Err(invalid(format!(
            "{name} is {number}, this rank itself; only ring_send_recv may do that, with both ends"
        )));
    }
    Ok(peer)
}

/// A message to rank `dst`.
pub fn send<'a>(
    place: Place,
    buf: Input<'a>,
    count: usize,
    dtype_number: i32,
    dst: i32,
) -> Result<Message<'a>> {
    let region = |bytes| buf.whole("buf", bytes);
    message(place, region, ("count", count), dtype_number, ("dst", dst))
}

/// A message from rank `src`.
pub fn recv<'a>(
    place: Place,
    buf: Output<'a>,
    count: usize,
    dtype_number: i32,
    src: i32,
) -> Result<Message<'a>> {
    let region = |bytes| buf.whole("buf", bytes);
    message(place, region, ("count", count), dtype_number, ("src", src))
}

fn message<'a>(
    place: Place,
    region: impl FnOnce(usize) -> Result<Region<'a>>,
    (count_name, count): (&str, usize),
    dtype_number: i32,
    (peer_name, peer_number): (&str, i32),
) -> Result<Message<'a>> {
    let dtype = dtype(dtype_number)?;
    let peer = peer(peer_name, place, peer_number)?;
    let buffer = region(bytes(count_name, count, dtype.size(), 1)?)?;
    Ok(Message { buffer, count, dtype, peer })
}

/// What a send_recv comes down to.
pub enum SendRecv<'a> {
    /// Messages to and from peers; either may be none.
    Messages(Option<Message<'a>>, Option<Message<'a>>),
    /// To oneself.
    Copy {
        /// What is sent.
        from: Region<'a>,
        /// Where it arrives.
        to: Region<'a>,
    },
}

/// What a send_recv sends: a buffer, its count and the peer, -1 for none.
pub type SendEnd<'a> = (Input<'a>, usize, i32);
/// Likewise what it receives.
pub type RecvEnd<'a> = (Output<'a>, usize, i32);

/// A message to one rank and a message from one.
pub fn send_recv<'a>(
    place: Place,
    (send, send_count, dst): SendEnd<'a>,
    (recv, recv_count, src): RecvEnd<'a>,
    dtype_number: i32,
) -> Result<SendRecv<'a>> {
    let element = dtype(dtype_number)?;
    let send = |bytes| send.whole("send", bytes);
    let recv = |bytes| recv.whole("recv", bytes);
    if dst == place.0 as i32 && src == dst {
        if send_count != recv_count {
            return Err(invalid(format!(
                "send_count is {send_count} and recv_count {recv_count}, to this rank itself"
            )));
        }
        let bytes = bytes("send_count", send_count, element.size(), 1)?;
        let (from, to) = (send(bytes)?, recv(bytes)?);
        check_overlap(&from, &to, InPlace::Never)?;
        return Ok(SendRecv::Copy { from, to });
    }
    let out =
        (dst != -1).then(|| message(place, send, ("send_count", send_count), dtype_number, ("dst", dst)));
    let into =
        (src != -1).then(|| message(place, recv, ("recv_count", recv_count), dtype_number, ("src", src)));
    let (out, into) = (out.transpose()?, into.transpose()?);
    if let (Some(out), Some(into)) = (&out, &into) {
        check_overlap(&out.buffer, &into.buffer, InPlace::Never)?;
    }
    Ok(SendRecv::Messages(out, into))
}

/// A message's arguments, or the failure that every call on a failed group returns, or the refusal; `name` is the
/// call's.
pub fn accepted<T>(name: &str, group: &Group, arguments: Result<T>) -> Result<T> {
    let refused = |error: Error| Error { text: format!("{name}: {}", error.text), ..error };
    arguments.map_err(|error| group.failure().cloned().unwrap_or_else(|| refused(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;

    #[test]
    fn peers_of_messages() {
        let check = |dst: i32| send((1, 3), Input::nowhere(0), 0, 10, dst).map(|m| m.peer);
        assert_eq!(check(2).ok(), Some(2));
        for wrong in [-1, 1, 3, i32::MIN] {
            assert_eq!(check(wrong).unwrap_err().status, Status::InvalidArgument);
        }
        let out = |address, count, dst| (Input::nowhere(address), count, dst);
        let into = |address, count, src| (Output::nowhere(address), count, src);
        let check = |send, recv, dtype| send_recv((1, 3), send, recv, dtype);
        assert!(matches!(check(out(0, 7, -1), into(0, 7, -1), 10), Ok(SendRecv::Messages(None, None))));
        let one = || out(0x1000, 1, 1);
        assert!(matches!(check(one(), into(0x2000, 1, 1), 10), Ok(SendRecv::Copy { .. })));
        assert!(check(one(), into(0x2000, 2, 1), 10).is_err());
        assert!(check(one(), into(0x1000, 1, 1), 10).is_err());
        assert!(check(one(), into(0x2000, 1, 2), 10).is_err());
        assert!(check(out(0, 7, -1), into(0, 7, -1), 14).is_err());
    }
}
