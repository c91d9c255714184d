//! The exhaustive tests of the plans.

use super::choose::*;
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
                ring::all_reduce(plan, place, setting.count, parts, 4)
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
                true => all_gather::halves(plan, place, &Parts::Equal(setting.count)),
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

/// Rings of 2 to 9 with lengths around the cuts, one and several lanes, links that hold one element or all,
/// drawn turns, in place and not.
fn for_some(check: impl Fn(Setting)) {
    for size in 2..=9 {
        for count in [0, 1, 2, 3, size - 1, size, size + 1, 2 * size + 3, 41, 90] {
            for (lanes, capacity, seed) in
                [(1, usize::MAX, 0), (1, 1, 0), (3, 1, 5), (2, 7, count as u64 + 1)]
            {
                for in_place in [false, true] {
                    check(Setting { size, lanes, count, in_place, capacity, seed });
                }
            }
        }
    }
}

/// Bytes of an element for which a block of a window has so many elements.
fn bytes_for(block: usize) -> usize {
    (64 << 10) / block
}

/// Parts of the same length, of none and of many, and all on one rank.
fn uneven(size: usize, count: usize) -> [Parts; 3] {
    let listed = |lens: Vec<usize>| {
        let mut start = 0;
        let part = |len: usize| {
            start += len;
            Stretch { start: start - len, len }
        };
        Parts::Listed(lens.into_iter().map(part).collect())
    };
    let odd = (0..size).map(|rank| if rank % 3 == 1 { 0 } else { count * (rank + 1) / size + rank % 2 });
    let one = (0..size).map(|rank| if rank == size / 2 { count } else { 0 });
    [Parts::Equal(count), listed(odd.collect()), listed(one.collect())]
}

fn assert_inputs_kept(setting: Setting, ranks: &[super::simulate::Rank]) {
    for (number, rank) in ranks.iter().enumerate() {
        let input = &rank.memory[Buffer::Send as usize];
        let kept = input.iter().enumerate().all(|(i, value)| *value == Some(Value::input(number, i)));
        assert!(setting.in_place || kept, "the input of rank {number} was written: {setting:?}");
    }
}

/// A chain that is whole: what went right began at `first.0`, what went left at `first.1`.
fn assert_chain(value: Option<Value>, index: usize, size: usize, right: bool, first: (usize, usize)) {
    let value = value.expect("an element was not delivered");
    assert_eq!((value.index, value.len, value.ended), (index as u16, size as u8, true), "{value:?}");
    let (first, direction) = if right { (first.0, 1) } else { (first.1, -1) };
    assert!(usize::from(value.first) == first && (value.direction == direction || size == 2), "{value:?}");
}

#[test]
fn parts_are_reduced_in_chains_that_end_at_their_ranks() {
    for_some(|setting| {
        let Setting { size, count, in_place, .. } = setting;
        for parts in uneven(size, count) {
            for (halves, block) in [(1, None), (2, None), (1, Some(1)), (2, Some(4)), (2, Some(1 << 10))] {
                let memory = |rank: usize| Memory {
                    send: parts.total(size),
                    recv: if in_place { 0 } else { parts.of(rank).len },
                    inside: (Buffer::Recv, parts.of(rank).start),
                };
                let ranks = simulate(setting, memory, |plan, place| {
                    plan.wide = count % 2 == 1;
                    match block {
                        None => reduce_scatter::flood(plan, place, &parts, halves),
                        Some(block) => reduce_scatter::ring(plan, place, &parts, halves, bytes_for(block)),
                    }
                });
                assert_inputs_kept(setting, &ranks);
                for (number, rank) in ranks.iter().enumerate() {
                    let part = parts.of(number);
                    let right = part.flows(halves)[0].1.len;
                    let ends = ((number + 1) % size, (number + size - 1) % size);
                    for i in 0..part.len {
                        assert_chain(rank.output()[i], part.start + i, size, i < right, ends);
                    }
                    let (before, after) = (0..part.start, part.start + part.len..parts.total(size));
                    for i in before.chain(after).filter(|_| in_place) {
                        assert_eq!(rank.memory[0][i], Some(Value::input(number, i)), "beside the own part");
                    }
                }
            }
        }
    });
}

