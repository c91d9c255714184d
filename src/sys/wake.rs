//! A descriptor that one thread makes ready, so that others wake from poll.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::{fork, syscall};

/// Ready to read from [`Wake::wake`] to [`Wake::clear`].
#[derive(Debug)]
pub struct Wake {
    #[allow(dead_code, reason = "unregisters the descriptors before they close")]
    registered: [fork::Registered; 2],
    read: OwnedFd,
    write: OwnedFd,
}

impl Wake {
    /// A pipe of its own, closed on exec.
    pub fn new() -> io::Result<Wake> {
        let mut ends = [-1; 2];
        // SAFETY: pipe writes two descriptors, which the OwnedFds then own.
        let (read, write) = unsafe {
            syscall!(libc::pipe(ends.as_mut_ptr()))?;
            (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
        };
        for end in ends {
            // SAFETY: both are open descriptors of ours.
            syscall!(unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) })?;
            // SAFETY: as above. A full pipe is ready all the same, an empty one has been cleared.
            syscall!(unsafe { libc::fcntl(end, libc::F_SETFL, libc::O_NONBLOCK) })?;
        }
        let registered = ends.map(fork::Registered::new);
        Ok(Wake { registered, read, write })
    }

    /// Wakes whoever polls [`Wake::descriptor`], now and later.
    pub fn wake(&self) {
        // SAFETY: one byte from a static.
        unsafe { libc::write(self.write.as_raw_fd(), b"!".as_ptr().cast(), 1) };
    }

    /// Forgets what has woken so far.
    pub fn clear(&self) {
        let mut bytes = [0u8; 64];
        // SAFETY: the buffer has as many bytes as are asked for.
        while unsafe { libc::read(self.read.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) } > 0 {}
    }

    /// What to poll for reading.
    pub fn descriptor(&self) -> RawFd {
        self.read.as_raw_fd()
    }
}
