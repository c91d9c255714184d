//! float16 on aarch64, where every CPU converts it; stable Rust has no names for these instructions
//! yet.
#![allow(unsafe_code)]

use super::elementwise::Plain;
use super::steps::{Divide, steps};
use super::wide::Widen;
use std::arch::aarch64::{float32x4_t, uint16x8_t, vaddq_f32, vdivq_f32, vdupq_n_f32, vmulq_f32};
use std::arch::asm;

/// Eight float16, two registers of f32.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Halves(uint16x8_t);

// SAFETY: 128 bits.
unsafe impl Plain for Halves {}

// The conversions follow the thread's mode as arithmetic does (float_mode.rs). They may set bits of
// FPSR, so that the asm doesn't preserve the flags.
impl Halves {
    #[inline(always)]
    fn lower(self) -> float32x4_t {
        let values;
        // SAFETY: lengthens the four lower lanes.
        unsafe {
            asm!("fcvtl {:v}.4s, {:v}.4h", out(vreg) values, in(vreg) self.0, options(pure, nomem, nostack));
        }
        values
    }

    #[inline(always)]
    fn upper(self) -> float32x4_t {
        let values;
        // SAFETY: lengthens the four upper lanes.
        unsafe {
            asm!("fcvtl2 {:v}.4s, {:v}.8h", out(vreg) values, in(vreg) self.0, options(pure, nomem, nostack));
        }
        values
    }

    /// Rounds to the nearest, ties to even.
    #[inline(always)]
    fn from_f32(lower: float32x4_t, upper: float32x4_t) -> Halves {
        let halves;
        // SAFETY: narrows to the four lower lanes, then to the upper ones; the second operand is
        // still needed when the first lanes are written, so that the result has a register of its
        // own.
        unsafe {
            asm!(
                "fcvtn {halves:v}.4h, {lower:v}.4s",
                "fcvtn2 {halves:v}.8h, {upper:v}.4s",
                halves = out(vreg) halves,
                lower = in(vreg) lower,
                upper = in(vreg) upper,
                options(pure, nomem, nostack),
            );
        }
        Halves(halves)
    }

    /// Applies `op` in f32.
    #[inline(always)]
    fn zip(self, other: Halves, op: impl Fn(float32x4_t, float32x4_t) -> float32x4_t) -> Halves {
        Halves::from_f32(op(self.lower(), other.lower()), op(self.upper(), other.upper()))
    }
}

/// Eight f32.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Singles([float32x4_t; 2]);

// SAFETY: 256 bits.
unsafe impl Plain for Singles {}

impl Widen for Halves {
    type Wide = Singles;

    #[inline(always)]
    fn widen(self) -> Singles {
        Singles([self.lower(), self.upper()])
    }

    #[inline(always)]
    fn narrow(Singles([lower, upper]): Singles) -> Halves {
        Halves::from_f32(lower, upper)
    }
}

steps! { Singles:
    // SAFETY: NEON is part of aarch64.
    Sum = |own, received| Singles([0, 1].map(|i| unsafe { vaddq_f32(own.0[i], received.0[i]) }));
}

impl Divide for Singles {
    #[inline(always)]
    fn divide(self, divisor: f64) -> Singles {
        // SAFETY: as above.
        Singles(self.0.map(|sum| unsafe { vdivq_f32(sum, vdupq_n_f32(divisor as f32)) }))
    }
}

steps! { Halves:
    // SAFETY: NEON is part of aarch64.
    Sum = |own, received| own.zip(received, |own, received| unsafe { vaddq_f32(own, received) });
    // SAFETY: as above.
    Prod = |own, received| own.zip(received, |own, received| unsafe { vmulq_f32(own, received) });
}

impl Divide for Halves {
    #[inline(always)]
    fn divide(self, divisor: f64) -> Halves {
        // SAFETY: as above.
        self.zip(self, |sum, _| unsafe { vdivq_f32(sum, vdupq_n_f32(divisor as f32)) })
    }
}
