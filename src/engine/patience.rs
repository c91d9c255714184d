//! How a call waits: awake for a short while, then asleep, and not for ever.

use std::time::{Duration, Instant};

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

/// The roll is called anew at this interval, and for the last time about so long before the
/// deadline.
const ROLL_INTERVAL: Duration = Duration::from_secs(1);

/// What to do after a turn in which nothing moved.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Retry,
    /// Sleep for at most this long; None is without limit.
    Sleep(Option<Duration>),
    /// Half the timeout is over: ask what the others do.
    CallRoll,
    /// The timeout is over: hear what the others know, then look at the links once more.
    Consult,
    /// Nothing came at the last look either.
    GiveUp,
}

/// Counts the time since something moved.
#[derive(Debug, Default)]
pub struct Patience {
    timeout: Option<Duration>,
    /// The first miss since something moved.
    idle_since: Option<Instant>,
    last_miss: Option<Instant>,
    crowded_until: Option<Instant>,
    /// How long it was crowded last; zero once a yield was short.
    crowded_for: Duration,
    /// Idle for this long, the roll is called next.
    next_roll: Duration,
    /// The deadline is over and the links are looked at for the last time.
    last_look: bool,
}

impl Patience {
    /// A new call begins. Reads no clock.
    pub fn start(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
        self.moved();
    }

    /// Something moved. Reads no clock.
    pub fn moved(&mut self) {
        self.idle_since = None;
        self.last_miss = None;
        self.last_look = false;
        self.next_roll = self.timeout.map_or(Duration::MAX, first_roll);
    }

    /// Nothing moved: gives up the core and says what is next.
    pub fn missed(&mut self) -> Next {
        if self.crowded_until.is_none() {
            sys::yield_core();
        }
        self.after_yield(Instant::now())
    }

    fn after_yield(&mut self, now: Instant) -> Next {
        let since = *self.idle_since.get_or_insert(now);
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
        let idle = now - since;
        if self.timeout.is_some_and(|timeout| idle >= timeout) {
            // A rank that was stopped finds its deadline past, and its peers' words unread.
            let looked = std::mem::replace(&mut self.last_look, true);
            return if looked { Next::GiveUp } else { Next::Consult };
        }
        if idle >= self.next_roll {
            self.next_roll = idle + ROLL_INTERVAL;
            return Next::CallRoll;
        }
        if idle < AWAKE && self.crowded_until.is_none() {
            return Next::Retry;
        }
        // The sleep is no yield: what it lasts says nothing about the core.
        self.last_miss = None;
        Next::Sleep(self.timeout.map(|timeout| timeout.min(self.next_roll) - idle))
    }
}

/// After half the timeout, and so that the roll has its time before the deadline.
fn first_roll(timeout: Duration) -> Duration {
    (timeout / 2).min(timeout.saturating_sub(ROLL_INTERVAL)).max(timeout / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(5);

    #[test]
    fn awake_then_asleep_then_the_roll_then_one_more_look() {
        let mut patience = Patience::default();
        patience.start(Some(TIMEOUT));
        let t = Instant::now();
        let at = |us| t + Duration::from_micros(us);
        assert_eq!(patience.after_yield(at(0)), Next::Retry);
        assert_eq!(patience.after_yield(at(40)), Next::Retry);
        assert_eq!(patience.after_yield(at(60)), Next::Sleep(Some(TIMEOUT / 2 - Duration::from_micros(60))));
        let half = t + TIMEOUT / 2;
        assert_eq!(patience.after_yield(half), Next::CallRoll);
        assert_eq!(patience.after_yield(half), Next::Sleep(Some(ROLL_INTERVAL)));
        assert_eq!(patience.after_yield(half + ROLL_INTERVAL * 2), Next::CallRoll);
        assert_eq!(patience.after_yield(half + ROLL_INTERVAL * 2), Next::Sleep(Some(ROLL_INTERVAL / 2)));
        assert_eq!(patience.after_yield(t + TIMEOUT), Next::Consult);
        assert_eq!(patience.after_yield(t + TIMEOUT), Next::GiveUp);
    }

    #[test]
    fn the_roll_has_its_time_before_any_deadline() {
        for (timeout_ms, roll_ms) in [(300_000, 150_000), (2000, 1000), (1500, 500), (1000, 250), (100, 25)] {
            assert_eq!(first_roll(Duration::from_millis(timeout_ms)), Duration::from_millis(roll_ms));
        }
    }

    #[test]
    fn progress_starts_the_clock_anew() {
        let mut patience = Patience::default();
        patience.start(Some(TIMEOUT));
        let t = Instant::now();
        patience.after_yield(t);
        assert_eq!(patience.after_yield(t + AWAKE), Next::Sleep(Some(TIMEOUT / 2 - AWAKE)));
        assert_eq!(patience.after_yield(t + TIMEOUT), Next::Consult);
        patience.moved();
        assert_eq!(patience.after_yield(t + TIMEOUT), Next::Retry);
        assert_eq!(patience.after_yield(t + TIMEOUT + AWAKE), Next::Sleep(Some(TIMEOUT / 2 - AWAKE)));
    }

    #[test]
    fn long_yields_make_misses_sleep_at_once_for_longer_and_longer() {
        let mut patience = Patience::default();
        patience.start(None);
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
