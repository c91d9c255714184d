//! Whom a rank knows of while the ring forms, as pure data: each process tells which processes its
//! neighbours are, everyone passes on what is news to it, and the ring is there once these claims
//! close.

use std::net::SocketAddr;

use crate::wire::{Frame, Member, group_id};

/// Processes of one rank that are remembered: one that restarts leaves its old selves behind, whose
/// word may arrive after that of the new one.
const MAX_RUNS: usize = 16;
/// Group ids that are remembered of one rank, for the same reason.
const MAX_CONFIRMED: usize = 4;

const NOBODY: [u8; 16] = [0; 16];

/// The places of a member's neighbours.
pub const RIGHT: usize = 0;
pub const LEFT: usize = 1;

/// What this rank knows.
pub struct Gossip {
    own: Member,
    /// By rank; without this process.
    known: Vec<Vec<Member>>,
    /// By rank, this one included.
    confirmed: Vec<Vec<[u8; 16]>>,
    /// Set when this rank has confirmed.
    group: Option<[u8; 16]>,
}

/// A rank that nobody who is heard of is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub rank: usize,
    /// The left neighbour, if it is the one who says so, and where it looks for the rank.
    pub not_reached_by: Option<(usize, Option<SocketAddr>)>,
    /// The right neighbour, if it is the one who says so.
    pub not_come_to: Option<usize>,
}

/// What keeps the ring from being complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    pub missing: Vec<Missing>,
    /// Ranks of which this one can't know.
    pub not_heard_of: Vec<usize>,
    /// Neighbours that are both heard of, but not connected with each other.
    pub apart: Vec<(usize, usize)>,
    /// Of a ring without gaps, the ranks that haven't said so.
    pub not_confirmed: Vec<usize>,
}

impl Gaps {
    /// Whether nobody is known to be missing, unheard of or apart.
    pub fn is_closed(&self) -> bool {
        self.missing.is_empty() && self.not_heard_of.is_empty() && self.apart.is_empty()
    }
}

/// Where a walk from neighbour to neighbour ends.
struct Walk {
    /// Ranks that were met after the first.
    steps: usize,
    /// Whether the last one says that it has no neighbour there; otherwise its word hasn't come.
    told: bool,
    /// Where the last one looks for its right neighbour.
    address: Option<SocketAddr>,
}

impl Gossip {
    pub fn new(own: Member, size: usize) -> Gossip {
        let own = Member { version: 1, ..own };
        Gossip { own, known: vec![Vec::new(); size], confirmed: vec![Vec::new(); size], group: None }
    }

    fn size(&self) -> usize {
        self.known.len()
    }

    fn me(&self) -> usize {
        self.own.rank as usize
    }

    fn rank_at(&self, side: usize) -> usize {
        let step = [1, self.size() - 1][side];
        (self.me() + step) % self.size()
    }

    /// Notes which process the link on a side leads to, or that there is none; what is to be told
    /// to both sides, if that is news.
    pub fn connected(&mut self, side: usize, nonce: Option<[u8; 16]>) -> Option<Frame> {
        let neighbour = nonce.unwrap_or(NOBODY);
        if self.own.neighbours[side] == neighbour {
            return None;
        }
        self.own.neighbours[side] = neighbour;
        self.own.version += 1;
        Some(Frame::Known(self.own.clone()))
    }

    /// Notes where the right neighbour is looked for.
    pub fn looks_at(&mut self, address: SocketAddr) -> Option<Frame> {
        if self.own.right_address == Some(address) {
            return None;
        }
        self.own.right_address = Some(address);
        self.own.version += 1;
        Some(Frame::Known(self.own.clone()))
    }

    /// Takes in what a neighbour has told; whether it is news, which goes on to the other side.
    pub fn hear(&mut self, frame: &Frame) -> bool {
        match frame {
            Frame::Known(member) => self.hear_of(member),
            Frame::Confirmed { rank, group } => self.hear_confirmed(*rank as usize, *group),
            _ => false,
        }
    }

    /// Whether the frame is a process's first word.
    pub fn is_newcomer(&self, frame: &Frame) -> bool {
        let Frame::Known(member) = frame else { return false };
        (member.rank as usize) < self.size() && self.find(member.rank as usize, &member.nonce).is_none()
    }

