//! What the plans cost, counted rank by rank, against the formulas of docs/cost-model.md; and what
//! `ring-perf --model` is held to.

use std::fmt::Write;
use std::path;
use std::{env, fs};

use super::choose::*;
use super::*;

/// Elements, by direction (right, left) where there are two.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    /// Sent to the neighbour, on all lanes together.
    pub sent: [usize; 2],
    /// Reduced on arrival.
    reduced: [usize; 2],
    /// Stored on arrival.
    stored: [usize; 2],
    /// Reduced after all passes.
    folded: usize,
    /// Copied before anything is sent.
    copied: usize,
}

impl Cost {
    fn all_reduced(&self) -> usize {
        self.reduced[0] + self.reduced[1] + self.folded
    }

    fn numbers(&self) -> [usize; 8] {
        let Cost { sent, reduced, stored, folded, copied } = *self;
        [sent[0], sent[1], reduced[0], reduced[1], stored[0], stored[1], folded, copied]
    }
}

/// What is kept of a rank's plan: those of a large ring are too much memory together.
pub(super) struct Counted {
    pub cost: Cost,
    passes: Vec<CountedPass>,
}

pub(super) struct CountedPass {
    flow: Flow,
    hold: usize,
    sent: usize,
    /// Elements, and what of the received stream they need.
    departures: Vec<(usize, Option<usize>)>,
}

impl CountedPass {
    /// Elements that may have been sent when so many have been received.
    fn may_send(&self, received: usize) -> usize {
        if received < self.hold {
            return 0;
        }
        let mut sent = 0;
        for (len, after) in &self.departures {
            let ready = after.map_or(*len, |after| received.saturating_sub(after).min(*len));
            sent += ready;
            if ready < *len {
                break;
            }
        }
        sent
    }
}

fn count_plan(plan: &Plan) -> Counted {
    let mut cost = Cost::default();
    let mut passes = Vec::new();
    for pass in &plan.passes {
        let Path::Ring { flow: direction, .. } = pass.path else { panic!("a plan with a direct link") };
        let flow = direction as usize;
        let sends = &plan.sends[pass.sends.clone()];
        let departures = sends.iter().map(|departure| (departure.span.len, departure.after)).collect();
        let sent = pass.elements.0;
        passes.push(CountedPass { flow: direction, hold: pass.hold, sent, departures });
        cost.sent[flow] += sent;
        for Receipt { to, take, .. } in &plan.receipts[pass.receipts.clone()] {
            match take {
                Take::Copy => cost.stored[flow] += to.len,
                Take::Reduce { .. } => cost.reduced[flow] += to.len,
            }
        }
    }
    cost.folded = plan.folds.iter().map(|fold| fold.to.len).sum();
    cost.copied = plan.copies.iter().map(|(from, _)| from.len).sum();
    Counted { cost, passes }
}

/// The plans of all ranks.
pub(super) fn count_all(size: usize, lanes: usize, fill: impl Fn(&mut Plan, Place)) -> Vec<Counted> {
    let mut plan = Plan::default();
    let counted = (0..size).map(|rank| {
        plan.clear();
        fill(&mut plan, Place { rank, size, lanes });
        count_plan(&plan)
    });
    counted.collect()
}

/// The longest chain of sends of which each had to wait for the one before: the rounds that a pass
/// takes if in each round every rank sends all that it may, and hears at its end what it was sent.
pub(super) fn steps(ranks: &[Counted]) -> usize {
    let size = ranks.len();
    let rounds = |pass: usize| {
        let flow = ranks[0].passes[pass].flow;
        let upstream = |rank: usize| flow.upstream(rank, 1, size);
        let (mut received, mut rounds) = (vec![0; size], 0);
        loop {
            let may_send = |rank: usize| ranks[rank].passes[pass].may_send(received[rank]);
            let heard: Vec<usize> = (0..size).map(|rank| may_send(upstream(rank))).collect();
            if heard == received {
                let all = (0..size).all(|rank| received[rank] == ranks[upstream(rank)].passes[pass].sent);
                assert!(all, "a pass of {size} ranks stands still");
                return rounds;
            }
            received = heard;
            rounds += 1;
        }
    };
    (0..ranks[0].passes.len()).map(rounds).max().unwrap_or(0)
}

