//! The one loop of all kernels, and its instances per instruction set.
#![allow(unsafe_code)]

use super::float16::Half;
use super::steps::{Divide, Step};

/// What kernels go by: a cache line, and a few registers of each instruction set. Who calls one fills
/// up the last block.
pub(super) const BLOCK_BYTES: usize = 64;

/// Any bytes, at any address.
type Block = [u8; BLOCK_BYTES];

/// A compiled step: `(dst, own, received, blocks)`.
///
/// To call it, the three must be valid for so many blocks, and the CPU must be the [`Cpu`] that gave
/// it. `dst` and `own` are the same memory or apart; where they overlap partly, the result is
/// unspecified.
pub(super) type Kernel = unsafe fn(*mut u8, *const u8, *const u8, usize);

/// A compiled division in place: `(dst, blocks, divisor)`. What holds for [`Kernel`] holds for it.
pub(super) type Divider = unsafe fn(*mut u8, usize, f64);

/// What a step takes: one element of an array, or several at once. A block has a whole number of them.
///
/// # Safety
///
/// Any bytes are a value, and there is no padding.
pub(super) unsafe trait Plain: Copy {}

/// Runs a step over blocks. A read and a write go to any address: buffers come from callers and from
/// within streams.
///
/// # Safety
///
/// What a [`Kernel`] asks for.
#[inline(always)]
pub(super) unsafe fn each<T: Plain>(
    dst: *mut u8,
    own: *const u8,
    received: *const u8,
    blocks: usize,
    step: impl Fn(T, T) -> T,
) {
    const { assert!(BLOCK_BYTES % size_of::<T>() == 0) };
    let (dst, own, received) = (dst.cast::<Block>(), own.cast::<Block>(), received.cast::<Block>());
    for i in 0..blocks {
        prefetch(own.wrapping_add(i).cast());
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

/// Has the CPU fetch what a loop that is at `block` will need. The CPU does so by itself, but not past
/// the end of a page and not while a long step fills its queues.
#[inline(always)]
fn prefetch(block: *const u8) {
    /// With float16 and bfloat16 out of the caches, an AMD Zen 4 gains an eighth from 384 or 512 bytes
    /// on, less below, and loses as much from 640 on.
    #[cfg(target_arch = "x86_64")]
    const AHEAD: usize = 384;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86_64, and a prefetch of any address is allowed.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(block.wrapping_add(AHEAD).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = block;
}

/// The instruction set that a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cpu {
    /// What every CPU of the target has; NEON on aarch64, SSE2 on x86_64.
    Baseline,
    /// AVX2 with F16C, which came before it.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Cpu {
    /// The best set that this CPU has. The standard library remembers what it found.
    pub(super) fn detect() -> Cpu {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c") {
            return Cpu::Avx2;
        }
        Cpu::Baseline
    }

    pub(super) fn kernel<T: Plain, S: Step<T>>(self) -> Kernel {
        match self {
            Cpu::Baseline => baseline::<T, S>,
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx2 => avx2::<T, S>,
        }
    }

    pub(super) fn divider<T: Plain + Divide>(self) -> Divider {
        match self {
            Cpu::Baseline => divide_baseline::<T>,
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx2 => divide_avx2::<T>,
        }
    }

    /// float16 apart: AVX2 converts it in hardware, several at once.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn float16_kernel<S: Step<Half> + Step<super::f16c::Halves>>(self) -> Kernel {
        match self {
            Cpu::Baseline => baseline::<Half, S>,
            Cpu::Avx2 => avx2::<super::f16c::Halves, S>,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn float16_kernel<S: Step<Half>>(self) -> Kernel {
        self.kernel::<Half, S>()
    }

    pub(super) fn float16_divider(self) -> Divider {
        match self {
            Cpu::Baseline => divide_baseline::<Half>,
            #[cfg(target_arch = "x86_64")]
            Cpu::Avx2 => divide_avx2::<super::f16c::Halves>,
        }
    }
}

unsafe fn baseline<T: Plain, S: Step<T>>(dst: *mut u8, own: *const u8, received: *const u8, blocks: usize) {
    // SAFETY: the caller of a `Kernel` promises what `each` asks for.
    unsafe { each::<T>(dst, own, received, blocks, S::step) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn avx2<T: Plain, S: Step<T>>(dst: *mut u8, own: *const u8, received: *const u8, blocks: usize) {
    // SAFETY: the caller of a `Kernel` promises what `each` asks for.
    unsafe { each::<T>(dst, own, received, blocks, S::step) }
}

unsafe fn divide_baseline<T: Plain + Divide>(dst: *mut u8, blocks: usize, divisor: f64) {
    // SAFETY: the caller of a `Divider` promises what `each` asks for.
    unsafe { each::<T>(dst, dst, dst, blocks, |sum, _| sum.divide(divisor)) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn divide_avx2<T: Plain + Divide>(dst: *mut u8, blocks: usize, divisor: f64) {
    // SAFETY: the caller of a `Divider` promises what `each` asks for.
    unsafe { each::<T>(dst, dst, dst, blocks, |sum, _| sum.divide(divisor)) }
}
