//! Memory that a caller lends for the length of a call.
//!
//! The send and receive buffers of a collective may be one and the same, so neither can be a Rust
//! slice: a [`Region`] is a pointer with a length whose bounds are checked wherever it is cut.
//! Kernels and system calls take regions and do the reading and writing.
#![allow(unsafe_code)]

use std::marker::PhantomData;

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
