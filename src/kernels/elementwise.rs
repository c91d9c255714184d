//! The one loop of all kernels, and its instances per instruction set.
#![allow(unsafe_code)]

use super::float16::Half;
use super::steps::{Divide, Step};
use std::mem::MaybeUninit;

/// A compiled step: `(dst, own, received, bytes)`.
///
/// To call it, the three must be valid for `bytes`, which is whole array elements, and the CPU must
/// be the [`Cpu`] that gave it.
pub(super) type Kernel = unsafe fn(*mut u8, *const u8, *const u8, usize);

/// A compiled division in place: `(dst, bytes, divisor)`. What holds for [`Kernel`] holds for it.
pub(super) type Divider = unsafe fn(*mut u8, usize, f64);

/// What a step takes: one element of an array, or several at once.
///
/// # Safety
///
/// Any bytes are a value, and there is no padding.
pub(super) unsafe trait Plain: Copy {
    /// The array elements in one value. Where it is more than 1, the end of an array is stepped
    /// beside zeros.
    const ELEMENTS: usize = 1;
}

/// Runs a step over `bytes` bytes. A read and a write go to any address: buffers come from callers
/// and from within streams.
///
/// # Safety
///
/// The three are valid for `bytes`. Where they overlap partly, the result is unspecified.
#[inline(always)]
pub(super) unsafe fn each<T: Plain>(
    dst: *mut u8,
    own: *const u8,
    received: *const u8,
    bytes: usize,
    step: impl Fn(T, T) -> T,
) {
    let count = bytes / size_of::<T>();
    // In place has a loop of its own: with one loop for both, the compiler's check at run time that
    // the buffers are apart would send it to the scalar version.
    if std::ptr::eq(dst, own) {
        let (dst, received) = (dst.cast::<T>(), received.cast::<T>());
        for i in 0..count {
            // SAFETY: `count` T lie within `bytes`.
            unsafe {
                let result = step(dst.add(i).read_unaligned(), received.add(i).read_unaligned());
                dst.add(i).write_unaligned(result);
            }
        }
    } else {
        let (dst, own, received) = (dst.cast::<T>(), own.cast::<T>(), received.cast::<T>());
        for i in 0..count {
            // SAFETY: as above.
            unsafe {
                let result = step(own.add(i).read_unaligned(), received.add(i).read_unaligned());
                dst.add(i).write_unaligned(result);
            }
        }
    }
    let whole = count * size_of::<T>();
    if T::ELEMENTS > 1 && whole < bytes {
        let rest = bytes - whole;
        // SAFETY: the `rest` bytes from `whole` on are valid and fewer than a T, and any bytes,
        // zeros too, are a T.
        unsafe {
            let result = step(beginning(own.add(whole), rest), beginning(received.add(whole), rest));
            std::ptr::copy_nonoverlapping((&raw const result).cast(), dst.add(whole), rest);
        }
    }
}

/// A T that begins with `len` bytes and goes on with zeros.
///
/// # Safety
///
/// `from` is valid for `len`, which is at most the size of T.
unsafe fn beginning<T: Plain>(from: *const u8, len: usize) -> T {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: the caller promises both lengths, and any bytes are a T.
    unsafe {
        std::ptr::copy_nonoverlapping(from, value.as_mut_ptr().cast(), len);
        value.assume_init()
    }
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

unsafe fn baseline<T: Plain, S: Step<T>>(dst: *mut u8, own: *const u8, received: *const u8, bytes: usize) {
    // SAFETY: the caller of a `Kernel` promises what `each` asks for.
    unsafe { each::<T>(dst, own, received, bytes, S::step) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn avx2<T: Plain, S: Step<T>>(dst: *mut u8, own: *const u8, received: *const u8, bytes: usize) {
    // SAFETY: the caller of a `Kernel` promises what `each` asks for.
    unsafe { each::<T>(dst, own, received, bytes, S::step) }
}

unsafe fn divide_baseline<T: Plain + Divide>(dst: *mut u8, bytes: usize, divisor: f64) {
    // SAFETY: the caller of a `Divider` promises what `each` asks for.
    unsafe { each::<T>(dst, dst, dst, bytes, |sum, _| sum.divide(divisor)) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
unsafe fn divide_avx2<T: Plain + Divide>(dst: *mut u8, bytes: usize, divisor: f64) {
    // SAFETY: the caller of a `Divider` promises what `each` asks for.
    unsafe { each::<T>(dst, dst, dst, bytes, |sum, _| sum.divide(divisor)) }
}
