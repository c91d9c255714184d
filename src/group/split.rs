//! Groups made of the ranks of one that stands.
//!
//! A split is a collective in two rounds, in each of which every rank says a [`WORD`] to all. In the first they say
//! their color and key, from which each knows the new groups; then the ranks of each make its ring's links, with the
//! addresses and through the door that they have; in the second they say how that went, so that all ranks have their
//! group, or none has.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::calls::Call;
use super::collective::{Collective, Part};
use super::failure::{Running, cant_reach, told};
use super::turns::Ticket;
use super::{Group, Links, Settings};
use crate::bootstrap::{Deadline, LinkName, Neighbour, Reach};
use crate::engine::{Clock, Due};
use crate::error::{Error, Result, Status};
use crate::link::{Arrival, TcpLink};
use crate::memory::Region;
use crate::sys::{self, Interest, PollEntry};
use crate::trace::Underway;
use crate::watcher::{Peers, Signals};
use crate::wire::{CallHeader, EVERYBODY, Kind, LinkKind, Message, child_id};

/// Bytes of what a rank says in a round: two numbers, a length, a text.
const WORD: usize = 12 + MAX_TEXT;
/// Bytes of a reason; the rest of a longer one is not told.
const MAX_TEXT: usize = 256;
/// A rank whose links don't come waits so much longer than those who try to make them, whose reason is better.
const REASON_COMES: Duration = Duration::from_millis(500);
/// The last round has this part of the group's timeout at least, however long making links has taken.
const LEAST_PART: u32 = 4;

/// What a rank says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Word {
    /// Color and key; or the status and the OS error.
    numbers: [i32; 2],
    text: String,
}

impl Word {
    fn encode(&self) -> [u8; WORD] {
        let kept = self.text.floor_char_boundary(MAX_TEXT);
        let mut out = [0; WORD];
        out[0..4].copy_from_slice(&self.numbers[0].to_le_bytes());
        out[4..8].copy_from_slice(&self.numbers[1].to_le_bytes());
        out[8..12].copy_from_slice(&(kept as u32).to_le_bytes());
        out[12..12 + kept].copy_from_slice(&self.text.as_bytes()[..kept]);
        out
    }

    fn decode(bytes: &[u8]) -> Word {
        let number = |at: usize| i32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let text = &bytes[12..12 + usize::try_from(number(8)).unwrap_or(0).min(MAX_TEXT)];
        Word { numbers: [number(0), number(4)], text: String::from_utf8_lossy(text).into_owned() }
    }
}

/// How making a group has gone. One that another rank has told of is that rank's to tell.
fn outcome<T>(made: &Result<T>) -> Word {
    let Err(error) = made else { return Word::default() };
    let text = if error.detected_by.is_none() { error.text.clone() } else { String::new() };
    Word { numbers: [error.status as i32, error.os_error], text }
}

/// The ranks of one color in the order of the new group.
fn members(words: &[Word], color: i32) -> Vec<usize> {
    let mut members: Vec<_> = (0..words.len()).filter(|rank| words[*rank].numbers[0] == color).collect();
    members.sort_by_key(|rank| words[*rank].numbers[1]);
    members
}

/// A link of the new ring that is to come.
struct Coming {
    is_right: bool,
    link: LinkName,
    arrival: Arc<Arrival>,
    made: Option<TcpLink>,
}

impl Group {
    /// Makes a group of the ranks with this color, in the order of their keys; none of those whose color is
    /// negative. A call whose arguments were refused takes its number all the same.
    pub fn split(&self, request: Result<(i32, i32)>) -> Result<Option<Arc<Group>>> {
        let _entered = self.enter()?;
        let request = request.and_then(|request| self.splittable(request));
        let (color, key) = request.map_err(|refusal| self.refuse(Kind::Split, refusal))?;
        let _busy = self.counters.busy();
        let ticket = self.collectives.turns.take();
        let result = self.check_health().and_then(|()| {
            let mut underway = self.underway(&ticket);
            let result = match self.size() {
                1 => {
                    self.counters.succeeded(1);
                    (color >= 0).then(|| self.make_alone(color, ticket.number)).transpose()
                }
                _ => self.split_in_turn(color, key, &ticket, &mut underway),
            };
            self.trace_call(underway, &CallHeader::new(Kind::Split, ticket.number), &result);
            result
        });
        drop(ticket);
        self.leave();
        result
    }

