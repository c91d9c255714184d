//! Memory that a caller lends for the length of a call.
//!
//! The send and receive buffers of a collective may be one and the same, so neither can be a Rust
//! slice: a [`Region`] is a pointer with a length whose bounds are checked wherever it is cut.
//! Kernels and system calls take regions and do the reading and writing.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::marker::PhantomData;

use crate::error::{Error, Result, Status};

/// `len` bytes at a caller's pointer, of any alignment, lent for `'a`.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    start: *mut u8,
    len: usize,
    lent: PhantomData<&'a ()>,
}

// SAFETY: a region is an address and a length; whoever made it promised in `Region::new` that the
// memory may be used for 'a from whichever thread the call runs on.
unsafe impl Send for Region<'_> {}

impl<'a> Region<'a> {
    /// Wraps a caller's buffer. `len` 0 allows any pointer, NULL too.
    ///
    /// # Safety
    ///
    /// For all of `'a` the `len` bytes are readable, and writable if the region is used as a
    /// destination; nobody else writes them, and nobody else reads those that are written.
    pub unsafe fn new(start: *mut u8, len: usize) -> Region<'a> {
        Region { start, len, lent: PhantomData }
    }

    /// A region over memory that Rust owns.
    pub fn from_slice(slice: &'a mut [u8]) -> Region<'a> {
        Region { start: slice.as_mut_ptr(), len: slice.len(), lent: PhantomData }
    }

    /// The first `len` bytes of aligned memory that Rust owns.
    ///
    /// # Panics
    ///
    /// When there are fewer.
    pub fn from_words(words: &'a mut [u128], len: usize) -> Region<'a> {
        Region { start: words.as_mut_ptr().cast(), len: size_of_val(words), lent: PhantomData }.part(0, len)
    }

    /// A region over floats that Rust owns.
    pub fn from_floats(floats: &'a mut [f32]) -> Region<'a> {
        Region { start: floats.as_mut_ptr().cast(), len: size_of_val(floats), lent: PhantomData }
    }

    /// A region of no bytes.
    pub fn empty() -> Region<'a> {
        Region { start: std::ptr::NonNull::dangling().as_ptr(), len: 0, lent: PhantomData }
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of its first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    /// `len` of its bytes from `start` on.
    ///
    /// # Panics
    ///
    /// When these bytes don't lie within the region.
    pub fn part(&self, start: usize, len: usize) -> Region<'a> {
        assert!(start <= self.len && len <= self.len - start, "a span outside its buffer");
        Region { start: self.start.wrapping_add(start), len, lent: PhantomData }
    }

    /// Copies the bytes of `from`, which has the same length and is the same memory or apart.
    pub fn copy_from(&self, from: Region<'_>) {
        assert_eq!(self.len, from.len, "a copy between spans of different lengths");
        // SAFETY: both regions are valid for their equal length; `copy` allows overlap.
        unsafe { std::ptr::copy(from.start, self.start, self.len) }
    }

    /// Copies from a slice of the same length.
    pub fn copy_from_slice(&self, from: &[u8]) {
        assert_eq!(self.len, from.len(), "a copy between spans of different lengths");
        // SAFETY: both are valid for their equal length; `copy` allows overlap.
        unsafe { std::ptr::copy(from.as_ptr(), self.start, self.len) }
    }
}

/// Types of which any bits are a value and every byte is one of these: what a peer sends may become one.
///
/// # Safety
///
/// There is no padding and no invalid value, and it is aligned to 16 bytes at most.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

/// Where a call finds memory that is lent to it, and how much of it there is.
#[derive(Clone, Copy)]
struct Lent<'a> {
    start: *mut u8,
    /// None: as much as the call's arguments say.
    len: Option<usize>,
    /// Bytes of an element, for texts.
    element: usize,
    lent: PhantomData<&'a ()>,
}

impl<'a> Lent<'a> {
    /// # Panics
    ///
    /// When these bytes don't lie within it.
    fn part(self, start: usize, len: usize) -> Lent<'a> {
        let fits = self.len.is_none_or(|all| start <= all && len <= all - start);
        assert!(fits, "a part outside its buffer");
        Lent { start: self.start.wrapping_add(start), len: Some(len), ..self }
    }

    /// All of it, which is so many bytes.
    fn whole(self, name: &str, bytes: usize) -> Result<Region<'a>> {
        match self.len {
            Some(len) if len != bytes => Err(self.misfit(name, bytes)),
            _ => self.first(name, bytes),
        }
    }

    fn misfit(self, name: &str, bytes: usize) -> Error {
        let element = self.element.max(1);
        let (has, needs) = (self.len.unwrap_or(0) / element, bytes / element);
        invalid(format!("{name} has {has} elements and needs {needs}"))
    }

    fn first(self, name: &str, bytes: usize) -> Result<Region<'a>> {
        if bytes == 0 {
            return Ok(Region::empty());
        }
        if self.start.is_null() {
            return Err(invalid(format!("{name} is NULL and {bytes} bytes are needed there")));
        }
        if self.len.is_some_and(|len| len < bytes) {
            return Err(self.misfit(name, bytes));
        }
        if (self.start as usize).checked_add(bytes).is_none() {
            return Err(invalid(format!("{name} with {bytes} bytes goes beyond the address space")));
        }
        Ok(Region { start: self.start, len: bytes, lent: PhantomData })
    }
}

