//! Calls that every rank makes.

use super::parts::{Array, Layout};
use super::{InPlace, Place, bytes, check_overlap, dtype, invalid, op, overlapping, rank};
use crate::error::Result;
use crate::group::{Call, Kind, Parts};
use crate::memory::{Input, Output, Region};

/// `acc[i] = acc[i] op in[i]` over so many elements, as the host program's function does it.
pub type Function<'a> = Box<dyn Fn(*mut u8, *const u8, usize) + Send + Sync + 'a>;

/// Every rank gets the reduction of all arrays, of `count` elements.
pub fn all_reduce<'a>(
    send: Input<'a>,
    recv: Output<'a>,
    count: usize,
    dtype_number: i32,
    op_number: i32,
) -> Result<Call<'a>> {
    let dtype = dtype(dtype_number)?;
    let op = op(op_number, dtype)?;
    let (send, recv) = reduced_whole(send, recv, count, dtype.size())?;
    Ok(Call { send, recv, ..Call::new(Kind::AllReduce, count).by_op(dtype, op) })
}

/// The same by a function, of elements of so many bytes.
pub fn all_reduce_custom<'a>(
    send: Input<'a>,
    recv: Output<'a>,
    count: usize,
    element: usize,
    function: Option<Function<'a>>,
) -> Result<Call<'a>> {
    let function = custom(element, function)?;
    let (send, recv) = reduced_whole(send, recv, count, element)?;
    Ok(Call { send, recv, ..Call::new(Kind::AllReduceCustom, count).by_function(element, function)? })
}

/// Two buffers of `count` elements each.
fn reduced_whole<'a>(
    send: Input<'a>,
    recv: Output<'a>,
    count: usize,
    element: usize,
) -> Result<(Region<'a>, Region<'a>)> {
    let bytes = bytes("count", count, element, 1)?;
    let (send, recv) = (send.whole("send", bytes)?, recv.whole("recv", bytes)?);
    check_overlap(&send, &recv, InPlace::SendAt(0))?;
    Ok((send, recv))
}

/// The arguments of a reduction by a function of the host program's.
fn custom<'a>(element: usize, function: Option<Function<'a>>) -> Result<Function<'a>> {
    if element == 0 {
        return Err(invalid("element_bytes is 0".into()));
    }
    function.ok_or_else(|| invalid("fn is NULL".into()))
}

/// Each rank gets its part of the reduction, `count` elements.
pub fn reduce_scatter<'a>(
    (rank, size): Place,
    send: Input<'a>,
    recv: Output<'a>,
    count: usize,
    dtype_number: i32,
    op_number: i32,
) -> Result<Call<'a>> {
    let dtype = dtype(dtype_number)?;
    let op = op(op_number, dtype)?;
    let whole = bytes("recv_count", count, dtype.size(), size)?;
    let own = whole / size;
    let (send, recv) = (send.whole("send", whole)?, recv.whole("recv", own)?);
    check_overlap(&send, &recv, InPlace::RecvAt(rank * own))?;
    Ok(Call { send, recv, ..Call::new(Kind::ReduceScatter, count).by_op(dtype, op) })
}

/// Every rank gets all arrays, of `count` elements each.
pub fn all_gather<'a>(
    (rank, size): Place,
    send: Input<'a>,
    recv: Output<'a>,
    count: usize,
    dtype_number: i32,
) -> Result<Call<'a>> {
    let dtype = dtype(dtype_number)?;
    let whole = bytes("send_count", count, dtype.size(), size)?;
    let own = whole / size;
    let (send, recv) = (send.whole("send", own)?, recv.whole("recv", whole)?);
    check_overlap(&send, &recv, InPlace::SendAt(rank * own))?;
    Ok(Call { send, recv, ..Call::new(Kind::AllGather, count).of(dtype) })
}

/// Every rank gets the root's array.
pub fn broadcast<'a>(
    (_, size): Place,
    buffer: Output<'a>,
    count: usize,
    dtype_number: i32,
    root: i32,
) -> Result<Call<'a>> {
    let dtype = dtype(dtype_number)?;
    let root = rank("root", root, size)?;
    let buffer = buffer.whole("buf", bytes("count", count, dtype.size(), 1)?)?;
    let call = Call::new(Kind::Broadcast, count).of(dtype);
    Ok(Call { root: Some(root), send: buffer, recv: buffer, ..call })
}

