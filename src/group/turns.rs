//! Who is next: calls are served first come, first served, and numbered as they come.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::wire::Refused;

/// A queue of numbered calls.
#[derive(Default)]
pub struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of the call that came last.
    issued: u64,
    /// Number of the last call that has ended with all before it.
    ended: u64,
    /// Refused calls whose turn has not come yet: they pass without one.
    passing: Vec<u64>,
    refused: Refused,
}

impl State {
    fn end(&mut self, number: u64) {
        self.ended = number;
        while let Some(i) = self.passing.iter().position(|passing| *passing == self.ended + 1) {
            self.passing.swap_remove(i);
            self.ended += 1;
        }
    }
}

/// A call's turn, until dropped.
pub struct Turn<'a> {
    turns: &'a Turns,
    /// The call's number, from 1.
    pub number: u64,
    /// The last call that was refused before it.
    pub refused: Refused,
}

impl Turns {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next number and waits for its turn.
    pub fn take(&self) -> Turn<'_> {
        let mut state = self.state();
        state.issued += 1;
        let number = state.issued;
        while state.ended + 1 != number {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Turn { turns: self, number, refused: state.refused }
    }

    /// Takes the next number if its turn is now.
    pub fn try_take(&self) -> Option<Turn<'_>> {
        let mut state = self.state();
        if state.ended != state.issued {
            return None;
        }
        state.issued += 1;
        Some(Turn { turns: self, number: state.issued, refused: state.refused })
    }

    /// Takes the next number for a call that is refused with this status, without waiting.
    pub fn refuse(&self, status: i32) -> u64 {
        let mut state = self.state();
        state.issued += 1;
        let number = state.issued;
        state.refused = Refused { sequence: number, status };
        if state.ended + 1 == number {
            state.end(number);
        } else {
            state.passing.push(number);
        }
        number
    }

    /// The call whose turn it is was refused after all.
    pub fn refuse_current(&self, turn: &Turn<'_>, status: i32) {
        self.state().refused = Refused { sequence: turn.number, status };
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        state.end(self.number);
        if state.ended != state.issued {
            self.turns.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn turns_come_in_order_and_refused_calls_pass() {
        let turns = Turns::default();
        let next = AtomicU64::new(2);
        let first = turns.take();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let turn = turns.take();
                    assert_eq!(next.fetch_add(1, Ordering::SeqCst), turn.number);
                });
            }
            while turns.state().issued < 5 {
                std::thread::yield_now();
            }
            assert_eq!(turns.refuse(1), 6);
            assert!(turns.try_take().is_none());
            drop(first);
        });
        assert_eq!(turns.state().ended, 6);
        let turn = turns.try_take().unwrap();
        assert_eq!((turn.number, turn.refused), (7, Refused { sequence: 6, status: 1 }));
        turns.refuse_current(&turn, 12);
        drop(turn);
        assert_eq!(turns.take().refused, Refused { sequence: 7, status: 12 });
    }
}
