//! A flag that stops what runs and wakes what sleeps.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Wake;

/// Tells running calls of a group to end. Once raised it stays so.
#[derive(Debug)]
pub struct Stop {
    raised: AtomicBool,
    wake: Wake,
}

impl Stop {
    /// Not raised yet.
    pub fn new() -> io::Result<Stop> {
        Ok(Stop { raised: AtomicBool::new(false), wake: Wake::new()? })
    }

    /// Ends what runs and what starts from now on.
    pub fn raise(&self) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            self.wake.wake();
        }
    }

    /// Whether it was raised.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// Ready to read once it was raised.
    pub fn descriptor(&self) -> RawFd {
        self.wake.descriptor()
    }
}
