//! The floating-point mode of a thread that works for a host program.
#![allow(unsafe_code)]

use std::marker::PhantomData;

/// While it lives, this thread computes by IEEE 754's defaults: rounding to nearest, subnormals kept,
/// no traps. The host program's mode comes back when it is dropped.
///
/// A host may have set flush-to-zero for speed; the compiler, too, assumes the defaults.
#[derive(Debug)]
pub struct FloatMode {
    hosts: Register,
    /// The mode is the thread's, so this must not move to another.
    of_thread: PhantomData<*const ()>,
}

impl FloatMode {
    /// Sets the defaults.
    #[must_use = "dropping it restores the mode"]
    pub fn ieee() -> FloatMode {
        let hosts = read();
        write(IEEE);
        FloatMode { hosts, of_thread: PhantomData }
    }
}

impl Drop for FloatMode {
    fn drop(&mut self) {
        write(self.hosts);
    }
}

// The asm below may touch memory as far as the compiler knows, so no load or store, and with them no
// arithmetic on what a kernel loads and stores, moves across a change of mode.

#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::*;
#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::asm;

    pub(in crate::kernels) type Register = u32;

    /// MXCSR after reset: all exceptions masked, round to nearest, no FTZ, no DAZ.
    pub(in crate::kernels) const IEEE: Register = 0x1f80;

    pub(in crate::kernels) fn read() -> Register {
        let mut mxcsr: Register = 0;
        // SAFETY: stores 4 bytes at the given address.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack, preserves_flags)) };
        mxcsr
    }

    pub(in crate::kernels) fn write(mxcsr: Register) {
        // SAFETY: loads 4 bytes from the given address, which are the default or came from `read`,
        // so that no reserved bit is set.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const mxcsr, options(nostack, preserves_flags)) };
    }
}

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::*;
#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use std::arch::asm;

    pub(in crate::kernels) type Register = u64;

    /// FPCR after reset: no traps, round to nearest, no FZ, FZ16, DN or FIZ, and
    /// float16 as IEEE 754 has it (no AHP).
    pub(in crate::kernels) const IEEE: Register = 0;

    pub(in crate::kernels) fn read() -> Register {
        let fpcr: Register;
        // SAFETY: reads a register that every thread may read.
        unsafe { asm!("mrs {}, fpcr", out(reg) fpcr, options(nostack, preserves_flags)) };
        fpcr
    }

    pub(in crate::kernels) fn write(fpcr: Register) {
        // SAFETY: the bits are the default or came from `read`.
        unsafe { asm!("msr fpcr, {}", in(reg) fpcr, options(nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use elsewhere::*;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod elsewhere {
    /// Stands for a mode that is left as it is.
    #[derive(Clone, Copy, Debug)]
    pub(in crate::kernels) struct Register;
    pub(in crate::kernels) const IEEE: Register = Register;
    pub(in crate::kernels) fn read() -> Register {
        Register
    }
    pub(in crate::kernels) fn write(_: Register) {}
}
