//! Control frames over a TCP link, while the ring forms and afterwards.

use std::io;

use crate::link::{Link, TcpLink};
use crate::memory::Region;
use crate::sys::{Interest, PollEntry};
use crate::wire::{Frame, MAX_FRAME};

/// A link that takes and gives whole frames. It never blocks: what the socket doesn't take waits
/// here, and what has been read but not used waits in the link.
pub struct FrameLink {
    link: TcpLink,
    unsent: Vec<u8>,
}

impl FrameLink {
    /// Takes over a link on which nothing but frames comes.
    pub fn new(link: TcpLink) -> FrameLink {
        FrameLink { link, unsent: Vec::new() }
    }

    /// Sends a frame, now or when there is room; its bytes.
    pub fn send(&mut self, frame: &Frame) -> usize {
        let bytes = frame.encode();
        self.unsent.extend_from_slice(&bytes);
        self.flush();
        bytes.len()
    }

    /// Sends what had to wait.
    pub fn flush(&mut self) {
        while !self.unsent.is_empty() {
            match self.link.send(&[Region::from_slice(&mut self.unsent)]) {
                Ok(0) => return,
                Ok(sent) => drop(self.unsent.drain(..sent)),
                // That the peer has ended is read, after what it said before.
                Err(_) => self.unsent.clear(),
            }
        }
    }

    /// Bytes that wait to be sent.
    pub fn unsent(&self) -> usize {
        self.unsent.len()
    }

    /// The next frame, if a whole one has arrived. An error is the peer's end, or what is no frame,
    /// behind all frames that came before.
    pub fn read(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.decode()? {
                return Ok(Some(frame));
            }
            if !self.read_on()? {
                return Ok(None);
            }
        }
    }

    fn decode(&mut self) -> io::Result<Option<Frame>> {
        let held = self.link.buffered().min(MAX_FRAME);
        if held == 0 {
            return Ok(None);
        }
        let mut bytes = [0; MAX_FRAME];
        Region::from_slice(&mut bytes[..held]).copy_from(self.link.peek(1)?.part(0, held));
        match Frame::decode(&bytes[..held]) {
            Ok(Some((frame, used))) => {
                self.link.consume(used);
                Ok(Some(frame))
            }
            Ok(None) => Ok(None),
            Err(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Reads once, behind what has been read but not used; whether anything had arrived.
    pub fn read_on(&mut self) -> io::Result<bool> {
        let held = self.link.buffered();
        self.link.peek(held + 1)?;
        Ok(self.link.buffered() > held)
    }

    /// Whether something has been read but not used.
    pub fn has_unread(&self) -> bool {
        self.link.buffered() > 0
    }

    /// What to poll.
    pub fn waits(&self) -> Option<PollEntry> {
        let interest = Interest { read: true, write: !self.unsent.is_empty() };
        self.link.waits(interest)
    }

    /// The link itself, with what has been read but not used.
    pub fn into_link(self) -> TcpLink {
        self.link
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, Status};
    use crate::sys;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    fn connected() -> (FrameLink, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (FrameLink::new(TcpLink::new(ours.into()).unwrap()), listener.accept().unwrap().0)
    }

    /// The next frame, waited for.
    fn next(link: &mut FrameLink) -> Frame {
        loop {
            if let Some(frame) = link.read().unwrap() {
                return frame;
            }
            let arrived = sys::poll(&mut [link.waits().unwrap()], Some(Duration::from_secs(10)));
            assert!(arrived.unwrap(), "nothing comes");
        }
    }

    fn goodbye(rank: u32) -> Frame {
        Frame::Goodbye { rank, sequence: 7 }
    }

    #[test]
    fn frames_come_whole_in_order_and_before_the_end() {
        let (mut link, mut peer) = connected();
        let bytes: Vec<u8> = (1..=3).flat_map(|rank| goodbye(rank).encode()).collect();
        let cut = bytes.len() / 2;
        peer.write_all(&bytes[..cut]).unwrap();
        assert_eq!(next(&mut link), goodbye(1));
        assert_eq!(link.read().unwrap(), None);
        assert!(link.has_unread());
        peer.write_all(&bytes[cut..]).unwrap();
        drop(peer);
        assert_eq!(next(&mut link), goodbye(2));
        // The end is known, and still what came before it can be read.
        while link.read_on().is_ok() {}
        assert_eq!(link.read().unwrap(), Some(goodbye(3)));
        assert_eq!(link.read().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_is_no_frame_is_an_error_for_good() {
        let (mut link, mut peer) = connected();
        peer.write_all(&[goodbye(1).encode(), vec![0; 8]].concat()).unwrap();
        assert_eq!(next(&mut link), goodbye(1));
        for _ in 0..2 {
            assert_eq!(link.read().unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn what_the_socket_does_not_take_is_kept_in_order() {
        let long = |sequence| {
            let error = Error::new(Status::System, "as long as a frame may be ".repeat(70));
            Frame::record(&Error { sequence, ..error }, 1)
        };
        let (mut link, peer) = connected();
        let mut other = FrameLink::new(TcpLink::new(peer.into()).unwrap());
        let mut sent = 0;
        // More than the link takes at once when there is room again.
        while link.unsent() < 4 << 20 {
            link.send(&long(sent));
            sent += 1;
        }
        for sequence in 0..sent {
            link.flush();
            assert_eq!(next(&mut other), long(sequence));
        }
        assert_eq!(link.unsent(), 0);
    }
}
