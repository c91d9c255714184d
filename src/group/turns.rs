//! Who is next: calls are served first come, first served, and numbered as they come.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::sys::Wake;
use crate::wire::Refused;

/// A queue of numbered calls.
#[derive(Default)]
pub struct Turns {
    state: Mutex<State>,
    changed: Condvar,
    /// Whether tickets tell when their calls came.
    is_timed: bool,
}

#[derive(Default)]
struct State {
    /// Place of the call that came last, from 1.
    issued: u64,
    /// Number of the last call that has its number from here: others have their place here, too.
    numbered: u64,
    /// Place of the last call that has ended with all before it.
    ended: u64,
    /// Calls that are over before their turn has come: they pass without one.
    passing: Vec<u64>,
    /// The last call that was refused as it came.
    refused: Refused,
    /// The last one that was refused when it had its turn.
    refused_late: Refused,
    /// What is rung when the next call ends, for a thread that can't wait here.
    bell: Option<Arc<Wake>>,
}

impl State {
    fn end(&mut self, place: u64) {
        self.ended = place;
        while let Some(i) = self.passing.iter().position(|passing| *passing == self.ended + 1) {
            self.passing.swap_remove(i);
            self.ended += 1;
        }
        if let Some(bell) = self.bell.take() {
            bell.wake();
        }
    }
}

/// A call's place in the queue, and its turn when that has come, until dropped.
pub struct Ticket {
    turns: Arc<Turns>,
    place: u64,
    /// The call's number, from 1.
    pub number: u64,
    /// When the call came, where that is asked for.
    pub came: Option<Instant>,
    /// The last call that was refused before it; of one whose turn has not come, as it came.
    refused: Refused,
}