/// Every rank's share is an n-th of what the formulas say for all ranks together, rounded up or
/// down to a `unit` of elements; lanes share a direction to within an element a segment.
fn check(ranks: &[Counted], lanes: usize, unit: usize, all: Cost, longest: usize) {
    let size = ranks.len();
    for (number, all) in all.numbers().into_iter().enumerate() {
        let of_rank = || ranks.iter().map(|rank| rank.cost.numbers()[number]);
        assert_eq!(of_rank().sum::<usize>(), all, "number {number} of {size} ranks");
        for share in of_rank() {
            // Times n, so that nothing is lost by rounding.
            assert!((share * size).abs_diff(all) < unit * size, "{share} of {all} on {size} ranks");
        }
    }
    assert_eq!(steps(ranks), longest, "{size} ranks, {all:?}");
    for Counted { cost, passes } in ranks {
        for CountedPass { flow, sent: share, .. } in passes {
            // A small exchange has one lane.
            let lanes = if passes.iter().any(|pass| pass.hold > 0) { 1 } else { lanes };
            let sent = cost.sent[*flow as usize];
            let apart = (share * lanes).abs_diff(sent);
            assert!(apart <= (lanes - 1) * longest, "{share} of {sent} on one of {lanes} lanes");
        }
    }
}

/// The ring of one or two parts: each element travels 2(n-1) hops, and is reduced on the first
/// n-1 of them.
fn ring_costs(size: usize, count: usize, parts: usize) -> (Cost, usize) {
    let part = if parts == 1 { [count, 0] } else { [count / 2, count.div_ceil(2)] };
    let hops = part.map(|part| (size - 1) * part);
    let cost = Cost { sent: hops.map(|hops| 2 * hops), reduced: hops, stored: hops, ..Cost::default() };
    (cost, if count > 0 { 2 * (size - 1) } else { 0 })
}

/// Whole inputs go half-way round, also those of a gather of small blocks. In even rings of more than
/// two, where neighbours exchange in turn, half of the ranks send a block more to the right than to the left,
/// and half to the left.
fn exchange_costs(size: usize, count: usize) -> (Cost, usize) {
    let sent = match size > 2 && size.is_multiple_of(2) {
        true => [size * (size - 1) / 2 * count; 2],
        false => [size / 2, (size - 1) / 2].map(|steps| steps * size * count),
    };
    (Cost { sent, stored: sent, ..Cost::default() }, if count > 0 { size / 2 } else { 0 })
}

/// Each rank reduces all n inputs; the own segment is copied.
fn flood_costs(size: usize, count: usize) -> (Cost, usize) {
    let (cost, steps) = exchange_costs(size, count);
    (Cost { folded: size * (size - 1) * count, copied: count, ..cost }, steps)
}

/// Half a block goes all the way right, the other half left.
fn halves_costs(size: usize, count: usize) -> (Cost, usize) {
    let sent = [count / 2, count.div_ceil(2)].map(|half| size * (size - 1) * half);
    let cost = Cost { sent, stored: sent, copied: size * count, ..Cost::default() };
    (cost, if count > 0 { size - 1 } else { 0 })
}

/// Rings of 2 to 64 ranks, and a few larger ones with fewer lanes and counts.
fn for_all(check: impl Fn(usize, usize, usize)) {
    let large = 12_345_677;
    for size in 2..=64 {
        for lanes in [1, 2, 5] {
            for count in [0, 1, 2, size - 1, size, size + 1, 7 * size, 65_537, large] {
                check(size, lanes, count);
            }
        }
    }
    for size in [128, 129, 256, 1024] {
        for count in [1, size + 1, large] {
            check(size, if size == 1024 { 1 } else { 2 }, count);
        }
    }
}

#[test]
fn a_ring_sends_the_least_that_any_all_reduce_can() {
    for_all(|size, lanes, count| {
        for parts in [1, 2] {
            let (cost, steps) = ring_costs(size, count, parts);
            let ranks = count_all(size, lanes, |plan, place| plan.ring_all_reduce(place, count, parts));
            check(&ranks, lanes, 1, cost, steps);
            // 2(n-1)/n of the array a rank, in both directions together.
            assert_eq!(cost.sent[0] + cost.sent[1], 2 * (size - 1) * count);
        }
    });
}

