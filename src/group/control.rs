//! The control link to a neighbour: where the cause of an ended data link is read.

use std::io;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::link::{Link, TcpLink};
use crate::memory::Region;
use crate::sys::{self, Interest, PollEntry};
use crate::wire::Frame;

/// A dead process's sockets are closed one after the other: its control link's end follows the
/// data link's within this time, or the process is alive.
const SETTLES: Duration = Duration::from_millis(250);

/// What a peer's control link says of the end of a data link.
pub enum Cause {
    /// The peer's group has failed, for this reason.
    Failed(Error),
    /// The peer has destroyed its group after this collective.
    Left(u64),
    /// The peer's process is gone.
    Died,
    /// The peer's process is alive and says nothing.
    Silent,
}

/// A control link.
pub struct Control {
    link: TcpLink,
}

impl Control {
    pub fn new(link: TcpLink) -> Control {
        Control { link }
    }

    /// Sends a frame. A peer that is gone needs none, and one that lets these few bytes lie for
    /// long has more than it reads.
    pub fn tell(&mut self, frame: &Frame) {
        let _ = self.link.send(&[Region::from_slice(&mut frame.encode())]);
    }

    /// Reads why the peer's data link has ended.
    pub fn cause(&mut self) -> Cause {
        let deadline = Instant::now() + SETTLES;
        loop {
            match self.read() {
                Ok(Some(frame)) => match cause_of(&frame) {
                    Some(cause) => return cause,
                    None => continue,
                },
                Ok(None) => {}
                Err(_) => return Cause::Died,
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(descriptor) = self.link.descriptor().filter(|_| !left.is_zero()) else {
                return Cause::Silent;
            };
            let mut entries = [PollEntry::new(descriptor, Interest { read: true, write: false })];
            if sys::poll(&mut entries, Some(left)).is_err() {
                return Cause::Silent;
            }
        }
    }

    fn read(&mut self) -> io::Result<Option<Frame>> {
        loop {
            let held = self.link.buffered();
            if held > 0 {
                let arrived = self.link.peek(held)?;
                let mut bytes = vec![0; arrived.len()];
                Region::from_slice(&mut bytes).copy_from(arrived);
                match Frame::decode(&bytes) {
                    Ok(Some((frame, used))) => {
                        self.link.consume(used);
                        return Ok(Some(frame));
                    }
                    Ok(None) => {}
                    Err(_) => return Err(io::ErrorKind::InvalidData.into()),
                }
            }
            if self.link.peek(held + 1)?.len() == held {
                return Ok(None);
            }
        }
    }

    pub fn into_link(self) -> TcpLink {
        self.link
    }
}

fn cause_of(frame: &Frame) -> Option<Cause> {
    match frame {
        // What was told while the ring formed comes twice, and once unread.
        Frame::Known(_) | Frame::Confirmed { .. } => None,
        Frame::Goodbye { sequence, .. } => Some(Cause::Left(*sequence)),
        frame => Some(frame.error().map_or(Cause::Silent, Cause::Failed)),
    }
}
