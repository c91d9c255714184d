//! Two links joined in memory, for tests: each way holds a few bytes at most.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use super::Link;
use crate::memory::Region;
use crate::sys::{Interest, PollEntry};

#[derive(Default)]
struct Way {
    bytes: VecDeque<u8>,
    ended: bool,
}

/// One end of a pair.
pub struct PairLink {
    capacity: usize,
    out: Arc<Mutex<Way>>,
    into: Arc<Mutex<Way>>,
    held: Vec<u8>,
}

/// Two ends; each way holds `capacity` bytes.
pub fn pair(capacity: usize) -> (PairLink, PairLink) {
    let (a, b) = (Arc::new(Mutex::new(Way::default())), Arc::new(Mutex::new(Way::default())));
    let end = |out: &Arc<Mutex<Way>>, into: &Arc<Mutex<Way>>| PairLink {
        capacity,
        out: out.clone(),
        into: into.clone(),
        held: Vec::new(),
    };
    (end(&a, &b), end(&b, &a))
}

impl PairLink {
    fn read(&mut self) -> io::Result<usize> {
        let mut way = self.into.lock().unwrap();
        if way.bytes.is_empty() && way.ended {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let before = self.held.len();
        self.held.extend(way.bytes.drain(..));
        Ok(self.held.len() - before)
    }
}

impl Link for PairLink {
    fn send(&mut self, pieces: &[Region<'_>]) -> io::Result<usize> {
        let mut way = self.out.lock().unwrap();
        let room = self.capacity - way.bytes.len();
        let mut copy = Vec::new();
        for piece in pieces {
            let mut bytes = vec![0; piece.len()];
            Region::from_slice(&mut bytes).copy_from(*piece);
            copy.extend(bytes);
        }
        let sent = copy.len().min(room);
        way.bytes.extend(&copy[..sent]);
        Ok(sent)
    }

    fn peek(&mut self, unit: usize) -> io::Result<Region<'_>> {
        if self.held.len() < unit {
            self.read()?;
        }
        Ok(Region::from_slice(&mut self.held))
    }

    fn buffered(&self) -> usize {
        self.held.len()
    }

    fn consume(&mut self, bytes: usize) {
        self.held.drain(..bytes);
    }

    fn receive(&mut self, into: Region<'_>) -> io::Result<usize> {
        if self.held.is_empty() {
            self.read()?;
        }
        let bytes = self.held.len().min(into.len());
        into.part(0, bytes).copy_from_slice(&self.held[..bytes]);
        self.consume(bytes);
        Ok(bytes)
    }

    fn waits(&self, _: Interest) -> Option<PollEntry> {
        None
    }

    fn finish(&mut self) {
        self.out.lock().unwrap().ended = true;
    }
}

impl Drop for PairLink {
    fn drop(&mut self) {
        self.finish();
    }
}