#[test]
fn the_root_reduces_all_in_order() {
    for_some(|setting| {
        let Setting { size, count, in_place, .. } = setting;
        for root in 0..size {
            for (parts, block) in [(1, None), (2, None), (1, Some(1)), (2, Some(4)), (2, Some(1 << 10))] {
                let memory = |rank: usize| Memory {
                    send: count,
                    recv: if in_place || rank == root { count } else { 0 },
                    inside: (Buffer::Send, 0),
                };
                let ranks = simulate(setting, memory, |plan, place| {
                    let rooted = rooted::Rooted { place, root };
                    plan.wide = count % 2 == 1;
                    match block {
                        None => rooted::reduce_flood(plan, rooted, count, parts, bytes_for(4)),
                        Some(block) => rooted::reduce_chains(plan, rooted, count, parts, bytes_for(block)),
                    }
                });
                assert_inputs_kept(setting, &ranks);
                let right = Stretch::whole(count).flows(parts)[0].1.len;
                for i in 0..count {
                    let ends = ((root + 1) % size, (root + size - 1) % size);
                    assert_chain(ranks[root].output()[i], i, size, i < right, ends);
                }
                for (number, rank) in
                    ranks.iter().enumerate().filter(|(number, _)| *number != root && in_place)
                {
                    let kept = (0..count).all(|i| rank.output()[i] == Some(Value::input(number, i)));
                    assert!(kept, "rank {number} is not the root");
                }
            }
        }
    });
}

#[test]
fn a_broadcast_reaches_every_rank() {
    for_some(|setting| {
        let Setting { size, count, .. } = setting;
        for root in 0..size {
            for halves in [false, true] {
                let memory = |_| Memory { send: count, recv: count, inside: (Buffer::Send, 0) };
                let ranks = simulate(Setting { in_place: true, ..setting }, memory, |plan, place| {
                    let rooted = rooted::Rooted { place, root };
                    match halves {
                        true => rooted::broadcast_halves(plan, rooted, count),
                        false => rooted::broadcast_whole(plan, rooted, count),
                    }
                });
                for rank in ranks {
                    let right = (0..count).map(|i| Some(Value::input(root, i)));
                    assert!(right.eq(rank.output().iter().copied()));
                }
            }
        }
    });
}

#[test]
fn the_root_gathers_and_scatters_every_block() {
    for_some(|setting| {
        let Setting { size, count, in_place, .. } = setting;
        for root in 0..size {
            for (halves, block) in [(1, 1), (2, 4), (2, 1 << 10)] {
                let parts = Parts::Equal(count);
                let rooted = |place| rooted::Rooted { place, root };
                let memory = |rank: usize| Memory {
                    send: count,
                    recv: if rank == root {
                        size * count
                    } else if in_place {
                        count
                    } else {
                        0
                    },
                    inside: (Buffer::Send, if rank == root { rank * count } else { 0 }),
                };
                let ranks = simulate(setting, memory, |plan, place| {
                    rooted::gather(plan, rooted(place), &parts, halves, bytes_for(block));
                });
                assert_inputs_kept(setting, &ranks);
                let right = (0..size).flat_map(|r| (0..count).map(move |i| Some(Value::input(r, i))));
                assert!(right.eq(ranks[root].output().iter().copied()), "{setting:?}, root {root}");

                let memory = |rank: usize| Memory {
                    send: if rank == root {
                        size * count
                    } else if in_place {
                        count
                    } else {
                        0
                    },
                    recv: count,
                    inside: (Buffer::Recv, if rank == root { rank * count } else { 0 }),
                };
                let ranks = simulate(setting, memory, |plan, place| {
                    rooted::scatter(plan, rooted(place), &parts, halves, bytes_for(block));
                });
                for (number, rank) in ranks.iter().enumerate() {
                    let right = (0..count).map(|i| Some(Value::input(root, number * count + i)));
                    assert!(right.eq(rank.output()[..count].iter().copied()), "{setting:?}, root {root}");
                }
            }
        }
    });
}

