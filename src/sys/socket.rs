//! Transfers and waiting on sockets.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use super::syscall;
use crate::memory::Region;

/// Pieces that one [`send`] gathers: a header and a few spans.
const MAX_PIECES: usize = 8;

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
const NO_SIGNAL: libc::c_int = libc::MSG_NOSIGNAL;
/// Apple has no such flag: [`quiet`] sets SO_NOSIGPIPE on the socket instead.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
const NO_SIGNAL: libc::c_int = 0;

/// Sends as much of the pieces, in order, as the socket takes without blocking; 0 if it takes
/// nothing now. The one way in which this library sends: a peer that is gone gives EPIPE, never
/// SIGPIPE.
pub fn send(socket: RawFd, pieces: &[Region<'_>]) -> io::Result<usize> {
    let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MAX_PIECES];
    let used = pieces.len().min(MAX_PIECES);
    for (vector, piece) in vectors.iter_mut().zip(pieces) {
        *vector = libc::iovec { iov_base: piece.as_ptr().cast(), iov_len: piece.len() };
    }
    // SAFETY: an all-zero msghdr is a valid one without address, control data or vectors.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vectors.as_mut_ptr();
    message.msg_iovlen = used as _;
    // SAFETY: the vectors outlive the call, and each is a region that is readable for its length.
    let sent = syscall!(unsafe { libc::sendmsg(socket, &message, libc::MSG_DONTWAIT | NO_SIGNAL) });
    not_now(sent)
}

/// Reads what has arrived into `into`, without blocking; 0 if nothing has. The peer's end is
/// `UnexpectedEof`.
pub fn receive(socket: RawFd, into: Region<'_>) -> io::Result<usize> {
    read(socket, into, libc::MSG_DONTWAIT)
}

/// The same, and leaves it to be read.
pub fn peek(socket: RawFd, into: Region<'_>) -> io::Result<usize> {
    read(socket, into, libc::MSG_DONTWAIT | libc::MSG_PEEK)
}

fn read(socket: RawFd, into: Region<'_>, flags: libc::c_int) -> io::Result<usize> {
    if into.is_empty() {
        return Ok(0);
    }
    // SAFETY: the region is writable for its length.
    let got = syscall!(unsafe { libc::recv(socket, into.as_ptr().cast(), into.len(), flags) });
    match got {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        other => not_now(other),
    }
}

/// A transfer that would block, or that a signal interrupted, has moved nothing yet.
fn not_now(result: io::Result<isize>) -> io::Result<usize> {
    match result {
        Ok(bytes) => Ok(bytes as usize),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        Err(e) => Err(e),
    }
}

/// Where the platform has no flag for it, tells the socket itself to raise no SIGPIPE.
pub fn quiet(socket: &socket2::Socket) -> io::Result<()> {
    #[cfg(target_vendor = "apple")]
    socket.set_nosigpipe(true)?;
    let _ = socket;
    Ok(())
}

/// A silent host is probed after this long, and then at these intervals.
const PROBE_AFTER: Duration = Duration::from_secs(10);
const PROBE_INTERVAL: Duration = Duration::from_secs(3);
/// What has not been answered for so long ends the connection.
const SILENT: Duration = Duration::from_secs(20);

/// Ends the connection with an error some 20 s after the peer's host has gone silent, whether or not
/// anything is being sent. Not for links that carry data: where a peer takes nothing, Linux counts
/// its answers for nothing.
pub fn keep_alive(socket: &socket2::Socket) -> io::Result<()> {
    let probes = (SILENT - PROBE_AFTER).as_secs().div_ceil(PROBE_INTERVAL.as_secs()) as u32;
    let keepalive = socket2::TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_INTERVAL);
    socket.set_tcp_keepalive(&keepalive.with_retries(probes))?;
    // Apple's kernel has only the probes; what is sent to a silent host it gives up much later.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_user_timeout(Some(SILENT))?;
    Ok(())
}

/// Asks for the first of these congestion controls that the host has and lets this process use.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub fn control_congestion(socket: &socket2::Socket, names: &[&str]) -> io::Result<()> {
    let ask = |name: &&str| socket.set_tcp_congestion(name.as_bytes());
    names.iter().map(ask).find(Result::is_ok).unwrap_or(Err(io::ErrorKind::Unsupported.into()))
}

/// Here the congestion control is the host's alone.
#[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
pub fn control_congestion(_socket: &socket2::Socket, _names: &[&str]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// What a descriptor is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// Bytes, a connection, or an end to read.
    pub read: bool,
    /// Room to send.
    pub write: bool,
}

/// One descriptor in a call of [`poll`].
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct PollEntry(libc::pollfd);

impl PollEntry {
    /// Waits for `interest` on the descriptor.
    pub fn new(descriptor: RawFd, interest: Interest) -> PollEntry {
        let events =
            if interest.read { libc::POLLIN } else { 0 } | if interest.write { libc::POLLOUT } else { 0 };
        PollEntry(libc::pollfd { fd: descriptor, events, revents: 0 })
    }

    /// Whether the last poll found anything on it, an error or an end included.
    pub fn is_ready(&self) -> bool {
        self.0.revents != 0
    }
}

/// Sleeps until a descriptor is ready, a signal comes or the time is over (None: no limit).
/// Tells whether any is ready.
pub fn poll(entries: &mut [PollEntry], limit: Option<Duration>) -> io::Result<bool> {
    // Rounded up, so that a wait of less than a millisecond doesn't become a busy loop.
    let milliseconds = limit.map_or(-1, |t| t.as_micros().div_ceil(1000).min(i32::MAX as u128) as i32);
    // SAFETY: PollEntry is a transparent pollfd, and the slice is valid for its length.
    let ready = syscall!(unsafe {
        libc::poll(entries.as_mut_ptr().cast(), entries.len() as libc::nfds_t, milliseconds)
    });
    match ready {
        Ok(ready) => Ok(ready > 0),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => {
            entries.iter_mut().for_each(|entry| entry.0.revents = 0);
            Ok(false)
        }
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn pieces_arrive_in_order_and_an_end_is_an_error() {
        let (a, b) = UnixStream::pair().unwrap();
        let (mut one, mut two, mut got) = ([1u8, 2], [3u8], [0u8; 8]);
        let pieces = [Region::from_slice(&mut one), Region::empty(), Region::from_slice(&mut two)];
        assert_eq!(send(a.as_raw_fd(), &pieces).unwrap(), 3);
        assert_eq!(receive(b.as_raw_fd(), Region::from_slice(&mut got)).unwrap(), 3);
        assert_eq!(got[..3], [1, 2, 3]);
        assert_eq!(receive(b.as_raw_fd(), Region::from_slice(&mut got)).unwrap(), 0);
        drop(a);
        let end = receive(b.as_raw_fd(), Region::from_slice(&mut got)).unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(send(b.as_raw_fd(), &pieces).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn poll_tells_who_is_ready() {
        let (a, b) = UnixStream::pair().unwrap();
        let read = Interest { read: true, write: false };
        let mut entries = [PollEntry::new(a.as_raw_fd(), read), PollEntry::new(b.as_raw_fd(), read)];
        assert!(!poll(&mut entries, Some(Duration::ZERO)).unwrap());
        let mut byte = [7u8];
        send(a.as_raw_fd(), &[Region::from_slice(&mut byte)]).unwrap();
        assert!(poll(&mut entries, None).unwrap());
        assert_eq!(entries.map(|e| e.is_ready()), [false, true]);
    }
}
