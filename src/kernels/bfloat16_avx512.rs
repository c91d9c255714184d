//! Sums of bfloat16 with AVX-512, whose conversion from f32 is one instruction in place of eight.
//! Against AVX2's they take a seventh less time out of the caches, which makes it float32's, and three
//! tenths less within (AMD Zen 4).
#![allow(unsafe_code)]

use super::elementwise::{Plain, each};
use std::arch::x86_64::{
    __m512, __m512i, _mm512_add_epi32, _mm512_add_ps, _mm512_and_si512, _mm512_castps_si512,
    _mm512_castsi512_ps, _mm512_cvtne2ps_pbh, _mm512_fpclass_ps_mask, _mm512_mask_blend_epi16,
    _mm512_permutexvar_epi16, _mm512_set1_epi32, _mm512_slli_epi32, _mm512_srli_epi32,
};

/// A block: 16 pairs, each in one word as in bfloat16.rs.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Pairs(__m512i);

// SAFETY: 512 bits.
unsafe impl Plain for Pairs {}

/// A `Kernel` of `Cpu::Avx512Bfloat16`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512bf16")]
pub(super) unsafe fn sum(dst: *mut u8, own: *const u8, received: *const u8, blocks: usize) {
    // SAFETY: the caller of a `Kernel` promises what `each` asks for.
    unsafe { each::<Pairs, true>(dst, own, received, blocks, |own, received| step(own, received)) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512bf16")]
fn step(own: Pairs, received: Pairs) -> Pairs {
    let upper = _mm512_add_ps(uppers(own), uppers(received));
    let lower = _mm512_add_ps(lowers(own), lowers(received));
    // The conversion takes subnormal numbers for zeros, whatever the thread's mode.
    const SUBNORMAL: i32 = 1 << 5;
    let subnormal = _mm512_fpclass_ps_mask::<SUBNORMAL>(upper) | _mm512_fpclass_ps_mask::<SUBNORMAL>(lower);
    if subnormal != 0 {
        let lower = _mm512_srli_epi32::<16>(rounded(lower));
        return Pairs(_mm512_mask_blend_epi16(LOWERS, rounded(upper), lower));
    }
    // SAFETY: both types are 512 bits, and any are a value.
    let halves: __m512i = unsafe { std::mem::transmute(_mm512_cvtne2ps_pbh(upper, lower)) };
    // SAFETY: as above.
    Pairs(_mm512_permutexvar_epi16(unsafe { std::mem::transmute::<[u16; 32], __m512i>(INTERLEAVED) }, halves))
}

/// The places of the lower halves of words.
const LOWERS: u32 = 0x5555_5555;

/// The lower numbers, converted, are the first 16; the upper ones go between them.
const INTERLEAVED: [u16; 32] = {
    let mut from = [0; 32];
    let mut i = 0;
    while i < from.len() {
        from[i] = (i / 2 + i % 2 * 16) as u16;
        i += 1;
    }
    from
};

#[inline]
#[target_feature(enable = "avx512f")]
fn uppers(pairs: Pairs) -> __m512 {
    _mm512_castsi512_ps(_mm512_and_si512(pairs.0, _mm512_set1_epi32(0xffff_0000u32 as i32)))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn lowers(pairs: Pairs) -> __m512 {
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(pairs.0))
}

/// Bits whose upper half is the nearest bfloat16, as in bfloat16.rs.
#[inline]
#[target_feature(enable = "avx512f")]
fn rounded(values: __m512) -> __m512i {
    const UP_TO_HALF: i32 = 0x7fff;
    let bits = _mm512_castps_si512(values);
    let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
    _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(UP_TO_HALF)))
}