/// The root gets the reduction.
pub fn reduce<'a>(
    (own, size): Place,
    send: Input<'a>,
    recv: Output<'a>,
    count: usize,
    (dtype_number, op_number): (i32, i32),
    root: i32,
) -> Result<Call<'a>> {
    let dtype = dtype(dtype_number)?;
    let op = op(op_number, dtype)?;
    let root = rank("root", root, size)?;
    let bytes = bytes("count", count, dtype.size(), 1)?;
    let send = send.whole("send", bytes)?;
    let recv = if own == root { recv.whole("recv", bytes)? } else { Region::empty() };
    check_overlap(&send, &recv, InPlace::SendAt(0))?;
    Ok(Call { root: Some(root), send, recv, ..Call::new(Kind::Reduce, count).by_op(dtype, op) })
}

/// The root gets all arrays, of `count` elements each.
pub fn gather<'a>(
    (own, size): Place,
    send: Input<'a>,
    recv: Output<'a>,
    count: usize,
    dtype_number: i32,
    root: i32,
) -> Result<Call<'a>> {
    let dtype = dtype(dtype_number)?;
    let root = rank("root", root, size)?;
    // The root's bytes everywhere: what it must refuse all do.
    let whole = bytes("send_count", count, dtype.size(), size)?;
    let part = whole / size;
    let send = send.whole("send", part)?;
    let recv = if own == root { recv.whole("recv", whole)? } else { Region::empty() };
    check_overlap(&send, &recv, InPlace::SendAt(root * part))?;
    Ok(Call { root: Some(root), send, recv, ..Call::new(Kind::Gather, count).of(dtype) })
}

/// Each rank gets its part of the root's array, `count` elements.
pub fn scatter<'a>(
    (own, size): Place,
    send: Input<'a>,
    recv: Output<'a>,
    count: usize,
    dtype_number: i32,
    root: i32,
) -> Result<Call<'a>> {
    let dtype = dtype(dtype_number)?;
    let root = rank("root", root, size)?;
    let whole = bytes("recv_count", count, dtype.size(), size)?;
    let part = whole / size;
    let send = if own == root { send.whole("send", whole)? } else { Region::empty() };
    let recv = recv.whole("recv", part)?;
    check_overlap(&send, &recv, InPlace::RecvAt(root * part))?;
    Ok(Call { root: Some(root), send, recv, ..Call::new(Kind::Scatter, count).of(dtype) })
}

/// Each rank gets a block of `count` elements from each.
pub fn all_to_all<'a>(
    (_, size): Place,
    send: Input<'a>,
    recv: Output<'a>,
    count: usize,
    dtype_number: i32,
) -> Result<Call<'a>> {
    let dtype = dtype(dtype_number)?;
    let whole = bytes("count", count, dtype.size(), size)?;
    let (send, recv) = (send.whole("send", whole)?, recv.whole("recv", whole)?);
    check_overlap(&send, &recv, InPlace::Never)?;
    Ok(Call { send, recv, ..Call::new(Kind::AllToAll, count).of(dtype) })
}

/// A barrier.
pub fn barrier<'a>() -> Result<Call<'a>> {
    Ok(Call::new(Kind::Barrier, 0))
}

/// As [`all_gather`], with a count and a displacement for each rank; no displacements: packed.
pub fn all_gather_v<'a>(
    (rank, size): Place,
    (send, send_count): (Input<'a>, usize),
    recv: Output<'a>,
    (counts, displs): (Option<&[usize]>, Option<&[usize]>),
    dtype_number: i32,
) -> Result<Call<'a>> {
    let dtype = dtype(dtype_number)?;
    let element = dtype.size();
    let parts = Layout::read(("recv_counts", counts), ("recv_displs", displs), element, size)?;
    let own = parts.of(rank);
    if send_count != own.len {
        return Err(invalid(format!("send_count is {send_count}, and recv_counts[{rank}] {}", own.len)));
    }
    parts.check_apart()?;
    let send = send.whole("send", own.len * element)?;
    let recv = recv.first("recv", parts.bytes())?;
    let in_place = InPlace::SendAt(own.start * element).allows(&send, &recv);
    if !in_place && parts.meets(&recv, &Layout::single(own.len, element), &send) {
        return Err(overlapping());
    }
    let call = Call::new(Kind::AllGatherV, parts.total).of(dtype);
    Ok(Call { send, recv, send_parts: Parts::Equal(own.len), recv_parts: parts.into_parts(), ..call })
}

