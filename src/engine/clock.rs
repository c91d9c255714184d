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
    /// The timeout is over: hear what the others know, then look at the links once more.
    Consult,
    /// Nothing came at the last look either.
    GiveUp,
}

/// Counts the time since something moved.
#[derive(Debug, Default)]
pub struct Clock {
    timeout: Option<Duration>,
    /// The first miss since something moved.
    idle_since: Option<Instant>,
    /// Idle for this long, the roll is called next.
    next_roll: Duration,
    /// The deadline is over and the links are looked at for the last time.
    last_look: bool,
}

impl Clock {
    /// The operation begins. Reads no clock.
    pub fn start(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
        self.moved();
    }

    /// Something moved. Reads no clock.
    pub fn moved(&mut self) {
        self.idle_since = None;
        self.last_look = false;
        self.next_roll = self.timeout.map_or(Duration::MAX, first_roll);
    }

    /// For how long nothing has moved.
    pub fn idle(&self, now: Instant) -> Duration {
        self.idle_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// Nothing moved: says what is due.
    pub fn missed(&mut self, now: Instant) -> Due {
        self.idle_since.get_or_insert(now);
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
        Due::Nothing(self.timeout.map(|timeout| timeout.min(self.next_roll) - idle))
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
        clock.start(Some(TIMEOUT));
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
        clock.start(Some(TIMEOUT));
        let t = Instant::now();
        clock.missed(t);
        assert_eq!(clock.missed(t + TIMEOUT), Due::Consult);
        clock.moved();
        assert_eq!(clock.missed(t + TIMEOUT), Due::Nothing(Some(TIMEOUT / 2)));
        assert_eq!(clock.idle(t + TIMEOUT * 2), TIMEOUT);
        clock.start(None);
        clock.missed(t);
        assert_eq!(clock.missed(t + TIMEOUT * 1000), Due::Nothing(None));
    }
}
