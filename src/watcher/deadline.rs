//! What a call asks of its group's health when its deadline nears: what the others do, and who holds it up.

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use super::health::{Health, State};
use super::verdict::{Jury, Verdict};
use crate::wire::{CallHeader, Message};

/// At a deadline the roll is waited for no longer, even where rounds are called faster than they can be
/// answered: a call may outlast its deadline by a second.
const HEARING: Duration = Duration::from_millis(900);
/// While a warning waits for a roll, its answers are looked for this often: they come to the watcher.
const SURVEY_LOOK: Duration = Duration::from_millis(10);
/// How much older than a warning's time its roll may be: a rank that has come since then would be said to be missing.
const SURVEY_AGE: Duration = Duration::from_millis(100);

impl Health {
    /// Asks every rank what it does, unless they were asked just now.
    pub fn call_roll(&self) {
        if !self.hears() {
            return;
        }
        self.act(|spread| spread.call_roll(Instant::now()));
    }

    /// Whether a rank has answered a roll that was called since then; calls one if it hasn't.
    pub fn has_answered(&self, rank: usize, since: Instant) -> bool {
        let has_answered = self.state().spread.roll().has_answered(rank, since);
        if !has_answered {
            self.call_roll();
        }
        has_answered
    }

    /// At a deadline: reads the control links, and sees to it that the roll is fresh and has had its
    /// time.
    pub fn consult(&self) {
        if self.hears() {
            drop(self.state_with_ripe_roll());
        }
    }

    /// The same without waiting: for how long at most the roll is still to be waited for, which has been since
    /// `since`. This rank's watcher reads the answers meanwhile.
    pub fn hear(&self, since: Instant) -> Duration {
        let mut state = self.state();
        self.read(&mut state);
        let now = Instant::now();
        let end = since + HEARING;
        if !self.hears() || state.failing_since.is_some() || self.stop.is_raised() || now >= end {
            return Duration::ZERO;
        }
        if state.spread.roll().ripens(now).is_none() {
            state.spread.call_roll(now);
            self.publish(&mut state);
        }
        state.spread.roll().ripens(now).unwrap_or_default().min(end - now)
    }

