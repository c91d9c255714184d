//! What the busiest rank of each collective sends, and in how many steps, against the second table of
//! docs/cost-model.md.

use super::costs::{count_all, steps};
use super::personal::Personal;
use super::rooted::{self, Rooted};
use super::*;

/// Elements of a part: even, since parts are cut in halves, and fewer than a block of a window, so that each
/// travels as one.
const PART: usize = 10;
const ELEMENT_BYTES: usize = 4;

/// The most that any rank sends to the right and to the left, and the steps.
fn load(size: usize, fill: impl Fn(&mut Plan, Place)) -> ([usize; 2], usize) {
    let ranks = count_all(size, 1, fill);
    let most = |flow: usize| ranks.iter().map(|rank| rank.cost.sent[flow]).max().unwrap_or(0);
    ([most(0), most(1)], steps(&ranks))
}

/// Blocks between the root and the others on its two edges; where the one from half-way round is cut in halves,
/// counted in halves.
fn root_edges(size: usize, halves: usize) -> [usize; 2] {
    let (right, left) = (size / 2, (size - 1) / 2);
    if halves == 1 { [right, left] } else { [size - 1; 2] }
}

/// Elements that a rank sends each way, own and relayed, where every rank has a part for every other.
fn relayed(size: usize, halves: usize) -> [usize; 2] {
    let sum = |steps: usize| steps * (steps + 1) / 2 * PART;
    match (halves, size.is_multiple_of(2)) {
        (2, true) => [(size / 2) * (size / 2) * PART / 2; 2],
        _ => [sum(size / 2), sum((size - 1) / 2)],
    }
}

#[test]
fn a_reduce_scatter_relays_small_parts_and_reduces_large_ones_on_the_way() {
    for size in 2..=33 {
        let parts = Parts::Equal(PART);
        let small = load(size, |plan, place| super::reduce_scatter::flood(plan, place, &parts, 1));
        assert_eq!(small, (relayed(size, 1), size / 2), "{size} ranks");
        let large = |plan: &mut Plan, place| {
            super::reduce_scatter::ring(plan, place, &parts, 2, ELEMENT_BYTES);
        };
        assert_eq!(load(size, large), ([(size - 1) * PART / 2; 2], size - 1), "{size} ranks");
    }
}

#[test]
fn a_root_sends_or_gets_the_least_that_it_can() {
    for size in 2..=33 {
        for root in [0, size / 2, size - 1] {
            let whole = |plan: &mut Plan, place| {
                rooted::broadcast_whole(plan, Rooted { place, root }, PART);
            };
            let left = if size > 2 { PART } else { 0 };
            assert_eq!(load(size, whole), ([PART, left], size / 2), "{size} ranks");
            let halves = |plan: &mut Plan, place| {
                rooted::broadcast_halves(plan, Rooted { place, root }, PART);
            };
            assert_eq!(load(size, halves), ([PART / 2; 2], size - 1), "{size} ranks");
            let chains = |plan: &mut Plan, place| {
                rooted::reduce_chains(plan, Rooted { place, root }, PART, 2, ELEMENT_BYTES);
            };
            assert_eq!(load(size, chains), ([PART / 2; 2], size - 1), "{size} ranks");
            let flood = |plan: &mut Plan, place| {
                rooted::reduce_flood(plan, Rooted { place, root }, PART, 1, ELEMENT_BYTES);
            };
            let [right, left] = root_edges(size, 1).map(|blocks| blocks * PART);
            assert_eq!(load(size, flood), ([right, left], size / 2), "{size} ranks");
            for halves in [1, 2] {
                let sent = root_edges(size, halves).map(|blocks| blocks * PART / halves);
                let parts = Parts::Equal(PART);
                let gather = |plan: &mut Plan, place| {
                    rooted::gather(plan, Rooted { place, root }, &parts, halves, ELEMENT_BYTES);
                };
                assert_eq!(load(size, gather), (sent, size / 2), "{size} ranks");
                let scatter = |plan: &mut Plan, place| {
                    rooted::scatter(plan, Rooted { place, root }, &parts, halves, ELEMENT_BYTES);
                };
                assert_eq!(load(size, scatter).0, sent, "{size} ranks");
            }
        }
    }
}

#[test]
fn an_all_to_all_relays_small_blocks_and_sends_large_ones_straight() {
    for size in 2..=33 {
        let blocks = Personal {
            len: &|_, _| PART,
            from_here: &|to| (Buffer::Send, Parts::Equal(PART).of(to)),
            to_here: &|from| (Buffer::Recv, Parts::Equal(PART).of(from)),
        };
        for halves in [1, 2] {
            let along = load(size, |plan, place| blocks.relayed(plan, place, halves, usize::MAX));
            assert_eq!(along, (relayed(size, halves), size / 2), "{size} ranks");
        }
        let mut plan = Plan::default();
        blocks.direct(&mut plan, Place { rank: 0, size, lanes: 1 }, &|_| (1, 1));
        let sent: usize = plan.sends.iter().map(|departure| departure.span.len).sum();
        assert_eq!(sent, (size - 1) * PART);
        assert!(plan.sends.iter().all(|departure| departure.after.is_none()));
    }
}
