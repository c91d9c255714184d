//! Structs that begin with the size that their caller knows.

use crate::{Error, Result, Status};

/// No version of a struct comes near this: a larger struct_size was never set.
pub(super) const MAX_STRUCT: usize = 4096;

/// Writes as much of `ours` as the caller has room for, and zeroes what it has beyond. The caller's struct, like
/// `ours`, begins with its size, which stays.
///
/// # Safety
///
/// `out` is NULL or begins with a size that its caller has set and has that many bytes, and every byte of `T` is
/// initialised.
pub(super) unsafe fn write_sized<T>((function, name): (&str, &str), out: *mut T, ours: &T) -> Result<()> {
    const FIRST: usize = size_of::<usize>();
    let invalid = |text| Err(Error::new(Status::InvalidArgument, format!("{function}: {text}")));
    if out.is_null() {
        return invalid("out is NULL".to_owned());
    }
    // SAFETY: not NULL, and the struct begins with the size that the caller has set.
    let theirs = unsafe { out.cast::<usize>().read() };
    let known = size_of::<T>();
    if !(FIRST..=MAX_STRUCT).contains(&theirs) {
        return invalid(format!("struct_size is {theirs}, not sizeof({name}) = {known}"));
    }
    let written = theirs.min(known);
    let (out, ours) = (out.cast::<u8>(), (&raw const *ours).cast::<u8>());
    // SAFETY: the caller has `theirs` bytes there, of which `written` are in our struct, too.
    unsafe {
        out.add(FIRST).copy_from_nonoverlapping(ours.add(FIRST), written - FIRST);
        out.add(written).write_bytes(0, theirs - written);
    }
    Ok(())
}
