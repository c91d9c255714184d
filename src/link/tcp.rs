//! A link over one TCP connection.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::time::Duration;

use socket2::{SockAddr, Socket};

use super::Link;
use crate::memory::Region;
use crate::sys::{self, Interest, PollEntry, fork};

/// What one read takes at most: small enough that an element is still in the second-level cache
/// when it is reduced, large enough that the system call doesn't count.
const BUFFER_BYTES: usize = 256 << 10;
/// The widest alignment that a unit may ask for.
const MAX_ALIGNMENT: usize = 16;

/// A connected socket and the bytes read from it ahead of their use.
pub struct TcpLink {
    #[allow(dead_code, reason = "unregisters the socket before it closes")]
    registered: fork::Registered,
    socket: Socket,
    /// Allocated at the first peek: half of a group's links never read through it.
    buffer: Vec<u8>,
    /// Where in `buffer` an aligned address lies.
    base: usize,
    start: usize,
    end: usize,
}

impl TcpLink {
    /// Takes over a connected socket.
    pub fn new(socket: Socket) -> io::Result<TcpLink> {
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        sys::quiet(&socket)?;
        let registered = fork::Registered::new(socket.as_raw_fd());
        Ok(TcpLink { registered, socket, buffer: Vec::new(), base: 0, start: 0, end: 0 })
    }

    /// Has the system end the connection some 20 s after the peer's host has gone silent.
    pub fn keep_alive(&self) -> io::Result<()> {
        sys::keep_alive(&self.socket)
    }

    /// Suits the connection to data between processes of one host; elsewhere it is left to the system.
    ///
    /// What is in flight on a host is in its caches or isn't: with the system's own buffers, which grow to
    /// megabytes, arrays of 16 MiB take 1.25 times as long. Of the congestion controls cubic and reno stay
    /// out of the way, where BBR's pacing costs a third of the bandwidth.
    pub fn suit_data(&self) {
        /// Of each of the two buffers; Linux doubles it to make room for its own records. 150 to 600 KiB are
        /// as good to a few per cent, so that it doesn't matter that Linux's usual limit grants 208 KiB.
        const SAME_HOST_BUFFER: usize = 400 << 10;
        if self.is_on_one_host() {
            // A refusal costs speed and nothing else.
            let _ = self.socket.set_send_buffer_size(SAME_HOST_BUFFER);
            let _ = self.socket.set_recv_buffer_size(SAME_HOST_BUFFER);
            let _ = sys::control_congestion(&self.socket, &["cubic", "reno"]);
        }
    }

    fn is_on_one_host(&self) -> bool {
        let ip = |address: io::Result<SockAddr>| Some(address.ok()?.as_socket()?.ip());
        match (ip(self.socket.local_addr()), ip(self.socket.peer_addr())) {
            (Some(ours), Some(theirs)) => ours == theirs || ours.is_loopback() && theirs.is_loopback(),
            _ => false,
        }
    }

    /// Moves what is buffered to the front.
    fn compact(&mut self) {
        let held = self.base + self.start..self.base + self.end;
        self.buffer.copy_within(held, self.base);
        self.end -= self.start;
        self.start = 0;
    }

