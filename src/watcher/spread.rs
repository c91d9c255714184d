//! What a rank knows of its group and passes on: failures, goodbyes, roll calls. It does no I/O:
//! frames come in, frames go out. Everything travels both ways round the ring and is passed on once,
//! so that one gap in the ring keeps nothing from anyone.

use std::io;
use std::time::Instant;

use super::peers::{Peers, Side};
use super::record::{broken_link, checked, comes_before};
use super::roll::Roll;
use super::unreached::NotSent;
use super::verdict::Jury;
use crate::error::{Error, Status, os_words};
use crate::wire::{CallHeader, EVERYBODY, Frame, Kind, Message, Presence, Traffic, Unreached};

/// One rank's part in spreading the news.
pub struct Spread {
    peers: Peers,
    outbox: Vec<(Side, Frame)>,
    /// The record that comes before all others that were heard of.
    first: Option<Error>,
    /// By rank: the last collective of one that has destroyed its group.
    departed: Vec<Option<u64>>,
    presence: Presence,
    not_sent: NotSent,
    roll: Roll,
    leaving: bool,
    /// What runs here needs a rank that has departed.
    deserted: bool,
}

impl Spread {
    pub fn new(peers: Peers) -> Spread {
        let size = peers.size;
        Spread {
            peers,
            outbox: Vec::new(),
            first: None,
            departed: vec![None; size],
            presence: Presence::default(),
            not_sent: NotSent::default(),
            roll: Roll::new(size),
            leaving: false,
            deserted: false,
        }
    }

    /// Frames to be sent, in order.
    pub fn take_outbox(&mut self) -> Vec<(Side, Frame)> {
        std::mem::take(&mut self.outbox)
    }

    /// The failure that counts so far.
    pub fn failure(&self) -> Option<&Error> {
        self.first.as_ref()
    }

    /// The failure that counts, as the call that runs here meets it: the text names that call, too,
    /// where the cause was found in another.
    pub fn verdict(&self) -> Option<Error> {
        let first = self.first.clone()?;
        let (at, _) = self.at();
        if first.status == Status::Mismatch || first.text.starts_with(&at) || !self.is_calling() {
            return Some(first);
        }
        let failed = match first.sequence {
            0 => "has failed:",
            _ => "failed in",
        };
        Some(Error { text: format!("{at}: the group {failed} {}", first.text), ..first })
    }

    fn is_calling(&self) -> bool {
        self.presence.call.is_some() || !self.presence.messages.is_empty()
    }

    /// Whether what runs here is to end now: somebody wished it, or it needs a rank that has departed.
    /// In any other failure the ranks of the running call may all have done their part of it.
    pub fn is_hopeless(&self) -> bool {
        let aborted = self.first.as_ref().is_some_and(|first| first.status == Status::Aborted);
        aborted || self.deserted
    }

    /// After which collective a rank has destroyed its group, if it has.
    pub fn departed(&self, rank: usize) -> Option<u64> {
        self.departed.get(rank).copied().flatten()
    }

    /// The latest roll.
    pub fn roll(&self) -> &Roll {
        &self.roll
    }

