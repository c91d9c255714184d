//! The checks of a call's arguments. What they let through the group may use without a doubt.

use std::ffi::c_void;

use crate::dtype::{Dtype, Op};
use crate::error::{Error, Result, Status};
use crate::group::{Call, Kind, Message};
use crate::memory::Region;

fn invalid(text: String) -> Error {
    Error::new(Status::InvalidArgument, text)
}

fn dtype(number: i32) -> Result<Dtype> {
    Dtype::from_number(number).ok_or_else(|| invalid(format!("dtype is {number}, which is no ring_dtype_t")))
}

fn op(number: i32, dtype: Dtype) -> Result<Op> {
    let op =
        Op::from_number(number).ok_or_else(|| invalid(format!("op is {number}, which is no ring_op_t")))?;
    if dtype.supports(op) {
        return Ok(op);
    }
    Err(Error::new(Status::Unsupported, format!("{} is not defined for {}", op.name(), dtype.name())))
}

/// Bytes of `count` elements of each of `ranks` ranks.
fn bytes(count: usize, dtype: Dtype, ranks: usize) -> Result<usize> {
    let bytes = count.checked_mul(dtype.size()).and_then(|bytes| bytes.checked_mul(ranks));
    bytes.filter(|bytes| *bytes <= isize::MAX as usize).ok_or_else(|| {
        let of_ranks = if ranks > 1 { format!(" of {ranks} ranks") } else { String::new() };
        invalid(format!(
            "count is {count}: so many {} elements{of_ranks} are more than PTRDIFF_MAX bytes",
            dtype.name()
        ))
    })
}

/// A buffer of the caller's. NULL is one of no bytes.
fn region<'a>(name: &str, start: *const c_void, bytes: usize) -> Result<Region<'a>> {
    if bytes == 0 {
        return Ok(Region::empty());
    }
    if start.is_null() {
        return Err(invalid(format!("{name} is NULL and {bytes} bytes are needed there")));
    }
    if (start as usize).checked_add(bytes).is_none() {
        return Err(invalid(format!("{name} with {bytes} bytes goes beyond the address space")));
    }
    // SAFETY: not NULL, and the caller owns so many bytes there for the length of the call.
    Ok(unsafe { Region::new(start.cast_mut().cast(), bytes) })
}

/// Refuses buffers that share bytes, unless they lie exactly in place.
fn check_overlap(send: &Region<'_>, recv: &Region<'_>, in_place: Option<usize>) -> Result<()> {
    let (s, r) = (send.as_ptr() as usize, recv.as_ptr() as usize);
    let apart = s + send.len() <= r || r + recv.len() <= s;
    if apart || send.is_empty() || recv.is_empty() || in_place.is_some_and(|offset| s == r + offset) {
        return Ok(());
    }
    Err(invalid("send and recv overlap, and not as the call in place has it".into()))
}

pub fn all_reduce<'a>(
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype_number: i32,
    op_number: i32,
) -> Result<Call<'a>> {
    let dtype = dtype(dtype_number)?;
    let op = op(op_number, dtype)?;
    let bytes = bytes(count, dtype, 1)?;
    let (send, recv) = (region("send", send, bytes)?, region("recv", recv, bytes)?);
    check_overlap(&send, &recv, Some(0))?;
    Ok(Call { send, recv, ..Call::new(Kind::AllReduce, count).by_op(dtype, op) })
}

pub fn all_gather<'a>(
    (rank, size): (usize, usize),
    send: *const c_void,
    recv: *mut c_void,
    count: usize,
    dtype_number: i32,
) -> Result<Call<'a>> {
    let dtype = dtype(dtype_number)?;
    let whole = bytes(count, dtype, size)?;
    let own = whole / size;
    let (send, recv) = (region("send", send, own)?, region("recv", recv, whole)?);
    check_overlap(&send, &recv, Some(rank * own))?;
    Ok(Call { send, recv, ..Call::new(Kind::AllGather, count).of(dtype) })
}

