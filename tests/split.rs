//! Groups split from groups, with threads as ranks.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{all_reduce, barrier, bytes, configurations, message, ring, run};
use ring::bootstrap::secret::Secret;
use ring::dtype::{Dtype, Op};
use ring::error::Status;
use ring::group::Group;

/// What a group's numbers must be: the sum of its members' ranks in the first group, to each of which a constant
/// was added, and what every member sends to every other.
fn check(group: &Group, members: &[usize], constant: usize) {
    let (rank, size) = (group.rank(), group.size());
    assert_eq!(size, members.len());
    for count in [1, 1021, 70_001] {
        let values =
            |rank: usize| (0..count).map(|i| (i * 31 + members[rank] + constant) as u64).collect::<Vec<_>>();
        let mut send = bytes(&values(rank), u64::to_ne_bytes);
        let mut recv = vec![0; send.len()];
        run(group, all_reduce(&mut send, &mut recv, Dtype::Uint64, Op::Sum)).unwrap();
        let sum = |i: usize| (0..size).map(|rank| (i * 31 + members[rank] + constant) as u64).sum::<u64>();
        assert!(recv == bytes(&(0..count).map(sum).collect::<Vec<_>>(), u64::to_ne_bytes), "{members:?}");
    }
    for step in 1..size {
        let (to, from) = ((rank + step) % size, (rank + size - step) % size);
        let mut out = [(members[rank] + constant) as u8; 999];
        let mut into = [0; 999];
        let send = message(&mut out, Dtype::Uint8, to);
        let recv = message(&mut into, Dtype::Uint8, from);
        group.send_recv(Some(send), Some(recv)).unwrap();
        assert_eq!(into, [(members[from] + constant) as u8; 999]);
    }
}

/// The ranks with a rank's color, in the order of their keys and ranks.
fn members(size: usize, rank: usize, by: impl Fn(usize) -> (i32, i32)) -> Vec<usize> {
    let mut members: Vec<_> = (0..size).filter(|other| by(*other).0 == by(rank).0).collect();
    members.sort_by_key(|other| (by(*other).1, *other));
    members
}

fn split(group: &Group, by: impl Fn(usize) -> (i32, i32)) -> Option<Arc<Group>> {
    let (color, key) = by(group.rank());
    let child = group.split(Ok((color, key))).unwrap();
    assert_eq!(child.is_some(), color >= 0);
    child
}

type Claims = fn(usize, usize) -> (i32, i32);

/// Color and key by rank and size.
const CLAIMS: [(&str, Claims); 9] = [
    ("all one", |_, _| (0, 0)),
    ("each alone", |rank, _| (rank as i32, 0)),
    ("odd and even", |rank, _| ((rank % 2) as i32, rank as i32)),
    ("reversed", |rank, _| (7, -(rank as i32))),
    ("halves, equal keys", |rank, size| ((rank * 2 / size) as i32, i32::MAX)),
    ("nobody", |_, _| (-1, 3)),
    ("all but one", |rank, size| (if rank == size / 2 { i32::MIN } else { 5 }, (size - rank) as i32)),
    ("one", |rank, size| (if rank == size - 1 { i32::MAX } else { -7 }, 0)),
    ("thirds, shuffled", |rank, _| ((rank % 3) as i32, (rank * 5 % 8) as i32 - 3)),
];

#[test]
fn every_rank_gets_its_group() {
    for size in 1..=8 {
        let mut configs = configurations(size, 1, 1 + size % 2 * 2);
        if size % 3 == 0 {
            configs.iter_mut().for_each(|config| config.secret = Some(Secret::new(vec![9; 20])));
        }
        ring(&configs, |group| {
            let everyone: Vec<_> = (0..size).collect();
            let mut kept = Vec::new();
            for (i, (name, claims)) in CLAIMS.iter().enumerate() {
                let by = |rank: usize| claims(rank, size);
                let members = members(size, group.rank(), by);
                if let Some(child) = split(group, by) {
                    assert_eq!(members[child.rank()], group.rank(), "{name} of {size}");
                    check(&child, &members, i);
                    kept.push((child, members));
                }
                check(group, &everyone, i);
            }
            // All of them at once, in an order in which they were not made.
            kept.iter().rev().for_each(|(child, members)| check(child, members, 50));
            kept.iter().for_each(|(child, _)| child.destroy());
            check(group, &everyone, 3);
        });
    }
}