    fn split_in_turn(
        &self,
        color: i32,
        key: i32,
        ticket: &Ticket,
        underway: &mut Underway,
    ) -> Result<Option<Arc<Group>>> {
        let claim = Word { numbers: [color, key], text: String::new() };
        let claims = self.round(&claim, ticket, Part::FirstRound, self.timeout(), underway)?;
        let members = members(&claims, color);
        let split = Message {
            peer: EVERYBODY,
            sends: false,
            is_request: false,
            header: CallHeader::new(Kind::Split, ticket.number),
        };
        let (began, timeout) = (Instant::now(), self.timeout());
        let made = (color >= 0).then(|| self.make(color, &members, &split)).transpose();
        self.health.end(&split);
        if let Some(first) = self.over() {
            self.health.leave(false);
            return Err(first);
        }
        if let Err(error) = &made
            && error.detected_by.is_none()
        {
            // Nobody is to wait for links that depend on this rank's.
            self.health.tell_unreached(&split, error);
        }
        // Links that didn't come were waited for already, perhaps for the same frozen rank.
        let waited = if made.is_err() { began.elapsed() } else { Duration::ZERO };
        let left = timeout.map(|timeout| timeout.saturating_sub(waited).max(timeout / LEAST_PART));
        let outcomes = self.round(&outcome(&made), ticket, Part::LastRound, left, underway)?;
        // Who only heard that it won't be says no reason.
        let failed = |outcome: &Word| outcome.numbers[0] != 0;
        let reason = outcomes.iter().position(|outcome| failed(outcome) && !outcome.text.is_empty());
        if let Some(rank) = reason.or_else(|| outcomes.iter().position(failed)) {
            return Err(self.not_made(ticket.number, rank, &outcomes[rank]));
        }
        let child = made?;
        child.iter().try_for_each(Group::start_watching)?;
        Ok(child)
    }

    /// One round: this rank's word to all, and all ranks' words.
    fn round(
        &self,
        own: &Word,
        ticket: &Ticket,
        part: Part,
        timeout: Option<Duration>,
        underway: &mut Underway,
    ) -> Result<Vec<Word>> {
        let mut send = own.encode();
        let mut recv = vec![0; WORD * self.size()];
        let (send, into) = (Region::from_slice(&mut send), Region::from_slice(&mut recv));
        let call = Call { send, recv: into, ..Call::new(Kind::Split, WORD) };
        let mut collective = Collective::begin_part(self, call, ticket, timeout, part)?;
        collective.resume(std::mem::take(underway));
        let (result, so_far) = collective.run_part();
        *underway = so_far;
        result?;
        Ok(recv.chunks_exact(WORD).map(Word::decode).collect())
    }

    /// Why no rank has its group: the reason of the lowest one that couldn't make it.
    fn not_made(&self, number: u64, rank: usize, outcome: &Word) -> Error {
        let [status, os_error] = outcome.numbers;
        let status = Status::from_number(status).unwrap_or(Status::Internal);
        let error = told(status, &CallHeader::new(Kind::Split, number), &outcome.text);
        let error = Error { os_error, detected_by: Some(rank), ..error };
        match status {
            Status::ConnectFailed => error,
            // The rank's own host refused, or its library is at fault.
            _ => self.health.fail(error.at_rank(rank)),
        }
    }

    /// The group's failure, or that it is being destroyed.
    fn over(&self) -> Option<Error> {
        let over = self.health.settled();
        over.or_else(|| self.health.stop.is_raised().then(|| self.gone()))
    }

    fn settings(&self) -> Settings {
        Settings {
            timeout: self.timeout(),
            connect_timeout: self.connect_timeout,
            stall_warning: self.stall_warning,
            wide: self.wide,
            wire: self.wire,
        }
    }