#[test]
fn a_flood_takes_half_the_rings_length_in_steps() {
    for_all(|size, lanes, count| {
        if count.min(size) * size <= FLOOD_MAX_FOLDS {
            let (cost, steps) = flood_costs(size, count);
            for parts in [1, 2] {
                let flood = |plan: &mut Plan, place| flood::all_reduce(plan, place, count, parts);
                check(&count_all(size, lanes, flood), lanes, count.max(1), cost, steps);
            }
        }
    });
}

#[test]
fn a_gather_sends_every_block_to_every_rank_once() {
    for_all(|size, lanes, count| {
        let (cost, steps) = exchange_costs(size, count);
        let cost = Cost { copied: size * count, ..cost };
        let whole = |plan: &mut Plan, place| all_gather::whole(plan, place, count);
        check(&count_all(size, lanes, whole), lanes, count.max(1), cost, steps);
        let (cost, steps) = halves_costs(size, count);
        let halves = |plan: &mut Plan, place| all_gather::halves(plan, place, &Parts::Equal(count));
        check(&count_all(size, lanes, halves), lanes, 1, cost, steps);
    });
}

/// In an even ring a rank has one exchange a step: (n-1) blocks in n/2 messages.
#[test]
fn an_even_exchange_has_one_message_a_step() {
    for size in (4..=64).step_by(2).chain([128, 1024]) {
        let mut plan = Plan::default();
        for rank in [0, 1, size / 2, size - 1] {
            plan.clear();
            plan.barrier(Place { rank, size, lanes: 2 });
            // Spans are messages, but for the own block, which leaves with the partner's.
            let together = plan.passes.iter().filter(|pass| pass.hold > 0).count();
            assert_eq!(plan.sends.len() - together, size / 2);
            assert_eq!(plan.sends.iter().map(|departure| departure.span.len).sum::<usize>(), size - 1);
        }
    }
}

#[test]
fn a_barrier_is_an_exchange_of_one_byte() {
    for size in (2..=64).chain([128, 129, 256, 1024]) {
        let (cost, steps) = exchange_costs(size, 1);
        let ranks = count_all(size, 2, |plan, place| {
            plan.barrier(place);
        });
        check(&ranks, 1, 1, cost, steps);
    }
}

/// How an all-reduce is carried out, in the order of the sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Choice {
    Flood,
    OnePart,
    TwoParts,
}

fn choice(plan: &mut Plan, size: usize, count: usize, element: usize) -> Choice {
    plan.clear();
    match plan.all_reduce(Place { rank: 0, size, lanes: 1 }, count, element) {
        Algorithm::Flood => Choice::Flood,
        Algorithm::Ring if plan.passes[1].sends.is_empty() => Choice::OnePart,
        Algorithm::Ring => Choice::TwoParts,
        other => panic!("an all-reduce by {other:?}"),
    }
}

const LARGEST_RING: usize = 1024;
/// A crossover above would not be found.
const LARGEST_CALL: usize = 1 << 30;

/// The smallest calls in bytes that are no flood, and that have two parts; MAX where there are none.
fn crossovers(plan: &mut Plan, size: usize) -> [usize; 2] {
    [Choice::OnePart, Choice::TwoParts].map(|wanted| {
        let (mut below, mut from) = (0, LARGEST_CALL);
        if choice(plan, size, from, 1) < wanted {
            return usize::MAX;
        }
        while below < from {
            let middle = below.midpoint(from);
            if choice(plan, size, middle, 1) >= wanted { from = middle } else { below = middle + 1 }
        }
        from
    })
}

/// The table that `ring-perf --model` is compiled with. Ranks with the same crossovers share a row.
fn crossover_table(of_size: &[[usize; 2]]) -> String {
    let mut table = String::from(
        "/* How an all-reduce is carried out, as the plans of src/plan choose. Not to be edited:\n \
         * `RING_WRITE_COSTS=1 cargo test --lib costs` writes it. */\n\
         #ifndef CROSSOVERS_H\n#define CROSSOVERS_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n\
         /* Calls of fewer bytes than one_part_from are a flood, those from two_parts_from on a ring of\n \
         * two parts; for rings of more ranks than the row before has, up to `ranks`. */\n\
         typedef struct crossover {\n  int ranks;\n  size_t one_part_from;\n  size_t two_parts_from;\n\
         } crossover_t;\n\nstatic const crossover_t CROSSOVERS[] = {\n",
    );
    for size in 2..=LARGEST_RING {
        if of_size.get(size + 1) != Some(&of_size[size]) {
            let [one, two] = of_size[size].map(|from| match from {
                usize::MAX => "SIZE_MAX".to_owned(),
                from => from.to_string(),
            });
            writeln!(table, "    {{{size}, {one}, {two}}},").unwrap();
        }
    }
    table + "};\n\n#endif\n"
}

