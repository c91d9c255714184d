//! The exhaustive tests of the plans.

use super::segment::Stretch;
use super::simulate::{Memory, Setting, Value, simulate};
use super::*;

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
    let memory = |_| Memory { send: count, recv: count, inside: (Buffer::Send, 0) };
    for (number, rank) in simulate(setting, memory, fill).iter().enumerate() {
        for (i, (first, direction)) in chains.iter().enumerate() {
            let value = rank.output()[i].expect("an element was not delivered");
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
            let plain = Setting { size, lanes: 1, count, in_place: false, capacity: usize::MAX, seed: 0 };
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
        let memory = |rank| Memory {
            send: setting.count,
            recv: setting.size * setting.count,
            inside: (Buffer::Send, rank * setting.count),
        };
        for halves in [false, true] {
            let ranks = simulate(setting, memory, |plan, place| match halves {
                true => all_gather::halves(plan, place, setting.count),
                false => all_gather::whole(plan, place, setting.count),
            });
            for rank in &ranks {
                let right =
                    (0..setting.size).flat_map(|r| (0..setting.count).map(move |i| Some(Value::input(r, i))));
                assert!(right.eq(rank.output().iter().copied()));
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
        plan.passes.iter().map(|pass| lane_of(pass) + 1).max()
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

fn lane_of(pass: &Pass) -> usize {
    match pass.path {
        Path::Ring { lane, .. } => lane,
        Path::Direct { .. } => panic!("a direct link has no lanes"),
    }
}
