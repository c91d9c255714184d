//! The one loop of all kernels, and its instances per instruction set.
#![allow(unsafe_code)]

use super::bfloat16::BfloatPair;
use super::float16::Half;
use super::steps::{Divide, Step, Sum};

#[cfg(target_arch = "x86_64")]
pub(super) use super::f16c::Halves;
#[cfg(target_arch = "aarch64")]
pub(super) use super::fcvt::Halves;
/// Without hardware for it, there are no others.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use super::float16::Half as Halves;

/// What kernels go by: a cache line, and a few registers of each instruction set. Who calls one fills
/// up the last block.
pub(super) const BLOCK_BYTES: usize = 64;

/// Any bytes, at any address.
pub(super) type Block = [u8; BLOCK_BYTES];

/// A compiled step: `(dst, own, received, blocks)`.
///
/// To call it, the three must be valid for so many blocks, and the CPU must be the [`Cpu`] that gave
/// it. `dst`, `own` and `received` are each the same memory or apart: a block is read whole before it is
/// written. Where they overlap partly, the result is unspecified.
pub(super) type Kernel = unsafe fn(*mut u8, *const u8, *const u8, usize);

/// A compiled division in place: `(dst, blocks, divisor)`. What holds for [`Kernel`] holds for it.
pub(super) type Divider = unsafe fn(*mut u8, usize, f64);

/// What a step takes: one element of an array, or several at once. A block has a whole number of them.
///
/// # Safety
///
/// Any bytes are a value, and there is no padding.
pub(super) unsafe trait Plain: Copy {}

/// Runs a step over blocks, fetching ahead or not. A read and a write go to any address: buffers come
/// from callers and from within streams.
///
/// # Safety
///
/// What a [`Kernel`] asks for.
#[inline(always)]
pub(super) unsafe fn each<T: Plain, const FETCH: bool>(
    dst: *mut u8,
    own: *const u8,
    received: *const u8,
    blocks: usize,
    step: impl Fn(T, T) -> T,
) {
    const { assert!(BLOCK_BYTES.is_multiple_of(size_of::<T>())) };
    let (dst, own, received) = (dst.cast::<Block>(), own.cast::<Block>(), received.cast::<Block>());
    let apart = !std::ptr::eq(dst, own);
    for i in 0..blocks {
        block_by_block();
        if FETCH {
            prefetch(own.wrapping_add(i).cast());
        }
        if FETCH && apart {
            prefetch(dst.wrapping_add(i).cast());
        }
        // A block is read before it is written, so that one loop serves in place and apart, without
        // the compiler's check at run time whether the buffers overlap.
        // SAFETY: block i is one of `blocks`, and a block is a whole number of T.
        unsafe {
            let (mut result, received) = (own.add(i).read(), received.add(i).read());
            let (values, received) = ((&raw mut result).cast::<T>(), (&raw const received).cast::<T>());
            for j in 0..BLOCK_BYTES / size_of::<T>() {
                let value = step(values.add(j).read_unaligned(), received.add(j).read_unaligned());
                values.add(j).write_unaligned(value);
            }
            dst.add(i).write(result);
        }
    }
}

/// Keeps the compiler from making vectors across blocks, where those within one do: for the maximum of
/// complex numbers that would be four times the code.
#[inline(always)]
pub(super) fn block_by_block() {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: no instruction.
    unsafe {
        std::arch::asm!("", options(nomem, nostack, preserves_flags));
    }
}

