//! Threads that no signal of the host program reaches, and giving up one's core.

use std::io;
use std::thread::{Builder, JoinHandle};

use crate::panics::passed_on;

/// Starts a thread with every signal blocked: the host's handlers run on the host's threads.
pub fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    without_signals(|| Builder::new().name(name.to_owned()).spawn(|| passed_on(body)))
}

/// A new thread inherits the mask of the one that starts it.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: sigset_t is plain data that sigfillset and pthread_sigmask fill in; the mask that
    // the caller had is put back before this returns.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let started = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        started
    }
}

/// Lets another thread that is ready have this core.
pub fn yield_core() {
    std::thread::yield_now();
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_thread_has_every_signal_blocked_and_the_caller_none_more() {
        let is_blocked = || {
            // SAFETY: asks for this thread's mask only.
            unsafe {
                let mut mask: libc::sigset_t = std::mem::zeroed();
                libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &mut mask);
                libc::sigismember(&mask, libc::SIGUSR1) == 1
            }
        };
        assert!(super::spawn("test", is_blocked).unwrap().join().unwrap());
        assert!(!is_blocked());
    }
}