    fn hear_of(&mut self, member: &Member) -> bool {
        if member.rank as usize >= self.size() || member.nonce == self.own.nonce {
            return false;
        }
        let rank = member.rank as usize;
        if let Some(old) = self.known[rank].iter_mut().find(|old| old.nonce == member.nonce) {
            let is_news = member.version > old.version;
            if is_news {
                *old = member.clone();
            }
            return is_news;
        }
        if self.known[rank].len() == MAX_RUNS {
            let claimed = |run: &Member| self.members().any(|m| m.neighbours.contains(&run.nonce));
            let stale = self.known[rank].iter().position(|run| !claimed(run)).unwrap_or(0);
            self.known[rank].remove(stale);
        }
        self.known[rank].push(member.clone());
        true
    }

    fn hear_confirmed(&mut self, rank: usize, group: [u8; 16]) -> bool {
        let Some(groups) = self.confirmed.get_mut(rank) else { return false };
        if groups.contains(&group) {
            return false;
        }
        if groups.len() == MAX_CONFIRMED {
            groups.remove(0);
        }
        groups.push(group);
        true
    }

    fn members(&self) -> impl Iterator<Item = &Member> {
        self.known.iter().flatten().chain([&self.own])
    }

    /// What a neighbour is told when its link comes to stand.
    pub fn everything(&self) -> Vec<Frame> {
        let members = self.members().cloned().map(Frame::Known);
        let confirmed = self.confirmed.iter().enumerate().flat_map(|(rank, groups)| {
            groups.iter().map(move |group| Frame::Confirmed { rank: rank as u32, group: *group })
        });
        members.chain(confirmed).collect()
    }

    /// The member of a rank with this nonce.
    fn find(&self, rank: usize, nonce: &[u8; 16]) -> Option<&Member> {
        if rank == self.me() && *nonce == self.own.nonce {
            return Some(&self.own);
        }
        self.known[rank].iter().find(|member| member.nonce == *nonce)
    }

    /// The ring's members in the order of ranks, if all claims close: each is its right neighbour's
    /// left one. A process has one neighbour on each side, so that there is one such ring at most.
    pub fn ring(&self) -> Option<Vec<&Member>> {
        let size = self.size();
        let mut ring = vec![&self.own; size];
        let mut current = &self.own;
        for step in 1..=size {
            let rank = (self.me() + step) % size;
            let next = self.find(rank, &current.neighbours[RIGHT])?;
            if next.neighbours[LEFT] != current.nonce {
                return None;
            }
            ring[rank] = next;
            current = next;
        }
        (current.nonce == self.own.nonce).then_some(ring)
    }

    fn ring_id(&self) -> Option<[u8; 16]> {
        self.ring().map(|ring| group_id(ring.iter().map(|member| &member.nonce)))
    }

    /// This rank's word that it knows the whole ring, and that its own links stand; to be told to
    /// both sides. None if it doesn't know it, or has said so.
    pub fn confirm(&mut self) -> Option<Frame> {
        if self.group.is_some() {
            return None;
        }
        let group = self.ring_id()?;
        self.group = Some(group);
        self.hear_confirmed(self.me(), group);
        Some(Frame::Confirmed { rank: self.own.rank, group })
    }

    pub fn has_confirmed(&self) -> bool {
        self.group.is_some()
    }

    /// The group's id, once every rank has confirmed it. Another id that a rank has confirmed is of
    /// a ring that was broken again: that rank itself fails, and tells.
    pub fn agreed(&self) -> Option<[u8; 16]> {
        let group = self.group?;
        self.confirmed.iter().all(|groups| groups.contains(&group)).then_some(group)
    }

    /// After this rank's word: the rank whose going has broken the ring since.
    pub fn broken(&self) -> Option<usize> {
        if self.group.is_none() || self.ring_id() == self.group {
            return None;
        }
        let gaps = self.gaps();
        let missing = gaps.missing.first().map(|missing| missing.rank);
        missing.or(gaps.apart.first().map(|(_, right)| *right)).or(Some(self.rank_at(RIGHT)))
    }

    fn walk(&self, side: usize) -> Walk {
        let (mut current, mut rank) = (&self.own, self.me());
        for steps in 0..self.size() - 1 {
            let neighbour = &current.neighbours[side];
            if *neighbour == NOBODY {
                return Walk { steps, told: true, address: current.right_address };
            }
            rank = (rank + [1, self.size() - 1][side]) % self.size();
            match self.find(rank, neighbour) {
                Some(next) => current = next,
                // Connected, but it hasn't told of itself.
                None => return Walk { steps: steps + 1, told: false, address: None },
            }
        }
        Walk { steps: self.size() - 1, told: false, address: None }
    }

