//! The end of links whose peers are to have all that was sent.

use std::time::{Duration, Instant};

use super::Link;
use crate::memory::Region;
use crate::sys::{self, Interest};

/// Ends the links' sending sides, and reads until the peers have ended theirs: closing a socket
/// with unread input would reset it, and destroy what was sent on it.
pub fn linger(mut links: Vec<Box<dyn Link>>, at_most: Duration) {
    const DISCARD_BYTES: usize = 64 << 10;
    let deadline = Instant::now() + at_most;
    let mut discarded = vec![0; DISCARD_BYTES];
    links.iter_mut().for_each(|link| link.finish());
    loop {
        links.retain_mut(|link| {
            loop {
                match link.receive(Region::from_slice(&mut discarded)) {
                    Ok(0) => return true,
                    Ok(_) => {}
                    Err(_) => return false,
                }
            }
        });
        let left = deadline.saturating_duration_since(Instant::now());
        if links.is_empty() || left.is_zero() {
            return;
        }
        let read = Interest { read: true, write: false };
        let mut entries: Vec<_> = links.iter().filter_map(|link| link.waits(read)).collect();
        if sys::poll(&mut entries, Some(left)).is_err() {
            return;
        }
    }
}
