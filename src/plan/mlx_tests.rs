//! The plans of the MLX wire against a model: the text of MLX's ring, step by step, written apart from the plans
//! and sharing none of their arithmetic.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::simulate::{Memory, Rank, Setting, Value, run};
use super::*;

/// Elements of an array, or bytes of a block, and whose values have been reduced into them, in order.
#[derive(Clone, Debug)]
struct Piece {
    elements: Range<usize>,
    chain: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Neighbour {
    Right,
    Left,
}

/// What a rank writes to: the rank, its neighbour, and which of the sockets to it.
type Socket = (usize, Neighbour, usize);

/// What all ranks of a ring write, and what each has in the end.
#[derive(Default)]
struct Model {
    streams: BTreeMap<Socket, Vec<Piece>>,
    results: Vec<Vec<Piece>>,
}

/// The parts of an array of `len`, `m` at most, each with its sockets' number and its direction: +1 for even ones.
fn model_parts(len: usize, m: usize) -> Vec<(Range<usize>, usize, isize)> {
    let step = len.div_ceil(m);
    let bound = |i: usize| (i * step).min(len);
    (0..m).map(|i| (bound(i)..bound(i + 1), i / 2, if i % 2 == 0 { 1 } else { -1 })).collect()
}

impl Model {
    fn new(n: usize) -> Model {
        Model { streams: BTreeMap::new(), results: vec![Vec::new(); n] }
    }

    fn all_reduce(n: usize, k: usize, size: usize, w: usize) -> Option<Model> {
        let mut model = Model::new(n);
        if size < n {
            if w * n > 1024 {
                return None;
            }
            model.reduce(n, 0..n, 0, -1);
            for result in &mut model.results {
                result.retain(|piece| piece.elements.start < size);
            }
        } else {
            let m = (2 * k).min(size * w / (n * 262_144)).max(1);
            for (elements, socket, d) in model_parts(size, m) {
                model.reduce(n, elements, socket, d);
            }
        }
        Some(model)
    }

    /// PART: a rank's number and +d or -d steps from there, round the ring.
    fn reduce(&mut self, n: usize, v: Range<usize>, socket: usize, d: isize) {
        let seg = v.len().div_ceil(n);
        let bounds = |j: usize| v.start + (j * seg).min(v.len())..v.start + ((j + 1) * seg).min(v.len());
        let mut held: Vec<Vec<Vec<usize>>> = (0..n).map(|rank| vec![vec![rank]; n]).collect();
        for q in 0..2 * (n - 1) {
            let sent = self.exchange(n, socket, d, |rank| {
                let s = around(rank, d * q as isize, n);
                Piece { elements: bounds(s), chain: held[rank][s].clone() }
            });
            for rank in 0..n {
                let t = around(rank, d * (q as isize + 1), n);
                let received = &sent[around(rank, d, n)];
                assert_eq!(received.elements, bounds(t), "a neighbour sends another segment");
                held[rank][t] = received.chain.clone();
                if q < n - 1 {
                    held[rank][t].push(rank);
                }
            }
        }
        for (result, held) in self.results.iter_mut().zip(held) {
            result
                .extend(held.into_iter().enumerate().map(|(j, chain)| Piece { elements: bounds(j), chain }));
        }
    }

    fn all_gather(n: usize, k: usize, nbytes: usize) -> Model {
        let mut model = Model::new(n);
        let m = (2 * k).min(nbytes / 262_144).max(1);
        for (slice, socket, d) in model_parts(nbytes, m) {
            for q in 0..n - 1 {
                let sent = model.exchange(n, socket, d, |rank| {
                    let s = around(rank, d * q as isize, n);
                    Piece { elements: slice.clone(), chain: vec![s] }
                });
                for rank in 0..n {
                    let t = around(rank, d * (q as isize + 1), n);
                    assert_eq!(sent[around(rank, d, n)].chain, [t], "a neighbour sends another block");
                }
            }
        }
        for result in &mut model.results {
            result.extend((0..n).map(|rank| Piece { elements: 0..nbytes, chain: vec![rank] }));
        }
        model
    }

