//! A link of the MLX wire whose first bytes are looked at. A neighbour that was told to speak this library's own wire
//! begins with a word that this library knows, and it would be taken for elements.

use std::io;

use crate::error::{Error, Status};
use crate::link::{Link, TcpLink};
use crate::memory::Region;
use crate::sys::{Interest, PollEntry};
use crate::wire::{HELLO_MAGIC, begins_native};

/// A lane to a neighbour.
pub struct MlxLane {
    link: TcpLink,
    /// Whether nothing has been taken from it yet.
    is_fresh: bool,
    neighbour: String,
    rank: usize,
}

impl MlxLane {
    /// `neighbour` is the rank's name in texts.
    pub fn new(link: TcpLink, rank: usize, neighbour: String) -> MlxLane {
        MlxLane { link, is_fresh: true, neighbour, rank }
    }

    /// Looks at the first bytes. A hello comes in one piece, so that fewer bytes than its magic has are elements.
    fn meet(&mut self) -> io::Result<()> {
        if !self.is_fresh {
            return Ok(());
        }
        let mut first = [0; HELLO_MAGIC.len()];
        let arrived = self.link.peek(1)?;
        let bytes = arrived.len().min(first.len());
        Region::from_slice(&mut first[..bytes]).copy_from(arrived.part(0, bytes));
        if begins_native(&first) {
            return Err(io::Error::other(speaks_native(self.rank, &self.neighbour, Status::PeerLost)));
        }
        self.is_fresh = bytes == 0;
        Ok(())
    }
}

/// A neighbour's wire is the other one.
pub fn speaks_native(rank: usize, neighbour: &str, status: Status) -> Error {
    let text = format!("{neighbour} speaks this library's own wire, and this rank stock MLX's");
    Error::new(status, text).at_rank(rank)
}

impl Link for MlxLane {
    fn send(&mut self, pieces: &[Region<'_>]) -> io::Result<usize> {
        self.link.send(pieces)
    }

    fn peek(&mut self, unit: usize) -> io::Result<Region<'_>> {
        self.meet()?;
        self.link.peek(unit)
    }

    fn buffered(&self) -> usize {
        self.link.buffered()
    }

    fn consume(&mut self, bytes: usize) {
        self.link.consume(bytes);
    }

    fn receive(&mut self, into: Region<'_>) -> io::Result<usize> {
        self.meet()?;
        self.link.receive(into)
    }

    fn waits(&self, interest: Interest) -> Option<PollEntry> {
        self.link.waits(interest)
    }

    fn finish(&mut self) {
        self.link.finish();
    }
}
