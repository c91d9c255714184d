//! Time so cheap that it may be read where a clock may not.

/// A counter of the processor's that runs at one rate, alike on all cores.
#[cfg(target_arch = "x86_64")]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// A counter of the processor's that runs at one rate, alike on all cores.
#[cfg(target_arch = "aarch64")]
pub fn ticks() -> u64 {
    let ticks;
    // SAFETY: reads a register that every thread may read.
    unsafe {
        std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags))
    };
    ticks
}

/// Nanoseconds of the system's clock, where the processor's counter isn't known.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn ticks() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
