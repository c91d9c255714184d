//! Plans on links that hold a byte, and what a call tells of a peer that differs or ends.

use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::*;
use crate::dtype::{Dtype, Op};
use crate::kernels::Reducer;
use crate::link::pair::pair;
use crate::plan::{Flow, Path, Place};
use crate::wire::{CALL_HEADER, CallHeader, Kind};

/// One rank's ends of its links.
type Ends = Vec<Box<dyn Link>>;

/// Both edges of every rank of a ring, as an engine wants them: right lanes, then left lanes.
fn ring_of(size: usize, lanes: usize, capacity: usize) -> Vec<Ends> {
    let mut right: Vec<Ends> = (0..size).map(|_| Vec::new()).collect();
    let mut left: Vec<Ends> = (0..size).map(|_| Vec::new()).collect();
    for rank in 0..size {
        for _ in 0..lanes {
            let (mine, theirs) = pair(capacity);
            right[rank].push(Box::new(mine));
            left[(rank + 1) % size].push(Box::new(theirs));
        }
    }
    right.into_iter().zip(left).map(|(right, left)| right.into_iter().chain(left).collect()).collect()
}

/// Routes a plan as a group does.
fn route(engine: &mut Engine, plan: &Plan, place: Place, header: CallHeader) {
    for pass in &plan.passes {
        let Path::Ring { flow, lane } = pass.path else { panic!("a plan with a direct link") };
        let (right, left) = (lane, place.lanes + lane);
        let (out, into) = if flow == Flow::Right { (right, left) } else { (left, right) };
        let two = place.size == 2;
        let first = lane == 0 && (flow == Flow::Right || !two);
        let header = first.then_some(header);
        let gate = if two || flow == Flow::Right { 0 } else { 1 };
        let route = Route {
            out: Some(out),
            into: Some(into),
            announce: header,
            expect: header,
            gate,
            may_owe: false,
        };
        engine.route(pass, route);
    }
}

fn header(count: usize) -> CallHeader {
    let (dtype, op, count) = (Some(Dtype::Int32), Some(Op::Sum), count as u64);
    CallHeader { dtype, op, count, ..CallHeader::new(Kind::AllReduce, 1) }
}

fn sum<'a>() -> Reduction<'a> {
    Reduction::Op(Reducer::new(Dtype::Int32, Op::Sum).unwrap())
}

fn input(rank: usize, count: usize) -> Vec<u8> {
    (0..count).flat_map(|i| (((rank + 1) * 1000 + i) as i32).to_ne_bytes()).collect()
}

fn run_ring(
    size: usize,
    lanes: usize,
    capacity: usize,
    count: usize,
    fill: impl Fn(&mut Plan, Place) + Sync,
) {
    let links = ring_of(size, lanes, capacity);
    let right: Vec<u8> = (0..count)
        .map(|i| (0..size).map(|rank| ((rank + 1) * 1000 + i) as i32).sum::<i32>())
        .flat_map(i32::to_ne_bytes)
        .collect();
    std::thread::scope(|scope| {
        for (rank, mut links) in links.into_iter().enumerate() {
            let (fill, right) = (&fill, &right);
            scope.spawn(move || {
                let place = Place { rank, size, lanes };
                let mut plan = Plan::default();
                fill(&mut plan, place);
                let mut engine = Engine::default();
                route(&mut engine, &plan, place, header(count));
                let (mut send, mut recv) = (input(rank, count), vec![0; count * 4]);
                let mut scratch = vec![0; plan.scratch * 4];
                let task = Task {
                    plan: &plan,
                    element: 4,
                    reduction: Some(&sum()),
                    ranks: size,
                    send: Region::from_slice(&mut send),
                    recv: Region::from_slice(&mut recv),
                    scratch: Region::from_slice(&mut scratch),
                    sums: Region::empty(),
                };
                let stop = Stop::new().unwrap();
                engine
                    .run(&task, &mut links, &stop, Some(Duration::from_secs(30)), &mut Seen::default())
                    .unwrap();
                assert!(recv == *right, "rank {rank} of {size}, {lanes} lanes, {count} elements");
            });
        }
    });
}

