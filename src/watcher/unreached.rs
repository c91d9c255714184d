//! Messages and splits for which no link could be made: what is passed on of them, and what is kept until somebody
//! asks for it.

use std::collections::{HashMap, VecDeque};

use crate::wire::{EVERYBODY, Unreached};

/// What a rank knows of them.
#[derive(Default)]
pub struct NotSent {
    /// By sender and receiver, the number of the last one that was heard of: a sender's come in order, whichever
    /// way round.
    heard: HashMap<(u32, u32), u64>,
    /// Those to this rank, by sender, in order.
    kept: HashMap<u32, VecDeque<Run>>,
    /// What was heard first of the latest split that failed.
    split: Option<Unreached>,
}

/// Messages one after the other that failed for one reason, so that a sender that tries for hours costs nothing.
struct Run {
    first: Unreached,
    last: u64,
}

impl NotSent {
    /// Takes in a word; whether it is news, which goes on.
    pub fn hear(&mut self, word: &Unreached, rank: u32) -> bool {
        let heard = self.heard.entry((word.from, word.to)).or_default();
        if word.number <= *heard {
            return false;
        }
        *heard = word.number;
        if word.to == EVERYBODY && self.split.as_ref().is_none_or(|split| split.number < word.number) {
            self.split = Some(word.clone());
        }
        if word.to == rank {
            let runs = self.kept.entry(word.from).or_default();
            match runs.back_mut() {
                Some(run) if run.last + 1 == word.number && run.first.text == word.text => run.last += 1,
                _ => runs.push_back(Run { first: word.clone(), last: word.number }),
            }
        }
        true
    }

    /// Why the split of this number can't be made.
    pub fn find_split(&self, number: u64) -> Option<&Unreached> {
        self.split.as_ref().filter(|split| split.number == number)
    }

    /// Why the message of this number never comes; forgets what was said of those before.
    pub fn find(&mut self, from: u32, number: u64) -> Option<Unreached> {
        let runs = self.kept.get_mut(&from)?;
        while runs.front().is_some_and(|run| run.last < number) {
            runs.pop_front();
        }
        let run = runs.front().filter(|run| run.first.number <= number)?;
        Some(Unreached { number, ..run.first.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(to: u32, number: u64, text: &str) -> Unreached {
        Unreached { from: 4, to, number, os_error: 111, text: text.to_owned() }
    }

    #[test]
    fn each_is_news_once_and_kept_until_it_is_asked_for() {
        let mut known = NotSent::default();
        assert!(known.hear(&word(1, 1, "refused"), 1) && known.hear(&word(1, 2, "refused"), 1));
        assert!(!known.hear(&word(1, 1, "refused"), 1) && !known.hear(&word(1, 2, "refused"), 1));
        assert!(known.hear(&word(1, 3, "silent"), 1) && known.hear(&word(1, 6, "silent"), 1));
        assert!(known.hear(&word(2, 5, "refused"), 1));
        assert_eq!(known.kept[&4].len(), 3);
        assert_eq!(known.find(4, 1), Some(word(1, 1, "refused")));
        assert_eq!(known.find(4, 1), Some(word(1, 1, "refused")));
        assert_eq!(known.find(4, 2), Some(word(1, 2, "refused")));
        assert_eq!(known.find(4, 3), Some(word(1, 3, "silent")));
        assert_eq!((known.find(4, 4), known.find(4, 5)), (None, None));
        assert_eq!(known.find(4, 6), Some(word(1, 6, "silent")));
        assert_eq!((known.find(4, 7), known.find(2, 1)), (None, None));
        assert!(known.kept[&4].is_empty());
        assert!(known.hear(&word(EVERYBODY, 9, "refused"), 1));
        let later = Unreached { from: 3, ..word(EVERYBODY, 9, "later") };
        assert!(known.hear(&later, 1) && !known.hear(&later, 1));
        assert_eq!((known.find_split(9), known.find_split(8)), (Some(&word(EVERYBODY, 9, "refused")), None));
    }
}
