//! Who is at fault when nothing moves: a judgement of the roll, the same on every rank that has the
//! same roll.

use crate::wire::{CallHeader, Message, Presence};

use super::peers::{Peers, Side};

/// Who holds a call up.
#[derive(Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether ranks wait for each other in calls that can't meet.
    pub differs: bool,
    /// None if it takes two, or if nobody can be named.
    pub rank: Option<usize>,
    /// What the roll shows.
    pub text: String,
}

impl Verdict {
    fn of(ranks: &[usize], text: String) -> Verdict {
        Verdict { differs: false, rank: Some(ranks[0]).filter(|_| ranks.len() == 1), text }
    }
}

/// The answers of all ranks, and the one that judges them. Its own answer is always there.
pub struct Jury<'a> {
    pub peers: &'a Peers,
    pub answers: &'a [Option<Presence>],
    /// The last collective of each rank that has destroyed its group: it answers no more.
    pub departed: &'a [Option<u64>],
}

impl Jury<'_> {
    fn size(&self) -> usize {
        self.answers.len()
    }

    fn next(&self, rank: usize, side: Side) -> usize {
        match side {
            Side::Right => (rank + 1) % self.size(),
            Side::Left => (rank + self.size() - 1) % self.size(),
        }
    }

    /// Why a collective doesn't end. Ranks may be a call apart, where some have done their part of
    /// the one that hangs: that is the earliest which anyone is in.
    pub fn on_collective(&self, call: &CallHeader) -> Verdict {
        let call = self.earliest(call);
        let verdict = self.silence().or_else(|| self.crossed(call)).or_else(|| self.absence(call));
        verdict.or_else(|| self.lossy_links(call.sequence)).unwrap_or_else(|| self.nobody())
    }

    /// The earliest collective that anyone is in, as far as is known.
    pub(super) fn earliest<'c>(&'c self, call: &'c CallHeader) -> &'c CallHeader {
        let running = self.answers.iter().flatten().filter_map(|presence| Some(&presence.call.as_ref()?.0));
        running.min_by_key(|header| header.sequence).unwrap_or(call)
    }

    fn departed(&self, rank: usize) -> Option<u64> {
        self.departed.get(rank).copied().flatten()
    }

    /// Ranks that don't answer. Of several, those next to ranks that did: the others may only be
    /// behind them.
    pub(super) fn silence(&self) -> Option<Verdict> {
        let heard = |rank: &usize| self.answers[*rank].is_some();
        let beside = |rank: usize| Side::BOTH.map(|side| self.next(rank, side)).into_iter().filter(heard);
        let silent = |rank: &usize| !heard(rank) && self.departed(*rank).is_none();
        let ranks: Vec<_> = (0..self.size()).filter(silent).collect();
        let first: Vec<_> = ranks.iter().copied().filter(|rank| beside(*rank).next().is_some()).collect();
        if first.is_empty() {
            return None;
        }
        let each = first.iter().map(|rank| {
            let mut known: Vec<_> = beside(*rank).collect();
            known.sort_unstable();
            known.dedup();
            let links = if known.len() == 1 { "link" } else { "links" };
            format!("{} does not answer on its {links} with {}", self.peers.name(*rank), names(&known))
        });
        let mut text = each.collect::<Vec<_>>().join("; ");
        let behind: Vec<_> = ranks.into_iter().filter(|rank| !first.contains(rank)).collect();
        if !behind.is_empty() {
            text += &format!("; behind them {} can't be heard", names(&behind));
        }
        Some(Verdict::of(&first, text))
    }

    /// A rank that waits for a message from, or to, one that waits for it in this collective.
    pub(super) fn crossed(&self, call: &CallHeader) -> Option<Verdict> {
        let late = (0..self.size()).filter_map(|rank| Some((rank, self.late(rank, call)?)));
        let mut waits = late.flat_map(|(rank, late)| blocked_in(late).map(move |message| (rank, message)));
        let (rank, message, peer) = waits.find_map(|(rank, message)| {
            let peer = message.peer as usize;
            let theirs = self.answers.get(peer)?.as_ref()?.call.as_ref()?.0;
            (theirs.sequence == call.sequence).then_some((rank, message, peer))
        })?;
        let way = if message.sends { "to" } else { "from" };
        let text = format!(
            "rank {rank} waits in {} {way} rank {peer} as message {}; rank {peer} called {call} as call {}",
            message.header, message.header.sequence, call.sequence
        );
        Some(Verdict { differs: true, rank: None, text })
    }

    /// What a rank does that has not come to this call; None if it has.
    pub(super) fn late(&self, rank: usize, call: &CallHeader) -> Option<&Presence> {
        let presence = self.answers[rank].as_ref()?;
        let there = presence.call.as_ref().map_or(presence.last, |(header, _)| header.sequence);
        (there < call.sequence).then_some(presence)
    }

    fn absence(&self, call: &CallHeader) -> Option<Verdict> {
        let absent = |rank: &usize| self.late(*rank, call).is_some();
        let ranks: Vec<_> = (0..self.size()).filter(absent).collect();
        let text = |rank: &usize| format!("{}; it has not made call {}", self.told(*rank), call.sequence);
        let texts: Vec<_> = ranks.iter().map(text).collect();
        (!ranks.is_empty()).then(|| Verdict::of(&ranks, texts.join("; ")))
    }

    /// Links on which less has arrived than was sent: both ends wait in the call, or one waits for
    /// what the other, which has done its part, must have sent.
    pub(super) fn lossy_edges(&self, sequence: u64) -> Vec<(usize, usize)> {
        let mut links: Vec<_> = (0..self.size())
            .flat_map(|rank| Side::BOTH.map(|side| (rank, side)))
            .filter(|(rank, side)| self.is_lossy(*rank, *side, sequence))
            .map(|(rank, side)| {
                let other = self.next(rank, side);
                (rank.min(other), rank.max(other))
            })
            .collect();
        links.sort_unstable();
        links.dedup();
        links
    }

    fn lossy_links(&self, sequence: u64) -> Option<Verdict> {
        let links = self.lossy_edges(sequence);
        let told = |(low, high): &(usize, usize)| {
            format!("what was sent on the link between rank {low} and rank {high} does not arrive")
        };
        let text = links.iter().map(told).collect::<Vec<_>>().join("; ");
        (!links.is_empty()).then_some(Verdict { differs: false, rank: None, text })
    }

    /// Whether what was sent to a rank from this side has not arrived.
    fn is_lossy(&self, rank: usize, side: Side, sequence: u64) -> bool {
        let traffic = |rank: usize| {
            let (header, traffic) = self.answers[rank].as_ref()?.call.as_ref()?;
            (header.sequence == sequence).then_some(traffic)
        };
        let sender = self.next(rank, side);
        match (traffic(rank), traffic(sender)) {
            (Some(here), Some(there)) => there.sent[side.opposite() as usize] > here.received[side as usize],
            (Some(here), None) => here.awaits[side as usize],
            (None, _) => false,
        }
    }

    fn nobody(&self) -> Verdict {
        let roll: Vec<_> = (0..self.size()).map(|rank| self.told(rank)).collect();
        Verdict { differs: false, rank: None, text: roll.join("; ") }
    }

    /// What a rank said that it does.
    pub(super) fn told(&self, rank: usize) -> String {
        let name = self.peers.name(rank);
        if let Some(last) = self.departed(rank) {
            return format!("{name} has destroyed its group after call {last}");
        }
        let Some(presence) = &self.answers[rank] else { return format!("{name} does not answer") };
        match (&presence.call, blocked_in(presence).next()) {
            (Some((header, _)), _) => format!("{name} waits in {header}, call {}", header.sequence),
            (None, Some(message)) => {
                let way = if message.sends { "to" } else { "from" };
                format!("{name} waits in {} {way} rank {}", message.header, message.peer)
            }
            (None, None) if presence.last == 0 => format!("{name} has made no call yet"),
            (None, None) => format!("{name} has made no call since call {}", presence.last),
        }
    }

    /// Why a message doesn't end: the peer's fault, or that of whom the peer waits for.
    pub fn on_message(&self, message: &Message) -> Verdict {
        let blamed = self.silence().or_else(|| self.follow(self.peers.rank, *message));
        blamed.unwrap_or_else(|| self.nobody())
    }

    /// Goes from peer to peer as they wait for each other; None where that leads to nobody who has answered.
    pub(super) fn follow(&self, mut rank: usize, mut message: Message) -> Option<Verdict> {
        for _ in 0..self.size() {
            let peer = message.peer as usize;
            let Some(Some(presence)) = self.answers.get(peer) else { break };
            if let Some((call, _)) =
                presence.call.as_ref().filter(|(call, _)| self.late(rank, call).is_some())
            {
                return self.crossed(call);
            }
            let back = |m: &&Message| m.peer as usize == rank;
            let meets =
                |m: &Message| m.sends != message.sends && m.header.sequence == message.header.sequence;
            if presence.messages.iter().filter(back).any(meets) {
                let (low, high) = (rank.min(peer), rank.max(peer));
                let text =
                    format!("the message between rank {low} and rank {high}, both in it, does not move");
                return Some(Verdict { differs: false, rank: None, text });
            }
            // A message back to this rank may be done, and wait for the other half of a send_recv.
            match blocked_in(presence).find(|m| !back(m)) {
                // What is not told of may be this message.
                _ if presence.has_more => break,
                Some(next) => (rank, message) = (peer, *next),
                None if blocked_in(presence).next().is_none() => {
                    let text = format!("{}; it has not come to this message", self.told(peer));
                    return Some(Verdict::of(&[peer], text));
                }
                None => break,
            }
        }
        None
    }
}

