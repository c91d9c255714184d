//! What calls ask of their group's health about messages, and about links that are to come.

use std::sync::Arc;
use std::time::Instant;

use super::health::{Health, SETTLES};
use crate::error::Error;
use crate::link::Arrival;
use crate::wire::{Message, Unreached};

impl Health {
    /// A message begins.
    pub fn begin(&self, message: Message) {
        self.act(|spread| spread.begin(message));
    }

    /// A message has ended.
    pub fn end(&self, message: &Message) {
        let mut state = self.state();
        state.spread.end(message);
        state.expected.retain(|(expected, _)| expected != message);
    }

    /// A message that has begun waits for its link, which may never come.
    pub fn expect(&self, message: Message, arrival: &Arc<Arrival>) {
        let mut state = self.state();
        match state.spread.no_link(&message) {
            Some(error) => arrival.fail(error),
            None => state.expected.push((message, Arc::downgrade(arrival))),
        }
    }

    /// Tells the receiver of a message of this rank's that it could not be sent.
    pub fn tell_unreached(&self, message: &Message, error: &Error) {
        let word = Unreached {
            from: self.peers().rank as u32,
            to: message.peer,
            number: message.header.sequence,
            os_error: error.os_error,
            text: error.text.clone(),
        };
        self.act(|spread| spread.not_sent(word));
    }

    /// The sender's word that a message never comes, if it has been heard.
    pub fn never_comes(&self, message: &Message) -> Option<Error> {
        self.state().spread.never_comes(message)
    }

    /// The same, waited for: something else has come in the message's place.
    pub fn await_never_comes(&self, message: &Message) -> Option<Error> {
        let deadline = Instant::now() + SETTLES;
        let mut state = self.state();
        loop {
            self.read(&mut state);
            let word = state.spread.never_comes(message);
            let left = deadline.saturating_duration_since(Instant::now());
            if word.is_some() || left.is_zero() || state.failing_since.is_some() || self.stop.is_raised() {
                return word;
            }
            state = self.wait(state, left);
        }
    }
}
