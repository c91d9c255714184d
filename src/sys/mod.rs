//! The system calls that std and socket2 lack. A platform provides:
//!
//! - [`send`], [`receive`]: one non-blocking transfer that never raises SIGPIPE
//! - [`poll`]: sleep until a descriptor is ready
//! - [`Wake`], [`Stop`]: a descriptor that another thread makes ready, and a flag with one
//! - [`keep_alive`]: the end of a connection whose peer's host is silent
//! - [`control_congestion`]: how a connection reacts to what it takes for a full network
//! - [`fork`]: closing descriptors in a forked child, and knowing that one is a child
//! - [`spawn`]: a thread with every signal blocked
//! - [`ticks()`]: a counter to measure short times by
//! - [`interface_index`], [`interface_name`], [`host_name`], [`boot_id`], [`random`], [`yield_core`]
#![allow(unsafe_code)]

pub mod fork;
mod socket;
mod stop;
mod thread;
mod ticks;
mod wake;

pub use socket::{Interest, PollEntry, control_congestion, keep_alive, peek, poll, quiet, receive, send};
pub use stop::Stop;
pub use thread::{spawn, yield_core};
pub use ticks::ticks;
pub use wake::Wake;

use std::ffi::CString;
use std::io;

/// Runs a system call and turns -1 into the OS error.
macro_rules! syscall {
    ($call:expr) => {{
        let result = $call;
        if result == -1 { Err(std::io::Error::last_os_error()) } else { Ok(result) }
    }};
}
use syscall;

/// The name of the network interface with an index.
pub fn interface_name(index: u32) -> io::Result<String> {
    let mut name = [0_u8; libc::IF_NAMESIZE];
    // SAFETY: `name` has the IF_NAMESIZE bytes that are written at most.
    if unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) }.is_null() {
        return Err(io::Error::last_os_error());
    }
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

/// The index of a network interface, which a link-local address needs.
pub fn interface_index(name: &str) -> io::Result<u32> {
    let name = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: `name` is NUL-terminated.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// What this host calls itself; empty where it doesn't say.
pub fn host_name() -> String {
    // POSIX allows 255 bytes.
    let mut name = [0_u8; 256];
    // SAFETY: the last byte, which stays zero, is not offered.
    if unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0 {
        return String::new();
    }
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// Which run of this machine it is; zeroes where the system doesn't say.
pub fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).map_or([0; 16], u128::to_be_bytes)
}

/// Bytes from the system's random generator.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0u8; N];
    // SAFETY: the buffer has N bytes; getentropy takes up to 256.
    syscall!(unsafe { libc::getentropy(bytes.as_mut_ptr().cast(), N) })?;
    Ok(bytes)
}
