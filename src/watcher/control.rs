//! A control link of a running group.

use std::io;

use crate::frames::FrameLink;
use crate::link::TcpLink;
use crate::sys::PollEntry;
use crate::wire::{Frame, MAX_FRAME};

/// Roll calls and answers that a peer may be sent before it says anything. What a stopped process
/// doesn't read must never fill its window: TCP_USER_TIMEOUT would take a full window for a dead
/// host. The smallest receive buffer of a common system is four times as large.
const UNANSWERED: usize = 32 << 10;
/// And at most so many, where the answers of many ranks come in one round.
const MOST_UNANSWERED: usize = 96 << 10;

/// A link to a neighbour for frames.
pub struct Control {
    frames: FrameLink,
    /// Bytes sent since the peer's last frame.
    unanswered: usize,
}

impl Control {
    /// Takes over a link, and has the system watch it: see [`TcpLink::keep_alive`].
    pub fn new(link: TcpLink) -> io::Result<Control> {
        link.keep_alive()?;
        Ok(Control { frames: FrameLink::new(link), unanswered: 0 })
    }

    /// Sends a frame, or keeps it until the link takes it. That the peer has gone is learnt by
    /// reading.
    pub fn send(&mut self, frame: &Frame, ranks: usize) {
        let is_roll = matches!(frame, Frame::RollCall { .. } | Frame::Present { .. });
        // A round's answers from all ranks may pass before the first comes the other way.
        let room = (UNANSWERED + ranks * MAX_FRAME / 4).min(MOST_UNANSWERED);
        if is_roll && (self.unanswered > room || self.frames.unsent() > room) {
            return;
        }
        self.unanswered += self.frames.send(frame);
    }

    /// Sends what had to wait.
    pub fn flush(&mut self) {
        self.frames.flush();
    }

    /// The next frame that has arrived whole.
    pub fn read(&mut self) -> io::Result<Option<Frame>> {
        let frame = self.frames.read()?;
        if frame.is_some() {
            self.unanswered = 0;
        }
        Ok(frame)
    }

    /// Bytes that wait to be sent.
    #[cfg(test)]
    pub fn unsent(&self) -> usize {
        self.frames.unsent()
    }

    /// What to poll.
    pub fn waits(&self) -> Option<PollEntry> {
        self.frames.waits()
    }

    /// The link itself, to be closed.
    pub fn into_link(self) -> TcpLink {
        self.frames.into_link()
    }
}
