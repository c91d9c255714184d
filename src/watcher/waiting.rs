//! What the roll shows of a call that waits, for a warning: it may end well, so that nobody is at fault.

use super::verdict::{Jury, names};
use crate::wire::{CallHeader, Message};

/// Ranks that are told of one by one; of more their number is enough.
const MOST_TOLD: usize = 8;

impl Jury<'_> {
    /// Who a collective waits for, and whether they have made it; false where nobody is missing.
    pub fn on_waiting_collective(&self, call: &CallHeader) -> (String, bool) {
        let call = self.earliest(call);
        let number = call.sequence;
        let mut parts: Vec<_> = self.silence().into_iter().map(|silence| silence.text).collect();
        if let Some(crossed) = self.crossed(call) {
            parts.push(crossed.text);
            return (parts.join("; "), true);
        }
        let (absent, present): (Vec<_>, Vec<_>) = (0..self.answers.len())
            .filter(|rank| self.answers[*rank].is_some())
            .partition(|rank| self.late(*rank, call).is_some());
        parts.extend(listed(absent, "ranks have not made it", |rank| {
            format!("{}; it has not made call {number}", self.told(rank))
        }));
        if parts.is_empty() {
            let lossy = self.lossy_edges(number).into_iter();
            let lossy = listed(lossy, "links", |(low, high)| {
                format!("what was sent on the link between rank {low} and rank {high} has not arrived yet")
            });
            return ([vec![format!("all ranks have made call {number}")], lossy].concat().join("; "), false);
        }
        let others: Vec<_> = present.into_iter().filter(|rank| *rank != self.peers.rank).collect();
        match others.len() {
            0 => {}
            1 => parts.push(format!("{} has made it", names(&others))),
            2..=MOST_TOLD => parts.push(format!("{} have made it", names(&others))),
            many => parts.push(format!("{many} other ranks have made it")),
        }
        (parts.join("; "), true)
    }

    /// Who a message waits for: its peer, or whom that waits for.
    pub fn on_waiting_message(&self, message: &Message) -> String {
        let peer = self.told(message.peer as usize);
        match self.follow(self.peers.rank, *message) {
            Some(verdict) if verdict.text.starts_with(&peer) => verdict.text,
            Some(verdict) => format!("{peer}; {}", verdict.text),
            // The peer itself, or whom it waits for, or a rank that has to do with neither.
            None => match self.silence() {
                Some(silence) if !silence.text.starts_with(&peer) => format!("{peer}; {}", silence.text),
                Some(silence) => silence.text,
                None => peer,
            },
        }
    }
}

/// The first of what there is, told of one by one, and how much more there is.
pub fn listed<T>(
    all: impl IntoIterator<Item = T>,
    what: &str,
    mut told: impl FnMut(T) -> String,
) -> Vec<String> {
    let mut all = all.into_iter();
    let mut texts: Vec<_> = all.by_ref().take(MOST_TOLD).map(&mut told).collect();
    let more = all.count();
    if more > 0 {
        texts.push(format!("{more} more {what}"));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::super::verdict::tests::{call, idle, inside, jury, message, sending};
    use crate::wire::{Presence, Traffic};

    fn waiting(rank: usize, answers: &[Option<Presence>]) -> (String, bool) {
        jury(rank, answers).on_waiting_collective(&call(17))
    }

    #[test]
    fn a_collective_names_who_has_not_made_it_and_who_has() {
        let missing = |text: &str| (text.to_owned(), true);
        assert_eq!(
            waiting(0, &[inside(17), inside(17), idle(16), inside(17)]),
            missing(
                "rank 2 has made no call since call 16; it has not made call 17; ranks 1 and 3 have made it"
            )
        );
        assert_eq!(
            waiting(0, &[inside(17), inside(17), None]),
            missing("rank 2 does not answer on its links with ranks 0 and 1; rank 1 has made it")
        );
        assert_eq!(
            waiting(0, &[inside(17), idle(16)]),
            missing("rank 1 has made no call since call 16; it has not made call 17")
        );
        // Both: silent and late ranks.
        let (text, _) = waiting(0, &[inside(17), None, idle(15), inside(18), idle(16)]);
        assert!(text.starts_with("rank 1 does not answer on its links with ranks 0 and 2; "), "{text}");
        assert!(
            text.ends_with(
                "rank 2 has made no call since call 15; it has not made call 17; \
                 rank 4 has made no call since call 16; it has not made call 17; rank 3 has made it"
            ),
            "{text}"
        );
        // A call ahead, it waits for what holds the earlier call up.
        let (text, _) = jury(0, &[inside(18), inside(17), idle(16)]).on_waiting_collective(&call(18));
        assert!(text.contains("it has not made call 17; rank 1 has made it"), "{text}");
    }

    #[test]
    fn where_all_have_made_it_the_links_are_what_is_left() {
        let mut answers = vec![inside(17); 3];
        assert_eq!(waiting(1, &answers), ("all ranks have made call 17".to_owned(), false));
        let sent = Traffic { sent: [900, 0], ..Traffic::default() };
        answers[1].as_mut().unwrap().call = Some((call(17), sent));
        let text = "all ranks have made call 17; \
                    what was sent on the link between rank 1 and rank 2 has not arrived yet";
        assert_eq!(waiting(0, &answers), (text.to_owned(), false));
    }

    #[test]
    fn of_many_ranks_some_are_told_of() {
        let mut answers = vec![idle(16); 40];
        answers[3] = inside(17);
        let (text, _) = waiting(3, &answers);
        assert!(text.contains("rank 8 has made no call") && !text.contains("rank 9 "), "{text}");
        assert!(text.ends_with("; 31 more ranks have not made it"), "{text}");
        let mut answers = vec![inside(17); 40];
        answers[39] = None;
        assert!(waiting(0, &answers).0.ends_with("; 38 other ranks have made it"));
    }

    #[test]
    fn a_rank_in_a_message_that_the_collective_never_meets_is_told_with_both() {
        let (text, is_missing) = waiting(2, &[inside(17), sending(16, 0, false), inside(17)]);
        assert!(is_missing);
        assert_eq!(
            text,
            "rank 1 waits in message(5) from rank 0 as message 3; rank 0 called barrier() as call 17"
        );
    }

    #[test]
    fn a_message_names_its_peer_and_whom_that_waits_for() {
        let on = |answers: &[Option<Presence>]| jury(0, answers).on_waiting_message(&message(1, false));
        let waits = sending(4, 1, false);
        let late = "rank 1 has made no call since call 4; it has not come to this message";
        assert_eq!(on(&[waits.clone(), idle(4), idle(4)]), late);
        // A silent rank that has nothing to do with it.
        assert_eq!(on(&[waits.clone(), idle(4), idle(4), None]), late);
        assert_eq!(
            on(&[waits.clone(), None, idle(4)]),
            "rank 1 does not answer on its links with ranks 0 and 2"
        );
        assert_eq!(
            on(&[waits.clone(), sending(4, 2, true), idle(4)]),
            "rank 1 waits in message(5) to rank 2; \
             rank 2 has made no call since call 4; it has not come to this message"
        );
        assert_eq!(
            on(&[waits.clone(), sending(4, 2, true), None]),
            "rank 1 waits in message(5) to rank 2; rank 2 does not answer on its links with ranks 0 and 1"
        );
        assert_eq!(
            on(&[waits, inside(5), inside(5)]),
            "rank 1 waits in barrier(), call 5; \
             rank 0 waits in message(5) from rank 1 as message 3; rank 1 called barrier() as call 5"
        );
    }
}