/// As [`reduce_scatter`], with a count for each rank.
pub fn reduce_scatter_v<'a>(
    place: Place,
    send: Input<'a>,
    recv: Output<'a>,
    counts: Option<&[usize]>,
    dtype_number: i32,
    op_number: i32,
) -> Result<Call<'a>> {
    let dtype = dtype(dtype_number)?;
    let op = op(op_number, dtype)?;
    let call = |total| Ok(Call::new(Kind::ReduceScatterV, total).by_op(dtype, op));
    scattered(place, send, recv, counts, dtype.size(), call)
}

/// The same by a function, of elements of so many bytes.
pub fn reduce_scatter_v_custom<'a>(
    place: Place,
    send: Input<'a>,
    recv: Output<'a>,
    counts: Option<&[usize]>,
    element: usize,
    function: Option<Function<'a>>,
) -> Result<Call<'a>> {
    let function = custom(element, function)?;
    let call = |total| Call::new(Kind::ReduceScatterVCustom, total).by_function(element, function);
    scattered(place, send, recv, counts, element, call)
}

/// Parts of `send` that lie packed, and this rank's at `recv`.
fn scattered<'a>(
    (rank, size): Place,
    send: Input<'a>,
    recv: Output<'a>,
    counts: Option<&[usize]>,
    element: usize,
    call: impl FnOnce(usize) -> Result<Call<'a>>,
) -> Result<Call<'a>> {
    let parts = Layout::read(("recv_counts", counts), ("", None), element, size)?;
    let own = parts.of(rank);
    let (send, recv) = (send.first("send", parts.bytes())?, recv.whole("recv", own.len * element)?);
    check_overlap(&send, &recv, InPlace::RecvAt(own.start * element))?;
    let call = call(parts.total)?;
    Ok(Call { send, recv, send_parts: parts.into_parts(), recv_parts: Parts::Equal(own.len), ..call })
}

