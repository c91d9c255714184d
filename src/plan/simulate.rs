//! Runs the plans of all ranks at once on symbolic values, and the exhaustive tests of the plans.

use std::collections::VecDeque;

use super::segment::Stretch;
use super::*;

/// A value: element `index`, first rank `first`'s, then reduced by `len - 1` further ranks in one
/// direction (0 while there is none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    index: u16,
    first: u8,
    direction: i8,
    len: u8,
    ended: bool,
}

impl Value {
    fn input(rank: usize, index: usize) -> Value {
        Value { index: index as u16, first: rank as u8, direction: 0, len: 1, ended: false }
    }

    /// `own op received`, where own must be the input of the rank whose turn it is.
    fn reduce(own: Value, received: Value, last: bool, n: usize) -> Value {
        assert!(own.len == 1 && own.index == received.index && !received.ended, "{own:?} op {received:?}");
        let turn = |direction: i8| {
            let steps = i32::from(direction) * i32::from(received.len);
            (i32::from(received.first) + steps).rem_euclid(n as i32) == i32::from(own.first)
        };
        let possible =
            [1, -1].into_iter().find(|d| (received.direction == 0 || received.direction == *d) && turn(*d));
        let Some(direction) = possible else { panic!("out of turn: {own:?} op {received:?}") };
        Value { direction, len: received.len + 1, ended: last, ..received }
    }
}

/// One rank: its plan, its memory and how far each of its passes is.
struct Rank {
    plan: Plan,
    in_place: bool,
    memory: [Vec<Option<Value>>; 3],
    progress: Vec<Progress>,
}

#[derive(Clone, Copy, Default)]
struct Progress {
    /// Span and element of it to send next; likewise to receive.
    send: (usize, usize),
    receive: (usize, usize),
    sent: usize,
    received: usize,
}

impl Rank {
    /// The memory that a buffer is: in place two are one.
    fn buffer(&self, span: Span) -> usize {
        match span.buffer {
            Buffer::Send if self.in_place => Buffer::Recv as usize,
            buffer => buffer as usize,
        }
    }

    fn apart(&self, a: Span, b: Span) -> bool {
        self.buffer(a) != self.buffer(b) || a.start + a.len <= b.start || b.start + b.len <= a.start
    }

    fn slot(&mut self, span: Span, at: usize) -> &mut Option<Value> {
        assert!(at < span.len);
        let buffer = self.buffer(span);
        &mut self.memory[buffer][span.start + at]
    }

    fn get(&mut self, span: Span, at: usize) -> Value {
        self.slot(span, at).expect("a value that isn't there yet")
    }

    fn send(&mut self, pass: usize) -> Option<Value> {
        let Pass { ahead, hold, sends, .. } = self.plan.passes[pass].clone();
        let Progress { send: (span, at), sent, received, .. } = self.progress[pass];
        if sends.start + span == sends.end || sent >= ahead + received || received < hold {
            return None;
        }
        let current = self.plan.sends[sends.start + span];
        let value = self.get(current, at);
        let next = if at + 1 == current.len { (span + 1, 0) } else { (span, at + 1) };
        self.progress[pass].send = next;
        self.progress[pass].sent += 1;
        Some(value)
    }

    fn receive(&mut self, pass: usize, value: Value, n: usize) {
        let receipts = self.plan.passes[pass].receipts.clone();
        let (span, at) = self.progress[pass].receive;
        assert!(receipts.start + span < receipts.end, "more than was planned for");
        let Receipt { to, take } = self.plan.receipts[receipts.start + span];
        let stored = match take {
            Take::Copy => value,
            Take::Reduce { own, last } => Value::reduce(self.get(own, at), value, last, n),
        };
        *self.slot(to, at) = Some(stored);
        self.progress[pass].receive = if at + 1 == to.len { (span + 1, 0) } else { (span, at + 1) };
        self.progress[pass].received += 1;
    }

    fn wants_more(&self, pass: usize) -> bool {
        let receipts = &self.plan.passes[pass].receipts;
        receipts.start + self.progress[pass].receive.0 < receipts.end
    }

    fn is_done(&self) -> bool {
        (0..self.plan.passes.len()).all(|pass| {
            let sends = &self.plan.passes[pass].sends;
            sends.start + self.progress[pass].send.0 == sends.end && !self.wants_more(pass)
        })
    }
}

/// How a simulated ring is set up.
#[derive(Clone, Copy)]
struct Setting {
    size: usize,
    lanes: usize,
    count: usize,
    /// Elements of the output, in counts.
    blocks: usize,
    in_place: bool,
    /// Elements that a link holds.
    capacity: usize,
    /// Turns of the ranks are drawn from this.
    seed: u64,
}

