//! The warning of a call that stands still: a line in the log, which changes nothing.

use std::time::Duration;

use super::Group;
use super::failure::Running;
use crate::engine::{Fault, Standstill};
use crate::log::{self, Level};
use crate::watcher::listed;
use crate::wire::Message;

impl Group {
    /// Warns that a call stands still, once the ranks have told what they do: returns after how long to ask again, if
    /// they have not. The answers are not waited for here, so that whatever can move goes on.
    pub(super) fn warn(
        &self,
        standstill: &Standstill,
        stalled: &Fault,
        call: &Running<'_>,
    ) -> Option<Duration> {
        let waits = || match stalled {
            Fault::Stalled { sending, receiving } => self.waits(sending, receiving, call).0,
            _ => Vec::new(),
        };
        self.warn_of(standstill, call, waits)
    }

    /// The same of messages, by link: named is one that waits.
    pub(super) fn warn_of_message(
        &self,
        standstill: &Standstill,
        stalled: &Fault,
        messages: &[Message],
    ) -> Option<Duration> {
        let message = messages[stalled.link()];
        let rank = |link: usize| messages[link].peer as usize;
        let call = Running { header: message.header, message: Some(message), timeout: None, rank: &rank };
        self.warn(standstill, stalled, &call)
    }

    /// The same of a call that waits for what these words say.
    pub(super) fn warn_of(
        &self,
        standstill: &Standstill,
        call: &Running<'_>,
        waits: impl Fn() -> Vec<String>,
    ) -> Option<Duration> {
        // Where nobody reads it, nobody is asked.
        if !log::wants(Level::Warn) {
            return None;
        }
        let waits = || listed(waits(), "links", |text| text).join("; ");
        let text = match self.health.hears() {
            true => {
                let surveyed =
                    self.health.survey(standstill.since, standstill.due, |jury| match &call.message {
                        Some(message) => jury.on_waiting_message(message),
                        None => match jury.on_waiting_collective(&call.header) {
                            (text, true) => text,
                            // Nobody is missing: what is left is whom this rank waits for.
                            (text, false) => format!("{text}; {}", waits()),
                        },
                    });
                match surveyed {
                    Ok(text) => text?,
                    Err(left) => return Some(left),
                }
            }
            false => waits(),
        };
        let (header, number) = (&call.header, call.header.sequence);
        let name = match &call.message {
            None => format!("{header}, call {number},"),
            Some(message) => {
                let way = if message.sends { "to" } else { "from" };
                format!("{header} {way} rank {}, message {number},", message.peer)
            }
        };
        // Not as a floating-point number: their formatting is 20 KB that nothing else here needs.
        let tenths = standstill.idle.as_millis() / 100;
        let (rank, seconds, tenths) = (self.rank(), tenths / 10, tenths % 10);
        log::line!(Warn, "rank {rank}: {name} has waited {seconds}.{tenths} s: {text}");
        None
    }
}
