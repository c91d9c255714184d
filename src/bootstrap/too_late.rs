//! The text of a ring that did not form in time.

use crate::bootstrap::forming::Forming;
use crate::bootstrap::gossip::{Gaps, Missing};
use crate::error::{Error, Status, os_words};

impl Forming<'_> {
    /// Which ranks are known to be missing, and which this one could not hear of.
    pub(super) fn too_late(&self) -> Error {
        if let Some(deaf) = self.listening.iter().find(|l| !l.is_listening()) {
            return deaf.error();
        }
        let waited = self.config.connect_timeout.unwrap_or_default().as_millis();
        let late =
            |parts: Vec<String>| format!("the ring did not form within {waited} ms: {}", parts.join("; "));
        if let Some(error) = self.visitors.exhausted().filter(|_| !self.visitors.is_complete()) {
            let text = late(vec![format!("accepting connections: {}", os_words(error))]);
            return Error::new(Status::System, text).with_os(error);
        }
        let (gaps, late_links, first) = match &self.before {
            Some(before) => (before.gaps.clone(), before.late_links.clone(), Some(&before.first)),
            None => (self.gossip.gaps(), self.late_links(), None),
        };
        let mut parts = self.parts(&gaps);
        let mut rank = gaps.missing.first().map(|missing| missing.rank);
        if let Some(first) = first.filter(|_| gaps.is_closed()) {
            let teller = first.detected_by.map_or("a rank".to_owned(), |rank| format!("rank {rank}"));
            parts.push(format!("{teller} gave up: {}", first.text));
            rank = rank.or(first.rank);
        }
        for (neighbour, text) in late_links {
            parts.push(text);
            rank = rank.or(Some(neighbour));
        }
        let mut status = Status::ConnectFailed;
        if let Some(impostor) = self.visitors.impostor() {
            (status, rank) = (Status::AuthFailed, Some(self.left));
            parts.insert(0, impostor);
        }
        parts.extend(self.visitors.strangers_text());
        let late_dial = self.dials.iter().find(|dial| !dial.is_done());
        let os_error = late_dial.map_or(0, |dial| dial.trouble().1);
        Error { rank, os_error, ..Error::new(status, late(parts)) }
    }

    /// Neighbours that are there themselves, but lack further links.
    pub(super) fn late_links(&self) -> Vec<(usize, String)> {
        let mut late = Vec::new();
        let dial = self.dials.iter().find(|dial| !dial.is_done());
        if let Some(dial) = dial.filter(|_| self.control.is_some()) {
            let trouble = dial.trouble().0;
            let text = format!("rank {} (right neighbour) could not be reached at {trouble}", self.right);
            late.push((self.right, text));
        }
        if !self.visitors.is_complete() && self.visitors.control.is_some() {
            let own = &self.config.entries[self.config.rank];
            let lanes = self.visitors.missing_lanes();
            let mut to: Vec<_> = lanes.map(|lane| usize::from(lane) / self.config.connections).collect();
            to.dedup();
            if to.is_empty() {
                // Messages go by the first.
                to.push(0);
            }
            let to: Vec<_> = to.into_iter().map(|address| own[address].to_string()).collect();
            let text = format!(
                "rank {} (left neighbour) has not made all of its connections to {}",
                self.left,
                to.join(", ")
            );
            late.push((self.left, text));
        }
        late
    }

    fn parts(&self, gaps: &Gaps) -> Vec<String> {
        let mut parts: Vec<_> = gaps.missing.iter().flat_map(|missing| self.missing(missing)).collect();
        parts.extend(gaps.apart.iter().map(|edge| self.apart(*edge)));
        if !gaps.not_heard_of.is_empty() {
            parts.push(format!("nothing was heard of {}", ranks(&gaps.not_heard_of)));
        }
        let others: Vec<_> =
            gaps.not_confirmed.iter().copied().filter(|rank| *rank != self.config.rank).collect();
        if !others.is_empty() {
            parts.push(format!("{} did not get ready", ranks(&others)));
        }
        parts
    }

    /// Two neighbours of which both are heard of.
    fn apart(&self, (left, right): (usize, usize)) -> String {
        let me = self.config.rank;
        if left == me && self.control.is_none() {
            let trouble = self.dials[0].trouble().0;
            return format!("rank {right} (right neighbour) is there, but could not be reached at {trouble}");
        }
        if right == me && self.visitors.control.is_none() {
            return format!("rank {left} (left neighbour) is there, but has not connected to {}", self.own());
        }
        format!("rank {left} and rank {right} are there, but not connected with each other")
    }

    /// This rank's own addresses.
    fn own(&self) -> String {
        let own: Vec<_> = self.config.entries[self.config.rank].iter().map(ToString::to_string).collect();
        own.join(", ")
    }

    /// A missing rank in the words of those who look for it.
    fn missing(&self, missing: &Missing) -> Vec<String> {
        let (me, rank) = (self.config.rank, missing.rank);
        let mut told = Vec::new();
        let mut words = Vec::new();
        match missing.not_reached_by {
            Some((by, _)) if by == me => {
                let trouble = self.dials[0].trouble().0;
                words.push(format!("rank {rank} (right neighbour) could not be reached at {trouble}"));
            }
            Some((by, Some(address))) => told.push(format!("rank {by} could not reach it at {address}")),
            Some((by, None)) => told.push(format!("rank {by} could not reach it")),
            None => {}
        }
        match missing.not_come_to {
            Some(by) if by == me => {
                words.push(format!("rank {rank} (left neighbour) has not connected to {}", self.own()));
            }
            Some(by) => told.push(format!("it has not connected to rank {by}")),
            None => {}
        }
        match words.last_mut() {
            Some(last) if !told.is_empty() => last.push_str(&format!(" ({})", told.join(", "))),
            None => words.push(format!("rank {rank} is missing ({})", told.join(", "))),
            _ => {}
        }
        words
    }
}

pub fn ranks(ranks: &[usize]) -> String {
    let shown: Vec<_> = ranks.iter().map(usize::to_string).collect();
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, shown.join(", "))
}
