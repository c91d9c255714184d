//! A count of time that costs a few nanoseconds to read, in units of its own.

/// A register that counts up at one rate on all cores, or the clock's nanoseconds where there is none.
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 CPU has it. Its rate is constant on all that have been built for years; on others the
        // sum of many intervals is off by as much as the rate changes.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: reads the virtual counter, which Linux and macOS let every process do.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        use std::sync::OnceLock;
        use std::time::Instant;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_go_up() {
        let first = ticks();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(ticks() > first);
    }
}
