//! The control link to a neighbour while the ring forms.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use crate::bootstrap::Connection;
use crate::link::{Link, TcpLink};
use crate::memory::Region;
use crate::sys::{self, Interest, PollEntry};
use crate::wire::{Frame, MAX_FRAME};

/// How long a rank that gives up waits for its neighbours to have read why.
const LINGER: Duration = Duration::from_millis(250);

/// A control link, and what is on its way on it. What has been read but not used stays in the
/// link, since the peer's running group may speak before this rank's has begun.
pub struct Control {
    link: TcpLink,
    pub address: SocketAddr,
    /// Of the process at the other end.
    pub nonce: [u8; 16],
    /// Whether the peer has been told what this rank knew when the link came to stand.
    pub is_introduced: bool,
    outbox: VecDeque<u8>,
    has_ended: bool,
}

impl Control {
    pub fn new(connection: Connection, nonce: [u8; 16]) -> io::Result<Control> {
        let address = connection.address;
        let link = connection.into_link()?;
        let outbox = VecDeque::new();
        Ok(Control { link, address, nonce, is_introduced: false, outbox, has_ended: false })
    }

    /// Sends a frame, now or when there is room.
    pub fn tell(&mut self, frame: &Frame) {
        self.outbox.extend(frame.encode());
        self.flush();
    }

    pub fn flush(&mut self) {
        while !self.outbox.is_empty() {
            let bytes = self.outbox.make_contiguous();
            match self.link.send(&[Region::from_slice(bytes)]) {
                Ok(0) => return,
                Ok(sent) => drop(self.outbox.drain(..sent)),
                // That the peer has ended is read, after what it said before.
                Err(_) => return self.outbox.clear(),
            }
        }
    }

    pub fn is_flushed(&self) -> bool {
        self.outbox.is_empty()
    }

    /// The next frame, if a whole one has arrived.
    pub fn next(&mut self) -> Option<Frame> {
        loop {
            let held = self.link.buffered();
            if held > 0 {
                match self.decode(held) {
                    Ok(Some(frame)) => return Some(frame),
                    Ok(None) => {}
                    Err(_) => {
                        self.has_ended = true;
                        return None;
                    }
                }
            }
            self.read_on();
            if self.link.buffered() == held {
                return None;
            }
        }
    }

    fn decode(&mut self, held: usize) -> io::Result<Option<Frame>> {
        let arrived = self.link.peek(held)?;
        let first = arrived.part(0, held.min(MAX_FRAME));
        let mut bytes = vec![0; first.len()];
        Region::from_slice(&mut bytes).copy_from(first);
        match Frame::decode(&bytes) {
            Ok(Some((frame, used))) => {
                self.link.consume(used);
                Ok(Some(frame))
            }
            Ok(None) => Ok(None),
            Err(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn read_on(&mut self) {
        let more = self.link.buffered() + 1;
        if self.link.peek(more).is_err() {
            self.has_ended = true;
        }
    }

    /// Whether the peer's end, or what is no frame, stands behind the frames that were read.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Looks for the end now, behind frames that stay where they are.
    pub fn look_for_end(&mut self) {
        while !self.has_ended {
            let held = self.link.buffered();
            self.read_on();
            if self.link.buffered() == held {
                break;
            }
        }
    }

    /// Whether there is more to read before the end counts.
    pub fn has_unread(&self) -> bool {
        self.link.buffered() > 0
    }

    pub fn waits(&self) -> Option<(RawFd, Interest)> {
        Some((self.link.descriptor()?, Interest { read: true, write: !self.is_flushed() }))
    }

    pub fn into_link(self) -> TcpLink {
        self.link
    }
}

/// Ends control links so that what was told on them arrives: a socket that is closed with unread
/// input resets its connection, and destroys what was sent.
pub fn part(mut controls: Vec<Control>) {
    let deadline = Instant::now() + LINGER;
    controls.iter_mut().for_each(|control| {
        control.flush();
        control.link.finish();
    });
    loop {
        controls.retain_mut(|control| {
            while control.next().is_some() {}
            !control.has_ended
        });
        let left = deadline.saturating_duration_since(Instant::now());
        if controls.is_empty() || left.is_zero() {
            return;
        }
        let waits = controls.iter().filter_map(|control| control.link.descriptor());
        let read = Interest { read: true, write: false };
        let mut entries: Vec<_> = waits.map(|descriptor| PollEntry::new(descriptor, read)).collect();
        if sys::poll(&mut entries, Some(left)).is_err() {
            return;
        }
    }
}