fn invalid(text: String) -> Error {
    Error::new(Status::InvalidArgument, text)
}

/// Memory that a call reads.
#[derive(Clone, Copy)]
pub struct Input<'a>(Lent<'a>);

/// Memory that a call writes, and may read.
#[cfg_attr(test, derive(Clone, Copy))]
pub struct Output<'a>(Lent<'a>);

impl<'a> Input<'a> {
    /// A slice. A call whose count isn't the slice's is refused.
    pub fn of<T: Plain>(slice: &'a [T]) -> Input<'a> {
        let start = slice.as_ptr().cast_mut().cast();
        Input(Lent { start, len: Some(size_of_val(slice)), element: size_of::<T>(), lent: PhantomData })
    }

    /// What is at a pointer; NULL is no memory.
    ///
    /// # Safety
    ///
    /// For all of `'a` as many bytes as a call's other arguments say are readable there, and nobody writes them
    /// but that call, where it is one in place.
    pub unsafe fn at(start: *const c_void) -> Input<'a> {
        Input(Lent { start: start.cast_mut().cast(), len: None, element: 1, lent: PhantomData })
    }

    /// An address for tests of checks, at which nothing is read.
    #[cfg(test)]
    pub fn nowhere(address: usize) -> Input<'a> {
        Input(Lent { start: address as *mut u8, len: None, element: 1, lent: PhantomData })
    }

    /// All of it; `name` is the argument's.
    pub(crate) fn whole(self, name: &str, bytes: usize) -> Result<Region<'a>> {
        self.0.whole(name, bytes)
    }

    /// So many bytes, though there may be more.
    pub(crate) fn first(self, name: &str, bytes: usize) -> Result<Region<'a>> {
        self.0.first(name, bytes)
    }
}

impl<'a> Output<'a> {
    /// A slice. A call whose count isn't the slice's is refused.
    pub fn of<T: Plain>(slice: &'a mut [T]) -> Output<'a> {
        let start = slice.as_mut_ptr().cast();
        Output(Lent { start, len: Some(size_of_val(slice)), element: size_of::<T>(), lent: PhantomData })
    }

    /// What is at a pointer; NULL is no memory.
    ///
    /// # Safety
    ///
    /// For all of `'a` as many bytes as a call's other arguments say are the call's alone there.
    pub unsafe fn at(start: *mut c_void) -> Output<'a> {
        Output(Lent { start: start.cast(), len: None, element: 1, lent: PhantomData })
    }

    /// An address for tests of checks, at which nothing is written.
    #[cfg(test)]
    pub fn nowhere(address: usize) -> Output<'a> {
        Output(Lent { start: address as *mut u8, len: None, element: 1, lent: PhantomData })
    }

    /// The same memory as an input, for one call that works in place.
    pub(crate) fn as_input(&self) -> Input<'a> {
        Input(self.0)
    }

    /// Likewise, so many bytes of it from `start` on.
    pub(crate) fn part_as_input(&self, start: usize, len: usize) -> Input<'a> {
        Input(self.0.part(start, len))
    }

    /// So many bytes of it from `start` on, beside the whole as an input.
    pub(crate) fn part(&self, start: usize, len: usize) -> Output<'a> {
        Output(self.0.part(start, len))
    }

    pub(crate) fn whole(self, name: &str, bytes: usize) -> Result<Region<'a>> {
        self.0.whole(name, bytes)
    }

    pub(crate) fn first(self, name: &str, bytes: usize) -> Result<Region<'a>> {
        self.0.first(name, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_cut_within_bounds() {
        let mut bytes = [1u8, 2, 3, 4];
        let region = Region::from_slice(&mut bytes);
        region.part(2, 2).copy_from(region.part(0, 2));
        region.part(4, 0).copy_from_slice(&[]);
        assert_eq!(bytes, [1, 2, 1, 2]);
    }

    #[test]
    #[should_panic(expected = "outside")]
    fn a_part_past_the_end_panics() {
        let mut bytes = [0u8; 4];
        Region::from_slice(&mut bytes).part(3, 2);
    }
}
