//! The control link to a neighbour while the ring forms.

use std::io;
use std::time::Duration;

use crate::bootstrap::Connection;
use crate::frames::FrameLink;
use crate::link::{Link, TcpLink, linger};
use crate::sys::PollEntry;
use crate::wire::Frame;

/// How long a rank that gives up waits for its neighbours to have read why.
const LINGER: Duration = Duration::from_millis(250);

/// A control link, and whom it leads to. What has been read but not used stays in the link, since the
/// peer's running group may speak before this rank's has begun.
pub struct Control {
    frames: FrameLink,
    /// Of the process at the other end.
    pub nonce: [u8; 16],
    /// Whether the peer has been told what this rank knew when the link came to stand.
    pub is_introduced: bool,
    has_ended: bool,
}

impl Control {
    pub fn new(connection: Connection, nonce: [u8; 16]) -> io::Result<Control> {
        let frames = FrameLink::new(connection.into_link()?);
        Ok(Control { frames, nonce, is_introduced: false, has_ended: false })
    }

    /// Sends a frame, now or when there is room.
    pub fn tell(&mut self, frame: &Frame) {
        self.frames.send(frame);
    }

    pub fn flush(&mut self) {
        self.frames.flush();
    }

    pub fn is_flushed(&self) -> bool {
        self.frames.unsent() == 0
    }

    /// The next frame, if a whole one has arrived.
    pub fn next(&mut self) -> Option<Frame> {
        let next = self.frames.read();
        self.has_ended |= next.is_err();
        next.ok().flatten()
    }

    /// Whether the peer's end, or what is no frame, stands behind the frames that were read.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Looks for the end now, behind frames that stay where they are.
    pub fn look_for_end(&mut self) {
        loop {
            match self.frames.read_on() {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => return self.has_ended = true,
            }
        }
    }

    /// Whether there is more to read before the end counts.
    pub fn has_unread(&self) -> bool {
        self.frames.has_unread()
    }

    pub fn waits(&self) -> Option<PollEntry> {
        self.frames.waits()
    }

    pub fn into_link(self) -> TcpLink {
        self.frames.into_link()
    }
}

/// Ends control links so that what was told on them arrives.
pub fn part(controls: impl Iterator<Item = Control>) {
    let ended = |mut control: Control| -> Box<dyn Link> {
        control.flush();
        Box::new(control.into_link())
    };
    linger(controls.map(ended).collect(), LINGER);
}
