//! A link that may be waited for before it is there, so that no call blocks while it is made.

use std::io;
use std::sync::Arc;

use super::{Arrival, Link, TcpLink};
use crate::memory::Region;
use crate::sys::{Interest, PollEntry};

/// A link to come, which takes and gives nothing until it has been delivered. Where it could not be made it
/// fails with the [`Error`](crate::error::Error) inside an [`io::Error`].
pub struct ComingLink(State);

enum State {
    Coming(Arc<Arrival>),
    Here(TcpLink),
    /// Nobody waits for it any more.
    GivenUp,
}

impl ComingLink {
    /// The link that arrives there.
    pub fn new(arrival: Arc<Arrival>) -> ComingLink {
        ComingLink(State::Coming(arrival))
    }

    /// Whether the link is here by now.
    pub fn has_come(&mut self) -> io::Result<bool> {
        self.here().map(|link| link.is_some())
    }

    /// The link, if it is here by now.
    fn here(&mut self) -> io::Result<Option<&mut TcpLink>> {
        if let State::Coming(arrival) = &self.0
            && let Some(come) = arrival.take()
        {
            let link = come.map_err(io::Error::other)?;
            link.suit_data();
            self.0 = State::Here(link);
        }
        match &mut self.0 {
            State::Coming(_) => Ok(None),
            State::Here(link) => Ok(Some(link)),
            State::GivenUp => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Link for ComingLink {
    fn send(&mut self, pieces: &[Region<'_>]) -> io::Result<usize> {
        self.here()?.map_or(Ok(0), |link| link.send(pieces))
    }

    fn peek(&mut self, unit: usize) -> io::Result<Region<'_>> {
        self.here()?.map_or(Ok(Region::empty()), |link| link.peek(unit))
    }

    fn buffered(&self) -> usize {
        match &self.0 {
            State::Here(link) => link.buffered(),
            _ => 0,
        }
    }

    fn consume(&mut self, bytes: usize) {
        if let State::Here(link) = &mut self.0 {
            link.consume(bytes);
        }
    }

    fn receive(&mut self, into: Region<'_>) -> io::Result<usize> {
        self.here()?.map_or(Ok(0), |link| link.receive(into))
    }

    fn waits(&self, interest: Interest) -> Option<PollEntry> {
        match &self.0 {
            // Whatever is wanted of the link, it has to come first.
            State::Coming(arrival) => Some(arrival.waits()),
            State::Here(link) => link.waits(interest),
            State::GivenUp => None,
        }
    }

    fn finish(&mut self) {
        match self.here() {
            Ok(Some(link)) => link.finish(),
            _ => self.0 = State::GivenUp,
        }
    }
}