#[test]
fn all_reduce_ends_over_links_that_hold_a_byte() {
    for size in 2..=8 {
        for lanes in [1, 3] {
            for count in [0, 1, size, 29] {
                for parts in [1, 2] {
                    run_ring(size, lanes, 1, count, |plan, place| plan.flood_all_reduce(place, count, parts));
                    run_ring(size, lanes, 1, count, |plan, place| plan.ring_all_reduce(place, count, parts));
                }
            }
        }
    }
}

/// An engine of rank 0 in a ring of two, and the peer's ends of its two links.
fn alone(count: usize) -> (Engine, Plan, Ends, Ends) {
    let mut ends = ring_of(2, 1, 4096).into_iter();
    let (links, peer) = (ends.next().unwrap(), ends.next().unwrap());
    let place = Place { rank: 0, size: 2, lanes: 1 };
    let (mut plan, mut engine) = (Plan::default(), Engine::default());
    plan.ring_all_reduce(place, count, 2);
    route(&mut engine, &plan, place, header(count));
    (engine, plan, links, peer)
}

/// What an engine told of a call.
#[derive(Default)]
struct Seen {
    slept: Vec<Traffic>,
    rolls: usize,
    consulted: usize,
    warns_after: Option<Duration>,
    warned: Vec<(Duration, Vec<usize>)>,
}

const PUT_OFF: Duration = Duration::from_millis(3);

impl Observer for Seen {
    fn sleeps(&mut self, traffic: &[Traffic]) {
        self.slept = traffic.to_vec();
    }

    fn woke(&mut self, _: Duration) {}

    fn call_roll(&mut self) {
        self.rolls += 1;
    }

    fn warns_after(&self) -> Option<Duration> {
        self.warns_after
    }

    fn warn(&mut self, standstill: &Standstill, stalled: &Fault) -> Option<Duration> {
        let Fault::Stalled { receiving, .. } = stalled else { panic!("{stalled:?}") };
        self.warned.push((standstill.idle, receiving.clone()));
        // The first is put off.
        (self.warned.len() == 1).then_some(PUT_OFF)
    }

    fn consult(&mut self) {
        self.consulted += 1;
    }
}

fn run_alone(
    (engine, plan): (&mut Engine, &Plan),
    links: &mut Links,
    recv: &mut [u8],
    stop: &Stop,
) -> Result<(), Fault> {
    let seen = &mut Seen::default();
    let result = run_seen((engine, plan), links, recv, stop, seen);
    // A call that ends before its deadline consults nobody.
    assert_eq!(seen.consulted > 0, matches!(result, Err(Fault::Stalled { .. })));
    result
}

fn run_seen(
    (engine, plan): (&mut Engine, &Plan),
    links: &mut Links,
    recv: &mut [u8],
    stop: &Stop,
    seen: &mut Seen,
) -> Result<(), Fault> {
    let mut send = recv.to_vec();
    let sum = sum();
    let (send, recv, none) = (Region::from_slice(&mut send), Region::from_slice(recv), Region::empty());
    let task =
        Task { plan, element: 4, reduction: Some(&sum), ranks: 2, send, recv, scratch: none, sums: none };
    engine.run(&task, links, stop, Some(Duration::from_millis(50)), seen)
}

#[test]
fn nothing_of_a_differing_call_is_stored() {
    let (mut engine, plan, mut links, mut peer) = alone(8);
    let mut other = header(9).encode();
    let mut data = [7u8; 64];
    // Rank 1's right link is rank 0's left one: there the header comes; the other has data only.
    let pieces = [Region::from_slice(&mut other), Region::from_slice(&mut data)];
    peer[0].send(&pieces).unwrap();
    peer[1].send(&pieces[1..]).unwrap();
    let mut recv = [1u8; 32];
    let fault = run_alone((&mut engine, &plan), &mut links, &mut recv, &Stop::new().unwrap()).unwrap_err();
    assert!(matches!(fault, Fault::Differs { link: 1, theirs, .. } if theirs.count == 9), "{fault:?}");
    assert_eq!(recv, [1u8; 32]);
}

