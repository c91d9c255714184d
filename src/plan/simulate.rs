//! Runs the plans of all ranks at once on symbolic values.

use std::collections::VecDeque;

use super::*;

/// A value: element `index`, first rank `first`'s, then reduced by `len - 1` further ranks in one
/// direction (0 while there is none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    pub index: u16,
    pub first: u8,
    pub direction: i8,
    pub len: u8,
    pub ended: bool,
}

impl Value {
    pub fn input(rank: usize, index: usize) -> Value {
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
pub struct Rank {
    plan: Plan,
    /// In place one of the caller's buffers is a part of the other, from this element on.
    inside: Option<(Buffer, usize)>,
    pub memory: [Vec<Option<Value>>; 4],
    progress: Vec<Progress>,
    /// What each of its passes has sent.
    streams: Vec<Vec<Value>>,
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
    /// Where a span really lies.
    fn place(&self, span: Span) -> (usize, usize) {
        match self.inside {
            Some((buffer, offset)) if span.buffer == buffer => {
                let other = if buffer == Buffer::Send { Buffer::Recv } else { Buffer::Send };
                (other as usize, offset + span.start)
            }
            _ => (span.buffer as usize, span.start),
        }
    }

    fn apart(&self, a: Span, b: Span) -> bool {
        let ((one, start), (other, from)) = (self.place(a), self.place(b));
        one != other || start + a.len <= from || from + b.len <= start
    }

    fn slot(&mut self, span: Span, at: usize) -> &mut Option<Value> {
        assert!(at < span.len);
        let (buffer, start) = self.place(span);
        &mut self.memory[buffer][start + at]
    }

    fn get(&mut self, span: Span, at: usize) -> Value {
        self.slot(span, at).expect("a value that isn't there yet")
    }

    fn send(&mut self, pass: usize) -> Option<Value> {
        let Pass { hold, sends, .. } = self.plan.passes[pass].clone();
        let Progress { send: (span, at), received, .. } = self.progress[pass];
        if sends.start + span == sends.end || received < hold {
            return None;
        }
        let Departure { span: current, after } = self.plan.sends[sends.start + span];
        if after.is_some_and(|after| received <= after + at) {
            return None;
        }
        let value = self.get(current, at);
        let is_wide = self.plan.wide && value.len > 1 && !value.ended;
        assert_eq!(current.buffer == Buffer::Sums, is_wide, "{value:?} leaves {current:?}");
        let next = if at + 1 == current.len { (span + 1, 0) } else { (span, at + 1) };
        self.progress[pass].send = next;
        self.progress[pass].sent += 1;
        self.streams[pass].push(value);
        Some(value)
    }

    /// Whether the next element has a place to go.
    fn has_room(&self, pass: usize) -> bool {
        let Progress { receive: (span, _), sent, .. } = self.progress[pass];
        let receipts = &self.plan.passes[pass].receipts;
        assert!(receipts.start + span < receipts.end, "more than was planned for");
        self.plan.receipts[receipts.start + span].room <= sent
    }

    fn receive(&mut self, pass: usize, value: Value, n: usize) {
        let receipts = self.plan.passes[pass].receipts.clone();
        let (span, at) = self.progress[pass].receive;
        let Receipt { to, take, .. } = self.plan.receipts[receipts.start + span];
        let stored = match take {
            Take::Copy => value,
            Take::Reduce { own, begins, last } => {
                assert_eq!(
                    begins,
                    value.len == 1,
                    "a partial result is taken for an input, or an input for one"
                );
                Value::reduce(self.get(own, at), value, last, n)
            }
        };
        *self.slot(to, at) = Some(stored);
        self.progress[pass].receive = if at + 1 == to.len { (span + 1, 0) } else { (span, at + 1) };
        self.progress[pass].received += 1;
    }

    fn is_done(&self) -> bool {
        (0..self.plan.passes.len()).all(|pass| {
            let Pass { sends, receipts, elements, .. } = &self.plan.passes[pass];
            let Progress { send, receive, sent, received } = self.progress[pass];
            let all = sends.start + send.0 == sends.end && receipts.start + receive.0 == receipts.end;
            assert!(!all || (sent, received) == *elements, "a pass that miscounts its elements");
            all
        })
    }
}

/// How a simulated ring is set up.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub size: usize,
    pub lanes: usize,
    pub count: usize,
    pub in_place: bool,
    /// Elements that a link holds.
    pub capacity: usize,
    /// Turns of the ranks are drawn from this.
    pub seed: u64,
}

/// A rank's buffers: elements of its input and of its output, and where in place which of them begins in the
/// other.
pub struct Memory {
    pub send: usize,
    pub recv: usize,
    pub inside: (Buffer, usize),
}

impl Rank {
    fn new(number: usize, plan: Plan, memory: &Memory, in_place: bool) -> Rank {
        let input: Vec<_> = (0..memory.send).map(|i| Some(Value::input(number, i))).collect();
        let mut recv = vec![None; memory.recv];
        let inside = in_place.then_some(memory.inside);
        if let Some((Buffer::Send, offset)) = inside {
            recv[offset..offset + input.len()].copy_from_slice(&input);
        }
        // What is blank continues the input.
        let blank = (0..plan.blank).map(|i| Some(Value::input(number, memory.send + i)));
        let scratch: Vec<_> = blank.chain(vec![None; plan.scratch - plan.blank]).collect();
        let sums = vec![None; plan.sums];
        let progress = vec![Progress::default(); plan.passes.len()];
        let streams = vec![Vec::new(); plan.passes.len()];
        Rank { plan, inside, memory: [input, recv, scratch, sums], progress, streams }
    }