impl Turns {
    /// A queue whose tickets tell when their calls came, or read no clock.
    pub fn new(is_timed: bool) -> Arc<Turns> {
        Arc::new(Turns { is_timed, ..Turns::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next number.
    pub fn ticket(self: &Arc<Turns>) -> Ticket {
        self.next(&mut self.state(), None)
    }

    /// Takes the next place for a call that has its number from elsewhere.
    pub fn ticket_for(self: &Arc<Turns>, number: impl FnOnce() -> u64) -> Ticket {
        let mut state = self.state();
        let number = number();
        self.next(&mut state, Some(number))
    }

    /// Takes the next number and waits for its turn.
    pub fn take(self: &Arc<Turns>) -> Ticket {
        let mut state = self.state();
        let ticket = self.next(&mut state, None);
        self.wait(state, ticket)
    }

    /// The same for a call that has its number from elsewhere.
    pub fn take_for(self: &Arc<Turns>, number: impl FnOnce() -> u64) -> Ticket {
        let mut state = self.state();
        let number = number();
        let ticket = self.next(&mut state, Some(number));
        self.wait(state, ticket)
    }

    fn next(self: &Arc<Turns>, state: &mut State, number: Option<u64>) -> Ticket {
        state.issued += 1;
        let number = number.unwrap_or_else(|| {
            state.numbered += 1;
            state.numbered
        });
        let came = self.is_timed.then(Instant::now);
        Ticket { turns: self.clone(), place: state.issued, number, came, refused: state.refused }
    }

    fn wait(&self, mut state: MutexGuard<'_, State>, mut ticket: Ticket) -> Ticket {
        while state.ended + 1 != ticket.place {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        ticket.begin(&state);
        ticket
    }

    /// A number for a call that has its place elsewhere.
    pub fn number(&self) -> u64 {
        let mut state = self.state();
        state.numbered += 1;
        state.numbered
    }

    /// Takes the next number for a call that is refused with this status.
    pub fn refuse(&self, status: i32) -> u64 {
        let mut state = self.state();
        state.issued += 1;
        state.numbered += 1;
        let (place, number) = (state.issued, state.numbered);
        state.refused = Refused { sequence: number, status };
        self.pass(state, place);
        number
    }

    /// A call is over.
    fn pass(&self, mut state: MutexGuard<'_, State>, place: u64) {
        if state.ended + 1 != place {
            return state.passing.push(place);
        }
        state.end(place);
        if state.ended != state.issued {
            self.changed.notify_all();
        }
    }
}

impl Ticket {
    fn begin(&mut self, state: &State) {
        if state.refused_late.sequence > self.refused.sequence {
            self.refused = state.refused_late;
        }
    }

    /// Whether the turn has come.
    pub fn is_next(&mut self) -> bool {
        let turns = self.turns.clone();
        let state = turns.state();
        let is_next = state.ended + 1 == self.place;
        if is_next {
            self.begin(&state);
        }
        is_next
    }

    /// The same; if not, the bell is rung when to ask again.
    pub fn is_next_or_rings(&mut self, bell: &Arc<Wake>) -> bool {
        let turns = self.turns.clone();
        let mut state = turns.state();
        let is_next = state.ended + 1 == self.place;
        if is_next {
            self.begin(&state);
        } else {
            state.bell = Some(bell.clone());
        }
        is_next
    }

    /// The last call that was refused before this one, whose turn has come.
    pub fn refused(&self) -> Refused {
        self.refused
    }

    /// This call, whose turn has come, is refused after all.
    pub fn refuse(&self, status: i32) {
        self.turns.state().refused_late = Refused { sequence: self.number, status };
    }

    /// Whether it is one of this queue's.
    pub fn is_of(&self, other: &Ticket) -> bool {
        Arc::ptr_eq(&self.turns, &other.turns)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.turns.pass(self.turns.state(), self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{Interest, PollEntry, poll};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    #[test]
    fn turns_come_in_order_and_refused_calls_pass() {
        let turns = Arc::<Turns>::default();
        let next = AtomicU64::new(2);
        let first = turns.take();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let ticket = turns.take();
                    assert_eq!(next.fetch_add(1, Ordering::SeqCst), ticket.number);
                });
            }
            while turns.state().issued < 5 {
                std::thread::yield_now();
            }
            assert_eq!(turns.refuse(1), 6);
            drop(first);
        });
        assert_eq!(turns.state().ended, 6);
        let ticket = turns.take();
        assert_eq!((ticket.number, ticket.refused()), (7, Refused { sequence: 6, status: 1 }));
        ticket.refuse(12);
        drop(ticket);
        assert_eq!(turns.take().refused(), Refused { sequence: 7, status: 12 });
    }

    #[test]
    fn a_call_with_a_number_of_its_own_takes_a_place_alone() {
        let turns = Arc::<Turns>::default();
        let (first, mut message, mut third) = (turns.ticket(), turns.ticket_for(|| 7), turns.ticket());
        assert_eq!([first.number, message.number, third.number], [1, 7, 2]);
        drop(first);
        assert!(message.is_next() && !third.is_next());
        drop(message);
        assert!(third.is_next());
        assert_eq!((turns.refuse(1), turns.number()), (3, 4));
    }

    #[test]
    fn a_call_tells_of_refusals_before_it_alone() {
        let turns = Arc::<Turns>::default();
        let [first, mut second] = [turns.ticket(), turns.ticket()];
        turns.refuse(1);
        let mut fourth = turns.ticket();
        turns.refuse(3);
        assert_eq!(first.refused(), Refused::default());
        first.refuse(12);
        drop(first);
        assert!(second.is_next());
        assert_eq!(second.refused(), Refused { sequence: 1, status: 12 });
        drop(second);
        assert!(fourth.is_next());
        assert_eq!(fourth.refused(), Refused { sequence: 3, status: 1 });
    }

    #[test]
    fn a_bell_rings_when_a_turn_may_have_come() {
        let turns = Arc::<Turns>::default();
        let bell = Arc::new(Wake::new().unwrap());
        let rings = || {
            let mut entries = [PollEntry::new(bell.descriptor(), Interest { read: true, write: false })];
            let rings = poll(&mut entries, Some(Duration::ZERO)).unwrap();
            bell.clear();
            rings
        };
        let [mut first, second, mut third] = [turns.ticket(), turns.ticket(), turns.ticket()];
        assert!(first.is_next_or_rings(&bell) && !third.is_next_or_rings(&bell));
        // A call that is given up before its turn.
        drop(second);
        assert!(!rings());
        drop(first);
        assert!(rings() && third.is_next_or_rings(&bell));
        drop(third);
        assert!(!rings() && turns.ticket().is_next());
    }
}