    /// A group of this rank alone.
    fn make_alone(&self, color: i32, number: u64) -> Result<Arc<Group>> {
        let signals = Signals::new().map_err(|error| Error::system("making a pipe", &error))?;
        let peers = Peers { rank: 0, size: 1, addresses: Vec::new() };
        let trace = self.trace_of_split(number, color, &peers);
        let links = Links::new(1, trace.is_some());
        Group::new(peers, links, signals, self.settings(), None, Arc::default(), trace).map(Arc::new)
    }

    /// The group of these ranks, once its links at this rank stand.
    fn make(&self, color: i32, members: &[usize], split: &Message) -> Result<Arc<Group>> {
        let (Some(reach), Some(watcher), true) = (&self.reach, &self.watcher, members.len() > 1) else {
            return self.make_alone(color, split.header.sequence);
        };
        let rank = members.iter().position(|member| *member == self.rank()).unwrap_or(0);
        let id = child_id(&reach.group(), split.header.sequence, color);
        let reach = reach.child(id, rank, members);
        let signals =
            Signals::with_bell(watcher.bell()).map_err(|error| Error::system("making a pipe", &error))?;
        let links = self.make_links(&reach, rank, members, split)?;
        let addresses = members.iter().map(|member| self.health.peers().addresses[*member]).collect();
        let peers = Peers { rank, size: members.len(), addresses };
        let family = Some((reach, watcher.clone()));
        let trace = self.trace_of_split(split.header.sequence, color, &peers);
        Group::new(peers, links, signals, self.settings(), family, Arc::default(), trace).map(Arc::new)
    }

    /// The links of the new ring at this rank: it dials its right neighbour, and is dialled by the left one.
    fn make_links(&self, reach: &Reach, rank: usize, members: &[usize], split: &Message) -> Result<Links> {
        let size = members.len();
        let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
        let limit = self.connect_limit(self.timeout());
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut coming = Vec::new();
        for (is_right, link) in
            [true, false].into_iter().flat_map(|side| reach.links().map(move |l| (side, l)))
        {
            let arrival = match is_right {
                true => reach.dial(link, right, Deadline::Final(deadline)),
                false => reach.await_link(link, left),
            }?;
            self.health.expect(*split, &arrival);
            coming.push(Coming { is_right, link, arrival, made: None });
        }
        let grace = limit.map_or(REASON_COMES, |limit| REASON_COMES.min(limit / 2));
        let end = deadline.map(|deadline| deadline + grace);
        self.await_links(&mut coming, end, &split.header, [members[right], members[left]]).map_err(
            |fault| match fault {
                NotCome::Dial(error) if error.detected_by.is_none() => {
                    Error { text: cant_reach(self.rank(), members[right], &error.text), ..error }
                }
                NotCome::Dial(error) => error,
                NotCome::Late => {
                    let waited = limit.unwrap_or_default().as_millis();
                    let text = format!(
                        "rank {} has not connected to rank {} within {waited} ms",
                        members[left],
                        self.rank()
                    );
                    Error::new(Status::ConnectFailed, text)
                }
                NotCome::System(error) => Error::system("waiting for a connection", &error),
                NotCome::Over => self.gone(),
            },
        )?;
        let mut links = Links::new(size, self.trace.is_some());
        links.add_right(neighbour(right, true, &mut coming)?);
        links.add_left(neighbour(left, false, &mut coming)?);
        Ok(links)
    }

