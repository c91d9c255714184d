//! float16 with x86's F16C, whose conversions round as float16.rs does at a fraction of the cost.
#![allow(unsafe_code)]

use super::elementwise::Plain;
use super::steps::{Divide, steps};
use super::wide::Widen;
use std::arch::x86_64::{
    __m128i, __m256, _MM_FROUND_TO_NEAREST_INT, _mm256_add_ps, _mm256_cvtph_ps, _mm256_cvtps_ph,
    _mm256_div_ps, _mm256_mul_ps, _mm256_set1_ps,
};

/// Eight float16, one register of f32. Only kernels of `Cpu::Avx2` and better step it, and a Reducer has them
/// only where the CPU was found to have AVX2 and F16C; the SAFETY lines below stand on that.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Halves(__m128i);

// SAFETY: 128 bits.
unsafe impl Plain for Halves {}

impl Halves {
    #[inline(always)]
    fn to_f32(self) -> __m256 {
        // SAFETY: the CPU has F16C.
        unsafe { _mm256_cvtph_ps(self.0) }
    }

    #[inline(always)]
    fn from_f32(values: __m256) -> Halves {
        // SAFETY: the CPU has F16C.
        Halves(unsafe { _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(values) })
    }
}

impl Widen for Halves {
    type Wide = __m256;

    #[inline(always)]
    fn widen(self) -> __m256 {
        self.to_f32()
    }

    #[inline(always)]
    fn narrow(wide: __m256) -> Halves {
        Halves::from_f32(wide)
    }
}

// SAFETY: 256 bits.
unsafe impl Plain for __m256 {}

steps! { __m256:
    // SAFETY: the CPU has AVX2.
    Sum = |own, received| unsafe { _mm256_add_ps(own, received) };
}

impl Divide for __m256 {
    #[inline(always)]
    fn divide(self, divisor: f64) -> __m256 {
        // SAFETY: the CPU has AVX2.
        unsafe { _mm256_div_ps(self, _mm256_set1_ps(divisor as f32)) }
    }
}

steps! { Halves:
    // SAFETY: the CPU has AVX2.
    Sum = |own, received| Halves::from_f32(unsafe { _mm256_add_ps(own.to_f32(), received.to_f32()) });
    // SAFETY: the CPU has AVX2.
    Prod = |own, received| Halves::from_f32(unsafe { _mm256_mul_ps(own.to_f32(), received.to_f32()) });
}

impl Divide for Halves {
    #[inline(always)]
    fn divide(self, divisor: f64) -> Halves {
        Halves::from_f32(self.to_f32().divide(divisor))
    }
}