#[test]
fn groups_of_groups_of_groups() {
    for size in [4, 7, 8] {
        ring(&configurations(size, 1, 1), |group| {
            let by = |rank: usize| (i32::from(rank >= size / 2), -(rank as i32));
            let first = members(size, group.rank(), by);
            let child = split(group, by).unwrap();
            let by = |rank: usize| ((rank % 2) as i32, rank as i32);
            let second: Vec<_> = members(first.len(), child.rank(), by).iter().map(|i| first[*i]).collect();
            let grandchild = split(&child, by).unwrap();
            // Those in between may go first.
            if size == 7 {
                child.destroy();
            }
            check(&grandchild, &second, 1);
            let by = |rank: usize| (0, -(rank as i32));
            let third: Vec<_> = second.iter().rev().copied().collect();
            let last = split(&grandchild, by).unwrap();
            check(&last, &third, 2);
            grandchild.destroy();
            check(&last, &third, 3);
            check(group, &(0..size).collect::<Vec<_>>(), 4);
            if size != 7 {
                check(&child, &first, 5);
                child.destroy();
            }
            last.destroy();
        });
    }
}

#[test]
fn all_are_used_at_once_from_threads() {
    const SIZE: usize = 6;
    ring(&configurations(SIZE, 1, 1), |group| {
        let claims: [Claims; 3] = [CLAIMS[2].1, CLAIMS[3].1, CLAIMS[4].1];
        let children = claims.map(|claims| {
            let by = |rank: usize| claims(rank, SIZE);
            (split(group, by).unwrap(), members(SIZE, group.rank(), by))
        });
        std::thread::scope(|scope| {
            for (child, members) in &children {
                scope.spawn(move || (0..5).for_each(|round| check(child, members, round)));
            }
            let everyone: Vec<_> = (0..SIZE).collect();
            (0..3).for_each(|round| check(group, &everyone, round));
            // And made while others work.
            let more = split(group, |_| (0, 0)).unwrap();
            check(&more, &everyone, 9);
            more.destroy();
        });
        children.iter().for_each(|(child, _)| child.destroy());
    });
}

#[test]
fn a_family_ends_in_any_order() {
    for order in 0..6 {
        let configs = configurations(5, 1, 1);
        let rank = |config| {
            move || {
                let parent = Group::create(config).unwrap();
                let one = split(&parent, |rank| ((rank % 2) as i32, 0)).unwrap();
                let other = split(&parent, |rank| (0, -(rank as i32))).unwrap();
                let mut family = vec![
                    (parent, vec![0, 1, 2, 3, 4]),
                    (one, members(5, config.rank, |rank| ((rank % 2) as i32, 0))),
                    (other, vec![4, 3, 2, 1, 0]),
                ];
                for left in (1..=3).rev() {
                    let next = [order / 2, order % 2, 0][3 - left];
                    let (group, _) = family.remove(next % left);
                    group.destroy();
                    drop(group);
                    for (group, members) in &family {
                        check(group, members, left);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let ranks: Vec<_> = configs.iter().map(|config| scope.spawn(rank(config))).collect();
            ranks.into_iter().for_each(|rank| rank.join().unwrap());
        });
    }
}

#[test]
fn a_family_fails_apart() {
    ring(&configurations(4, 1, 1), |group| {
        let everyone = [0, 1, 2, 3];
        let one = split(group, |_| (0, 0)).unwrap();
        let other = split(group, |_| (0, 0)).unwrap();
        let wait = |group: &Group, status| {
            let error = barrier(group).unwrap_err();
            assert_eq!(error.status, status, "{error}");
            assert_eq!(error.rank, Some(2));
        };
        if group.rank() == 2 {
            one.abort();
        }
        wait(&one, Status::Aborted);
        check(group, &everyone, 1);
        check(&other, &everyone, 1);
        let child = split(&other, |_| (0, 0)).unwrap();
        if group.rank() == 2 {
            std::thread::sleep(Duration::from_millis(20));
            other.abort();
        }
        wait(&other, Status::Aborted);
        check(group, &everyone, 2);
        check(&child, &everyone, 2);
        assert_eq!(other.split(Ok((0, 0))).map(drop).unwrap_err().status, Status::Aborted);
        for group in [one, other, child] {
            group.destroy();
        }
    });
}