/// A peer other than this rank; `name` is the argument's.
fn peer(name: &str, (rank, size): (usize, usize), number: i32) -> Result<usize> {
    let peer = usize::try_from(number).ok().filter(|peer| *peer < size);
    let peer = peer
        .ok_or_else(|| invalid(format!("{name} is {number}, and the group has ranks 0 to {}", size - 1)))?;
    if peer == rank {
        return Err(invalid(format!(
            "{name} is {number}, this rank itself; only ring_send_recv may do that, with both ends"
        )));
    }
    Ok(peer)
}

pub fn message<'a>(
    place: (usize, usize),
    (buffer_name, buffer): (&str, *const c_void),
    count: usize,
    dtype_number: i32,
    (peer_name, peer_number): (&str, i32),
) -> Result<Message<'a>> {
    let dtype = dtype(dtype_number)?;
    let peer = peer(peer_name, place, peer_number)?;
    let buffer = region(buffer_name, buffer, bytes(count, dtype, 1)?)?;
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
    place: (usize, usize),
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
        let bytes = bytes(send_count, element, 1)?;
        let (from, to) = (region("send", send, bytes)?, region("recv", recv, bytes)?);
        check_overlap(&from, &to, None)?;
        return Ok(SendRecv::Copy { from, to });
    }
    let half = |name, buffer, count, peer_name, number| match number {
        -1 => Ok(None),
        _ => message(place, (name, buffer), count, dtype_number, (peer_name, number)).map(Some),
    };
    let out = half("send", send, send_count, "dst", dst)?;
    let into = half("recv", recv, recv_count, "src", src)?;
    if let (Some(out), Some(into)) = (&out, &into) {
        check_overlap(&out.buffer, &into.buffer, None)?;
    }
    Ok(SendRecv::Messages(out, into))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(send: usize, recv: usize, count: usize, dtype: i32, op: i32) -> std::result::Result<(), Status> {
        let result = all_reduce(send as *const c_void, recv as *mut c_void, count, dtype, op);
        result.map(|_| ()).map_err(|error| error.status)
    }

    #[test]
    fn all_reduce_arguments() {
        let invalid = Err(Status::InvalidArgument);
        assert_eq!(check(0x1000, 0x2000, 16, 10, 0), Ok(()));
        assert_eq!(check(0x1001, 0x1001, 16, 10, 0), Ok(()));
        assert_eq!(check(0x1000, 0x1040, 16, 10, 0), Ok(()));
        assert_eq!(check(0x1000, 0x103f, 16, 10, 0), invalid);
        assert_eq!(check(0x103f, 0x1000, 16, 10, 0), invalid);
        assert_eq!(check(0, 0, 0, 10, 0), Ok(()));
        assert_eq!(check(0x1000, 0x1001, 0, 10, 0), Ok(()));
        assert_eq!(check(0, 0x1000, 1, 10, 0), invalid);
        assert_eq!(check(0x1000, 0, 1, 10, 0), invalid);
        assert_eq!(check(0x1000, 0x2000, 1, 14, 0), invalid);
        assert_eq!(check(0x1000, 0x2000, 1, -1, 0), invalid);
        assert_eq!(check(0x1000, 0x2000, 1, 10, 8), invalid);
        assert_eq!(check(0x1000, 0x2000, 1, 10, 5), Err(Status::Unsupported));
        assert_eq!(check(0x1000, 0x2000, usize::MAX, 10, 0), invalid);
        assert_eq!(check(0x1000, 0x2000, isize::MAX as usize / 4 + 1, 10, 0), invalid);
        assert_eq!(check(usize::MAX - 3, 0x2000, 1, 10, 0), invalid);
    }

    #[test]
    fn all_gather_in_place_is_the_own_part() {
        let check = |send: usize| {
            let result = all_gather((2, 4), send as *const c_void, 0x1000 as *mut c_void, 4, 10);
            result.map(|_| ()).map_err(|error| error.status)
        };
        assert_eq!(check(0x1020), Ok(()));
        assert_eq!(check(0x1000), Err(Status::InvalidArgument));
        assert_eq!(check(0x1021), Err(Status::InvalidArgument));
        assert_eq!(check(0x1040), Ok(()));
        let many = isize::MAX as usize / 16 + 1;
        assert!(all_gather((0, 4), 0x1000 as *const c_void, 0x1000 as *mut c_void, many, 10).is_err());
    }

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
