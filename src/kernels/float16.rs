//! float16 without hardware for it: conversions by integer code that vectorises.
#![allow(unsafe_code)]

use super::elementwise::Plain;
use super::steps::{Divide, extremes, steps};
use super::wide::Widen;

/// A float16 by its bits: sign, 5 bits of exponent, 10 of mantissa.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Half(u16);

// SAFETY: 16 bits.
unsafe impl Plain for Half {}

const SIGN: u16 = 0x8000;
const INFINITY: u16 = 0x7c00;
const QUIET_NAN: u16 = 0x7e00;

/// An f32 has this many more bits of mantissa.
const MORE_MANTISSA: u32 = 23 - 10;
/// The f32 exponent's bias is this much greater.
const MORE_BIAS: u32 = 127 - 15;
const F32_INFINITY: u32 = 0x7f80_0000;
const F32_BIAS: u32 = 127;

/// 2 to the power of `exponent`, as the bits of an f32.
const fn power_of_two(exponent: i32) -> u32 {
    ((F32_BIAS as i32 + exponent) as u32) << 23
}

impl Half {
    #[inline(always)]
    pub(super) fn to_f32(self) -> f32 {
        /// Makes up for the bias, of subnormal numbers, too, in one exact multiplication.
        const REBIAS: f32 = f32::from_bits(power_of_two(MORE_BIAS as i32));
        let magnitude = self.0 & !SIGN;
        let widened = f32::from_bits(u32::from(magnitude) << MORE_MANTISSA) * REBIAS;
        let special = if magnitude >= INFINITY { F32_INFINITY } else { 0 };
        f32::from_bits(widened.to_bits() | special | (u32::from(self.0 & SIGN) << 16))
    }

    /// Rounds to the nearest, ties to even.
    #[inline(always)]
    pub(super) fn from_f32(value: f32) -> Half {
        /// The least normal float16.
        const LEAST_NORMAL: u32 = power_of_two(-14);
        /// An f32 from 0.5 to 1 has steps of 2^-24: adding it rounds to a subnormal float16.
        const ROUNDS_TO_STEP: f32 = 0.5;
        /// Together with the last bit that stays, just enough to carry from halfway on.
        const UP_TO_HALF: u32 = (1 << (MORE_MANTISSA - 1)) - 1;

        let sign = (value.to_bits() >> 16) as u16 & SIGN;
        let magnitude = value.abs().to_bits();
        let odd = (magnitude >> MORE_MANTISSA) & 1;
        let rounded = magnitude.wrapping_sub(MORE_BIAS << 23).wrapping_add(UP_TO_HALF + odd);
        // What rounds past the greatest number, 65504, is past infinity's bits here or at them.
        let normal = (rounded >> MORE_MANTISSA).min(u32::from(INFINITY));
        let subnormal = (value.abs() + ROUNDS_TO_STEP).to_bits().wrapping_sub(ROUNDS_TO_STEP.to_bits());
        let number = if magnitude < LEAST_NORMAL { subnormal } else { normal };
        let bits = if magnitude > F32_INFINITY { u32::from(QUIET_NAN) } else { number };
        Half(bits as u16 | sign)
    }
}

impl Widen for Half {
    type Wide = f32;

    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }

    #[inline(always)]
    fn narrow(wide: f32) -> Half {
        Half::from_f32(wide)
    }
}

steps! { Half:
    Sum = |own, received| Half::from_f32(own.to_f32() + received.to_f32());
    Prod = |own, received| Half::from_f32(own.to_f32() * received.to_f32());
}

extremes! { Half, i16: INFINITY as i16, |value| value.0 as i16 }

impl Divide for Half {
    #[inline(always)]
    fn divide(self, divisor: f64) -> Half {
        Half::from_f32(self.to_f32() / divisor as f32)
    }
}