/// What the formulas of `ring-perf --model` are compared with: the most that any rank sends and
/// reduces, in bytes, on both sides of each crossover and far from them.
fn cost_table(of_size: &[[usize; 2]]) -> String {
    let mut table = String::from("ranks\tbytes\telement\talgorithm\tparts\tsteps\tright\tleft\treduced\n");
    for size in (2..=17).chain([31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 255, LARGEST_RING]) {
        let mut seen = Vec::new();
        for element in if size <= 17 { &[1, 4, 8][..] } else { &[4] } {
            let [one, two] = of_size[size];
            let sizes = [8, 4000, one, two, 1 << 20, (100 << 20) + 8];
            // The last count before a crossover, and the first behind it.
            let counts = sizes.into_iter().filter(|bytes| *bytes <= LARGEST_CALL);
            let counts =
                counts.flat_map(|bytes| [bytes.saturating_sub(1) / element, bytes.div_ceil(*element)]);
            for count in counts.filter(|count| *count > 0) {
                if seen.contains(&(count, *element)) {
                    continue;
                }
                seen.push((count, *element));
                let (algorithm, parts) = match choice(&mut Plan::default(), size, count, *element) {
                    Choice::Flood => ("flood", 1),
                    Choice::OnePart => ("ring", 1),
                    Choice::TwoParts => ("ring", 2),
                };
                let ranks = count_all(size, 1, |plan, place| {
                    plan.all_reduce(place, count, *element);
                });
                let most = |number: fn(&Cost) -> usize| {
                    ranks.iter().map(|rank| number(&rank.cost)).max().unwrap() * element
                };
                let (right, left) = (most(|cost| cost.sent[0]), most(|cost| cost.sent[1]));
                let (bytes, steps, reduced) = (count * element, steps(&ranks), most(Cost::all_reduced));
                writeln!(
                    table,
                    "{size}\t{bytes}\t{element}\t{algorithm}\t{parts}\t{steps}\t{right}\t{left}\t{reduced}"
                )
                .unwrap();
            }
        }
    }
    table
}

/// Where RING_WRITE_COSTS is set, the tables are written instead of compared.
#[test]
fn ring_perf_has_the_costs_of_these_plans() {
    let mut plan = Plan::default();
    let mut of_size = vec![[0; 2]; 2];
    of_size.extend((2..=LARGEST_RING).map(|size| crossovers(&mut plan, size)));
    let folder = path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/ring-perf");
    for (name, table) in [("crossovers.h", crossover_table(&of_size)), ("costs.tsv", cost_table(&of_size))] {
        let path = folder.join(name);
        if env::var_os("RING_WRITE_COSTS").is_some() {
            fs::write(&path, &table).unwrap();
        }
        let same = fs::read_to_string(&path).is_ok_and(|kept| kept == table);
        assert!(same, "tools/ring-perf/{name}: run RING_WRITE_COSTS=1 cargo test --lib costs");
    }
}

/// The table of crossovers says all: the choice comes from ranks and bytes alone, and goes from the
/// flood to one part to two as these grow.
#[test]
fn the_choice_has_two_crossovers() {
    let mut plan = Plan::default();
    for size in [2, 3, 4, 7, 8, 64, 65, 100, 128, 129, 1024] {
        let [one, two] = crossovers(&mut plan, size);
        let powers = (0..30).flat_map(|shift| [(1_usize << shift) - 1, 1 << shift, (1 << shift) + 1]);
        for bytes in powers.chain((0..1 << 18).step_by(if size > 8 { 3001 } else { 61 })) {
            for element in [1, 2, 4, 8] {
                let count = bytes / element;
                let right = match count * element {
                    bytes if bytes < one => Choice::Flood,
                    bytes if bytes < two => Choice::OnePart,
                    _ => Choice::TwoParts,
                };
                assert_eq!(choice(&mut plan, size, count, element), right, "{size} ranks, {bytes} bytes");
            }
        }
    }
}
