//! float16 without hardware for it: conversions by integer code that vectorises.
#![allow(unsafe_code)]

use super::elementwise::Plain;
use super::steps::{Divide, extremes, steps};

/// A float16 by its bits: sign, 5 bits of exponent, 10 of mantissa.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Half(u16);

// SAFETY: 16 bits.
unsafe impl Plain for Half {}

const SIGN: u16 = 0x8000;
const INFINITY: u16 = 0x7c00;
/// The least normal number, 2^-14; below it, bits count steps of 2^-24.
const LEAST_NORMAL: u16 = 0x0400;
const QUIET_NAN: u16 = 0x7e00;

/// An f32 has this many more bits of mantissa.
const MORE_MANTISSA: u32 = 23 - 10;
/// The f32 exponent's bias is this much greater (127 - 15), in place above the mantissa.
const MORE_BIAS: u32 = (127 - 15) << 23;
const F32_INFINITY: u32 = 0x7f80_0000;

impl Half {
    #[inline(always)]
    pub(super) fn to_f32(self) -> f32 {
        let magnitude = self.0 & !SIGN;
        let widened = u32::from(magnitude) << MORE_MANTISSA;
        let bits = if magnitude >= INFINITY {
            widened | F32_INFINITY
        } else if magnitude >= LEAST_NORMAL {
            widened + MORE_BIAS
        } else {
            // The conversion goes through i32: SSE2 has none from u32.
            const STEP: f32 = 1.0 / (1 << 24) as f32;
            (i32::from(magnitude) as f32 * STEP).to_bits()
        };
        f32::from_bits(bits | (u32::from(self.0 & SIGN) << 16))
    }

    /// Rounds to the nearest, ties to even.
    #[inline(always)]
    pub(super) fn from_f32(value: f32) -> Half {
        /// Halfway from the greatest finite float16, 65504, to what would be the next: from here on,
        /// rounding gives infinity.
        const OVERFLOW: u32 = 65520f32.to_bits();
        const F32_LEAST_NORMAL: u32 = ((LEAST_NORMAL as u32) << MORE_MANTISSA) + MORE_BIAS;
        /// An f32 from 0.5 to 1 has steps of 2^-24: adding it rounds to a subnormal float16.
        const ROUNDS_TO_STEP: f32 = 0.5;
        const UP_TO_HALF: u32 = (1 << (MORE_MANTISSA - 1)) - 1;

        let sign = (value.to_bits() >> 16) as u16 & SIGN;
        let magnitude = value.abs().to_bits();
        let bits = if magnitude > F32_INFINITY {
            u32::from(QUIET_NAN)
        } else if magnitude >= OVERFLOW {
            u32::from(INFINITY)
        } else if magnitude >= F32_LEAST_NORMAL {
            let odd = (magnitude >> MORE_MANTISSA) & 1;
            (magnitude - MORE_BIAS + UP_TO_HALF + odd) >> MORE_MANTISSA
        } else {
            (value.abs() + ROUNDS_TO_STEP).to_bits() - ROUNDS_TO_STEP.to_bits()
        };
        Half(bits as u16 | sign)
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