    /// A step: all ranks send on their `out`; what each has sent. A rank's `in` is its neighbour's `out`, of the
    /// neighbour in direction d.
    fn exchange(&mut self, n: usize, socket: usize, d: isize, send: impl Fn(usize) -> Piece) -> Vec<Piece> {
        let sent: Vec<Piece> = (0..n).map(send).collect();
        for (rank, piece) in sent.iter().enumerate() {
            let out = if d == -1 { Neighbour::Right } else { Neighbour::Left };
            self.streams.entry((rank, out, socket)).or_default().push(piece.clone());
        }
        sent
    }

    /// A message to a neighbour.
    fn send(&mut self, [n, k, nbytes]: [usize; 3], rank: usize, dst: usize) {
        let side = if dst == around(rank, 1, n) { Neighbour::Right } else { Neighbour::Left };
        let seg = nbytes.div_ceil(k).max(1024);
        for i in (0..).take_while(|i| i * seg < nbytes) {
            let elements = i * seg..((i + 1) * seg).min(nbytes);
            self.streams.insert((rank, side, i), vec![Piece { elements, chain: vec![rank] }]);
        }
    }

    /// The model in units of cells.
    fn coarse(mut self, grid: &Grid) -> Model {
        let pieces = self.streams.values_mut().chain(&mut self.results).flatten();
        pieces.for_each(|piece| {
            piece.elements = grid.cell(piece.elements.start)..grid.cell(piece.elements.end);
        });
        self
    }
}

/// The rank so many steps further.
fn around(rank: usize, steps: isize, n: usize) -> usize {
    (rank as isize + steps).rem_euclid(n as isize) as usize
}

/// What it would be in the model: an element, and the ranks that have been reduced into it.
fn is_value(value: Value, element: usize, chain: &[usize], n: usize) -> bool {
    let rank = |turn: usize| around(value.first.into(), isize::from(value.direction) * turn as isize, n);
    usize::from(value.index) == element
        && usize::from(value.len) == chain.len()
        && chain.iter().enumerate().all(|(turn, &expected)| rank(turn) == expected)
}

fn assert_stream(found: &[Value], pieces: &[Piece], n: usize, what: &dyn Fn() -> String) {
    let expected = pieces.iter().flat_map(|piece| piece.elements.clone().map(move |e| (e, &piece.chain)));
    let mut found = found.iter();
    for (element, chain) in expected {
        let Some(value) = found.next() else { panic!("{}: nothing for {element} of {chain:?}", what()) };
        assert!(is_value(*value, element, chain, n), "{}: {value:?}, not {element} of {chain:?}", what());
    }
    assert!(found.next().is_none(), "{}: more than there is", what());
}

/// Every socket carries one pass at most, and what the model has on it.
fn assert_streams(ranks: &[Rank], model: &Model, setting: Setting) {
    let mut streams = BTreeMap::new();
    for (number, rank) in ranks.iter().enumerate() {
        for (path, sent) in rank.sent() {
            let Path::Ring { flow, lane } = path else { panic!("a direct link") };
            assert!(lane < setting.lanes, "lane {lane}: {setting:?}");
            if sent.is_empty() {
                continue;
            }
            let neighbour = if flow == Flow::Right { Neighbour::Right } else { Neighbour::Left };
            let before = streams.insert((number, neighbour, lane), sent);
            assert!(before.is_none(), "two passes on one socket: {setting:?}");
        }
    }
    let sockets: BTreeSet<Socket> = streams.keys().chain(model.streams.keys()).copied().collect();
    for socket in sockets {
        let found = streams.get(&socket).copied().unwrap_or_default();
        let pieces = model.streams.get(&socket).map(Vec::as_slice).unwrap_or_default();
        assert_stream(found, pieces, setting.size, &|| format!("{socket:?} of {setting:?}"));
    }
}

fn assert_input_kept(rank: &Rank, number: usize, setting: Setting) {
    let input = rank.memory[Buffer::Send as usize].iter().enumerate();
    let is_kept = input.into_iter().all(|(i, value)| *value == Some(Value::input(number, i)));
    assert!(setting.in_place || is_kept, "the input of rank {number} was written: {setting:?}");
}

/// Makes a rank's plan.
type Fill<'a> = &'a dyn Fn(&mut Plan, Place);

/// The plan is in units of which an array has `setting.count`.
fn check_all_reduce(setting: Setting, model: &Model, fill: Fill<'_>) {
    let Setting { size, count, .. } = setting;
    let memory = |_| Memory { send: count, recv: count, inside: (Buffer::Send, 0) };
    let ranks = run(setting, memory, fill);
    assert_streams(&ranks, model, setting);
    for (number, rank) in ranks.iter().enumerate() {
        let mut pieces = model.results[number].clone();
        pieces.sort_by_key(|piece| piece.elements.start);
        let output: Vec<Value> = rank.output().iter().map(|value| value.expect("an element")).collect();
        assert_stream(&output, &pieces, size, &|| format!("the result of rank {number} of {setting:?}"));
        assert!(output.iter().all(|value| value.ended), "a chain that doesn't end: {setting:?}");
        assert_input_kept(rank, number, setting);
    }
}

fn check_all_gather(setting: Setting, model: &Model, fill: Fill<'_>) {
    let Setting { size, count, .. } = setting;
    let memory = |rank| Memory { send: count, recv: size * count, inside: (Buffer::Send, rank * count) };
    let ranks = run(setting, memory, fill);
    assert_streams(&ranks, model, setting);
    for (number, rank) in ranks.iter().enumerate() {
        let output: Vec<Value> = rank.output().iter().map(|value| value.expect("a byte")).collect();
        let what = || format!("the result of rank {number} of {setting:?}");
        assert_stream(&output, &model.results[number], size, &what);
        assert_input_kept(rank, number, setting);
    }
}

/// Links that hold all, little, or one element, turns in order and drawn, in place and not.
fn for_links(size: usize, lanes: usize, count: usize, check: impl Fn(Setting)) {
    let seed = (count + size + lanes) as u64;
    for (capacity, seed) in [(usize::MAX, 0), (1, 0), (3, 1 + seed)] {
        for in_place in [false, true] {
            check(Setting { size, lanes, count, in_place, capacity, seed });
        }
    }
}

/// Sizes of arrays that are too large to be simulated by element, cut wherever a plan or the model cuts one.
struct Grid {
    /// Elements of the array, or bytes of a block.
    unit: usize,
    cuts: Vec<usize>,
}

impl Grid {
    fn new(unit: usize, model: &Model, plans: &[Plan]) -> Grid {
        let mut cuts = BTreeSet::from([0]);
        for Piece { elements, .. } in model.streams.values().chain(&model.results).flatten() {
            cuts.extend([elements.start, elements.end].map(|cut| cut % unit));
        }
        for plan in plans {
            let spans = plan.sends.iter().map(|departure| departure.span);
            for Span { start, len, .. } in spans.chain(plan.receipts.iter().map(|receipt| receipt.to)) {
                cuts.extend([start, start + len].map(|cut| cut % unit));
            }
        }
        Grid { unit, cuts: cuts.into_iter().collect() }
    }

