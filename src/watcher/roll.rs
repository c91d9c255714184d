//! The roll: what every rank said it does, when it was last asked.

use std::time::{Duration, Instant};

use crate::wire::Presence;

/// A roll is called anew at most this often, whoever asks.
const INTERVAL: Duration = Duration::from_millis(900);
/// An answer takes microseconds, and on a host with far more processes than cores this long. A rank that left
/// the round before unanswered has had its time since then.
const PATIENCE: Duration = Duration::from_millis(500);
/// An older roll tells nothing of now.
const FRESH: Duration = Duration::from_millis(2500);

/// The latest round.
#[derive(Clone, Debug)]
pub struct Roll {
    round: u32,
    called: Option<Instant>,
    /// By rank; None where nothing was heard.
    answers: Vec<Option<Presence>>,
    /// By rank: when the first of the rounds was called that it left unanswered without a pause.
    asked: Vec<Option<Instant>>,
}

impl Roll {
    /// No round yet.
    pub fn new(ranks: usize) -> Roll {
        Roll { round: 0, called: None, answers: vec![None; ranks], asked: vec![None; ranks] }
    }

    /// The number of a new round, unless the latest is young enough.
    pub fn due(&self, now: Instant) -> Option<u32> {
        let young = self.called.is_some_and(|called| now.saturating_duration_since(called) < INTERVAL);
        (!young).then(|| self.round.wrapping_add(1))
    }

    /// Begins a round that is newer than the latest; false for one that isn't. Of two numbers the newer is
    /// the one that is less than half of all numbers ahead, so that there is one after each.
    pub fn begin(&mut self, round: u32, now: Instant) -> bool {
        if round.wrapping_sub(self.round) as i32 <= 0 {
            return false;
        }
        let is_fresh = self.is_fresh(now);
        for (asked, answer) in self.asked.iter_mut().zip(&mut self.answers) {
            let is_silent = answer.take().is_none() && is_fresh;
            *asked = asked.filter(|_| is_silent).or(Some(now));
        }
        (self.round, self.called) = (round, Some(now));
        true
    }

    /// Notes an answer; false if it is known, or of another round.
    pub fn note(&mut self, round: u32, rank: usize, presence: Presence) -> bool {
        match self.answers.get_mut(rank) {
            Some(answer @ None) if round == self.round && self.called.is_some() => {
                *answer = Some(presence);
                true
            }
            _ => false,
        }
    }

    /// How long to wait before the roll may be judged; None if it is too old to be.
    pub fn ripens(&self, now: Instant) -> Option<Duration> {
        if !self.is_fresh(now) {
            return None;
        }
        let silent = self.asked.iter().zip(&self.answers).filter(|(_, answer)| answer.is_none());
        let last_asked = silent.filter_map(|(asked, _)| *asked).max();
        Some(last_asked.map_or(Duration::ZERO, |asked| (asked + PATIENCE).saturating_duration_since(now)))
    }

    /// Whether a rank has answered the latest round, and that was called since then.
    pub fn has_answered(&self, rank: usize, since: Instant) -> bool {
        let is_known = self.answers.get(rank).is_some_and(Option::is_some);
        is_known && self.is_since(since)
    }

    /// Whether the latest round was called since then.
    pub fn is_since(&self, since: Instant) -> bool {
        self.called.is_some_and(|called| called >= since)
    }

    fn is_fresh(&self, now: Instant) -> bool {
        self.called.is_some_and(|called| now.saturating_duration_since(called) <= FRESH)
    }

    /// The latest round's number.
    #[cfg(test)]
    pub fn round(&self) -> u32 {
        self.round
    }

    /// By rank; None where nothing was heard.
    pub fn answers(&self) -> &[Option<Presence>] {
        &self.answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_counts_its_own_answers_alone() {
        let now = Instant::now();
        let mut roll = Roll::new(2);
        assert_eq!((roll.due(now), roll.ripens(now)), (Some(1), None));
        assert!(!roll.note(0, 0, Presence::default()));
        assert!(roll.begin(7, now) && !roll.begin(7, now) && !roll.begin(6, now));
        assert!(roll.note(7, 1, Presence::default()) && !roll.note(7, 1, Presence::default()));
        assert!(!roll.note(6, 0, Presence::default()) && !roll.note(7, 2, Presence::default()));
        assert_eq!(roll.ripens(now), Some(PATIENCE));
        assert_eq!(roll.ripens(now + PATIENCE), Some(Duration::ZERO));
        assert_eq!(roll.ripens(now + FRESH * 2), None);
        assert!(roll.note(7, 0, Presence::default()));
        assert_eq!(roll.ripens(now), Some(Duration::ZERO));
        assert_eq!((roll.due(now), roll.due(now + INTERVAL)), (None, Some(8)));
    }

    #[test]
    fn silence_counts_from_the_first_round_that_was_left_unanswered() {
        let start = Instant::now();
        let ms = |ms| start + Duration::from_millis(ms);
        let mut roll = Roll::new(3);
        assert!(roll.begin(1, ms(0)) && roll.note(1, 0, Presence::default()));
        assert!(roll.note(1, 1, Presence::default()) && roll.begin(2, ms(1000)));
        // Rank 2 has been silent for a second, but the others have only just been asked.
        assert_eq!(roll.ripens(ms(1000)), Some(PATIENCE));
        assert!(roll.note(2, 0, Presence::default()));
        assert_eq!(roll.ripens(ms(1100)), Some(PATIENCE - Duration::from_millis(100)));
        assert!(roll.note(2, 1, Presence::default()));
        assert_eq!(roll.ripens(ms(1000)), Some(Duration::ZERO));
        // What nobody asked about for a while is forgotten.
        assert!(roll.begin(3, ms(1000) + FRESH * 2));
        assert!(roll.note(3, 0, Presence::default()) && roll.note(3, 1, Presence::default()));
        assert_eq!(roll.ripens(ms(1000) + FRESH * 2), Some(PATIENCE));
    }

    #[test]
    fn rounds_go_on_past_the_largest() {
        let now = Instant::now();
        let mut roll = Roll::new(2);
        for round in [1 << 30, 1 << 31, 3 << 30, u32::MAX, 0, 1] {
            assert!(roll.begin(round, now), "{round}");
        }
    }
}
