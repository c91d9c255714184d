//! Who has come to rank 0.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::bootstrap::control::Control;
use crate::bootstrap::handshake::Acceptor;
use crate::bootstrap::last_word::is_conflict;
use crate::bootstrap::rendezvous::LINK;
use crate::bootstrap::rendezvous::places::{Seen, told_to};
use crate::bootstrap::visitors::Visitors;
use crate::bootstrap::{Connection, printed};
use crate::error::{Error, Result, Status};
use crate::sys::PollEntry;
use crate::wire::{Answer, Frame, Hello, MAX_ABSENT, MAX_PLACES, Meeting, Place};

/// Changes of who is absent are told together when they come closer than this.
const NEWS: Duration = Duration::from_millis(20);

/// The guests of rank 0, each rank at most once.
pub struct Guests {
    /// By rank; that of rank 0 stays empty.
    seats: Vec<Seat>,
    /// Whether rank 0 can be reached at more than one address, and its host's other ranks are to be, too.
    pub is_everywhere: bool,
    /// Who is absent has changed since it was told.
    has_news: bool,
    news_from: Instant,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Meeting,
    /// Each has been told where the others are.
    Over,
    /// Rank 0 has given up, and says so.
    Failed,
}

/// A rank's.
#[derive(Default)]
struct Seat {
    guest: Option<Guest>,
    /// The process that has been told the outcome.
    told: Option<[u8; 16]>,
    /// It was there, and has gone at its own timeout.
    gave_up: bool,
    /// Whoever claimed last to be this rank and didn't prove it, in words.
    impostor: Option<String>,
}

struct Guest {
    control: Control,
    from: SocketAddr,
    to: SocketAddr,
    /// Once it has told.
    port: Option<u16>,
}

impl Guest {
    fn seen(&self) -> Option<Seen> {
        Some(Seen { from: self.from, to: self.to, port: self.port? })
    }
}

impl Guests {
    pub fn new(size: usize, now: Instant) -> Guests {
        let seats = (0..size).map(|_| Seat::default()).collect();
        Guests { seats, is_everywhere: false, has_news: false, news_from: now, stage: Stage::Meeting }
    }

    fn guests(&mut self) -> impl Iterator<Item = (usize, &mut Guest)> {
        let seats = self.seats.iter_mut().enumerate();
        seats.filter_map(|(rank, seat)| Some((rank, seat.guest.as_mut()?)))
    }

    /// Ranks that have not come, or not said where they listen. Those that have given up were waiting for
    /// others, and are meant only where there are no others.
    pub fn absent(&self) -> Vec<usize> {
        let is_absent = |rank: &usize| self.seats[*rank].guest.as_ref().is_none_or(|g| g.port.is_none());
        let absent: Vec<_> = (1..self.seats.len()).filter(is_absent).collect();
        let awaited: Vec<_> = absent.iter().copied().filter(|rank| !self.seats[*rank].gave_up).collect();
        if awaited.is_empty() { absent } else { awaited }
    }

    /// Notes that somebody has claimed to be a rank and not proved it.
    pub fn suspect(&mut self, rank: usize, told: &str) {
        if let Some(seat) = self.seats.get_mut(rank) {
            seat.impostor = Some(told.to_owned());
        }
    }

    /// An absent rank that somebody claimed to be without proof, and the words for it.
    pub fn impostor(&self) -> Option<(usize, String)> {
        self.absent().into_iter().find_map(|rank| Some((rank, self.seats[rank].impostor.clone()?)))
    }

    /// Hears what guests say; an error is one of theirs that fails all.
    pub fn progress(&mut self, now: Instant) -> Result<()> {
        let (mut has_news, mut gave_up) = (false, Vec::new());
        for (rank, guest) in self.guests() {
            while let Some(frame) = guest.control.next() {
                match frame {
                    Frame::Meeting(Meeting::Listening { port }) => {
                        has_news |= guest.port.is_none();
                        guest.port = Some(port);
                    }
                    Frame::Record(error) if !is_conflict(&error) => gave_up.push(rank),
                    Frame::Record(error) => {
                        let text = format!("rank {rank} could not form the ring: {}", error.text);
                        return Err(Error { text, ..error });
                    }
                    _ => {}
                }
            }
        }
        gave_up.into_iter().for_each(|rank| self.seats[rank].gave_up = true);
        for seat in &mut self.seats {
            // One that comes again may be another process.
            if seat.guest.as_ref().is_some_and(|guest| guest.control.has_ended()) {
                seat.guest = None;
                has_news = true;
            }
        }
        self.has_news |= has_news;
        if self.has_news && now >= self.news_from && self.stage == Stage::Meeting {
            self.tell_absent();
            (self.has_news, self.news_from) = (false, now + NEWS);
        }
        self.guests().for_each(|(_, guest)| guest.control.flush());
        Ok(())
    }

    fn tell_absent(&mut self) {
        let absent = self.absent();
        let ranks = absent.iter().take(MAX_ABSENT).map(|rank| *rank as u32).collect();
        let word = Frame::Meeting(Meeting::Absent { count: absent.len() as u32, ranks });
        self.guests().for_each(|(_, guest)| guest.control.tell(&word));
    }

