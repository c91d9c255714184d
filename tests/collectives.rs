//! Collectives over loopback TCP, with threads as ranks and exactly known results.

mod common;

use common::{all_gather, all_reduce, barrier, bytes, configurations, ring, run};
use ring::dtype::{Dtype, Op};

/// Counts around the number of ranks, the flood's limit, the two parts' limit, the buffers and the
/// limit of the flood in a ring of two.
const COUNTS: [usize; 12] = [0, 1, 2, 7, 1021, 8192, 8193, 16_385, 65_537, 262_144, 262_145, 300_001];

fn value(rank: usize, i: usize) -> f32 {
    ((rank + 1) * (i % 1009 + 1)) as f32
}

#[test]
fn sums_are_exact_on_every_rank() {
    for size in 1..=8 {
        for (addresses, connections) in [(1, 1), (1, 3), (2, 2)] {
            ring(&configurations(size, addresses, connections), |group| {
                for count in COUNTS {
                    let mine: Vec<f32> = (0..count).map(|i| value(group.rank(), i)).collect();
                    let mut send = bytes(&mine, f32::to_ne_bytes);
                    let mut recv = vec![0xAA; send.len()];
                    run(group, all_reduce(&mut send, &mut recv, Dtype::Float32, Op::Sum)).unwrap();
                    let all = |i| (0..size).map(|rank| value(rank, i)).sum::<f32>();
                    let right = bytes(&(0..count).map(all).collect::<Vec<_>>(), f32::to_ne_bytes);
                    assert!(recv == right, "size {size}, {connections} connections, count {count}");
                    assert!(send == bytes(&mine, f32::to_ne_bytes), "the input was written");
                    let whole = ring::memory::Region::from_slice(&mut send);
                    let in_place = all_reduce(&mut [], &mut recv, Dtype::Float32, Op::Sum);
                    run(group, in_place.between(whole, whole)).unwrap();
                    assert!(send == right, "in place: size {size}, count {count}");
                }
            });
        }
    }
}

#[test]
fn blocks_are_gathered_in_rank_order() {
    for size in 1..=8 {
        for connections in [1, 3] {
            ring(&configurations(size, 1, connections), |group| {
                for count in COUNTS {
                    let mine = |rank: usize| (0..count).map(|i| (rank * 31 + i) as u16).collect::<Vec<_>>();
                    let mut send = bytes(&mine(group.rank()), u16::to_ne_bytes);
                    let mut recv = vec![0xAA; send.len() * size];
                    run(group, all_gather(&mut send, &mut recv, Dtype::Uint16)).unwrap();
                    let right: Vec<u8> =
                        (0..size).flat_map(|rank| bytes(&mine(rank), u16::to_ne_bytes)).collect();
                    assert!(recv == right, "size {size}, {connections} connections, count {count}");
                    barrier(group).unwrap();
                }
            });
        }
    }
}