#[test]
fn a_call_that_waits_tells_what_has_moved_and_asks_before_its_deadline() {
    let (mut engine, plan, mut links, mut peer) = alone(8);
    let mut sent = header(8).encode();
    let mut data = [7u8; 8];
    peer[0].send(&[Region::from_slice(&mut sent), Region::from_slice(&mut data)]).unwrap();
    let mut seen = Seen::default();
    let stop = Stop::new().unwrap();
    let fault = run_seen((&mut engine, &plan), &mut links, &mut [0; 32], &stop, &mut seen).unwrap_err();
    assert!(matches!(fault, Fault::Stalled { .. }), "{fault:?}");
    assert!(seen.rolls >= 1 && seen.consulted == 1);
    // The header and a segment of each half; of what came, a header and a segment of 8 bytes.
    let header = CALL_HEADER as u64;
    assert_eq!(seen.slept[0], Traffic { sent: header + 8 + 8, received: 0, awaits: true, sends: false });
    assert_eq!(seen.slept[1], Traffic { sent: 8, received: header + 8, awaits: true, sends: false });
}

#[test]
fn a_standstill_is_told_until_the_warning_is_given_and_again_at_twice_the_time() {
    const WARNING: Duration = Duration::from_millis(5);
    let (mut engine, plan, mut links, _peer) = alone(8);
    let mut seen = Seen { warns_after: Some(WARNING), ..Seen::default() };
    let stop = Stop::new().unwrap();
    run_seen((&mut engine, &plan), &mut links, &mut [0; 32], &stop, &mut seen).unwrap_err();
    let [first, second, third, ..] = &seen.warned[..] else { panic!("{:?}", seen.warned) };
    assert!(first.0 >= WARNING && second.0 >= first.0 + PUT_OFF && third.0 >= second.0 * 2);
    assert!(seen.warned.iter().all(|(_, receiving)| receiving == &[1, 0]), "{:?}", seen.warned);
    assert!(!seen.slept.is_empty());
}

#[test]
fn an_end_a_stop_and_a_timeout_are_told_apart() {
    let stop = Stop::new().unwrap();
    let (mut engine, plan, mut links, peer) = alone(8);
    let fault = run_alone((&mut engine, &plan), &mut links, &mut [0; 32], &stop).unwrap_err();
    assert!(matches!(&fault, Fault::Stalled { receiving, .. } if receiving == &[1, 0]), "{fault:?}");
    drop(peer);

    let (mut engine, plan, mut links, peer) = alone(8);
    drop(peer);
    let fault = run_alone((&mut engine, &plan), &mut links, &mut [0; 32], &stop).unwrap_err();
    assert!(matches!(fault, Fault::Ended { .. }), "{fault:?}");

    let (mut engine, plan, mut links, _peer) = alone(8);
    stop.raise();
    let fault = run_alone((&mut engine, &plan), &mut links, &mut [0; 32], &stop).unwrap_err();
    assert!(matches!(fault, Fault::Stopped), "{fault:?}");
}

/// A link whose peer frees a little room after a while, less than poll tells of.
struct Limbo {
    /// Full, so that it never gets ready.
    socket: UnixStream,
    has_room_from: Instant,
    room: usize,
}

impl Limbo {
    fn new(after: Duration, room: usize) -> (Limbo, UnixStream) {
        let (mut socket, peer) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        while socket.write(&[0; 4096]).is_ok() {}
        (Limbo { socket, has_room_from: Instant::now() + after, room }, peer)
    }
}

impl Link for Limbo {
    fn send(&mut self, pieces: &[Region<'_>]) -> io::Result<usize> {
        let bytes: usize = pieces.iter().map(Region::len).sum();
        let room = if Instant::now() < self.has_room_from { 0 } else { self.room };
        self.room -= bytes.min(room);
        Ok(bytes.min(room))
    }

    fn peek(&mut self, _: usize) -> io::Result<Region<'_>> {
        Ok(Region::empty())
    }

