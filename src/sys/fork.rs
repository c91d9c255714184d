//! What a forked child must do and know. A child that kept the parent's sockets open would keep
//! a dead rank's links alive, so every descriptor stands in a table that the child closes. The
//! table is made of atomics, since the child may not wait for a lock that another thread held.

use std::os::fd::RawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

/// Descriptors in a block of the table; a group with one connection needs about ten.
const BLOCK: usize = 256;
const FREE: i32 = -1;

struct Block {
    slots: [AtomicI32; BLOCK],
    next: AtomicPtr<Block>,
}

static TABLE: Block = Block::new();
/// How often this process's line of ancestors has forked since the library was loaded.
static GENERATION: AtomicU32 = AtomicU32::new(0);

impl Block {
    const fn new() -> Block {
        Block { slots: [const { AtomicI32::new(FREE) }; BLOCK], next: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// The block after this one; blocks are never freed, so that a child may always walk them.
    fn following(&self) -> Option<&'static Block> {
        let next = self.next.load(Ordering::Acquire);
        // SAFETY: null, or a block that was leaked below.
        unsafe { next.as_ref() }
    }

    fn following_or_new(&self) -> &'static Block {
        if let Some(next) = self.following() {
            return next;
        }
        let fresh = Box::into_raw(Box::new(Block::new()));
        let raced =
            self.next.compare_exchange(std::ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire);
        // SAFETY: `fresh` is ours until the exchange published it; `other` was published likewise.
        unsafe {
            match raced {
                Ok(_) => &*fresh,
                Err(other) => {
                    drop(Box::from_raw(fresh));
                    &*other
                }
            }
        }
    }
}

/// A descriptor's entry in the table, from its making to just before its close.
#[derive(Debug)]
pub struct Registered {
    slot: &'static AtomicI32,
    descriptor: RawFd,
}

impl Registered {
    /// Enters an open descriptor.
    pub fn new(descriptor: RawFd) -> Registered {
        static INSTALL: Once = Once::new();
        // SAFETY: the handler only touches atomics and calls close, both allowed in a child.
        INSTALL.call_once(|| unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
        });
        let mut block = &TABLE;
        loop {
            for slot in &block.slots {
                if slot.compare_exchange(FREE, descriptor, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                    return Registered { slot, descriptor };
                }
            }
            block = block.following_or_new();
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // In a child the slot may be another descriptor's by now.
        let _ = self.slot.compare_exchange(self.descriptor, FREE, Ordering::AcqRel, Ordering::Relaxed);
    }
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let mut block = Some(&TABLE);
    while let Some(current) = block {
        for slot in &current.slots {
            let descriptor = slot.swap(FREE, Ordering::AcqRel);
            if descriptor != FREE {
                // SAFETY: an inherited descriptor that nothing in this child uses: its groups
                // refuse every call. Closing is not shutting down: the parent's stays connected.
                unsafe { libc::close(descriptor) };
            }
        }
        block = current.following();
    }
}

/// The process's generation: another number than at a group's creation means a forked child.
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_child_closes_what_is_registered_and_knows_it_is_one() {
        let files: Vec<_> = (0..BLOCK + 3).map(|_| File::open("/dev/null").unwrap()).collect();
        let entries: Vec<_> = files.iter().map(|f| Registered::new(f.as_raw_fd())).collect();
        let before = generation();
        // SAFETY: the child only calls fcntl and _exit.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let open = files.iter().filter(|f| unsafe { libc::fcntl(f.as_raw_fd(), libc::F_GETFD) } != -1);
            let wrong = open.count() as i32 + i32::from(generation() == before);
            // SAFETY: ends the child without running the test harness's exit.
            unsafe { libc::_exit(wrong.min(100)) };
        }
        let mut status = 0;
        // SAFETY: waits for the child just made.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(status, 0, "the child kept descriptors");
        drop(entries);
        assert!(files.iter().all(|f| f.metadata().is_ok()));
        assert_eq!(generation(), before);
    }
}