fn simulate(setting: Setting, fill: impl Fn(&mut Plan, Place)) -> Vec<Rank> {
    let Setting { size, lanes, count, .. } = setting;
    let mut ranks: Vec<Rank> = (0..size)
        .map(|rank| {
            let mut plan = Plan::default();
            fill(&mut plan, Place { rank, size, lanes });
            let input: Vec<_> = (0..count).map(|i| Some(Value::input(rank, i))).collect();
            let mut recv = vec![None; count * setting.blocks];
            if setting.in_place {
                recv[..count].copy_from_slice(&input);
            }
            let scratch = vec![None; plan.scratch];
            let progress = vec![Progress::default(); plan.passes.len()];
            Rank { plan, in_place: setting.in_place, memory: [input, recv, scratch], progress }
        })
        .collect();
    for rank in &mut ranks {
        for (from, to) in rank.plan.copies.clone() {
            for at in 0..from.len {
                let value = rank.get(from, at);
                *rank.slot(to, at) = Some(value);
            }
        }
    }
    let passes: Vec<(Flow, usize)> = ranks[0].plan.passes.iter().map(|pass| (pass.flow, pass.lane)).collect();
    for rank in &ranks {
        let same = rank.plan.passes.iter().map(|pass| (pass.flow, pass.lane));
        assert!(same.eq(passes.iter().copied()), "ranks have different passes");
    }
    let mut links = vec![vec![VecDeque::new(); passes.len()]; size];
    let mut state = setting.seed;
    let mut idle = 0;
    while idle < 2 * size {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let at = if setting.seed == 0 { (idle + 1) % size } else { (state >> 33) as usize % size };
        let mut moved = false;
        // Every rank is looked at in a row without progress before the end is believed.
        for rank in if idle >= size || setting.seed == 0 { 0..size } else { at..at + 1 } {
            for (pass, (flow, _)) in passes.iter().enumerate() {
                let target = match flow {
                    Flow::Right => (rank + 1) % size,
                    Flow::Left => (rank + size - 1) % size,
                };
                // Receiving first overwrites as early as it can.
                while let Some(value) = links[rank][pass].pop_front() {
                    ranks[rank].receive(pass, value, size);
                    moved = true;
                }
                while links[target][pass].len() < setting.capacity {
                    let Some(value) = ranks[rank].send(pass) else { break };
                    links[target][pass].push_back(value);
                    moved = true;
                }
            }
        }
        idle = if moved { 0 } else { idle + 1 };
    }
    for (number, rank) in ranks.iter_mut().enumerate() {
        assert!(rank.is_done(), "rank {number} of {size} stands still");
        for fold in rank.plan.folds.clone() {
            assert!(rank.apart(fold.received, fold.to), "{fold:?} writes what it reads");
            for at in 0..fold.to.len {
                let value =
                    Value::reduce(rank.get(fold.own, at), rank.get(fold.received, at), fold.last, size);
                *rank.slot(fold.to, at) = Some(value);
            }
        }
    }
    ranks
}

/// The right chain of every element: segment j of the part that goes right starts at rank j and
/// goes up, of the one that goes left down.
fn check_all_reduce(setting: Setting, parts: usize, fill: impl Fn(&mut Plan, Place)) {
    let Setting { size, count, .. } = setting;
    let whole = Stretch { start: 0, len: count };
    let right = if parts == 1 { whole } else { whole.part(0, 2) };
    let mut chains = vec![(0, 0); count];
    for segment in 0..size {
        for (part, direction) in [(right, 1), (Stretch { start: right.len, len: count - right.len }, -1)] {
            let piece = part.part(segment, size);
            chains[piece.start..piece.start + piece.len].fill((segment as u8, direction));
        }
    }
    for (number, rank) in simulate(setting, fill).iter().enumerate() {
        for (i, (first, direction)) in chains.iter().enumerate() {
            let value = rank.memory[Buffer::Recv as usize][i].expect("an element was not delivered");
            let whole = (value.index, value.len, value.ended) == (i as u16, size as u8, true);
            // In a ring of two both directions are one.
            let order = value.first == *first && (value.direction == *direction || size == 2);
            assert!(whole && order, "rank {number} of {size}, {count} elements: {value:?} at {i}");
        }
        if !setting.in_place {
            let input = (0..count).map(|i| Some(Value::input(number, i)));
            assert!(input.eq(rank.memory[Buffer::Send as usize].iter().copied()), "the input was written");
        }
    }
}