#[test]
fn every_rank_gathers_parts_of_any_length() {
    for_some(|setting| {
        let Setting { size, count, .. } = setting;
        for parts in uneven(size, count) {
            for halves in [false, true] {
                let memory = |rank: usize| Memory {
                    send: parts.of(rank).len,
                    recv: parts.total(size),
                    inside: (Buffer::Send, parts.of(rank).start),
                };
                let ranks = simulate(setting, memory, |plan, place| match halves {
                    true => all_gather::halves(plan, place, &parts),
                    false => all_gather::parts_whole(plan, place, &parts),
                });
                for rank in &ranks {
                    let right =
                        (0..size).flat_map(|r| (0..parts.of(r).len).map(move |i| Some(Value::input(r, i))));
                    assert!(right.eq(rank.output().iter().copied()), "{setting:?}, {parts:?}");
                }
            }
        }
    });
}

#[test]
fn every_block_goes_from_every_rank_to_every_rank() {
    for_some(|setting| {
        let Setting { size, count, .. } = setting;
        if setting.in_place {
            return;
        }
        let even: fn(usize, usize, usize) -> usize = |_, _, count| count;
        let odd: fn(usize, usize, usize) -> usize = |from, to, count| (from * 5 + to * 3) % 4 * count / 2;
        for lens in [even, odd] {
            let len = |from: usize, to: usize| lens(from, to, count);
            let packed = |lens: Vec<usize>| {
                let starts = lens.iter().scan(0, |sum, len| Some(std::mem::replace(sum, *sum + len)));
                Parts::Listed(starts.zip(&lens).map(|(start, len)| Stretch { start, len: *len }).collect())
            };
            let send = |rank: usize| packed((0..size).map(|to| len(rank, to)).collect());
            let recv = |rank: usize| packed((0..size).map(|from| len(from, rank)).collect());
            let memory = |rank: usize| Memory {
                send: send(rank).total(size),
                recv: recv(rank).total(size),
                inside: (Buffer::Send, 0),
            };
            for (direct, element) in [false, true].into_iter().flat_map(|direct| {
                [1, bytes_for(1), bytes_for(4), LANE_MIN_BYTES].map(|element| (direct, element))
            }) {
                let ranks = simulate(setting, memory, |plan, place| {
                    let parts = (&send(place.rank), &recv(place.rank));
                    if direct {
                        plan.all_to_all_direct(place, parts, element);
                        let own = len(place.rank, place.rank);
                        let sent: usize = plan.sends.iter().map(|departure| departure.span.len).sum();
                        assert_eq!(
                            sent,
                            parts.0.total(size) - own,
                            "{setting:?}, elements of {element} bytes"
                        );
                    } else {
                        plan.relay_blocks(place, &len, parts, element);
                    }
                });
                assert_inputs_kept(setting, &ranks);
                for (number, rank) in ranks.iter().enumerate() {
                    let blocks = (0..size).map(|from| send(from).of(number));
                    let right = blocks.enumerate().flat_map(|(from, block)| {
                        (block.start..block.start + block.len).map(move |i| Some(Value::input(from, i)))
                    });
                    assert!(
                        right.eq(rank.output().iter().copied()),
                        "{setting:?}, direct: {direct}, elements of {element} bytes"
                    );
                }
            }
        }
    });
}

#[test]
fn wide_sums_are_reduced_in_the_same_order() {
    for_some(|setting| {
        for parts in [1, 2] {
            for block in [1, 4, 1 << 10] {
                check_all_reduce(setting, parts, |plan, place| {
                    plan.wide = true;
                    ring::all_reduce(plan, place, setting.count, parts, bytes_for(block));
                });
            }
            check_all_reduce(setting, parts, |plan, place| {
                plan.wide = true;
                flood::all_reduce(plan, place, setting.count, parts);
            });
        }
    });
}