    /// Makes the buffer large enough for units of so many bytes. What it holds stays.
    fn grow(&mut self, unit: usize) -> io::Result<()> {
        let room = unit.max(BUFFER_BYTES);
        let (mut buffer, held) = (Vec::new(), self.buffered());
        let bytes = room.saturating_add(MAX_ALIGNMENT);
        buffer.try_reserve_exact(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        buffer.resize(bytes, 0);
        let base = buffer.as_ptr().align_offset(MAX_ALIGNMENT).min(MAX_ALIGNMENT);
        buffer[base..base + held].copy_from_slice(&self.buffer[self.base + self.start..self.base + self.end]);
        (self.buffer, self.base, self.start, self.end) = (buffer, base, 0, held);
        Ok(())
    }

    /// Bytes that the buffer holds at most.
    fn room(&self) -> usize {
        self.buffer.len().saturating_sub(MAX_ALIGNMENT)
    }
}

impl Link for TcpLink {
    fn send(&mut self, pieces: &[Region<'_>]) -> io::Result<usize> {
        sys::send(self.socket.as_raw_fd(), pieces)
    }

    fn peek(&mut self, unit: usize) -> io::Result<Region<'_>> {
        // Empty at first; later only a host program's own elements are larger.
        if self.room() < unit.max(1) {
            self.grow(unit)?;
        }
        let alignment = MAX_ALIGNMENT.min(1 << unit.trailing_zeros().min(8));
        let short = self.end - self.start < unit;
        if short || !self.start.is_multiple_of(alignment) {
            self.compact();
        }
        if short {
            let (base, end) = (self.base, self.end);
            let whole = self.room();
            let room = Region::from_slice(&mut self.buffer[base + end..base + whole]);
            self.end += sys::receive(self.socket.as_raw_fd(), room)?;
        }
        let held = self.base + self.start..self.base + self.end;
        Ok(Region::from_slice(&mut self.buffer[held]))
    }

    fn buffered(&self) -> usize {
        self.end - self.start
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes.min(self.buffered());
    }

    fn receive(&mut self, into: Region<'_>) -> io::Result<usize> {
        if self.buffered() == 0 {
            return sys::receive(self.socket.as_raw_fd(), into);
        }
        let bytes = self.buffered().min(into.len());
        let from = self.base + self.start;
        into.part(0, bytes).copy_from_slice(&self.buffer[from..from + bytes]);
        self.consume(bytes);
        Ok(bytes)
    }

    fn waits(&self, interest: Interest) -> Option<PollEntry> {
        Some(PollEntry::new(self.socket.as_raw_fd(), interest))
    }

    fn finish(&mut self) {
        // Fails where the peer has ended the connection, which says the same.
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

/// Closes a connection that no ring uses with a reset, which leaves no TIME_WAIT behind. Never
/// for a peer's: what was sent to it would be lost.
pub fn close_at_once(socket: Socket) {
    let _ = socket.set_linger(Some(Duration::ZERO));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn connected() -> (TcpLink, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (TcpLink::new(ours.into()).unwrap(), listener.accept().unwrap().0)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn data_within_a_host_has_buffers_of_its_own() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = TcpLink::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap().into()).unwrap();
        let buffers = || (link.socket.send_buffer_size().unwrap(), link.socket.recv_buffer_size().unwrap());
        let before = buffers();
        assert!(link.is_on_one_host());
        link.suit_data();
        assert!(before.0 != buffers().0 && before.1 != buffers().1, "{before:?}");
        let control = link.socket.tcp_congestion().unwrap();
        assert!([&b"cubic"[..], b"reno"].iter().any(|name| control.starts_with(name)), "{control:?}");
    }

    fn bytes(region: Region<'_>) -> Vec<u8> {
        let mut copy = vec![0; region.len()];
        Region::from_slice(&mut copy).copy_from(region);
        copy
    }

    #[test]
    fn what_arrives_is_aligned_whole_and_in_order() {
        use std::io::Write;
        let (mut link, mut peer) = connected();
        let sent: Vec<u8> = (0..=255).collect();
        peer.write_all(&sent).unwrap();
        let mut got = Vec::new();
        while got.len() < 3 {
            let some = bytes(link.peek(3).unwrap());
            if some.len() >= 3 {
                got.extend_from_slice(&some[..3]);
                link.consume(3);
            }
        }
        while got.len() < 11 {
            let region = link.peek(8).unwrap();
            if region.len() >= 8 {
                assert_eq!(region.as_ptr() as usize % 8, 0);
                got.extend_from_slice(&bytes(region)[..8]);
                link.consume(8);
            }
        }
        let mut rest = vec![0; 245];
        let mut have = 0;
        while have < rest.len() {
            have += link.receive(Region::from_slice(&mut rest[have..])).unwrap();
        }
        got.extend_from_slice(&rest);
        assert_eq!(got, sent);
        drop(peer);
        while link.peek(1).is_ok_and(|region| region.is_empty()) {}
        assert_eq!(link.peek(1).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
