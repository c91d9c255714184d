//! Rings of ranks that only spread news, over links in memory.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::health::{Health, Signals};
use super::peers::{Peers, Side};
use super::spread::Spread;
use super::verdict::Jury;
use crate::error::{Error, Status};
use crate::link::TcpLink;
use crate::wire::{CallHeader, Frame, Kind, Message};

struct Ring {
    ranks: Vec<Spread>,
    /// Frames on their way, by receiver and the side that they come from.
    ways: Vec<[VecDeque<Frame>; 2]>,
    /// Ranks that neither read nor write.
    silent: Vec<bool>,
    /// Pairs of a receiver and a side from which nothing comes any more.
    cut: Vec<(usize, Side)>,
    now: Instant,
    frames: usize,
}

fn peers(rank: usize, size: usize) -> Peers {
    Peers { rank, size, addresses: Vec::new() }
}

fn call(sequence: u64) -> CallHeader {
    CallHeader::new(Kind::Barrier, sequence)
}

impl Ring {
    fn new(size: usize) -> Ring {
        Ring {
            ranks: (0..size).map(|rank| Spread::new(peers(rank, size))).collect(),
            ways: (0..size).map(|_| Default::default()).collect(),
            silent: vec![false; size],
            cut: Vec::new(),
            now: Instant::now(),
            frames: 0,
        }
    }

