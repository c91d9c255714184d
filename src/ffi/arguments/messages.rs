//! Messages between two ranks.

use std::ffi::c_void;

use super::{InPlace, Place, bytes, check_overlap, dtype, invalid, rank, region};
use crate::error::Result;
use crate::group::Message;
use crate::memory::Region;

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

pub fn message<'a>(
    place: Place,
    (buffer_name, buffer): (&str, *const c_void),
    count: usize,
    dtype_number: i32,
    (peer_name, peer_number): (&str, i32),
) -> Result<Message<'a>> {
    let dtype = dtype(dtype_number)?;
    let peer = peer(peer_name, place, peer_number)?;
    let buffer = region(buffer_name, buffer, bytes("count", count, dtype.size(), 1)?)?;
    Ok(Message { buffer, count, dtype, peer })
}

/// What a send_recv comes down to.
pub enum SendRecv<'a> {
    /// Messages to and from peers; either may be none.
    Messages(Option<Message<'a>>, Option<Message<'a>>),
    /// To oneself.
    Copy { from: Region<'a>, to: Region<'a> },
}

/// One end of a send_recv: its buffer, its count and the peer, -1 for none.
pub type End = (*const c_void, usize, i32);

pub fn send_recv<'a>(
    place: Place,
    (send, send_count, dst): End,
    (recv, recv_count, src): End,
    dtype_number: i32,
) -> Result<SendRecv<'a>> {
    let element = dtype(dtype_number)?;
    if dst == place.0 as i32 && src == dst {
        if send_count != recv_count {
            return Err(invalid(format!(
                "send_count is {send_count} and recv_count {recv_count}, to this rank itself"
            )));
        }
        let bytes = bytes("send_count", send_count, element.size(), 1)?;
        let (from, to) = (region("send", send, bytes)?, region("recv", recv, bytes)?);
        check_overlap(&from, &to, InPlace::Never)?;
        return Ok(SendRecv::Copy { from, to });
    }
    let half = |name, buffer, count, peer_name, number| match number {
        -1 => Ok(None),
        _ => message(place, (name, buffer), count, dtype_number, (peer_name, number)).map(Some),
    };
    let out = half("send", send, send_count, "dst", dst)?;
    let into = half("recv", recv, recv_count, "src", src)?;
    if let (Some(out), Some(into)) = (&out, &into) {
        check_overlap(&out.buffer, &into.buffer, InPlace::Never)?;
    }
    Ok(SendRecv::Messages(out, into))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;

    #[test]
    fn peers_of_messages() {
        let check =
            |dst: i32| message((1, 3), ("buf", std::ptr::null()), 0, 10, ("dst", dst)).map(|m| m.peer);
        assert_eq!(check(2).ok(), Some(2));
        for wrong in [-1, 1, 3, i32::MIN] {
            assert_eq!(check(wrong).unwrap_err().status, Status::InvalidArgument);
        }
        let none = (std::ptr::null(), 7, -1);
        assert!(matches!(send_recv((1, 3), none, none, 10), Ok(SendRecv::Messages(None, None))));
        let one = (0x1000 as *const c_void, 1, 1);
        let two = (0x2000 as *const c_void, 1, 1);
        assert!(matches!(send_recv((1, 3), one, two, 10), Ok(SendRecv::Copy { .. })));
        assert!(send_recv((1, 3), one, (two.0, 2, 1), 10).is_err());
        assert!(send_recv((1, 3), one, one, 10).is_err());
        assert!(send_recv((1, 3), one, (two.0, 1, 2), 10).is_err());
        assert!(send_recv((1, 3), none, none, 14).is_err());
    }
}
