//! A control link: whole frames over one TCP connection.

use std::io;
use std::os::fd::RawFd;

use crate::link::{Link, TcpLink};
use crate::memory::Region;
use crate::wire::{Frame, MAX_FRAME};

/// Roll calls and answers that a peer may be sent before it says anything. What a stopped process
/// doesn't read must never fill its window: TCP_USER_TIMEOUT would take a full window for a dead
/// host. The smallest receive buffer of a common system is four times as large.
const UNANSWERED: usize = 32 << 10;

/// A link to a neighbour for frames. It never blocks: what the socket doesn't take waits here.
pub struct Control {
    link: TcpLink,
    unsent: Vec<u8>,
    /// Bytes sent since the peer last sent any.
    unanswered: usize,
}

impl Control {
    /// Takes over a link, and has the system watch it: see [`TcpLink::keep_alive`].
    pub fn new(link: TcpLink) -> io::Result<Control> {
        link.keep_alive()?;
        Ok(Control { link, unsent: Vec::new(), unanswered: 0 })
    }

    /// Sends a frame, or keeps it until the link takes it. That the peer has gone is learnt by
    /// reading.
    pub fn send(&mut self, frame: &Frame, ranks: usize) {
        let is_roll = matches!(frame, Frame::RollCall { .. } | Frame::Present { .. });
        // A round's answers from all ranks may pass before the first comes the other way.
        if is_roll && self.unanswered.max(self.unsent.len()) > UNANSWERED + ranks * MAX_FRAME / 4 {
            return;
        }
        let bytes = frame.encode();
        self.unanswered += bytes.len();
        self.unsent.extend_from_slice(&bytes);
        self.flush();
    }

    /// Sends what had to wait.
    pub fn flush(&mut self) {
        while !self.unsent.is_empty() {
            match self.link.send(&[Region::from_slice(&mut self.unsent)]) {
                Ok(0) => return,
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(_) => self.unsent.clear(),
            }
        }
    }

    /// The next frame that has arrived whole.
    pub fn read(&mut self) -> io::Result<Option<Frame>> {
        loop {
            let before = self.link.buffered();
            if let Some(frame) = self.decode()? {
                return Ok(Some(frame));
            }
            self.link.peek(before + 1)?;
            if self.link.buffered() == before {
                return Ok(None);
            }
            self.unanswered = 0;
        }
    }

    /// Takes a frame from what is buffered.
    fn decode(&mut self) -> io::Result<Option<Frame>> {
        let buffered = self.link.buffered().min(MAX_FRAME);
        if buffered == 0 {
            return Ok(None);
        }
        let mut bytes = [0; MAX_FRAME];
        Region::from_slice(&mut bytes[..buffered]).copy_from(self.link.peek(1)?.part(0, buffered));
        match Frame::decode(&bytes[..buffered]) {
            Ok(Some((frame, used))) => {
                self.link.consume(used);
                Ok(Some(frame))
            }
            Ok(None) => Ok(None),
            Err(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Whether frames wait to be sent.
    pub fn wants_to_send(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Bytes that wait to be sent.
    #[cfg(test)]
    pub fn unsent(&self) -> usize {
        self.unsent.len()
    }

    /// What to poll.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.link.descriptor()
    }

    /// The link itself, to be closed.
    pub fn into_link(self) -> TcpLink {
        self.link
    }
}
