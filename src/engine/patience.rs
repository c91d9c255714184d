//! How a call waits: awake for a short while, then asleep, and not for ever.

use std::time::{Duration, Instant};

use super::clock::{Clock, Due, Standstill};
use crate::sys;

/// How long a call stays awake after something moved. A peer on the same host answers in well
/// under this; being woken from poll costs as much.
const AWAKE: Duration = Duration::from_micros(50);
/// Giving up the core for longer than this shows another program on it: another rank has done a step of
/// a small call in less, and a program that computes has the core for milliseconds.
const CROWDED_YIELD: Duration = Duration::from_micros(300);
/// How long the group then sleeps at its first miss. Short at first, since it may have been another rank that
/// came to its call a little later; twice as long each time that the next yield shows the same, up to where
/// finding out costs next to nothing.
const CROWDED_FIRST: Duration = Duration::from_millis(2);
const CROWDED_MOST: Duration = Duration::from_millis(128);

/// What to do after a turn in which nothing moved.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Retry,
    /// Sleep for at most this long; None is without limit.
    Sleep(Option<Duration>),
    /// See [`Due::CallRoll`].
    CallRoll,
    /// See [`Due::Warn`].
    Warn(Standstill),
    /// See [`Due::Consult`].
    Consult,
    /// See [`Due::GiveUp`].
    GiveUp,
}

/// How a thread waits: what it has seen of its core.
#[derive(Debug, Default)]
pub struct Waking {
    last_miss: Option<Instant>,
    crowded_until: Option<Instant>,
    /// How long it was crowded last; zero once a yield was short.
    crowded_for: Duration,
}

impl Waking {
    /// Something moved. Reads no clock.
    pub fn moved(&mut self) {
        self.last_miss = None;
    }

    /// Nothing moved: gives up the core; the time after that.
    pub fn missed(&mut self) -> Instant {
        if self.crowded_until.is_none() {
            sys::yield_core();
        }
        let now = Instant::now();
        self.yielded(now);
        now
    }

    fn yielded(&mut self, now: Instant) {
        let yielded = self.last_miss.replace(now).map_or(Duration::ZERO, |last| now - last);
        match self.crowded_until {
            None if yielded > CROWDED_YIELD => {
                self.crowded_for = (self.crowded_for * 2).clamp(CROWDED_FIRST, CROWDED_MOST);
                self.crowded_until = Some(now + self.crowded_for);
            }
            None if !yielded.is_zero() => self.crowded_for = Duration::ZERO,
            Some(until) if now >= until => self.crowded_until = None,
            _ => {}
        }
    }

    /// Whether to look again, idle for so long; if not, the thread sleeps next.
    pub fn stays_awake(&mut self, idle: Duration) -> bool {
        if idle < AWAKE && self.crowded_until.is_none() {
            return true;
        }
        // The sleep is no yield: what it lasts says nothing about the core.
        self.last_miss = None;
        false
    }
}

/// How the thread of one call waits.
#[derive(Debug, Default)]
pub struct Patience {
    clock: Clock,
    waking: Waking,
}

impl Patience {
    /// A new call begins. Reads no clock.
    pub fn start(&mut self, timeout: Option<Duration>, warning: Option<Duration>) {
        self.clock.start(timeout, warning);
        self.waking.moved();
    }

    /// Something moved. Reads no clock.
    pub fn moved(&mut self) {
        self.clock.moved();
        self.waking.moved();
    }

    /// Nothing moved: gives up the core and says what is next, and when that was.
    pub fn missed(&mut self) -> (Next, Instant) {
        let now = self.waking.missed();
        (self.next(now), now)
    }

    /// See [`Clock::warned`].
    pub fn warned(&mut self, standstill: &Standstill, again: Option<Duration>) {
        self.clock.warned(standstill, again);
    }

    fn next(&mut self, now: Instant) -> Next {
        match self.clock.missed(now) {
            Due::CallRoll => Next::CallRoll,
            Due::Warn(standstill) => Next::Warn(standstill),
            Due::Consult => Next::Consult,
            Due::GiveUp => Next::GiveUp,
            Due::Nothing(_) if self.waking.stays_awake(self.clock.idle(now)) => Next::Retry,
            Due::Nothing(limit) => Next::Sleep(limit),
        }
    }

    #[cfg(test)]
    fn after_yield(&mut self, now: Instant) -> Next {
        self.waking.yielded(now);
        self.next(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    #[test]
    fn awake_then_asleep_and_awake_again_after_progress() {
        let mut patience = Patience::default();
        patience.start(Some(TIMEOUT), None);
        let t = Instant::now();
        let at = |us| t + Duration::from_micros(us);
        assert_eq!(patience.after_yield(at(0)), Next::Retry);
        assert_eq!(patience.after_yield(at(40)), Next::Retry);
        assert_eq!(patience.after_yield(at(60)), Next::Sleep(Some(TIMEOUT / 2 - Duration::from_micros(60))));
        assert_eq!(patience.after_yield(t + TIMEOUT), Next::Consult);
        patience.moved();
        assert_eq!(patience.after_yield(t + TIMEOUT), Next::Retry);
        assert_eq!(patience.after_yield(t + TIMEOUT + AWAKE), Next::Sleep(Some(TIMEOUT / 2 - AWAKE)));
    }

    #[test]
    fn long_yields_make_misses_sleep_at_once_for_longer_and_longer() {
        let mut patience = Patience::default();
        patience.start(None, None);
        let mut now = Instant::now();
        patience.after_yield(now);
        let mut crowded = CROWDED_FIRST;
        for _ in 0..10 {
            now += CROWDED_YIELD * 2;
            assert_eq!(patience.after_yield(now), Next::Sleep(None));
            patience.moved();
            assert_eq!(patience.after_yield(now + crowded / 2), Next::Sleep(None));
            patience.moved();
            now += crowded;
            assert_eq!(patience.after_yield(now), Next::Retry);
            crowded = (crowded * 2).min(CROWDED_MOST);
        }
        // A short yield forgets all that.
        now += CROWDED_YIELD / 10;
        assert_eq!(patience.after_yield(now), Next::Retry);
        now += CROWDED_YIELD * 2;
        assert_eq!(patience.after_yield(now), Next::Sleep(None));
        patience.moved();
        assert_eq!(patience.after_yield(now + CROWDED_FIRST), Next::Retry);
    }
}
