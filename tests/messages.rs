//! Messages over loopback TCP, with threads as ranks.

mod common;

use common::{bytes, configurations, message, ring};
use ring::dtype::Dtype;
use ring::error::Status;

fn payload(rank: usize, count: usize) -> Vec<u8> {
    bytes(&(0..count).map(|i| (rank * 1_000_003 + i) as u32).collect::<Vec<_>>(), u32::to_ne_bytes)
}

#[test]
fn everyone_sends_right_and_left_at_once() {
    for size in 2..=8 {
        ring(&configurations(size, 1, 1), |group| {
            let (right, left) = ((group.rank() + 1) % size, (group.rank() + size - 1) % size);
            for count in [0, 1, 1021, 300_001] {
                for (to, from) in [(right, left), (left, right)] {
                    let mut out = payload(group.rank(), count);
                    let mut into = vec![0; out.len()];
                    let send = message(&mut out, Dtype::Uint32, to);
                    let recv = message(&mut into, Dtype::Uint32, from);
                    group.send_recv(Some(send), Some(recv)).unwrap();
                    assert!(into == payload(from, count), "size {size}, count {count}, from {from}");
                }
            }
        });
    }
}

#[test]
fn a_rank_that_is_no_neighbour_is_refused_and_nothing_breaks() {
    ring(&configurations(5, 1, 1), |group| {
        let far = (group.rank() + 2) % 5;
        let error = group.send(message(&mut [0; 4], Dtype::Uint32, far)).unwrap_err();
        assert_eq!(error.status, Status::Unsupported);
        group.barrier().unwrap();
    });
}