    /// Why the ring isn't complete, as far as this rank knows.
    pub fn gaps(&self) -> Gaps {
        let (me, size) = (self.me(), self.size());
        let (right, left) = (self.walk(RIGHT), self.walk(LEFT));
        let to_right = |steps: usize| (me + steps) % size;
        let to_left = |steps: usize| (me + size - steps) % size;
        let mut gaps = Gaps::default();
        // Ranks in the gap between the two walks' ends, by their distance to the right.
        let (first, end) = (right.steps + 1, (size - left.steps).max(right.steps + 1));
        for steps in first..end {
            let by_left = steps == first && right.told;
            let by_right = steps + 1 == end && left.told;
            if by_left || by_right {
                let not_reached_by = by_left.then(|| (to_right(right.steps), right.address));
                let not_come_to = by_right.then(|| to_left(left.steps));
                gaps.missing.push(Missing { rank: to_right(steps), not_reached_by, not_come_to });
            } else {
                gaps.not_heard_of.push(to_right(steps));
            }
        }
        if first == end && self.ring().is_none() && right.steps + left.steps < 2 * (size - 1) {
            let at = if right.steps < size - 1 { to_right(right.steps) } else { to_left(left.steps + 1) };
            gaps.apart.push((at, (at + 1) % size));
        }
        if let Some(group) = self.ring_id() {
            let silent = |rank: &usize| !self.confirmed[*rank].contains(&group);
            gaps.not_confirmed = (0..size).filter(silent).collect();
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A small generator, so that a failing order can be had again by its seed.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) as usize % end
        }
    }

    /// An edge's link between two processes: frames on their way to the right and to the left one.
    struct Edge {
        ends: [[u8; 16]; 2],
        frames: [VecDeque<Frame>; 2],
    }

    /// Processes that gossip; a link is made and broken as an event of its own on each end.
    struct World {
        size: usize,
        processes: Vec<Gossip>,
        edges: Vec<Edge>,
        random: Random,
    }

    impl World {
        fn new(size: usize, seed: u64) -> World {
            World { size, processes: Vec::new(), edges: Vec::new(), random: Random(seed) }
        }

        fn start(&mut self, rank: usize) -> usize {
            let nonce = [self.processes.len() as u8 + 1; 16];
            let own = Member { rank: rank as u32, nonce, ..Member::default() };
            self.processes.push(Gossip::new(own, self.size));
            self.processes.len() - 1
        }

        fn with(&self, nonce: &[u8; 16]) -> usize {
            self.processes.iter().position(|p| p.own.nonce == *nonce).unwrap()
        }

        fn send(&mut self, from: usize, frame: &Frame) {
            let nonce = self.processes[from].own.nonce;
            for edge in &mut self.edges {
                for end in [0, 1] {
                    if edge.ends[end] == nonce {
                        edge.frames[1 - end].push_back(frame.clone());
                    }
                }
            }
        }

        fn note(&mut self, process: usize, side: usize, nonce: Option<[u8; 16]>) {
            if let Some(frame) = self.processes[process].connected(side, nonce) {
                self.send(process, &frame);
            }
        }

        fn connect(&mut self, left: usize, right: usize) {
            let ends = [left, right].map(|p| self.processes[p].own.nonce);
            let known = [right, left].map(|p| self.processes[p].everything().into());
            // What the right one knows goes to the left one.
            self.edges.push(Edge { ends, frames: known });
            self.note(left, RIGHT, Some(ends[1]));
            self.note(right, LEFT, Some(ends[0]));
        }

        /// A process ends; what was on its way to it is lost, what it sent arrives.
        fn end(&mut self, process: usize) {
            let nonce = self.processes[process].own.nonce;
            while self.step_into(|_, to| to != nonce) {}
            let edges = std::mem::take(&mut self.edges);
            let (ended, open): (Vec<_>, Vec<_>) = edges.into_iter().partition(|e| e.ends.contains(&nonce));
            self.edges = open;
            for edge in ended {
                if edge.ends[0] == nonce {
                    self.note(self.with(&edge.ends[1]), LEFT, None);
                } else {
                    self.note(self.with(&edge.ends[0]), RIGHT, None);
                }
            }
        }

        /// Delivers a frame of some link; false if there is none.
        fn step(&mut self) -> bool {
            self.step_into(|_, _| true)
        }

        fn step_into(&mut self, wanted: impl Fn([u8; 16], [u8; 16]) -> bool) -> bool {
            let mut ready = Vec::new();
            for (i, edge) in self.edges.iter().enumerate() {
                for to in [0, 1] {
                    if !edge.frames[to].is_empty() && wanted(edge.ends[1 - to], edge.ends[to]) {
                        ready.push((i, to));
                    }
                }
            }
            if ready.is_empty() {
                return false;
            }
            let (edge, to) = ready[self.random.below(ready.len())];
            let frame = self.edges[edge].frames[to].pop_front().unwrap();
            let at = self.with(&self.edges[edge].ends[to]);
            if self.processes[at].hear(&frame) {
                // On to the other side alone.
                let nonce = self.processes[at].own.nonce;
                for (i, other) in self.edges.iter_mut().enumerate() {
                    for end in [0, 1] {
                        if other.ends[end] == nonce && (i, end) != (edge, to) {
                            other.frames[1 - end].push_back(frame.clone());
                        }
                    }
                }
            }
            true
        }

        fn settle(&mut self) {
            let mut steps = 0;
            while self.step() {
                steps += 1;
                assert!(steps < 100_000, "the flood does not end");
            }
        }

        fn confirm(&mut self, process: usize) {
            if let Some(frame) = self.processes[process].confirm() {
                self.send(process, &frame);
            }
        }
    }

    /// Connects neighbours in a random order, frames under way in between.
    fn connect_all(world: &mut World, of: &[usize]) {
        let mut edges: Vec<_> = (0..of.len()).map(|r| (of[r], of[(r + 1) % of.len()])).collect();
        while !edges.is_empty() {
            let (left, right) = edges.swap_remove(world.random.below(edges.len()));
            let is_last = edges.is_empty();
            if !is_last {
                world.connect(left, right);
                assert!(world.processes.iter().all(|p| p.ring().is_none()));
            } else {
                world.connect(left, right);
            }
            for _ in 0..world.random.below(8) {
                world.step();
            }
        }
    }

    #[test]
    fn all_agree_when_the_last_edge_stands_and_all_have_said_so() {
        for size in 2..=8 {
            for seed in 0..50 {
                let mut world = World::new(size, seed);
                let of: Vec<_> = (0..size).map(|rank| world.start(rank)).collect();
                connect_all(&mut world, &of);
                world.settle();
                for (i, &process) in of.iter().enumerate() {
                    assert!(world.processes.iter().all(|p| p.agreed().is_none()), "{i} had not confirmed");
                    assert_eq!(world.processes[process].gaps().not_confirmed.len(), size - i);
                    world.confirm(process);
                    world.settle();
                }
                let group = world.processes[0].agreed();
                assert!(group.is_some() && world.processes.iter().all(|p| p.agreed() == group));
                assert!(world.processes.iter().all(|p| p.gaps() == Gaps::default() && p.broken().is_none()));
            }
        }
    }

    #[test]
    fn a_rank_that_restarts_replaces_its_old_self() {
        for size in 2..=8 {
            for seed in 0..50 {
                let mut world = World::new(size, seed);
                let mut of: Vec<_> = (0..size).map(|rank| world.start(rank)).collect();
                connect_all(&mut world, &of);
                for restart in 0..3 {
                    let rank = world.random.below(size);
                    world.end(of[rank]);
                    for _ in 0..world.random.below(20) {
                        world.step();
                    }
                    of[rank] = world.start(rank);
                    let (left, right) = (of[(rank + size - 1) % size], of[(rank + 1) % size]);
                    world.connect(left, of[rank]);
                    if restart == 2 {
                        world.settle();
                        assert!(of.iter().all(|&p| world.processes[p].ring().is_none()));
                    }
                    world.connect(of[rank], right);
                }
                world.settle();
                of.iter().for_each(|&process| world.confirm(process));
                world.settle();
                let group = world.processes[of[0]].agreed();
                assert!(group.is_some() && of.iter().all(|&p| world.processes[p].agreed() == group));
            }
        }
    }

    #[test]
    fn an_end_after_the_word_breaks_the_ring_for_all() {
        for size in 3..=6 {
            for seed in 0..20 {
                let mut world = World::new(size, seed);
                let of: Vec<_> = (0..size).map(|rank| world.start(rank)).collect();
                connect_all(&mut world, &of);
                world.settle();
                let victim = world.random.below(size);
                let others: Vec<_> = of.iter().copied().filter(|process| *process != victim).collect();
                others.iter().for_each(|&process| world.confirm(process));
                world.end(victim);
                world.settle();
                for process in others {
                    assert_eq!(world.processes[process].agreed(), None);
                    assert_eq!(world.processes[process].broken(), Some(victim), "of {size}, at {process}");
                }
            }
        }
    }

    #[test]
    fn processes_of_two_jobs_are_never_two_rings() {
        // Both jobs' ranks gossip; each rank's port is one process's, and the rest stays outside.
        for seed in 0..100 {
            let size = 2 + seed as usize % 5;
            let mut world = World::new(size, seed);
            let jobs: Vec<_> = (0..2 * size).map(|i| world.start(i % size)).collect();
            let winners: Vec<_> = (0..size).map(|r| jobs[r + size * world.random.below(2)]).collect();
            connect_all(&mut world, &winners);
            world.settle();
            for process in 0..2 * size {
                let is_winner = winners.contains(&process);
                assert_eq!(world.processes[process].ring().is_some(), is_winner);
                world.confirm(process);
            }
            world.settle();
            let id = |process: usize| world.processes[process].agreed();
            assert!(winners.iter().all(|&process| id(process).is_some() && id(process) == id(winners[0])));
        }
    }

    fn gaps_of(size: usize, missing: &[usize], at: usize) -> Gaps {
        let mut world = World::new(size, 1);
        let of: Vec<_> = (0..size).map(|rank| world.start(rank)).collect();
        for rank in 0..size {
            let right = (rank + 1) % size;
            if !missing.contains(&rank) && !missing.contains(&right) {
                world.connect(of[rank], of[right]);
            }
        }
        let address = "192.0.2.1:5".parse().unwrap();
        for &process in &of {
            if let Some(frame) = world.processes[process].looks_at(address) {
                world.send(process, &frame);
            }
        }
        world.settle();
        world.processes[of[at]].gaps()
    }

    #[test]
    fn the_missing_are_told_from_the_unheard_of() {
        let address = Some("192.0.2.1:5".parse().unwrap());
        let one = Missing { rank: 2, not_reached_by: Some((1, address)), not_come_to: Some(3) };
        for at in [0, 1, 3, 4] {
            let gaps = gaps_of(5, &[2], at);
            assert_eq!(gaps, Gaps { missing: vec![one.clone()], ..Gaps::default() }, "at {at}");
        }
        let first = Missing { rank: 2, not_reached_by: Some((1, address)), not_come_to: None };
        let last = Missing { rank: 5, not_reached_by: None, not_come_to: Some(6) };
        let gaps = gaps_of(8, &[2, 4, 5], 0);
        assert_eq!((gaps.missing, gaps.not_heard_of), (vec![first, last], vec![3, 4]));
        let alone = gaps_of(2, &[1], 0);
        assert_eq!(
            alone.missing,
            [Missing { rank: 1, not_reached_by: Some((0, address)), not_come_to: Some(0) }]
        );
    }

    #[test]
    fn neighbours_that_are_not_connected_are_apart() {
        let mut world = World::new(4, 1);
        let of: Vec<_> = (0..4).map(|rank| world.start(rank)).collect();
        for rank in [0, 2, 3] {
            world.connect(of[rank], of[(rank + 1) % 4]);
        }
        world.settle();
        for process in of {
            assert_eq!(world.processes[process].gaps(), Gaps { apart: vec![(1, 2)], ..Gaps::default() });
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let own = Member { nonce: [1; 16], ..Member::default() };
        let mut gossip = Gossip::new(own, 2);
        for i in 0..100_u8 {
            let member = Member { rank: 1, version: 1, nonce: [100 + i; 16], ..Member::default() };
            assert!(gossip.hear(&Frame::Known(member.clone())));
            assert!(!gossip.hear(&Frame::Known(member)));
            gossip.hear(&Frame::Confirmed { rank: 1, group: [i; 16] });
        }
        assert_eq!(gossip.everything().len(), MAX_RUNS + 1 + MAX_CONFIRMED);
        let stranger = Member { rank: 2, nonce: [9; 16], ..Member::default() };
        assert!(!gossip.hear(&Frame::Known(stranger)));
        assert!(!gossip.hear(&Frame::Confirmed { rank: 2, group: [0; 16] }));
    }
}