    /// `neighbours` are the right and the left one, by their ranks in this group.
    fn await_links(
        &self,
        coming: &mut [Coming],
        end: Option<Instant>,
        header: &CallHeader,
        neighbours: [usize; 2],
    ) -> std::result::Result<(), NotCome> {
        let mut clock = Clock::default();
        clock.start(None, self.stall_warning);
        loop {
            for link in coming.iter_mut().filter(|link| link.made.is_none()) {
                if let Some(come) = link.arrival.take() {
                    link.made = Some(come.map_err(NotCome::Dial)?);
                    clock.moved();
                }
            }
            let missing = coming.iter().filter(|link| link.made.is_none());
            let mut entries: Vec<_> = missing.map(|link| link.arrival.waits()).collect();
            if entries.is_empty() {
                return Ok(());
            }
            if self.health.stop.is_raised() {
                return Err(NotCome::Over);
            }
            let now = Instant::now();
            let left = end.map(|end| end.saturating_duration_since(now));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(NotCome::Late);
            }
            let look = match clock.missed(now) {
                Due::Nothing(look) => look,
                Due::Warn(standstill) => {
                    let call = Running { header: *header, message: None, timeout: None, rank: &|link| link };
                    let waits = || self.not_come(coming, neighbours);
                    let again = self.warn_of(&standstill, &call, waits);
                    clock.warned(&standstill, again);
                    continue;
                }
                Due::CallRoll | Due::Consult | Due::GiveUp => None,
            };
            let left = left.into_iter().chain(look).min();
            let read = Interest { read: true, write: false };
            entries.push(PollEntry::new(self.health.stop.descriptor(), read));
            sys::poll(&mut entries, left).map_err(NotCome::System)?;
        }
    }
    /// What is waited for, in words.
    fn not_come(&self, coming: &[Coming], [right, left]: [usize; 2]) -> Vec<String> {
        let is_missing =
            |is_right| coming.iter().any(|link| link.made.is_none() && link.is_right == is_right);
        let rank = self.rank();
        let to_right =
            is_missing(true).then(|| format!("rank {rank} waits for its connection to rank {right}"));
        let to_left = is_missing(false).then(|| format!("rank {rank} waits to be connected by rank {left}"));
        to_right.into_iter().chain(to_left).collect()
    }
}

/// Why a link of a new ring has not come.
enum NotCome {
    /// By the word of who should have made it, which is this rank unless another detected it.
    Dial(Error),
    Late,
    System(std::io::Error),
    /// The group has failed, or is being destroyed.
    Over,
}

/// One side of a new ring, of whose links all have come.
fn neighbour(rank: usize, is_right: bool, coming: &mut [Coming]) -> Result<Neighbour> {
    let mut take = |link: LinkName| {
        let found = coming.iter_mut().find(|coming| coming.is_right == is_right && coming.link == link);
        found.and_then(|coming| coming.made.take())
    };
    // The connector names a message link by its own view.
    let (out, into) = match is_right {
        true => (LinkKind::MessageOut, LinkKind::MessageIn),
        false => (LinkKind::MessageIn, LinkKind::MessageOut),
    };
    let whole = (take((LinkKind::Control, 0)), take((out, 0)), take((into, 0)));
    let (Some(control), Some(message_out), Some(message_in)) = whole else {
        return Err(Error::new(Status::Internal, "an edge of the new ring lacks a link"));
    };
    let lanes = (0..).map_while(|lane| take((LinkKind::Lane, lane))).collect();
    Ok(Neighbour { rank, lanes, control, message_out, message_in })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(color: i32, key: i32) -> Word {
        Word { numbers: [color, key], text: String::new() }
    }

    #[test]
    fn a_word_goes_both_ways_and_a_long_text_is_cut() {
        for text in ["", "rank 0 can't reach rank 2", &"ä".repeat(MAX_TEXT)] {
            let said = Word { numbers: [i32::MIN, 7], text: text.to_owned() };
            let cut = Word { text: text[..text.floor_char_boundary(MAX_TEXT)].to_owned(), ..said.clone() };
            assert_eq!(Word::decode(&said.encode()), cut);
        }
        let mut odd = word(1, 2).encode();
        odd[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Word::decode(&odd), word(1, 2));
        odd[8..12].copy_from_slice(&i32::MAX.to_le_bytes());
        assert_eq!(Word::decode(&odd).text.len(), MAX_TEXT);
    }

    #[test]
    fn members_are_ordered_by_key_then_by_rank() {
        let words = [word(1, 5), word(0, 0), word(1, -5), word(-1, 0), word(1, 5), word(1, i32::MIN)];
        assert_eq!(members(&words, 1), [5, 2, 0, 4]);
        assert_eq!(members(&words, 0), [1]);
        assert!(members(&words, 2).is_empty());
    }
}