    fn cells(&self) -> usize {
        self.cuts.len()
    }

    /// The cell that begins here.
    fn cell(&self, at: usize) -> usize {
        let within = self.cuts.binary_search(&(at % self.unit)).expect("a cut");
        at / self.unit * self.cells() + within
    }

    fn span(&self, span: Span) -> Span {
        let start = self.cell(span.start);
        Span { start, len: self.cell(span.start + span.len) - start, ..span }
    }

    /// The plan in units of cells.
    fn coarsen(&self, plan: &mut Plan) {
        plan.copies = plan.copies.iter().map(|&(from, to)| (self.span(from), self.span(to))).collect();
        for pass in &mut plan.passes {
            assert_eq!(pass.hold, 0);
            let mut places = BTreeMap::new();
            let (mut fine, mut coarse) = (0, 0);
            for receipt in &mut plan.receipts[pass.receipts.clone()] {
                assert_eq!(receipt.room, 0);
                places.insert(fine, coarse);
                fine += receipt.to.len;
                receipt.to = self.span(receipt.to);
                coarse += receipt.to.len;
                if let Take::Reduce { own, .. } = &mut receipt.take {
                    *own = self.span(*own);
                }
            }
            assert_eq!(fine, pass.elements.1);
            let departures = &mut plan.sends[pass.sends.clone()];
            for departure in departures.iter_mut() {
                departure.span = self.span(departure.span);
                departure.after = departure.after.map(|after| places[&after]);
            }
            pass.elements = (departures.iter().map(|departure| departure.span.len).sum(), coarse);
        }
    }
}

/// Checks a plan in units of cells.
fn check_coarsely(
    [size, lanes, unit]: [usize; 3],
    model: Model,
    fill: Fill<'_>,
    check: fn(Setting, &Model, Fill<'_>),
) {
    let plan = |rank| {
        let mut plan = Plan::default();
        fill(&mut plan, Place { rank, size, lanes });
        plan
    };
    let grid = Grid::new(unit, &model, &(0..size).map(plan).collect::<Vec<_>>());
    let model = model.coarse(&grid);
    for_links(size, lanes, grid.cells(), |setting| {
        check(setting, &model, &|plan, place| {
            fill(plan, place);
            grid.coarsen(plan);
        });
    });
}

const MOST_LANES: usize = 4;
const SIZES: std::ops::RangeInclusive<usize> = 2..=8;

/// Also elements so large that arrays of few have several parts.
#[test]
fn all_reduces_are_mlxs() {
    for size in SIZES {
        for lanes in 1..=MOST_LANES {
            for element_bytes in [1, 2, 4, 8, 100_000, 262_144, 1 << 20] {
                for count in (0..=64).chain((65..200).step_by(3)) {
                    let model = Model::all_reduce(size, lanes, count, element_bytes);
                    assert_eq!(model.is_some(), Plan::mlx_reduces(size, count, element_bytes));
                    let Some(model) = model else { continue };
                    for_links(size, lanes, count, |setting| {
                        check_all_reduce(setting, &model, &|plan, place| {
                            plan.mlx_all_reduce(place, count, element_bytes);
                        });
                    });
                }
            }
        }
    }
}

/// Sizes around those at which there is one part more.
#[test]
fn large_all_reduces_are_mlxs() {
    for size in SIZES {
        for lanes in 1..=MOST_LANES {
            for element_bytes in [1, 2, 4, 8] {
                for parts in 1..=2 * lanes + 1 {
                    let next = size * 262_144 * parts / element_bytes;
                    for count in [next - size - 1, next - 1, next, next + 1, next + parts, next * 3 / 2 + 7] {
                        let model = Model::all_reduce(size, lanes, count, element_bytes).expect("a model");
                        let fill = |plan: &mut Plan, place| plan.mlx_all_reduce(place, count, element_bytes);
                        check_coarsely([size, lanes, count], model, &fill, check_all_reduce);
                    }
                }
            }
        }
    }
}

/// What MLX fills small calls up with is zeros, and no more than these.
#[test]
fn small_calls_are_filled_up_with_zeros() {
    for size in SIZES {
        for count in 0..size {
            let mut plan = Plan::default();
            plan.mlx_all_reduce(Place { rank: 1, size, lanes: 2 }, count, 8);
            assert_eq!((plan.blank, plan.scratch), (size - count, size - count));
        }
        let mut plan = Plan::default();
        plan.mlx_all_reduce(Place { rank: 1, size, lanes: 2 }, size, 8);
        assert_eq!((plan.blank, plan.scratch), (0, 0));
    }
}

#[test]
fn what_mlx_refuses_isnt_reduced() {
    for size in 2..=1030 {
        for element_bytes in [1, 2, 4, 8] {
            for count in [0, 1, size - 1, size, size + 1] {
                let is_refused = count < size && element_bytes * size > 1024;
                assert_eq!(Plan::mlx_reduces(size, count, element_bytes), !is_refused);
            }
        }
    }
}

#[test]
fn all_gathers_are_mlxs() {
    for size in SIZES {
        for lanes in 1..=MOST_LANES {
            for bytes in (0..=64).chain((65..200).step_by(7)) {
                let model = Model::all_gather(size, lanes, bytes);
                for_links(size, lanes, bytes, |setting| {
                    check_all_gather(setting, &model, &|plan, place| plan.mlx_all_gather(place, bytes));
                });
            }
        }
    }
}

/// Sizes around those at which there is one part more, and odd ones, so that parts begin within elements.
#[test]
fn large_all_gathers_are_mlxs() {
    for size in SIZES {
        for lanes in 1..=MOST_LANES {
            for parts in 1..=2 * lanes + 1 {
                let next = 262_144 * parts;
                for bytes in [next - 1, next, next + 1, next + parts, next + 100_003, 5 * next + 4] {
                    let model = Model::all_gather(size, lanes, bytes);
                    let fill = |plan: &mut Plan, place| plan.mlx_all_gather(place, bytes);
                    check_coarsely([size, lanes, bytes], model, &fill, check_all_gather);
                }
            }
        }
    }
}

/// Who sends to whom, at the same time: one rank, all to one side, and two to each other.
fn transfers(size: usize) -> [Vec<(usize, usize)>; 5] {
    let all = |steps| (0..size).map(|rank| (rank, around(rank, steps, size))).collect();
    [vec![(0, 1)], vec![(0, size - 1)], all(1), all(-1), vec![(0, 1), (1, 0)]]
}

#[test]
fn messages_are_mlxs() {
    let nearby = |at: usize| [at - 1, at, at + 1];
    let cuts = [1024, 2048, 3072, 4096, 9216].into_iter().flat_map(nearby);
    let sizes: Vec<usize> = [0, 1, 7, 512, 1500, 2500].into_iter().chain(cuts).collect();
    for size in SIZES {
        for (lanes, &bytes) in
            (1..=MOST_LANES).flat_map(|lanes| sizes.iter().map(move |bytes| (lanes, bytes)))
        {
            for transfers in transfers(size) {
                let mut model = Model::new(size);
                transfers.iter().for_each(|&(from, to)| model.send([size, lanes, bytes], from, to));
                let target = |rank| transfers.iter().find(|(from, _)| *from == rank).map(|(_, to)| *to);
                let source = |rank| transfers.iter().find(|(_, to)| *to == rank).map(|(from, _)| *from);
                let length = |peer: Option<usize>| peer.map_or(0, |_| bytes);
                let memory = |rank| Memory {
                    send: length(target(rank)),
                    recv: length(source(rank)),
                    inside: (Buffer::Send, 0),
                };
                for capacity in [1, 700, usize::MAX] {
                    let setting = Setting { size, lanes, count: bytes, in_place: false, capacity, seed: 0 };
                    let ranks = run(setting, memory, |plan, place| {
                        // In a ring of two a rank sends to the right, and receives from the left.
                        let right = around(place.rank, 1, size);
                        let left = around(place.rank, -1, size);
                        if let Some(to) = target(place.rank) {
                            let flow = if to == right { Flow::Right } else { Flow::Left };
                            plan.mlx_send(place, flow, bytes);
                        }
                        if let Some(from) = source(place.rank) {
                            let flow = if from == left { Flow::Right } else { Flow::Left };
                            plan.mlx_receive(place, flow, bytes);
                        }
                    });
                    assert_streams(&ranks, &model, setting);
                    for (number, rank) in ranks.iter().enumerate() {
                        let sent = source(number)
                            .into_iter()
                            .flat_map(|from| (0..bytes).map(move |i| Some(Value::input(from, i))));
                        assert!(sent.eq(rank.output().iter().copied()), "{setting:?}, {transfers:?}");
                    }
                }
            }
        }
    }
}

/// A barrier is a sum of one element. It lies, like what fills the call up, in scratch memory.
#[test]
fn a_barrier_is_a_sum_of_one_element() {
    for size in SIZES {
        let model = Model::all_reduce(size, 2, 1, 4).expect("a model");
        for_links(size, 2, 0, |setting| {
            let memory = |_| Memory { send: 0, recv: 0, inside: (Buffer::Send, 0) };
            let ranks = run(setting, memory, |plan, place| plan.mlx_barrier(place));
            assert_streams(&ranks, &model, setting);
            for (number, rank) in ranks.iter().enumerate() {
                let what = || format!("the sum of rank {number} of {setting:?}");
                let sum = rank.memory[Buffer::Scratch as usize][0].expect("a sum");
                assert_stream(&[sum], &model.results[number], size, &what);
            }
        });
    }
}
