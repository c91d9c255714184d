//! Messages over loopback TCP, with threads as ranks.

mod common;

use std::time::Duration;

use common::{barrier, bytes, configurations, message, ring};
use ring::bootstrap::secret::Secret;
use ring::dtype::Dtype;
use ring::group::Group;

const COUNTS: [usize; 5] = [0, 1, 3, 1021, 300_001];

fn payload(rank: usize, count: usize) -> Vec<u8> {
    bytes(&(0..count).map(|i| (rank * 1_000_003 + i) as u32).collect::<Vec<_>>(), u32::to_ne_bytes)
}

fn send(group: &Group, to: usize, count: usize) {
    group.send(message(&mut payload(group.rank(), count), Dtype::Uint32, to)).unwrap();
}

fn receive(group: &Group, from: usize, count: usize) {
    let mut into = vec![0xee; count * 4];
    group.recv(message(&mut into, Dtype::Uint32, from)).unwrap();
    assert!(into == payload(from, count), "{count} elements from rank {from} to rank {}", group.rank());
}

fn exchange(group: &Group, to: usize, from: usize, count: usize) {
    let mut out = payload(group.rank(), count);
    let mut into = vec![0; out.len()];
    let send = message(&mut out, Dtype::Uint32, to);
    let recv = message(&mut into, Dtype::Uint32, from);
    group.send_recv(Some(send), Some(recv)).unwrap();
    assert!(into == payload(from, count), "count {count}, from {from} to {}", group.rank());
}

#[test]
fn everyone_sends_to_everyone_at_once() {
    for size in 2..=8 {
        ring(&configurations(size, 1, 1), |group| {
            for count in COUNTS {
                for step in 1..size {
                    exchange(group, (group.rank() + step) % size, (group.rank() + size - step) % size, count);
                }
            }
        });
    }
}

/// One pair after the other, the receiver before and after the sender; links are made in both orders.
#[test]
fn every_ordered_pair_has_a_way_of_its_own() {
    for size in 3..=6 {
        for connections in [1, 3] {
            let mut configs = configurations(size, 1, connections);
            if connections == 3 {
                configs.iter_mut().for_each(|config| config.secret = Some(Secret::new(vec![7; 16])));
            }
            ring(&configs, |group| {
                for late_sender in [false, true] {
                    for (from, to) in (0..size).flat_map(|from| (0..size).map(move |to| (from, to))) {
                        barrier(group).unwrap();
                        if from == to {
                            continue;
                        }
                        let pause = || std::thread::sleep(Duration::from_millis(10));
                        if group.rank() == from {
                            if late_sender {
                                pause();
                            }
                            send(group, to, 1021);
                        } else if group.rank() == to {
                            if !late_sender {
                                pause();
                            }
                            receive(group, from, 1021);
                        }
                    }
                }
            });
        }
    }
}

/// All pairs at the same time, each way on a thread of its own, beside collectives.
#[test]
fn ways_do_not_wait_for_each_other() {
    const SIZE: usize = 5;
    ring(&configurations(SIZE, 1, 1), |group| {
        let peers = || (0..SIZE).filter(|peer| *peer != group.rank());
        std::thread::scope(|scope| {
            for peer in peers() {
                scope.spawn(move || COUNTS.into_iter().for_each(|count| receive(group, peer, count)));
            }
            (0..20).for_each(|_| barrier(group).unwrap());
            for peer in peers() {
                scope.spawn(move || COUNTS.into_iter().for_each(|count| send(group, peer, count)));
            }
        });
    });
}