/// What an all_to_all_v sends: a buffer, the counts of its blocks and their displacements.
pub type SendBlocks<'a, 'c> = (Input<'a>, Option<&'c [usize]>, Option<&'c [usize]>);
/// Likewise what it receives.
pub type RecvBlocks<'a, 'c> = (Output<'a>, Option<&'c [usize]>, Option<&'c [usize]>);

/// As [`all_to_all`], with counts and displacements for each rank.
pub fn all_to_all_v<'a>(
    (rank, size): Place,
    (send, send_counts, send_displs): SendBlocks<'a, '_>,
    (recv, recv_counts, recv_displs): RecvBlocks<'a, '_>,
    dtype_number: i32,
) -> Result<Call<'a>> {
    let dtype = dtype(dtype_number)?;
    let read = |counts: Array<'_>, displs: Array<'_>| Layout::read(counts, displs, dtype.size(), size);
    let out = read(("send_counts", send_counts), ("send_displs", send_displs))?;
    let into = read(("recv_counts", recv_counts), ("recv_displs", recv_displs))?;
    let (sent, received) = (out.of(rank).len, into.of(rank).len);
    if sent != received {
        return Err(invalid(format!(
            "send_counts[{rank}] is {sent} and recv_counts[{rank}] {received}, to this rank itself"
        )));
    }
    into.check_apart()?;
    let (send, recv) = (send.first("send", out.bytes())?, recv.first("recv", into.bytes())?);
    if into.meets(&recv, &out, &send) {
        return Err(overlapping());
    }
    let (send_parts, recv_parts) = (out.into_parts(), into.into_parts());
    // Ranks' counts differ: each block is checked by its own.
    Ok(Call { send, recv, send_parts, recv_parts, ..Call::new(Kind::AllToAllV, 0).of(dtype) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;

    const F32: i32 = 10;
    const INVALID: std::result::Result<(), Status> = Err(Status::InvalidArgument);

    fn outcome(result: Result<Call<'_>>) -> std::result::Result<(), Status> {
        result.map(|_| ()).map_err(|error| error.status)
    }

    fn at(address: usize) -> Input<'static> {
        Input::nowhere(address)
    }

    fn to(address: usize) -> Output<'static> {
        Output::nowhere(address)
    }

    fn null() -> Input<'static> {
        at(0)
    }

    fn null_mut() -> Output<'static> {
        to(0)
    }

    fn nothing() -> Option<Function<'static>> {
        Some(Box::new(|_, _, _| ()))
    }

    #[test]
    fn all_reduce_arguments() {
        let check = |send, recv, count, dtype, op| outcome(all_reduce(at(send), to(recv), count, dtype, op));
        assert_eq!(check(0x1000, 0x2000, 16, F32, 0), Ok(()));
        assert_eq!(check(0x1001, 0x1001, 16, F32, 0), Ok(()));
        assert_eq!(check(0x1000, 0x1040, 16, F32, 0), Ok(()));
        assert_eq!(check(0x1000, 0x103f, 16, F32, 0), INVALID);
        assert_eq!(check(0x103f, 0x1000, 16, F32, 0), INVALID);
        assert_eq!(check(0, 0, 0, F32, 0), Ok(()));
        assert_eq!(check(0x1000, 0x1001, 0, F32, 0), Ok(()));
        assert_eq!(check(0, 0x1000, 1, F32, 0), INVALID);
        assert_eq!(check(0x1000, 0, 1, F32, 0), INVALID);
        assert_eq!(check(0x1000, 0x2000, 1, 14, 0), INVALID);
        assert_eq!(check(0x1000, 0x2000, 1, -1, 0), INVALID);
        assert_eq!(check(0x1000, 0x2000, 1, F32, 8), INVALID);
        assert_eq!(check(0x1000, 0x2000, 1, F32, 5), Err(Status::Unsupported));
        assert_eq!(check(0x1000, 0x2000, usize::MAX, F32, 0), INVALID);
        assert_eq!(check(0x1000, 0x2000, isize::MAX as usize / 4 + 1, F32, 0), INVALID);
        assert_eq!(check(usize::MAX - 3, 0x2000, 1, F32, 0), INVALID);
    }

    #[test]
    fn in_place_is_the_own_part() {
        let gathered = |send| outcome(all_gather((2, 4), at(send), to(0x1000), 4, F32));
        let scattered = |recv| outcome(reduce_scatter((2, 4), at(0x1000), to(recv), 4, F32, 0));
        let counts = [4usize, 4, 4, 4];
        let gathered_v =
            |send| outcome(all_gather_v((2, 4), (at(send), 4), to(0x1000), (Some(&counts[..]), None), F32));
        let scattered_v =
            |recv| outcome(reduce_scatter_v((2, 4), at(0x1000), to(recv), Some(&counts[..]), F32, 0));
        let custom = |recv| {
            let (place, send) = ((2, 4), at(0x1000));
            outcome(reduce_scatter_v_custom(place, send, to(recv), Some(&counts[..]), 4, nothing()))
        };
        let at_root = |send| outcome(gather((2, 4), at(send), to(0x1000), 4, F32, 2));
        let from_root = |recv| outcome(scatter((2, 4), at(0x1000), to(recv), 4, F32, 2));
        let forms: [&dyn Fn(usize) -> std::result::Result<(), Status>; 7] =
            [&gathered, &scattered, &gathered_v, &scattered_v, &custom, &at_root, &from_root];
        for form in forms {
            assert_eq!(form(0x1020), Ok(()));
            assert_eq!(form(0x1040), Ok(()));
            assert_eq!(form(0xff0), Ok(()));
            for wrong in [0x1000, 0x1010, 0x1030, 0x101f, 0x1021, 0x103f, 0xff1, 0] {
                assert_eq!(form(wrong), INVALID, "{wrong:#x}");
            }
        }
        for recv in [0x1000, 0x103f, 0xfc1] {
            assert_eq!(outcome(all_to_all((2, 4), at(0x1000), to(recv), 4, F32)), INVALID);
        }
        assert_eq!(outcome(all_to_all((2, 4), at(0x1000), to(0x1040), 4, F32)), Ok(()));
    }

    #[test]
    fn what_all_ranks_need_fits() {
        let many = isize::MAX as usize / 16 + 1;
        let (place, send, recv) = ((0, 4), at(0x1000), to(0x1000));
        assert_eq!(outcome(all_gather(place, send, recv, many, F32)), INVALID);
        assert_eq!(outcome(reduce_scatter(place, send, recv, many, F32, 0)), INVALID);
        assert_eq!(outcome(all_to_all(place, send, recv, many, F32)), INVALID);
        // Off the root, too: all ranks refuse alike.
        assert_eq!(outcome(gather(place, send, recv, many, F32, 1)), INVALID);
        assert_eq!(outcome(scatter(place, send, recv, many, F32, 1)), INVALID);
        assert_eq!(outcome(broadcast(place, recv, 4 * many, F32, 1)), INVALID);
        assert_eq!(outcome(reduce(place, send, recv, 4 * many, (F32, 0), 1)), INVALID);
        assert_eq!(outcome(all_reduce_custom(send, recv, 3, usize::MAX / 4, nothing())), INVALID);
        let counts = [1usize, 0, 0, 0];
        let beyond = isize::MAX as usize + 1;
        let call = reduce_scatter_v_custom(place, send, recv, Some(&counts[..]), beyond, nothing());
        assert_eq!(outcome(call), INVALID);
    }

    #[test]
    fn the_root_alone_needs_both_buffers() {
        for root in 0..3 {
            for own in 0..3 {
                let (place, root_number) = ((own, 3), root as i32);
                let expected = if own == root { INVALID } else { Ok(()) };
                let some = 0x1000;
                assert_eq!(outcome(reduce(place, at(some), null_mut(), 2, (F32, 0), root_number)), expected);
                assert_eq!(outcome(gather(place, at(some), null_mut(), 2, F32, root_number)), expected);
                assert_eq!(outcome(scatter(place, null(), to(some), 2, F32, root_number)), expected);
                assert_eq!(outcome(broadcast(place, to(some), 2, F32, root_number)), Ok(()));
                assert_eq!(outcome(reduce(place, null(), to(some), 2, (F32, 0), root_number)), INVALID);
                assert_eq!(outcome(gather(place, null(), to(some), 2, F32, root_number)), INVALID);
                assert_eq!(outcome(scatter(place, at(some), null_mut(), 2, F32, root_number)), INVALID);
                assert_eq!(outcome(broadcast(place, null_mut(), 2, F32, root_number)), INVALID);
                // What is ignored may lie anywhere.
                let overlap = if own == root { INVALID } else { Ok(()) };
                assert_eq!(outcome(gather(place, at(some + 1), to(some), 2, F32, root_number)), overlap);
            }
        }
        for wrong in [-1, 3, i32::MIN, i32::MAX] {
            assert_eq!(outcome(broadcast((0, 3), null_mut(), 0, F32, wrong)), INVALID);
            assert_eq!(outcome(reduce((0, 3), null(), null_mut(), 0, (F32, 0), wrong)), INVALID);
            assert_eq!(outcome(gather((0, 3), null(), null_mut(), 0, F32, wrong)), INVALID);
            assert_eq!(outcome(scatter((0, 3), null(), null_mut(), 0, F32, wrong)), INVALID);
        }
    }

    #[test]
    fn own_counts_agree() {
        let counts = [3usize, 0, 5];
        let gathered = |rank, count| {
            let lists = (Some(&counts[..]), None);
            outcome(all_gather_v((rank, 3), (at(0x1000), count), to(0x2000), lists, F32))
        };
        assert_eq!([gathered(0, 3), gathered(1, 0), gathered(2, 5)], [Ok(()); 3]);
        assert_eq!([gathered(0, 2), gathered(1, 1), gathered(2, 0)], [INVALID; 3]);
        let other = [3usize, 1, 4];
        let exchanged = |rank| {
            let (send, recv) = ((at(0x1000), Some(&counts[..]), None), (to(0x2000), Some(&other[..]), None));
            outcome(all_to_all_v((rank, 3), send, recv, F32))
        };
        assert_eq!([exchanged(0), exchanged(1), exchanged(2)], [Ok(()), INVALID, INVALID]);
    }

    #[test]
    fn arrays_are_needed_and_parts_kept_apart() {
        let (place, counts) = ((0, 2), [2usize, 2]);
        let (list, none) = (Some(&counts[..]), None);
        let (a, b) = (at(0x1000), to(0x2000));
        assert_eq!(outcome(all_gather_v(place, (a, 0), to(0x2000), (none, none), F32)), INVALID);
        assert_eq!(outcome(reduce_scatter_v(place, a, to(0x2000), none, F32, 0)), INVALID);
        assert_eq!(outcome(reduce_scatter_v_custom(place, a, to(0x2000), none, 4, nothing())), INVALID);
        assert_eq!(outcome(all_to_all_v(place, (a, none, none), (b, list, none), F32)), INVALID);
        assert_eq!(outcome(all_to_all_v(place, (a, list, none), (b, none, none), F32)), INVALID);
        for (displs, expected) in
            [([0usize, 1], INVALID), ([1, 0], INVALID), ([2, 0], Ok(())), ([9, 0], Ok(()))]
        {
            let lists = (list, Some(&displs[..]));
            assert_eq!(outcome(all_gather_v(place, (a, 2), to(0x2000), lists, F32)), expected);
            let recv = (b, list, Some(&displs[..]));
            assert_eq!(outcome(all_to_all_v(place, (a, list, none), recv, F32)), expected);
            // Parts of send may be the same elements.
            let send = (a, list, Some(&displs[..]));
            assert_eq!(outcome(all_to_all_v(place, send, (b, list, none), F32)), Ok(()));
        }
        // A send in a gap of recv overlaps nothing.
        let displs = [0usize, 6];
        for (send, expected) in [(0x2008, Ok(())), (0x2010, Ok(())), (0x2011, INVALID), (0x2007, INVALID)] {
            let lists = (list, Some(&displs[..]));
            assert_eq!(outcome(all_gather_v(place, (at(send), 2), to(0x2000), lists, F32)), expected);
        }
        let recv = (b, list, Some(&displs[..]));
        assert_eq!(outcome(all_to_all_v(place, (at(0x2008), list, none), recv, F32)), Ok(()));
        assert_eq!(outcome(all_to_all_v(place, (at(0x200c), list, none), recv, F32)), INVALID);
        assert_eq!(outcome(all_to_all_v(place, (at(0x2000), list, Some(&displs[..])), recv, F32)), INVALID);
    }

    #[test]
    fn no_elements_need_no_buffers() {
        let (place, none, zeros) = ((1, 3), None, [0usize; 3]);
        let list = Some(&zeros[..]);
        for call in [
            reduce_scatter(place, null(), null_mut(), 0, F32, 0),
            all_gather(place, null(), null_mut(), 0, F32),
            broadcast(place, null_mut(), 0, F32, 1),
            reduce(place, null(), null_mut(), 0, (F32, 0), 1),
            gather(place, null(), null_mut(), 0, F32, 1),
            scatter(place, null(), null_mut(), 0, F32, 1),
            all_to_all(place, null(), null_mut(), 0, F32),
            all_gather_v(place, (null(), 0), null_mut(), (list, none), F32),
            reduce_scatter_v(place, null(), null_mut(), list, F32, 0),
            all_to_all_v(place, (null(), list, none), (null_mut(), list, none), F32),
            all_reduce_custom(null(), null_mut(), 0, 7, nothing()),
            reduce_scatter_v_custom(place, null(), null_mut(), list, 7, nothing()),
        ] {
            assert_eq!(outcome(call), Ok(()));
        }
        // This rank's part alone is empty.
        let counts = [2usize, 0, 1];
        let lists = (Some(&counts[..]), none);
        assert_eq!(outcome(all_gather_v(place, (null(), 0), to(0x1000), lists, F32)), Ok(()));
        assert_eq!(outcome(all_gather_v(place, (null(), 0), null_mut(), lists, F32)), INVALID);
        assert_eq!(outcome(reduce_scatter_v(place, at(0x1000), null_mut(), lists.0, F32, 0)), Ok(()));
        assert_eq!(outcome(reduce_scatter_v(place, null(), null_mut(), lists.0, F32, 0)), INVALID);
    }

    #[test]
    fn custom_arguments() {
        let (send, recv) = (at(0x1000), to(0x2000));
        assert_eq!(outcome(all_reduce_custom(send, recv, 4, 3, nothing())), Ok(()));
        assert_eq!(outcome(all_reduce_custom(send, to(0x1000), 4, 3, nothing())), Ok(()));
        assert_eq!(outcome(all_reduce_custom(send, to(0x100b), 4, 3, nothing())), INVALID);
        assert_eq!(outcome(all_reduce_custom(send, to(0x100c), 4, 3, nothing())), Ok(()));
        assert_eq!(outcome(all_reduce_custom(send, recv, 4, 0, nothing())), INVALID);
        assert_eq!(outcome(all_reduce_custom(send, recv, 4, 3, None)), INVALID);
        let counts = [1usize, 1];
        let check = |element, function| {
            outcome(reduce_scatter_v_custom((1, 2), send, recv, Some(&counts[..]), element, function))
        };
        assert_eq!([check(3, nothing()), check(0, nothing()), check(3, None)], [Ok(()), INVALID, INVALID]);
    }

    #[test]
    fn unknown_types_and_ops_are_refused_and_some_pairs_undefined() {
        let (place, a, b) = ((0, 2), at(0x1000), to(0x2000));
        let counts = [1usize, 1];
        let list = Some(&counts[..]);
        for (dtype, op, expected) in [
            (14, 0, INVALID),
            (-1, 0, INVALID),
            (F32, 8, INVALID),
            (F32, -1, INVALID),
            (F32, 5, Err(Status::Unsupported)),
            (0, 4, Err(Status::Unsupported)),
        ] {
            assert_eq!(outcome(reduce_scatter(place, a, b, 1, dtype, op)), expected);
            assert_eq!(outcome(reduce(place, a, b, 1, (dtype, op), 0)), expected);
            assert_eq!(outcome(reduce_scatter_v(place, a, b, list, dtype, op)), expected);
        }
        for dtype in [14, -1] {
            assert_eq!(outcome(broadcast(place, b, 1, dtype, 0)), INVALID);
            assert_eq!(outcome(gather(place, a, b, 1, dtype, 0)), INVALID);
            assert_eq!(outcome(scatter(place, a, b, 1, dtype, 0)), INVALID);
            assert_eq!(outcome(all_to_all(place, a, b, 1, dtype)), INVALID);
            assert_eq!(outcome(all_gather_v(place, (a, 1), b, (list, None), dtype)), INVALID);
            let (send, recv) = ((a, list, None), (b, list, None));
            assert_eq!(outcome(all_to_all_v(place, send, recv, dtype)), INVALID);
        }
    }

    #[test]
    fn ranks_compare_what_must_be_alike() {
        let (place, counts) = ((1, 2), [3usize, 1]);
        let (list, a, b) = (Some(&counts[..]), at(0x1000), to(0x2000));
        let header = |call: Result<Call<'_>>| {
            let header = call.unwrap().header(1);
            (header.count, header.root, header.digest != 0)
        };
        assert_eq!(header(reduce_scatter(place, a, b, 3, F32, 0)), (3, -1, false));
        assert_eq!(header(gather(place, a, b, 3, F32, 1)), (3, 1, false));
        assert_eq!(header(scatter(place, a, b, 3, F32, 0)), (3, 0, false));
        assert_eq!(header(all_to_all(place, a, b, 3, F32)), (3, -1, false));
        assert_eq!(header(all_gather_v(place, (a, 1), b, (list, None), F32)), (4, -1, true));
        assert_eq!(header(reduce_scatter_v(place, a, b, list, F32, 0)), (4, -1, true));
        assert_eq!(header(reduce_scatter_v_custom(place, a, b, list, 9, nothing())), (4, -1, true));
        let (send, recv) = ((a, list, None), (b, list, None));
        assert_eq!(header(all_to_all_v(place, send, recv, F32)), (0, -1, false));
    }
}