/// The messages that a rank waits in. Requests go on beside what it does, and hold it up nowhere.
fn blocked_in(presence: &Presence) -> impl Iterator<Item = &Message> {
    presence.messages.iter().filter(|message| !message.is_request)
}

/// `rank 1`, `ranks 1 and 3`, `ranks 1, 2 and 3`
pub(super) fn names(ranks: &[usize]) -> String {
    let numbers: Vec<_> = ranks.iter().map(usize::to_string).collect();
    match numbers.split_last() {
        Some((last, [])) => format!("rank {last}"),
        Some((last, others)) => format!("ranks {} and {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::wire::{Kind, Traffic};

    pub(in super::super) fn call(sequence: u64) -> CallHeader {
        CallHeader::new(Kind::Barrier, sequence)
    }

    pub(in super::super) fn idle(last: u64) -> Option<Presence> {
        Some(Presence { last, ..Presence::default() })
    }

    pub(in super::super) fn inside(sequence: u64) -> Option<Presence> {
        let call = Some((call(sequence), Traffic::default()));
        Some(Presence { last: sequence - 1, call, ..Presence::default() })
    }

    pub(in super::super) fn message(peer: u32, sends: bool) -> Message {
        let header = CallHeader { count: 5, ..CallHeader::new(Kind::Message, 3) };
        Message { peer, sends, is_request: false, header }
    }

    pub(in super::super) fn sending(last: u64, peer: u32, sends: bool) -> Option<Presence> {
        Some(Presence { last, messages: vec![message(peer, sends)], ..Presence::default() })
    }

    pub(in super::super) fn jury(rank: usize, answers: &[Option<Presence>]) -> Jury<'_> {
        let peers = Box::leak(Box::new(Peers { rank, size: answers.len(), addresses: Vec::new() }));
        Jury { peers, answers, departed: &[] }
    }

    fn judge(rank: usize, answers: &[Option<Presence>]) -> (Option<usize>, String) {
        let verdict = jury(rank, answers).on_collective(&call(17));
        assert!(!verdict.differs);
        (verdict.rank, verdict.text)
    }

    #[test]
    fn one_silent_rank_is_at_fault_wherever_it_is() {
        for size in 2..=8 {
            for silent in 0..size {
                for judging in (0..size).filter(|rank| *rank != silent) {
                    let mut answers = vec![inside(17); size];
                    answers[silent] = None;
                    // A rank that has not made the call is not at fault while another is silent.
                    if size > 2 {
                        answers[(0..size).find(|r| *r != silent && *r != judging).unwrap()] = idle(16);
                    }
                    let (rank, text) = judge(judging, &answers);
                    assert_eq!(rank, Some(silent), "{text}");
                    assert!(
                        text.starts_with(&format!("rank {silent} does not answer on its link")),
                        "{text}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_address_stands_beside_the_rank() {
        let addresses = ["192.0.2.1:5000", "192.0.2.2:5000"].map(|text| text.parse().ok()).to_vec();
        let peers = Peers { rank: 0, size: 2, addresses };
        let verdict =
            Jury { peers: &peers, answers: &[inside(17), None], departed: &[] }.on_collective(&call(17));
        assert_eq!(verdict.text, "rank 1 (192.0.2.2:5000) does not answer on its link with rank 0");
    }

    #[test]
    fn of_several_silent_ranks_those_next_to_answering_ones_are_named() {
        let mut answers = vec![inside(17); 8];
        for silent in [2, 3, 4, 5] {
            answers[silent] = None;
        }
        let (rank, text) = judge(0, &answers);
        assert_eq!(rank, None);
        assert_eq!(
            text,
            "rank 2 does not answer on its link with rank 1; rank 5 does not answer on its link with rank 6; \
             behind them ranks 3 and 4 can't be heard"
        );
    }

    #[test]
    fn a_rank_that_has_destroyed_its_group_is_not_silent() {
        // Rank 0 has left after the call in which rank 2 is stopped; rank 1 is behind both.
        let answers = [None, None, None, inside(17)];
        let departed = [Some(17), None, None, None];
        let verdict = Jury { departed: &departed, ..jury(3, &answers) }.on_collective(&call(17));
        assert_eq!(verdict.rank, Some(2));
        assert_eq!(
            verdict.text,
            "rank 2 does not answer on its link with rank 3; behind them rank 1 can't be heard"
        );
    }

    #[test]
    fn a_rank_that_has_not_made_the_call_is_at_fault() {
        let answers = [inside(17), inside(17), idle(16), inside(17)];
        let (rank, text) = judge(0, &answers);
        assert_eq!(rank, Some(2));
        assert_eq!(text, "rank 2 has made no call since call 16; it has not made call 17");
        let answers = [inside(17), idle(15), idle(16), idle(17)];
        assert_eq!(judge(0, &answers).0, None);
    }

    #[test]
    fn a_link_that_loses_is_named_by_both_ends() {
        let mut answers = vec![inside(17); 4];
        let traffic = |sent, received| Some((call(17), Traffic { sent, received, awaits: [false; 2] }));
        answers[1].as_mut().unwrap().call = traffic([900, 0], [0, 0]);
        answers[2].as_mut().unwrap().call = traffic([0, 0], [0, 700]);
        for rank in 0..4 {
            let (at_fault, text) = judge(rank, &answers);
            assert_eq!(at_fault, None);
            assert_eq!(text, "what was sent on the link between rank 1 and rank 2 does not arrive");
        }
        answers[1] = inside(17);
        answers[2] = inside(17);
        assert!(judge(0, &answers).1.contains("rank 3 waits in barrier(), call 17"));
    }

    #[test]
    fn ranks_a_call_apart_blame_the_link_on_which_the_earlier_hangs() {
        // Ranks 1 and 3 have done their part of call 17; what rank 1 sent to rank 2 was lost.
        let mut answers = [inside(18), inside(18), inside(17), inside(18)];
        answers[2].as_mut().unwrap().call =
            Some((call(17), Traffic { awaits: [false, true], ..Traffic::default() }));
        for rank in 0..4 {
            let verdict = jury(rank, &answers).on_collective(&call(18));
            assert_eq!(verdict.rank, None);
            assert_eq!(verdict.text, "what was sent on the link between rank 1 and rank 2 does not arrive");
        }
        // Rank 3 has not made call 17: the ranks in call 17 are not at fault.
        let answers = [inside(18), inside(17), inside(17), idle(16)];
        assert_eq!(jury(0, &answers).on_collective(&call(18)).rank, Some(3));
    }

    #[test]
    fn a_message_against_a_collective_differs() {
        let answers = [inside(17), sending(16, 0, false), inside(17)];
        for verdict in
            [jury(2, &answers).on_collective(&call(17)), jury(1, &answers).on_message(&message(0, false))]
        {
            assert!(verdict.differs);
            assert_eq!(
                verdict.text,
                "rank 1 waits in message(5) from rank 0 as message 3; rank 0 called barrier() as call 17"
            );
        }
    }

    #[test]
    fn a_request_holds_up_nobody_but_its_message() {
        let request = |peer, sends| Message { is_request: true, ..message(peer, sends) };
        let with =
            |last, peer, sends| Presence { messages: vec![request(peer, sends)], ..idle(last).unwrap() };
        // Rank 1, whose request waits for rank 0, has not come to the collective.
        let verdict = jury(2, &[inside(17), Some(with(16, 0, false)), inside(17)]).on_collective(&call(17));
        assert!(!verdict.differs && verdict.rank == Some(1));
        assert_eq!(verdict.text, "rank 1 has made no call since call 16; it has not made call 17");
        // Rank 1's request waits for rank 2: it could come to this message all the same.
        let on = |answers: &[Option<Presence>]| jury(0, answers).on_message(&message(1, false)).rank;
        assert_eq!(on(&[sending(4, 1, false), Some(with(4, 2, false)), idle(4)]), Some(1));
        // The message itself is a request there.
        assert_eq!(on(&[sending(4, 1, false), Some(with(4, 0, true)), idle(4)]), None);
    }

    #[test]
    fn a_message_waits_for_its_peer_or_for_whom_that_waits() {
        let on = |answers: &[Option<Presence>]| jury(0, answers).on_message(&message(1, false)).rank;
        assert_eq!(on(&[sending(4, 1, false), idle(4), idle(4)]), Some(1));
        assert_eq!(on(&[sending(4, 1, false), None, idle(4)]), Some(1));
        assert_eq!(on(&[sending(4, 1, false), sending(4, 2, true), idle(4)]), Some(2));
        assert_eq!(on(&[sending(4, 1, false), sending(4, 2, true), None]), Some(2));
        assert_eq!(on(&[sending(4, 1, false), sending(4, 0, true), idle(4)]), None);
        assert_eq!(on(&[sending(4, 1, false), sending(4, 2, false), sending(4, 1, false)]), None);
        // Rank 1 has sent an earlier message, and waits for rank 2 before it comes to the next.
        let earlier = Message { header: CallHeader::new(Kind::Message, 2), ..message(0, true) };
        let between = Presence { last: 4, messages: vec![earlier, message(2, false)], ..Presence::default() };
        assert_eq!(on(&[sending(4, 1, false), Some(between.clone()), idle(4)]), Some(2));
        assert_eq!(on(&[sending(4, 1, false), Some(between), None]), Some(2));
        // Rank 0 is in the collective, too, in another thread.
        let both = Presence { messages: vec![message(1, false)], ..inside(17).unwrap() };
        assert_eq!(on(&[Some(both.clone()), inside(17), None]), Some(2));
        assert_eq!(on(&[Some(both), inside(17), inside(17)]), Some(1));
    }
}