    fn state_with_ripe_roll(&self) -> MutexGuard<'_, State> {
        let end = Instant::now() + HEARING;
        let mut state = self.state();
        loop {
            self.read(&mut state);
            let now = Instant::now();
            match state.spread.roll().ripens(now) {
                _ if state.failing_since.is_some() || self.stop.is_raised() || now >= end => return state,
                Some(Duration::ZERO) => return state,
                Some(left) => state = self.wait(state, left),
                None => {
                    state.spread.call_roll(now);
                    self.publish(&mut state);
                }
            }
        }
    }

    /// Who holds a collective up, by the latest roll.
    pub fn judge_collective(&self, call: &CallHeader) -> Verdict {
        self.judge(|jury| jury.on_collective(call))
    }

    /// Who holds a message up, by the latest roll.
    pub fn judge_message(&self, message: &Message) -> Verdict {
        self.judge(|jury| jury.on_message(message))
    }

    /// What the ranks do while a call has stood still since `since`, so that a warning was due at `due`. Waits for
    /// nothing: Err says after how long to ask again, since the roll has to be called first and have its time. None
    /// where there is nothing to warn of any more.
    pub fn survey<T>(
        &self,
        since: Instant,
        due: Instant,
        judge: impl FnOnce(&Jury<'_>) -> T,
    ) -> Result<Option<T>, Duration> {
        let mut state = self.state();
        self.read(&mut state);
        if state.failing_since.is_some() || self.stop.is_raised() {
            return Ok(None);
        }
        let now = Instant::now();
        // Ranks that wait for one and the same rank come to ask at about one time: a roll is for all of them, and who comes
        // later waits for the next. One from before the standstill has this rank elsewhere.
        let young = due.checked_sub(SURVEY_AGE).unwrap_or(since).max(since);
        let ripens = |state: &State| {
            let roll = state.spread.roll();
            roll.ripens(now).filter(|_| roll.is_since(young))
        };
        if ripens(&state).is_none() {
            state.spread.call_roll(now);
            self.publish(&mut state);
        }
        match ripens(&state) {
            Some(Duration::ZERO) => Ok(Some(judge(&state.spread.jury()))),
            left => Err(left.unwrap_or(SURVEY_LOOK).min(SURVEY_LOOK)),
        }
    }

    fn judge(&self, judge: impl FnOnce(&Jury<'_>) -> Verdict) -> Verdict {
        // Another rank may have begun a round since this one consulted the last, to which nobody has
        // answered yet.
        let state = self.state_with_ripe_roll();
        judge(&state.spread.jury())
    }
}

#[cfg(test)]
mod tests {
    use super::super::health::tests::rank_and_peer;
    use super::super::verdict::tests::inside;
    use super::*;
    use crate::frames::FrameLink;
    use crate::sys;
    use crate::wire::{Frame, Kind, Presence};

    fn await_frame(peer: &mut FrameLink, wanted: &Frame) {
        while peer.read().unwrap().as_ref() != Some(wanted) {
            let arrived = sys::poll(&mut [peer.waits().unwrap()], Some(Duration::from_secs(10)));
            assert!(arrived.unwrap(), "{wanted:?} does not come");
        }
    }

    #[test]
    fn a_roll_that_another_rank_calls_before_the_verdict_has_its_time() {
        let (health, mut peer) = rank_and_peer();
        let call = CallHeader::new(Kind::Barrier, 1);
        let answer = |round| Frame::Present { round, rank: 1, presence: Presence::default() };
        health.enter(call);
        health.call_roll();
        await_frame(&mut peer, &Frame::RollCall { round: 1 });
        peer.send(&answer(1));
        health.consult();
        peer.send(&Frame::RollCall { round: 2 });
        while health.state().spread.roll().answers()[1].is_some() {
            health.attend();
        }
        peer.send(&answer(2));
        let verdict = health.judge_collective(&call);
        assert_eq!(verdict.text, "rank 1 has made no call yet; it has not made call 1");
    }

    #[test]
    fn a_survey_waits_for_answers_of_the_standstill_and_fails_nothing() {
        let (health, mut peer) = rank_and_peer();
        let call = CallHeader::new(Kind::Barrier, 1);
        let answer = |round| Frame::Present { round, rank: 1, presence: Presence::default() };
        // A roll from before the call shows neither rank in it.
        health.call_roll();
        await_frame(&mut peer, &Frame::RollCall { round: 1 });
        peer.send(&answer(1));
        health.enter(call);
        let since = Instant::now();
        let survey = || health.survey(since, since, |jury| jury.on_waiting_collective(&call).0);
        let surveyed = loop {
            match survey() {
                Ok(text) => break text,
                Err(left) => std::thread::sleep(left),
            }
            while let Some(frame) = peer.read().unwrap() {
                if frame == (Frame::RollCall { round: 2 }) {
                    peer.send(&answer(2));
                }
            }
        };
        assert_eq!(health.round(), 2);
        assert_eq!(surveyed.as_deref(), Some("rank 1 has made no call yet; it has not made call 1"));
        assert!(health.failure().is_none());
        health.abort();
        assert_eq!(survey(), Ok(None));
    }

    #[test]
    fn a_survey_takes_no_roll_from_long_before_its_time() {
        let (health, mut peer) = rank_and_peer();
        let call = CallHeader::new(Kind::Barrier, 1);
        let answer = |round, presence| Frame::Present { round, rank: 1, presence };
        let since = Instant::now();
        health.enter(call);
        health.call_roll();
        await_frame(&mut peer, &Frame::RollCall { round: 1 });
        peer.send(&answer(1, Presence::default()));
        while health.state().spread.roll().answers()[1].is_none() {
            health.attend();
        }
        // The peer enters the call after it has answered.
        let due = since + SURVEY_AGE * 2;
        std::thread::sleep(due - Instant::now());
        let surveyed = loop {
            match health.survey(since, due, |jury| jury.on_waiting_collective(&call).0) {
                Ok(text) => break text,
                Err(left) => std::thread::sleep(left),
            }
            while let Some(frame) = peer.read().unwrap() {
                if frame == (Frame::RollCall { round: 2 }) {
                    peer.send(&answer(2, inside(1).unwrap()));
                }
            }
        };
        assert_eq!(surveyed.as_deref(), Some("all ranks have made call 1"));
    }
}