    fn buffered(&self) -> usize {
        0
    }

    fn consume(&mut self, _: usize) {}

    fn receive(&mut self, _: Region<'_>) -> io::Result<usize> {
        Ok(0)
    }

    fn waits(&self, interest: Interest) -> Option<PollEntry> {
        Some(PollEntry::new(self.socket.as_raw_fd(), interest))
    }

    fn finish(&mut self) {}
}

/// A plan that only sends.
fn sending<'a>(plan: &'a Plan, send: Region<'a>) -> Task<'a> {
    let none = Region::empty();
    Task { plan, element: 4, reduction: None, ranks: 2, send, recv: none, scratch: none, sums: none }
}

#[test]
fn a_little_room_for_sending_counts_from_when_it_was_there() {
    const TIMEOUT: Duration = Duration::from_millis(1600);
    let begun = Instant::now();
    let (limbo, _peer) = Limbo::new(Duration::from_millis(20), 8);
    let mut plan = Plan::default();
    plan.begin(Flow::Right, 0);
    plan.send(Span { buffer: Buffer::Send, start: 0, len: 8 });
    let mut engine = Engine::default();
    let route =
        Route { out: Some(0), into: None, announce: Some(header(8)), expect: None, gate: 0, may_owe: false };
    engine.route(&plan.passes[0], route);
    let mut send = [0; 32];
    let task = sending(&plan, Region::from_slice(&mut send));
    let stop = Stop::new().unwrap();
    let mut links: [Box<dyn Link>; 1] = [Box::new(limbo)];
    let fault = engine.run(&task, &mut links, &stop, Some(TIMEOUT), &mut Seen::default()).unwrap_err();
    assert!(matches!(fault, Fault::Stalled { .. }), "{fault:?}");
    // Found only when the roll is due, the same room would put the deadline off by 600 ms.
    let took = begun.elapsed();
    assert!(took > TIMEOUT && took < TIMEOUT + Duration::from_millis(450), "{took:?}");
}

/// Rank 0 of two sends without receiving anything, in a call that may leave the peer's header to the next one.
fn send_ahead(engine: &mut Engine, links: &mut Links, sequence: u64) -> Result<(), Fault> {
    let mut plan = Plan::default();
    plan.begin(Flow::Right, 0);
    plan.send(Span { buffer: Buffer::Send, start: 0, len: 2 });
    let header = CallHeader { sequence, ..header(2) };
    let (announce, expect) = (Some(header), Some(header));
    let route = Route { out: Some(0), into: Some(1), announce, expect, gate: 0, may_owe: true };
    engine.route(&plan.passes[0], route);
    let mut send = [1; 8];
    let task = sending(&plan, Region::from_slice(&mut send));
    let (stop, limit) = (Stop::new().unwrap(), Some(Duration::from_millis(50)));
    engine.run(&task, links, &stop, limit, &mut Seen::default())
}

#[test]
fn a_rank_that_needs_nothing_goes_ahead_and_compares_later() {
    let mut ends = ring_of(2, 1, 4096).into_iter();
    let (mut links, mut peer) = (ends.next().unwrap(), ends.next().unwrap());
    let mut engine = Engine::default();
    let mut ahead = 1;
    while send_ahead(&mut engine, &mut links, ahead).is_ok() {
        ahead += 1;
    }
    // So far and no further.
    assert_eq!(ahead, 17);

    let (mut engine, mut say) = (Engine::default(), |call: CallHeader| {
        peer[0].send(&[Region::from_slice(&mut call.encode())]).unwrap();
    });
    let of = |sequence: u64| CallHeader { sequence, ..header(2) };
    send_ahead(&mut engine, &mut links, 1).unwrap();
    send_ahead(&mut engine, &mut links, 2).unwrap();
    say(of(1));
    say(CallHeader { count: 3, ..of(2) });
    let fault = send_ahead(&mut engine, &mut links, 3).unwrap_err();
    let Fault::Differs { link: 1, ours, theirs } = fault else { panic!("{fault:?}") };
    assert_eq!((ours, theirs.count), (of(2), 3));
}