    /// Once all have come: what each rank is told of all, rank 0 first.
    pub fn places(&self, port: u16) -> Option<Vec<Vec<Place>>> {
        let seen = self.seats[1..].iter().map(|seat| seat.guest.as_ref()?.seen());
        let seen: Vec<_> = seen.collect::<Option<_>>()?;
        Some((0..self.seats.len()).map(|asker| told_to(asker, port, &seen)).collect())
    }

    /// Tells each guest where all are.
    pub fn tell_places(&mut self, places: &[Vec<Place>]) {
        self.stage = Stage::Over;
        for (rank, seat) in self.seats.iter_mut().enumerate() {
            let Some(guest) = &mut seat.guest else { continue };
            seat.told = Some(guest.control.nonce);
            for (i, places) in places[rank].chunks(MAX_PLACES).enumerate() {
                let first = (i * MAX_PLACES) as u32;
                guest.control.tell(&Frame::Meeting(Meeting::Places { first, places: places.to_vec() }));
            }
        }
    }

    /// Ranks that have not taken all that they were told.
    pub fn behind(&mut self) -> Vec<usize> {
        self.guests().filter(|(_, guest)| !guest.control.is_flushed()).map(|(rank, _)| rank).collect()
    }

    /// Tells those who are there why rank 0 gives up, and likewise those who come from now on.
    pub fn tell_failure(&mut self, record: &Frame) {
        self.stage = Stage::Failed;
        for seat in &mut self.seats {
            if let Some(guest) = seat.guest.as_mut().filter(|_| seat.told.is_none()) {
                guest.control.tell(record);
                seat.told = Some(guest.control.nonce);
            }
        }
    }

    /// Whether every rank has heard the outcome.
    pub fn have_all_been_told(&self) -> bool {
        self.seats[1..].iter().all(|seat| seat.told.is_some())
    }

    /// The guests' links, at the meeting's end.
    pub fn take_controls(&mut self) -> Vec<Control> {
        self.seats.iter_mut().filter_map(|seat| Some(seat.guest.take()?.control)).collect()
    }

    pub fn waits(&self) -> impl Iterator<Item = PollEntry> {
        self.seats.iter().filter_map(|seat| seat.guest.as_ref()?.control.waits())
    }

    /// When news is due.
    pub fn next_wake(&self) -> Option<Instant> {
        self.has_news.then_some(self.news_from)
    }
}

impl Visitors {
    /// Receives a rank that has come to the rendezvous. An error fails this rank, and all guests with it.
    pub(in crate::bootstrap) fn receive_guest(
        &mut self,
        connection: Connection,
        handshake: Acceptor,
        hello: &Hello,
    ) -> Result<()> {
        let rank = hello.from as usize;
        let from = printed(&connection.address);
        let own = self.claims.hello(rank, LINK, Answer::None);
        let answer = |answer| connection.send(handshake.answer(&Hello { answer, ..own }));
        let conflict = |text: String| Err(Error::new(Status::ConnectFailed, text));
        let differences = self.claims.differences(rank, hello);
        let Some(guests) = self.guests.as_mut().filter(|_| differences.is_none()) else {
            let _ = answer(Answer::Differs);
            let why = differences
                .map_or("comes to a rendezvous, and here is none".to_owned(), |differences| {
                    format!("disagrees: {differences}")
                });
            return conflict(format!("the process that connected from {from} as rank {rank} {why}"));
        };
        let stage = guests.stage;
        let Some(seat) = guests.seats.get_mut(rank).filter(|_| rank > 0) else {
            let _ = answer(Answer::Differs);
            return conflict(format!(
                "the process that connected from {from} claims to be rank {rank}, whom nobody awaits"
            ));
        };
        if let Some(guest) = &mut seat.guest {
            guest.control.look_for_end();
            if guest.control.has_ended() {
                seat.guest = None;
            }
        }
        let is_old = seat.told == Some(hello.nonce) || stage == Stage::Failed;
        if seat.told.is_some() && is_old {
            // What it comes for is over: for a next run there will be a next rank 0.
            let _ = answer(Answer::Formed);
            return Ok(());
        }
        let known = seat.guest.as_ref().map(|guest| guest.control.nonce).or(seat.told);
        if known.is_some_and(|known| known != hello.nonce) {
            let _ = answer(Answer::Taken);
            let text = format!("two processes claim to be rank {rank}; the second connected from {from}");
            return Err(Error::new(Status::ConnectFailed, text).at_rank(rank));
        }
        let to = connection.socket.local_addr().ok().and_then(|address| address.as_socket());
        // Where this fails the guest has gone, and will come again.
        let (Some(to), true) = (to, answer(Answer::Accepted).is_ok()) else { return Ok(()) };
        let from = connection.address;
        if let Ok(mut control) = Control::new(connection, hello.nonce) {
            control.tell(&Frame::Meeting(Meeting::Host { is_everywhere: guests.is_everywhere }));
            seat.guest = Some(Guest { control, from, to, port: None });
            seat.gave_up = false;
            guests.has_news = true;
        }
        Ok(())
    }
}
