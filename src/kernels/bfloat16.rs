//! bfloat16: the upper half of an f32, so that a conversion is a shift.
#![allow(unsafe_code)]

use super::elementwise::Plain;
use super::steps::{Divide, extremes, steps};
use super::wide::Widen;

/// A bfloat16 by its bits: sign, 8 bits of exponent, 7 of mantissa.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Bfloat(u16);

// SAFETY: 16 bits.
unsafe impl Plain for Bfloat {}

extremes! { Bfloat, i16: 0x7f80, |value| value.0 as i16 }

impl Widen for Bfloat {
    type Wide = f32;

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    /// Of any f32, also of a NaN that says something in its lower half.
    #[inline(always)]
    fn narrow(wide: f32) -> Bfloat {
        const QUIET: u32 = 0x0040_0000;
        // No `if`: as a branch it doesn't vectorise.
        let quiet = wide.to_bits() | QUIET;
        let bits = std::hint::select_unpredictable(wide.is_nan(), quiet, rounded(wide));
        Bfloat((bits >> 16) as u16)
    }
}

/// Two neighbours in one word. Each becomes an f32 within its word, by a mask or a shift; one at a
/// time, vectors would have to be widened and packed again.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct BfloatPair(u32);

// SAFETY: 32 bits.
unsafe impl Plain for BfloatPair {}

const UPPER: u32 = 0xffff_0000;

impl BfloatPair {
    #[inline(always)]
    fn upper(self) -> f32 {
        f32::from_bits(self.0 & UPPER)
    }

    #[inline(always)]
    fn lower(self) -> f32 {
        f32::from_bits(self.0 << 16)
    }

    /// Applies `op` in f32 to both and rounds to the nearest, ties to even.
    #[inline(always)]
    fn zip(self, other: BfloatPair, op: impl Fn(f32, f32) -> f32) -> BfloatPair {
        let upper = rounded(op(self.upper(), other.upper())) & UPPER;
        let lower = rounded(op(self.lower(), other.lower())) >> 16;
        BfloatPair(upper | lower)
    }
}

/// Bits whose upper half is the nearest bfloat16.
///
/// A NaN needs no care: out of arithmetic on numbers whose lower half is zero it has such a half, too,
/// and stays what it is.
#[inline(always)]
fn rounded(value: f32) -> u32 {
    /// Together with the last bit that stays, just enough to carry from halfway on.
    const UP_TO_HALF: u32 = 0x7fff;
    let bits = value.to_bits();
    let odd = (bits >> 16) & 1;
    bits.wrapping_add(UP_TO_HALF + odd)
}

steps! { BfloatPair:
    Sum = |own, received| own.zip(received, |own, received| own + received);
    Prod = |own, received| own.zip(received, |own, received| own * received);
}

impl Divide for BfloatPair {
    #[inline(always)]
    fn divide(self, divisor: f64) -> BfloatPair {
        self.zip(self, |sum, _| sum / divisor as f32)
    }
}