    /// Carries frames, one at a time in an order that `seed` decides, until none is left.
    fn run(&mut self, mut seed: usize) {
        loop {
            for rank in 0..self.ranks.len() {
                for (side, frame) in self.ranks[rank].take_outbox() {
                    let to = peers(rank, self.ranks.len()).rank_at(side);
                    if !self.silent[rank] && !self.cut.contains(&(to, side.opposite())) {
                        self.ways[to][side.opposite() as usize].push_back(frame);
                    }
                }
            }
            let waiting = |to: &usize| !self.silent[*to] && self.ways[*to].iter().any(|way| !way.is_empty());
            let ready: Vec<_> = (0..self.ranks.len()).filter(waiting).collect();
            if ready.is_empty() {
                return;
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let to = ready[(seed >> 33) % ready.len()];
            let first = if seed >> 40 & 1 == 0 { Side::Right } else { Side::Left };
            let side = if self.ways[to][first as usize].is_empty() { first.opposite() } else { first };
            let frame = self.ways[to][side as usize].pop_front().unwrap();
            self.frames += 1;
            self.ranks[to].hear(side, frame, self.now);
        }
    }

    /// A process ends: its neighbours find their control links ended.
    fn kill(&mut self, rank: usize) {
        self.silent[rank] = true;
        for side in Side::BOTH {
            let neighbour = peers(rank, self.ranks.len()).rank_at(side);
            self.ranks[neighbour].ended(side.opposite(), &io::ErrorKind::UnexpectedEof.into());
        }
    }

    fn failures(&self) -> Vec<Option<&Error>> {
        self.ranks.iter().map(Spread::failure).collect()
    }
}

fn every_ring(test: impl Fn(usize, usize, usize)) {
    for size in 2..=8 {
        for rank in 0..size {
            for seed in 0..20 {
                test(size, rank, seed);
            }
        }
    }
}

#[test]
fn all_ranks_learn_of_a_death_and_of_the_same() {
    every_ring(|size, victim, seed| {
        let mut ring = Ring::new(size);
        ring.ranks.iter_mut().for_each(|rank| rank.enter(call(5)));
        ring.kill(victim);
        ring.run(seed);
        let failures = ring.failures();
        let first = failures[(victim + 1) % size].unwrap();
        assert_eq!((first.status, first.rank, first.sequence), (Status::PeerLost, Some(victim), 5));
        for (rank, failure) in failures.iter().enumerate().filter(|(rank, _)| *rank != victim) {
            assert_eq!(*failure, Some(first), "rank {rank} of {size}");
        }
    });
}

#[test]
fn of_two_failures_all_ranks_keep_the_same() {
    every_ring(|size, one, seed| {
        let other = (one + 1 + seed % (size - 1)) % size;
        let mut ring = Ring::new(size);
        for (rank, status) in [(one, Status::Timeout), (other, Status::Mismatch)] {
            let error = Error::new(status, format!("seen by {rank}"));
            ring.ranks[rank].learn(Error { sequence: 3, detected_by: Some(rank), ..error }, None);
        }
        ring.run(seed);
        for failure in ring.failures() {
            assert_eq!(failure.unwrap().status, Status::Mismatch);
        }
    });
}

#[test]
fn a_record_goes_over_each_link_at_most_once_each_way() {
    let mut ring = Ring::new(8);
    ring.ranks[3].learn(Error::new(Status::Aborted, "on purpose").at_rank(3), None);
    ring.run(1);
    assert!(ring.frames <= 16, "{}", ring.frames);
}

#[test]
fn a_broken_link_is_no_death() {
    for size in 3..=8 {
        for left in 0..size {
            for seed in 0..20 {
                let mut ring = Ring::new(size);
                let right = (left + 1) % size;
                ring.cut = vec![(left, Side::Right), (right, Side::Left)];
                let why = io::Error::from_raw_os_error(libc::ETIMEDOUT);
                ring.ranks[left].ended(Side::Right, &why);
                // The other end may notice at once, or not at all.
                if seed % 2 == 0 {
                    ring.ranks[right].ended(Side::Left, &why);
                }
                ring.run(seed);
                let (low, high) = (left.min(right), left.max(right));
                for failure in ring.failures() {
                    let failure = failure.unwrap();
                    assert_eq!((failure.status, failure.rank), (Status::PeerLost, None));
                    assert!(failure.text.contains(&format!("between rank {low} and rank {high} has broken")));
                }
            }
        }
    }
}

#[test]
fn a_goodbye_fails_only_calls_that_come_after_it() {
    every_ring(|size, leaver, seed| {
        let mut ring = Ring::new(size);
        for rank in &mut ring.ranks {
            rank.enter(call(7));
            rank.leave(true);
        }
        let early = (leaver + 1) % size;
        ring.ranks[early].enter(call(8));
        ring.ranks[leaver].say_goodbye();
        ring.run(seed);
        let lost = ring.ranks[early].failure().unwrap();
        assert_eq!((lost.status, lost.rank, lost.sequence), (Status::PeerLost, Some(leaver), 8));
        assert!(lost.text.contains("has destroyed its group after call 7"), "{lost}");
        // A ring in which nobody calls again is healthy.
        let mut ring = Ring::new(size);
        ring.ranks[leaver].say_goodbye();
        ring.run(seed);
        assert!(ring.failures().iter().all(Option::is_none));
        // What its end says is known.
        ring.kill(leaver);
        ring.run(seed);
        assert!(ring.failures().iter().all(Option::is_none));
        let late = (leaver + size / 2).max(leaver + 1) % size;
        ring.ranks[late].enter(call(1));
        assert!(ring.ranks[late].is_hopeless());
        assert_eq!(ring.ranks[late].failure().unwrap().rank, Some(leaver));
    });
}

#[test]
fn a_roll_finds_the_silent_rank_from_everywhere() {
    every_ring(|size, silent, seed| {
        let mut ring = Ring::new(size);
        ring.ranks.iter_mut().for_each(|rank| rank.enter(call(2)));
        ring.silent[silent] = true;
        for asking in (0..size).filter(|rank| *rank != silent && (seed + rank) % 2 == 0) {
            ring.ranks[asking].call_roll(ring.now);
        }
        ring.run(seed);
        for rank in (0..size).filter(|rank| *rank != silent && (size > 2 || (seed + rank) % 2 == 0)) {
            let answers = ring.ranks[rank].roll().answers();
            if answers.iter().all(Option::is_none) {
                continue;
            }
            let verdict = Jury { peers: &peers(rank, size), answers, departed: &[] }.on_collective(&call(2));
            assert_eq!(verdict.rank, Some(silent), "{}", verdict.text);
        }
    });
}

#[test]
fn the_text_names_the_call_that_runs_once() {
    let mut rank = Spread::new(peers(0, 4));
    rank.enter(call(3));
    rank.ended(Side::Right, &io::ErrorKind::UnexpectedEof.into());
    assert_eq!(rank.verdict().unwrap().text, "barrier(), call 3: the process of rank 1 has ended");
    let record = Frame::record(rank.failure().unwrap(), 0);
    let mut other = Spread::new(peers(3, 4));
    other.hear(Side::Right, record, Instant::now());
    assert_eq!(other.verdict().unwrap().text, "barrier(), call 3: the process of rank 1 has ended");
    other.enter(call(4));
    let text = other.verdict().unwrap().text;
    assert_eq!(
        text,
        "barrier(), call 4: the group failed in barrier(), call 3: the process of rank 1 has ended"
    );
}

#[test]
fn the_end_of_a_rank_that_was_told_of_a_failure_is_no_news() {
    let mut rank = Spread::new(peers(0, 4));
    rank.learn(Error::new(Status::Timeout, "first").at_rank(2), None);
    rank.take_outbox();
    rank.ended(Side::Right, &io::ErrorKind::UnexpectedEof.into());
    assert_eq!(rank.failure().unwrap().status, Status::Timeout);
    assert!(rank.take_outbox().is_empty());
}

#[test]
fn rolls_of_one_moment_are_one() {
    let mut ring = Ring::new(8);
    ring.ranks.iter_mut().for_each(|rank| rank.enter(call(2)));
    let now = ring.now;
    ring.ranks.iter_mut().for_each(|rank| rank.call_roll(now));
    ring.run(3);
    // One call and eight answers, each over every link once each way.
    assert!(ring.frames <= 9 * 16, "{}", ring.frames);
    ring.now += Duration::from_millis(100);
    let now = ring.now;
    ring.ranks.iter_mut().for_each(|rank| rank.call_roll(now));
    assert!(ring.ranks.iter_mut().all(|rank| rank.take_outbox().is_empty()));
}

#[test]
fn a_running_call_is_ended_by_an_abort_and_by_a_rank_that_it_lacks() {
    let record = |status, sequence| Frame::Record(Error { sequence, ..Error::new(status, "x") });
    for (status, sequence, hopeless) in [
        (Status::Aborted, 0, true),
        (Status::Mismatch, 5, false),
        (Status::Timeout, 5, false),
        (Status::Mismatch, 6, false),
        (Status::PeerLost, 5, false),
        (Status::PeerLost, 0, false),
    ] {
        let mut rank = Spread::new(peers(0, 4));
        rank.enter(call(5));
        rank.hear(Side::Left, record(status, sequence), Instant::now());
        assert_eq!(rank.is_hopeless(), hopeless, "{status:?} {sequence}");
    }
    let mut rank = Spread::new(peers(0, 4));
    rank.hear(Side::Left, Frame::Goodbye { rank: 3, sequence: 0 }, Instant::now());
    let header = call(1);
    rank.begin(Message { peer: 3, sends: false, is_request: false, header });
    assert!(rank.failure().is_none());
    rank.begin(Message { peer: 3, sends: true, is_request: false, header });
    assert!(rank.is_hopeless());
}

#[test]
fn rounds_have_no_last_number() {
    let mut rank = Spread::new(peers(0, 2));
    let mut now = Instant::now();
    for round in [i32::MAX as u32, u32::MAX - 1, u32::MAX] {
        rank.hear(Side::Left, Frame::RollCall { round }, now);
        assert!(rank.roll().ripens(now).is_some(), "{round} was no news");
    }
    rank.take_outbox();
    now += Duration::from_secs(3);
    rank.call_roll(now);
    assert_eq!(rank.take_outbox()[0].1, Frame::RollCall { round: 0 });
    rank.hear(Side::Left, Frame::RollCall { round: u32::MAX }, now);
    assert!(rank.take_outbox().is_empty(), "an old round is called again");
}

/// A rank of two over sockets that hold little, and the other ends of its control links.
fn watched() -> (Health, Vec<TcpStream>) {
    const LITTLE: usize = 16 << 10;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    SockRef::from(&listener).set_recv_buffer_size(LITTLE).unwrap();
    let link = |_| {
        let dialled = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        SockRef::from(&dialled).set_send_buffer_size(LITTLE).unwrap();
        (TcpLink::new(dialled.into()).unwrap(), listener.accept().unwrap().0)
    };
    let (links, ends) = (0..2).map(link).unzip();
    (Health::new(peers(0, 2), links, Signals::new().unwrap()).unwrap(), ends)
}

#[test]
fn who_floods_a_rank_neither_fills_its_memory_nor_holds_up_its_calls() {
    const ROUNDS: u32 = 20_000;
    let (health, mut ends) = watched();
    let rounds = |rounds: std::ops::Range<u32>| -> Vec<u8> {
        rounds.flat_map(|round| Frame::RollCall { round }.encode()).collect()
    };
    let until = |round| {
        let (mut most, start) = (0, Instant::now());
        while health.round() < round && start.elapsed() < Duration::from_secs(60) {
            let before = health.round();
            health.attend();
            most = most.max(health.round() - before);
        }
        assert_eq!(health.round(), round);
        most
    };
    // One at a time: each is a sign of life, but nothing is read.
    for round in 1..=ROUNDS {
        ends[0].write_all(&rounds(round..round + 1)).unwrap();
        until(round);
    }
    let kept = health.unsent();
    assert!(kept < 128 << 10, "{kept} bytes wait for a peer that does not read");
    ends[1].write_all(&rounds(ROUNDS + 1..ROUNDS + 1000)).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let most = until(ROUNDS + 999);
    assert!(most < 200, "{most} frames in one turn");
}
