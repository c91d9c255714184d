//! The clock of an operation: how long nothing has moved in it, and what is due then.

use std::time::{Duration, Instant};

/// The roll is called anew at this interval, and for the last time about so long before the
/// deadline.
const ROLL_INTERVAL: Duration = Duration::from_secs(1);

/// What is due in an operation in which nothing moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing for this long; None is for ever.
    Nothing(Option<Duration>),
    /// Half the timeout is over: ask what the others do.
    CallRoll,
    /// A warning may be worth giving: see [`Clock::warned`].
    Warn(Standstill),
    /// The timeout is over: hear what the others know, then look at the links once more.
    Consult,
    /// Nothing came at the last look either.
    GiveUp,
}

/// That nothing has moved for longer than a warning waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standstill {
    /// The first miss since something moved.
    pub since: Instant,
    /// When the warning was due.
    pub due: Instant,
    /// For so long by now.
    pub idle: Duration,
}

/// Counts the time since something moved.
#[derive(Debug, Default)]
pub struct Clock {
    timeout: Option<Duration>,
    /// A standstill for this long is worth a warning; [`NEVER`] where none is wanted, or the deadline comes first.
    warning: Duration,
    /// Idle for this long, the next warning is due.
    next_warning: Duration,
    /// Idle for this long, it is to be seen to: its answers may not have come when it is due.
    next_try: Duration,
    /// The first miss since something moved.
    idle_since: Option<Instant>,
    /// Idle for this long, the roll is called next.
    next_roll: Duration,
    /// The deadline is over and the links are looked at for the last time.
    last_look: bool,
}

const NEVER: Duration = Duration::MAX;

impl Clock {
    /// The operation begins, whose standstill is worth a warning after so long. Reads no clock.
    pub fn start(&mut self, timeout: Option<Duration>, warning: Option<Duration>) {
        self.timeout = timeout;
        let warning = warning.filter(|warning| timeout.is_none_or(|timeout| *warning < timeout));
        self.warning = warning.unwrap_or(NEVER);
        self.moved();
    }

    /// Something moved. Reads no clock.
    pub fn moved(&mut self) {
        self.idle_since = None;
        self.last_look = false;
        self.next_roll = self.timeout.map_or(NEVER, first_roll);
        (self.next_warning, self.next_try) = (self.warning, self.warning);
    }

    /// For how long nothing has moved.
    pub fn idle(&self, now: Instant) -> Duration {
        self.idle_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// Nothing moved: says what is due.
    pub fn missed(&mut self, now: Instant) -> Due {
        let since = *self.idle_since.get_or_insert(now);
        let idle = self.idle(now);
        if self.timeout.is_some_and(|timeout| idle >= timeout) {
            // A rank that was stopped finds its deadline past, and its peers' words unread.
            let looked = std::mem::replace(&mut self.last_look, true);
            return if looked { Due::GiveUp } else { Due::Consult };
        }
        if idle >= self.next_roll {
            self.next_roll = idle + ROLL_INTERVAL;
            return Due::CallRoll;
        }
        if idle >= self.next_try {
            return Due::Warn(Standstill { since, due: since + self.next_warning, idle });
        }
        let next = self.timeout.unwrap_or(NEVER).min(self.next_roll).min(self.next_try);
        Due::Nothing((next != NEVER).then(|| next - idle))
    }

    /// The warning is to be tried again after so long; or it has been given, and the next one is due when the
    /// standstill has lasted twice as long.
    pub fn warned(&mut self, standstill: &Standstill, again: Option<Duration>) {
        let idle = standstill.idle;
        match again {
            Some(left) => self.next_try = idle + left,
            None => {
                self.next_warning = idle * 2;
                self.next_try = self.next_warning;
            }
        }
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
    fn the_roll_then_one_more_look_then_the_end() {
        let mut clock = Clock::default();
        clock.start(Some(TIMEOUT), None);
        let t = Instant::now();
        assert_eq!(clock.missed(t), Due::Nothing(Some(TIMEOUT / 2)));
        let half = t + TIMEOUT / 2;
        assert_eq!(clock.missed(half), Due::CallRoll);
        assert_eq!(clock.missed(half), Due::Nothing(Some(ROLL_INTERVAL)));
        assert_eq!(clock.missed(half + ROLL_INTERVAL * 2), Due::CallRoll);
        assert_eq!(clock.missed(half + ROLL_INTERVAL * 2), Due::Nothing(Some(ROLL_INTERVAL / 2)));
        assert_eq!(clock.missed(t + TIMEOUT), Due::Consult);
        assert_eq!(clock.missed(t + TIMEOUT), Due::GiveUp);
    }

    #[test]
    fn the_roll_has_its_time_before_any_deadline() {
        for (timeout_ms, roll_ms) in [(300_000, 150_000), (2000, 1000), (1500, 500), (1000, 250), (100, 25)] {
            assert_eq!(first_roll(Duration::from_millis(timeout_ms)), Duration::from_millis(roll_ms));
        }
    }

    #[test]
    fn progress_starts_the_clock_anew() {
        let mut clock = Clock::default();
        clock.start(Some(TIMEOUT), None);
        let t = Instant::now();
        clock.missed(t);
        assert_eq!(clock.missed(t + TIMEOUT), Due::Consult);
        clock.moved();
        assert_eq!(clock.missed(t + TIMEOUT), Due::Nothing(Some(TIMEOUT / 2)));
        assert_eq!(clock.idle(t + TIMEOUT * 2), TIMEOUT);
        clock.start(None, None);
        clock.missed(t);
        assert_eq!(clock.missed(t + TIMEOUT * 1000), Due::Nothing(None));
    }
    #[test]
    fn a_standstill_is_warned_of_once_then_after_twice_the_time() {
        let ms = Duration::from_millis;
        let mut clock = Clock::default();
        clock.start(None, Some(ms(300)));
        let t = Instant::now();
        let warn = |due, idle| Due::Warn(Standstill { since: t, due: t + ms(due), idle: ms(idle) });
        let mut see = |at, again: Option<Option<Duration>>| {
            let due = clock.missed(t + ms(at));
            if let (Due::Warn(standstill), Some(again)) = (due, again) {
                clock.warned(&standstill, again);
            }
            due
        };
        assert_eq!(see(0, None), Due::Nothing(Some(ms(300))));
        assert_eq!(see(310, Some(Some(ms(10)))), warn(300, 310));
        assert_eq!(see(310, None), Due::Nothing(Some(ms(10))));
        assert_eq!(see(320, Some(None)), warn(300, 320));
        assert_eq!(see(320, None), Due::Nothing(Some(ms(320))));
        assert_eq!(see(700, Some(None)), warn(640, 700));
        assert_eq!(see(1399, None), Due::Nothing(Some(ms(1))));
        clock.moved();
        assert_eq!(clock.missed(t + ms(1400)), Due::Nothing(Some(ms(300))));
    }

    #[test]
    fn a_deadline_that_comes_first_leaves_no_warning() {
        let mut clock = Clock::default();
        let t = Instant::now();
        for (warning, warns) in [(TIMEOUT - Duration::from_millis(1), true), (TIMEOUT, false)] {
            clock.start(Some(TIMEOUT), Some(warning));
            clock.missed(t);
            while clock.missed(t + warning.min(TIMEOUT - Duration::from_nanos(1))) == Due::CallRoll {}
            let due = clock.missed(t + warning.min(TIMEOUT - Duration::from_nanos(1)));
            assert_eq!(matches!(due, Due::Warn(_)), warns, "{due:?}");
        }
        assert_eq!(clock.missed(t + TIMEOUT), Due::Consult);
    }
}
