//! From configuration to a connected ring.

pub mod config;
pub mod environment;
pub mod hostfile;
pub mod secret;

mod claims;
mod control;
mod dial;
mod door;
mod far_dial;
mod forming;
mod gossip;
mod handshake;
mod last_word;
mod launchers;
mod listen;
pub mod mlx;
mod reach;
mod rendezvous;
mod resolve;
mod rivals;
mod strangers;
mod switchboard;
mod too_late;
mod trace_dir;
mod visitors;

pub use claims::LinkName;
pub use door::Door;
pub use far_dial::Deadline;
pub use forming::form;
pub use reach::Reach;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};

use socket2::Socket;

use crate::link::TcpLink;
use crate::memory::Region;
use crate::sys::{self, fork};
use crate::wire::{MAX_HELLO, Member};

/// A rank beside this one, and the links to it.
pub struct Neighbour {
    pub rank: usize,
    pub lanes: Vec<TcpLink>,
    pub control: TcpLink,
    /// Messages from this rank to the neighbour.
    pub message_out: TcpLink,
    /// Messages from the neighbour to this rank.
    pub message_in: TcpLink,
}

/// A ring's two edges at this rank. In a ring of two both lead to the same process.
pub struct Ring {
    pub right: Neighbour,
    pub left: Neighbour,
    /// Goes on listening for those who come too late.
    pub door: Door,
    /// The group's id, alike on all ranks.
    pub group: [u8; 16],
    /// Every rank as it describes itself, in the order of ranks.
    pub members: Vec<Member>,
}

/// A socket while the ring forms.
struct Connection {
    #[allow(dead_code, reason = "unregisters the socket before it closes")]
    registered: fork::Registered,
    socket: Socket,
    address: SocketAddr,
}

impl Connection {
    fn new(socket: Socket, address: SocketAddr) -> io::Result<Connection> {
        socket.set_nonblocking(true)?;
        sys::quiet(&socket)?;
        let registered = fork::Registered::new(socket.as_raw_fd());
        Ok(Connection { registered, socket, address })
    }

    fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Sends a message of the handshake, which a fresh connection takes whole.
    fn send(&self, mut bytes: Vec<u8>) -> io::Result<()> {
        let pieces = [Region::from_slice(&mut bytes)];
        match sys::send(self.descriptor(), &pieces)? {
            sent if sent == bytes.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Reads up to so many bytes of the handshake; none if none are there.
    fn receive(&self, wanted: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; wanted.min(MAX_HELLO)];
        let got = sys::receive(self.descriptor(), Region::from_slice(&mut bytes))?;
        bytes.truncate(got);
        Ok(bytes)
    }

    fn into_link(self) -> io::Result<TcpLink> {
        TcpLink::new(self.socket)
    }
}

/// The address as a person writes it: `192.0.2.1:5000`, `[::1]:5000`.
fn printed(address: &SocketAddr) -> String {
    address.to_string()
}