/// Runs a check for every ring of 2 to 16 and every length below 1,024, and with more lanes, short
/// links and drawn turns for some of them.
fn for_all(check: impl Fn(Setting)) {
    const LENGTHS: usize = 1024;
    for size in 2..=16 {
        for count in 0..LENGTHS {
            let plain =
                Setting { size, lanes: 1, count, blocks: 1, in_place: false, capacity: usize::MAX, seed: 0 };
            check(plain);
            if count % 7 == size % 7 || count < 40 {
                check(Setting { in_place: true, ..plain });
            }
            if count % 61 == size || count < 20 {
                for lanes in [2, 3, 5] {
                    check(Setting { lanes, in_place: true, ..plain });
                }
                check(Setting { capacity: 1, ..plain });
                check(Setting { capacity: 1, lanes: 3, in_place: true, seed: 1 + count as u64, ..plain });
                check(Setting { capacity: 9, in_place: true, seed: 77 + count as u64, ..plain });
            }
        }
    }
}

#[test]
fn the_ring_reduces_every_element_once_in_order() {
    for_all(|setting| {
        for parts in [1, 2] {
            check_all_reduce(setting, parts, |plan, place| {
                ring::all_reduce(plan, place, setting.count, parts)
            });
        }
    });
}

#[test]
fn the_flood_reduces_in_the_rings_order() {
    for_all(|setting| {
        // It costs n times as much to simulate: every third length.
        if setting.size < 9 || setting.count % 3 == 0 {
            for parts in [1, 2] {
                check_all_reduce(setting, parts, |plan, place| {
                    flood::all_reduce(plan, place, setting.count, parts)
                });
            }
        }
    });
}

#[test]
fn every_block_is_gathered_everywhere() {
    for_all(|setting| {
        if setting.in_place || (setting.size > 8 && setting.count % 5 > 0) {
            return;
        }
        let setting = Setting { blocks: setting.size, ..setting };
        for halves in [false, true] {
            let ranks = simulate(setting, |plan, place| match halves {
                true => all_gather::halves(plan, place, setting.count),
                false => all_gather::whole(plan, place, setting.count),
            });
            for rank in &ranks {
                let right =
                    (0..setting.size).flat_map(|r| (0..setting.count).map(move |i| Some(Value::input(r, i))));
                assert!(right.eq(rank.memory[Buffer::Recv as usize].iter().copied()));
            }
        }
    });
}

#[test]
fn a_barrier_hears_of_every_rank() {
    for size in 2..=16 {
        for rank in 0..size {
            let mut plan = Plan::default();
            plan.barrier(Place { rank, size, lanes: 2 });
            let spans = plan.receipts.iter().map(|receipt| receipt.to);
            let mut heard: Vec<_> = spans.flat_map(|to| to.start..to.start + to.len).collect();
            heard.push(rank);
            heard.sort_unstable();
            assert!(heard.into_iter().eq(0..size));
        }
    }
}

#[test]
fn the_choice_keeps_its_limits() {
    for size in 2..=64 {
        for bytes in [0, 8, 1000, 32 << 10, (32 << 10) + 4, 60_000, 65_532, 65_536, 1 << 20, (1 << 20) + 4] {
            let place = Place { rank: size / 2, size, lanes: 2 };
            let mut plan = Plan::default();
            let algorithm = plan.all_reduce(place, bytes / 4, 4);
            assert!(plan.scratch * 4 <= FLOOD_MAX_SCRATCH);
            assert_eq!(algorithm == Algorithm::Flood, plan.scratch > 0 || bytes == 0);
            let first =
                [(plan.passes[0].flow, plan.passes[0].lane), (plan.passes[1].flow, plan.passes[1].lane)];
            assert_eq!(first, [(Flow::Right, 0), (Flow::Left, 0)], "headers travel on the first two passes");
            let goes_left = !plan.passes[1].sends.is_empty();
            if algorithm == Algorithm::Ring {
                assert_eq!(goes_left, bytes >= TWO_PARTS_FROM_BYTES);
            }
        }
    }
}

#[test]
fn lanes_share_what_is_worth_it() {
    let lanes_of = |size: usize, bytes: usize, gather: bool| {
        let (place, mut plan) = (Place { rank: 0, size, lanes: 5 }, Plan::default());
        match gather {
            true => plan.all_gather(place, bytes, 1),
            false => plan.all_reduce(place, bytes, 1),
        };
        plan.passes.iter().map(|pass| pass.lane + 1).max()
    };
    let piece = LANE_MIN_BYTES;
    for (bytes, lanes) in
        [(0, 1), (piece, 1), (2 * piece - 1, 1), (2 * piece, 2), (5 * piece, 5), (9 * piece, 5)]
    {
        assert_eq!(lanes_of(2, bytes, false), Some(lanes), "a flood of {bytes} in a ring of two");
        assert_eq!(lanes_of(2, bytes, true), Some(lanes), "a gather of {bytes} in a ring of two");
        if bytes > piece {
            // Two parts of three segments.
            assert_eq!(lanes_of(3, 6 * bytes, false), Some(lanes), "segments of {bytes}");
            assert_eq!(lanes_of(3, 2 * bytes, true), Some(lanes), "halves of {bytes}");
        }
    }
}