    /// Its passes' links, and what they have sent.
    pub fn sent(&self) -> impl Iterator<Item = (Path, &[Value])> {
        self.plan.passes.iter().map(|pass| pass.path).zip(self.streams.iter().map(Vec::as_slice))
    }

    /// What its output holds.
    pub fn output(&self) -> &[Option<Value>] {
        match self.inside {
            Some((Buffer::Recv, offset)) => &self.memory[Buffer::Send as usize][offset..],
            _ => &self.memory[Buffer::Recv as usize],
        }
    }
}

/// The rank and the pass that receive what a rank's pass sends.
fn target(ranks: &[Rank], rank: usize, pass: usize) -> Option<(usize, usize)> {
    let path = ranks[rank].plan.passes[pass].path;
    let (target, theirs) = match path {
        Path::Ring { flow, .. } => (flow.downstream(rank, 1, ranks.len()), path),
        Path::Direct { rank: peer } => (peer, Path::Direct { rank }),
    };
    let mut passes = ranks[target].plan.passes.iter();
    let pass = passes.position(|pass| pass.path == theirs && !pass.receipts.is_empty())?;
    Some((target, pass))
}

/// A call of the native wire.
pub fn simulate(
    setting: Setting,
    memory: impl Fn(usize) -> Memory,
    fill: impl Fn(&mut Plan, Place),
) -> Vec<Rank> {
    let ranks = run(setting, memory, fill);
    for rank in &ranks {
        let ways: Vec<_> = rank.plan.passes.iter().map(|pass| pass.path).take(2).collect();
        let headers = [Flow::Right, Flow::Left].map(|flow| Path::Ring { flow, lane: 0 });
        assert_eq!(ways, headers, "headers travel on the first two passes");
    }
    ranks
}

/// A call without headers.
pub fn run(setting: Setting, memory: impl Fn(usize) -> Memory, fill: impl Fn(&mut Plan, Place)) -> Vec<Rank> {
    let Setting { size, lanes, .. } = setting;
    let mut ranks: Vec<Rank> = (0..size)
        .map(|rank| {
            let mut plan = Plan::default();
            fill(&mut plan, Place { rank, size, lanes });
            Rank::new(rank, plan, &memory(rank), setting.in_place)
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
    let targets: Vec<Vec<_>> = (0..size)
        .map(|rank| (0..ranks[rank].plan.passes.len()).map(|pass| target(&ranks, rank, pass)).collect())
        .collect();
    let mut links: Vec<Vec<VecDeque<Value>>> =
        ranks.iter().map(|rank| vec![VecDeque::new(); rank.plan.passes.len()]).collect();
    let mut state = setting.seed;
    let mut idle = 0;
    while idle < 2 * size {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let at = if setting.seed == 0 { (idle + 1) % size } else { (state >> 33) as usize % size };
        let mut moved = false;
        // Every rank is looked at in a row without progress before the end is believed.
        for rank in if idle >= size || setting.seed == 0 { 0..size } else { at..at + 1 } {
            for pass in 0..links[rank].len() {
                // Receiving first overwrites as early as it can.
                while !links[rank][pass].is_empty() && ranks[rank].has_room(pass) {
                    let value = links[rank][pass].pop_front().unwrap();
                    ranks[rank].receive(pass, value, size);
                    moved = true;
                }
                let Some((target, theirs)) = targets[rank][pass] else {
                    assert!(ranks[rank].plan.passes[pass].sends.is_empty(), "nobody receives what is sent");
                    continue;
                };
                while links[target][theirs].len() < setting.capacity {
                    let Some(value) = ranks[rank].send(pass) else { break };
                    links[target][theirs].push_back(value);
                    moved = true;
                }
            }
        }
        idle = if moved { 0 } else { idle + 1 };
    }
    for (number, rank) in ranks.iter_mut().enumerate() {
        assert!(rank.is_done(), "rank {number} stands still: {setting:?}");
        for fold in rank.plan.folds.clone() {
            let adds_up = fold.received == fold.to && fold.to.buffer == Buffer::Sums;
            assert!(adds_up || rank.apart(fold.received, fold.to), "{fold:?} writes what it reads");
            for at in 0..fold.to.len {
                let value =
                    Value::reduce(rank.get(fold.own, at), rank.get(fold.received, at), fold.last, size);
                *rank.slot(fold.to, at) = Some(value);
            }
        }
    }
    ranks
}
