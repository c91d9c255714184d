//! Types of elements.
#![allow(unsafe_code)]

use crate::dtype::Dtype;
use crate::memory::Plain;

pub use half::{bf16, f16};

/// A type of elements that the library can reduce.
///
/// # Safety
///
/// A value has the layout of `DTYPE`'s elements.
pub unsafe trait Element: Plain {
    /// Its number in calls.
    const DTYPE: Dtype;
}

/// A truth value as arrays hold them: one byte, of which 0 is false and any other true. Rust's `bool` may hold
/// only 0 and 1, and a peer may send anything.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl Bool {
    /// Whether it is true.
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Bool {
        Bool(value.into())
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Bool) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Bool {}

/// A complex number of two `f32`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Complex64 {
    /// The real part.
    pub re: f32,
    /// The imaginary part.
    pub im: f32,
}

macro_rules! elements {
    ($($type:ty = $dtype:ident,)*) => {$(
        // SAFETY: numbers without padding, of which any bits are one, aligned to their size of at most 8.
        unsafe impl Plain for $type {}
        // SAFETY: what the dtype's name says.
        unsafe impl Element for $type {
            const DTYPE: Dtype = Dtype::$dtype;
        }
        const _: () = assert!(size_of::<$type>() == Dtype::$dtype.size());
    )*};
}

elements! {
    Bool = Bool,
    u8 = Uint8,
    u16 = Uint16,
    u32 = Uint32,
    u64 = Uint64,
    i8 = Int8,
    i16 = Int16,
    i32 = Int32,
    i64 = Int64,
    f16 = Float16,
    f32 = Float32,
    f64 = Float64,
    bf16 = Bfloat16,
    Complex64 = Complex64,
}

#[cfg(target_pointer_width = "64")]
elements! {
    usize = Uint64,
    isize = Int64,
}
#[cfg(target_pointer_width = "32")]
elements! {
    usize = Uint32,
    isize = Int32,
}

// SAFETY: elements follow each other without a gap.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