    /// Who judges the latest roll.
    pub fn jury(&self) -> Jury<'_> {
        Jury { peers: &self.peers, answers: self.roll.answers(), departed: &self.departed }
    }

    fn pass_on(&mut self, frame: &Frame, from: Option<Side>) {
        // In a ring of two both sides lead to one rank, which may have lost one of the links.
        for side in Side::BOTH.into_iter().filter(|side| self.peers.size > 1 && Some(*side) != from) {
            self.outbox.push((side, frame.clone()));
        }
    }

    /// A frame has come from a neighbour.
    pub fn hear(&mut self, side: Side, frame: Frame, now: Instant) {
        let ours = self.peers.rank as u32;
        match &frame {
            Frame::Record(error) => {
                self.learn(checked(error.clone(), self.peers.size), Some(side));
            }
            Frame::Goodbye { rank, sequence } => {
                match self.departed.get_mut(*rank as usize) {
                    Some(departed @ None) if *rank != ours => *departed = Some(*sequence),
                    _ => return,
                }
                self.pass_on(&frame, Some(side));
                self.miss_departed();
            }
            Frame::RollCall { round } => self.join_roll(*round, Some(side), now),
            Frame::Present { round, rank, presence } => {
                if self.roll.note(*round, *rank as usize, presence.clone()) {
                    self.pass_on(&frame, Some(side));
                }
            }
            Frame::Unreached(word) => {
                let size = self.peers.size as u32;
                let is_known = word.from < size && (word.to < size || word.to == EVERYBODY);
                if is_known && self.not_sent.hear(word, ours) {
                    self.pass_on(&frame, Some(side));
                }
            }
            // A neighbour that formed the ring a moment later.
            Frame::Known(_) | Frame::Confirmed { .. } | Frame::Meeting(_) => {}
        }
    }

    /// A failure of which this rank has learnt; it is passed on if it comes before what is known.
    pub fn learn(&mut self, error: Error, from: Option<Side>) {
        if self.first.as_ref().is_some_and(|first| !comes_before(&error, first)) {
            return self.merge(&error);
        }
        self.pass_on(&Frame::record(&error, self.peers.rank), from);
        let former = self.first.replace(error);
        if let Some(former) = former {
            self.merge(&former);
        }
        if let Some(first) = self.first.clone()
            && let Some(broken) = broken_link(&first, self.peers.rank).filter(|_| !self.leaving)
        {
            self.learn(broken, None);
        }
    }

    /// Two ranks that each call the other lost are both there.
    fn merge(&mut self, other: &Error) {
        let Some(first) = &self.first else { return };
        let accuses_back =
            first.rank.is_some() && first.rank == other.detected_by && other.rank == first.detected_by;
        let broken = other.rank.filter(|_| accuses_back).and_then(|rank| broken_link(other, rank));
        if let Some(broken) = broken.filter(|broken| comes_before(broken, first)) {
            self.learn(broken, None);
        }
    }

    /// A neighbour's control link has ended. Where it has said goodbye, or been told of a failure,
    /// nothing is learnt; otherwise the rank is lost.
    pub fn ended(&mut self, side: Side, why: &io::Error) {
        let rank = self.peers.rank_at(side);
        if self.departed(rank).is_some() || self.first.is_some() || self.leaving {
            return;
        }
        let name = self.peers.name(rank);
        let what = match why.kind() {
            io::ErrorKind::UnexpectedEof => format!("the process of {name} has ended"),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                format!("the process of {name} has ended ({})", os_words(why))
            }
            io::ErrorKind::InvalidData => format!("{name} sent what is no frame of this protocol"),
            _ => format!("{name} has not answered for some 20 s ({})", os_words(why)),
        };
        let (at, sequence) = self.at();
        let lost = Error::new(Status::PeerLost, format!("{at}: {what}")).with_os(why);
        let lost = lost.at_rank(rank);
        self.learn(Error { sequence, detected_by: Some(self.peers.rank), ..lost }, None);
    }

    /// What this rank does now, for a text, with its number.
    pub fn at(&self) -> (String, u64) {
        let message = self.presence.messages.first().map(|message| &message.header);
        match self.presence.call.as_ref().map(|(header, _)| header).or(message) {
            Some(header) => (format!("{header}, call {}", header.sequence), header.sequence),
            None if self.presence.last == 0 => ("before its first call".to_owned(), 0),
            None => (format!("after call {}", self.presence.last), 0),
        }
    }

    /// A collective begins.
    pub fn enter(&mut self, header: CallHeader) {
        self.presence.call = Some((header, Traffic::default()));
        self.miss_departed();
    }

    /// The collective waits: so much of it has gone over the lanes.
    pub fn progress(&mut self, traffic: Traffic) {
        if let Some((_, known)) = &mut self.presence.call {
            *known = traffic;
        }
    }

    /// The collective has ended; one that succeeded is the last. Messages that go over its links have numbers of
    /// their own.
    pub fn leave(&mut self, succeeded: bool) {
        let ended = self.presence.call.take().filter(|(header, _)| succeeded && header.kind != Kind::Message);
        if let Some((header, _)) = ended {
            self.presence.last = header.sequence;
        }
    }

    /// A message begins. What a departed rank has sent may still be received.
    pub fn begin(&mut self, message: Message) {
        self.presence.messages.push(message);
        if let Some(last) = self.departed(message.peer as usize).filter(|_| message.sends) {
            self.lose_departed(message.peer as usize, last);
        }
    }

    /// A message has ended.
    pub fn end(&mut self, message: &Message) {
        if let Some(i) = self.presence.messages.iter().position(|known| known == message) {
            self.presence.messages.remove(i);
        }
    }

    /// A message from this rank could not be sent, or a split not made.
    pub fn not_sent(&mut self, word: Unreached) {
        self.not_sent.hear(&word, self.peers.rank as u32);
        self.pass_on(&Frame::Unreached(word), None);
    }

    /// Why a message to this rank, or a link of a split, never comes, by the word of who should have made it.
    pub fn never_comes(&mut self, message: &Message) -> Option<Error> {
        let number = message.header.sequence;
        let word = match message.header.kind {
            Kind::Split => self.not_sent.find_split(number)?.clone(),
            _ if message.sends => return None,
            _ => self.not_sent.find(message.peer, number)?,
        };
        let failed = Error::new(Status::ConnectFailed, word.text);
        let detected_by = Some(word.from as usize);
        Some(Error { os_error: word.os_error, sequence: number, detected_by, ..failed })
    }

    /// Why the link of a message will not come to stand: its sender's word, or its peer's goodbye.
    pub fn no_link(&mut self, message: &Message) -> Option<Error> {
        let peer = message.peer as usize;
        self.never_comes(message).or_else(|| {
            let last = self.departed(peer)?;
            let text = format!("{} has destroyed its group after call {last}", self.peers.name(peer));
            Some(Error::new(Status::PeerLost, text).at_rank(peer))
        })
    }

    /// Fails a collective that a departed rank won't make.
    fn miss_departed(&mut self) {
        let Some((header, _)) = &self.presence.call else { return };
        let missed = |last: &Option<u64>| last.filter(|last| *last < header.sequence);
        if let Some((rank, last)) =
            self.departed.iter().enumerate().find_map(|(r, last)| Some((r, missed(last)?)))
        {
            self.lose_departed(rank, last);
        }
    }

    /// A call needs a rank that has destroyed its group.
    fn lose_departed(&mut self, rank: usize, last: u64) {
        self.deserted = true;
        let (at, sequence) = self.at();
        let text = format!("{at}: {} has destroyed its group after call {last}", self.peers.name(rank));
        let lost = Error::new(Status::PeerLost, text).at_rank(rank);
        self.learn(Error { sequence, detected_by: Some(self.peers.rank), ..lost }, None);
    }

    /// This rank destroys its group.
    pub fn say_goodbye(&mut self) {
        self.leaving = true;
        if self.first.is_none() {
            let (rank, sequence) = (self.peers.rank as u32, self.presence.last);
            self.pass_on(&Frame::Goodbye { rank, sequence }, None);
        }
    }

    /// Calls the roll, unless it was called just now.
    pub fn call_roll(&mut self, now: Instant) {
        if let Some(round) = self.roll.due(now) {
            self.join_roll(round, None, now);
        }
    }

    fn join_roll(&mut self, round: u32, from: Option<Side>, now: Instant) {
        if !self.roll.begin(round, now) {
            return;
        }
        self.pass_on(&Frame::RollCall { round }, from);
        let (rank, presence) = (self.peers.rank, self.presence.clone());
        self.roll.note(round, rank, presence.clone());
        self.pass_on(&Frame::Present { round, rank: rank as u32, presence }, None);
    }
}