/// Has the CPU fetch what a loop that is at `block` will need, also of what it will overwrite: a cache
/// line that is written in parts is read first. CPUs do so by themselves, but not past the end of a
/// page, and not while a long step fills their queues. Nothing is fetched for `received`, which has
/// just come in.
///
/// Not for the baseline: x86_64's is for CPUs of before 2013, elsewhere nothing has been measured.
#[inline(always)]
pub(super) fn prefetch(block: *const u8) {
    /// Out of the caches, an AMD Zen 4 gains a quarter with float16 and bfloat16, and apart a fifth
    /// with all types. Into the first-level cache it gains less, and from under 2 KiB on it loses.
    #[cfg(target_arch = "x86_64")]
    const AHEAD: usize = 3 << 10;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86_64, and a prefetch of any address is allowed.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(block.wrapping_add(AHEAD).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = block;
}

/// The instruction set that a kernel is compiled for. Another one is here where it was measured to win.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cpu {
    /// What every CPU of the target has; NEON on aarch64, SSE2 on x86_64.
    Baseline,
    /// AVX2 with F16C, which came before it: half the instructions, and float16 in hardware.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX2, and for sums of bfloat16 AVX-512 (bfloat16_avx512.rs). Longer vectors alone gain nothing.
    #[cfg(target_arch = "x86_64")]
    Avx512Bfloat16,
}

impl Cpu {
    /// The sets that this CPU has, the best one last. The standard library remembers what it found.
    pub(super) fn detect() -> impl DoubleEndedIterator<Item = Cpu> {
        #[cfg(target_arch = "x86_64")]
        let more = {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bf16");
            [avx2.then_some(Cpu::Avx2), avx512.then_some(Cpu::Avx512Bfloat16)]
        };
        #[cfg(not(target_arch = "x86_64"))]
        let more = [None];
        std::iter::once(Cpu::Baseline).chain(more.into_iter().flatten())
    }

    /// The best set that this CPU has.
    pub(super) fn best() -> Cpu {
        Cpu::detect().next_back().unwrap_or(Cpu::Baseline)
    }

    pub(super) fn kernel<T: Plain, S: Step<T>>(self) -> Kernel {
        match self {
            Cpu::Baseline => baseline::<T, S>,
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx2 | Cpu::Avx512Bfloat16 => avx2::<T, S>,
        }
    }

    pub(super) fn divider<T: Plain + Divide>(self) -> Divider {
        match self {
            Cpu::Baseline => divide_baseline::<T>,
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx2 | Cpu::Avx512Bfloat16 => divide_avx2::<T>,
        }
    }

    /// float16 apart: hardware converts several at once.
    pub(super) fn float16_kernel<S: Step<Half> + Step<Halves>>(self) -> Kernel {
        if self.converts_float16() { self.kernel::<Halves, S>() } else { baseline::<Half, S> }
    }

    pub(super) fn float16_divider(self) -> Divider {
        if self.converts_float16() { self.divider::<Halves>() } else { divide_baseline::<Half> }
    }

    #[cfg(target_arch = "x86_64")]
    pub(super) fn converts_float16(self) -> bool {
        self != Cpu::Baseline
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn converts_float16(self) -> bool {
        cfg!(target_arch = "aarch64")
    }

    /// bfloat16's sum apart.
    pub(super) fn bfloat16_sum(self) -> Kernel {
        match self {
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx512Bfloat16 => super::bfloat16_avx512::sum,
            _ => self.kernel::<BfloatPair, Sum>(),
        }
    }
}

unsafe fn baseline<T: Plain, S: Step<T>>(dst: *mut u8, own: *const u8, received: *const u8, blocks: usize) {
    // SAFETY: the caller of a `Kernel` promises what `each` asks for.
    unsafe { each::<T, false>(dst, own, received, blocks, S::step) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn avx2<T: Plain, S: Step<T>>(dst: *mut u8, own: *const u8, received: *const u8, blocks: usize) {
    // SAFETY: the caller of a `Kernel` promises what `each` asks for.
    unsafe { each::<T, true>(dst, own, received, blocks, S::step) }
}

unsafe fn divide_baseline<T: Plain + Divide>(dst: *mut u8, blocks: usize, divisor: f64) {
    // SAFETY: the caller of a `Divider` promises what `each` asks for.
    unsafe { each::<T, false>(dst, dst, dst, blocks, |sum, _| sum.divide(divisor)) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn divide_avx2<T: Plain + Divide>(dst: *mut u8, blocks: usize, divisor: f64) {
    // SAFETY: the caller of a `Divider` promises what `each` asks for.
    unsafe { each::<T, true>(dst, dst, dst, blocks, |sum, _| sum.divide(divisor)) }
}
