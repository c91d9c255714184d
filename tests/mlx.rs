//! Rings on stock MLX's wire over loopback TCP, with threads as ranks; those with stock MLX in them are c_tests'.

mod common;

use std::io::Write;
use std::net::{Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use common::{all_gather, all_reduce, barrier, bytes, configurations, message, ring, run};
use ring::bootstrap::config::{Config, Host, Wire};
use ring::dtype::{Dtype, Op};
use ring::error::Status;
use ring::group::{Call, Group, Kind};

/// Around the number of ranks, and where MLX cuts a call of 4-byte elements into more parts.
const COUNTS: [usize; 9] = [0, 1, 2, 7, 1021, 65_535, 131_073, 600_001, 1_200_003];

fn mlx(size: usize, addresses: usize) -> Vec<Config> {
    let configs = configurations(size, addresses, 1);
    configs.into_iter().map(|config| Config { job_id: Vec::new(), wire: Wire::Mlx, ..config }).collect()
}

fn value(rank: usize, i: usize) -> f32 {
    ((rank + 1) * (i % 509 + 1)) as f32
}

fn floats(values: impl Iterator<Item = f32>) -> Vec<u8> {
    bytes(&values.collect::<Vec<_>>(), f32::to_ne_bytes)
}

fn reduced(group: &Group, count: usize, op: Op) -> Vec<u8> {
    let mut send = floats((0..count).map(|i| value(group.rank(), i)));
    let mut recv = vec![0xAA; send.len()];
    run(group, all_reduce(&mut send, &mut recv, Dtype::Float32, op)).unwrap();
    recv
}

#[test]
fn its_reductions_and_gathers_are_exact() {
    for size in [2, 3, 5, 8] {
        for addresses in [1, 3] {
            ring(&mlx(size, addresses), |group| {
                for count in COUNTS {
                    let of_all = |reduce: &dyn Fn(f32, f32) -> f32| {
                        floats(
                            (0..count).map(|i| (0..size).map(|rank| value(rank, i)).reduce(reduce).unwrap()),
                        )
                    };
                    let sum = of_all(&|a, b| a + b);
                    assert!(reduced(group, count, Op::Sum) == sum, "sum: {size}, {addresses}, {count}");
                    assert!(reduced(group, count, Op::Max) == of_all(&f32::max));
                    assert!(reduced(group, count, Op::Min) == of_all(&f32::min));
                    let mean = |bytes: &[u8]| f32::from_ne_bytes(bytes.try_into().unwrap()) / size as f32;
                    assert!(reduced(group, count, Op::Mean) == floats(sum.chunks(4).map(mean)));

                    let mine = |rank: usize| (0..count).map(|i| (rank * 31 + i) as u16).collect::<Vec<_>>();
                    let mut send = bytes(&mine(group.rank()), u16::to_ne_bytes);
                    let mut recv = vec![0xAA; send.len() * size];
                    run(group, all_gather(&mut send, &mut recv, Dtype::Uint16)).unwrap();
                    let right = (0..size).flat_map(|rank| bytes(&mine(rank), u16::to_ne_bytes));
                    assert!(recv == right.collect::<Vec<_>>(), "gather: {size}, {addresses}, {count}");
                    barrier(group).unwrap();
                }
            });
        }
    }
}

#[test]
fn neighbours_exchange_messages_in_one_order_with_collectives() {
    for size in 2..=5 {
        for addresses in 1..=3 {
            ring(&mlx(size, addresses), |group| {
                let right = (group.rank() + 1) % size;
                let left = (group.rank() + size - 1) % size;
                for count in [0, 1, 255, 256, 1023, 1025, 3000, 700_001] {
                    for (to, from) in [(right, left), (left, right)] {
                        let mut out = floats((0..count).map(|i| value(group.rank(), i)));
                        let mut into = vec![0; out.len()];
                        let send = message(&mut out, Dtype::Float32, to);
                        let recv = message(&mut into, Dtype::Float32, from);
                        group.send_recv(Some(send), Some(recv)).unwrap();
                        assert!(into == floats((0..count).map(|i| value(from, i))));
                        barrier(group).unwrap();
                    }
                }
                let before = group.stats().operations;
                let mut byte = [group.rank() as u8];
                if group.rank() == 0 {
                    group.send(message(&mut byte, Dtype::Uint8, right)).unwrap();
                } else if left == 0 {
                    group.recv(message(&mut byte, Dtype::Uint8, left)).unwrap();
                    assert_eq!(byte, [0]);
                }
                let is_one = group.rank() == 0 || left == 0;
                assert_eq!(group.stats().operations, before + u64::from(is_one));
            });
        }
    }
}

#[test]
fn what_it_cannot_carry_is_refused_and_nothing_else_happens() {
    ring(&mlx(4, 1), |group| {
        let mut memory = [1.0f32; 16].map(f32::to_ne_bytes).concat();
        let whole = ring::memory::Region::from_slice(&mut memory);
        let call = |kind| Call::new(kind, 4).of(Dtype::Float32).between(whole, whole);
        let carried = [Kind::AllReduce, Kind::AllGather, Kind::Barrier, Kind::Message];
        for kind in Kind::ALL.iter().filter(|kind| !carried.contains(kind) && **kind != Kind::Split) {
            let refused = run(group, call(*kind)).unwrap_err();
            assert_eq!(refused.status, Status::Unsupported, "{kind:?}");
        }
        for op in [Op::Prod, Op::Band, Op::Bxor] {
            let call = call(Kind::AllReduce).by_op(Dtype::Int32, op);
            assert_eq!(run(group, call).unwrap_err().status, Status::Unsupported, "{op:?}");
        }
        let far = message(&mut [0; 4], Dtype::Int32, (group.rank() + 2) % 4).peer;
        let refused = group.send(message(&mut [0; 4], Dtype::Int32, far)).unwrap_err();
        assert_eq!(refused.status, Status::Unsupported);
        assert!(refused.text.contains("which is no neighbour"), "{refused}");
        let refused = group.split(Ok((0, 0))).err().unwrap();
        assert_eq!((refused.status, refused.sequence), (Status::Unsupported, 15));
        assert!(
            reduced(group, 3, Op::Sum) == floats((0..3).map(|i| (0..4).map(|rank| value(rank, i)).sum()))
        );
        assert_eq!(group.failure(), None);
    });
}

/// Where a rank listens.
fn own_place(config: &Config, rank: usize) -> (&'static str, u16) {
    ("127.0.0.1", config.entries[rank][0].port)
}

/// Connects to a rank that is about to listen.
fn visit(place: (&str, u16)) -> TcpStream {
    loop {
        match TcpStream::connect(place) {
            Ok(stream) => return stream,
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// What a rank on this library's own wire says first.
const NATIVE: [u8; 72] = {
    let mut hello = [0; 72];
    hello.split_at_mut(8).0.copy_from_slice(b"\x93LIBRING");
    hello
};

#[test]
fn a_neighbour_on_the_other_wire_is_found_out_as_the_ring_forms() {
    let configs = mlx(2, 1);
    thread::scope(|threads| {
        // The last rank needs its neighbour's word before it stands: nobody listens there.
        let rank = threads.spawn(|| Group::create(&configs[1]).err().unwrap());
        visit(own_place(&configs[1], 1)).write_all(&NATIVE).unwrap();
        let error = rank.join().unwrap();
        assert_eq!((error.status, error.rank), (Status::ConnectFailed, Some(0)));
        assert!(error.text.contains("rank 0 (left neighbour) at 127.0.0.1"), "{error}");
        assert!(error.text.contains("speaks this library's own wire"), "{error}");
    });
}

#[test]
fn a_neighbour_on_the_other_wire_is_found_out_before_its_word_is_a_number() {
    let configs = mlx(3, 1);
    let right = TcpListener::bind(own_place(&configs[0], 1)).unwrap();
    thread::scope(|threads| {
        let rank = threads.spawn(|| Group::create(&configs[0]).unwrap());
        let mut left = visit(own_place(&configs[0], 0));
        let (_right, _) = right.accept().unwrap();
        let group = rank.join().unwrap();
        left.write_all(&NATIVE).unwrap();
        let mut byte = [7];
        let error = group.recv(message(&mut byte, Dtype::Uint8, 2)).unwrap_err();
        assert_eq!((error.status, error.rank, byte), (Status::PeerLost, Some(2), [7]));
        assert!(error.text.contains("(left neighbour) speaks this library's own wire"), "{error}");
        assert_eq!(group.failure(), Some(&error));
        group.destroy();
    });
}

/// The first rank stands long before the last one, and may have sent and left by then.
#[test]
fn the_first_rank_may_leave_before_the_last_one_stands() {
    let configs = mlx(3, 1);
    let first = TcpListener::bind(own_place(&configs[2], 0)).unwrap();
    thread::scope(|threads| {
        let rank = threads.spawn(|| Group::create(&configs[2]).unwrap());
        let (from_last, _) = first.accept().unwrap();
        drop(first);
        from_last.shutdown(Shutdown::Write).unwrap();
        // That the end has been seen by then makes it harder.
        thread::sleep(Duration::from_millis(100));
        let mut middle = visit(own_place(&configs[2], 2));
        middle.write_all(&[9]).unwrap();
        let group = rank.join().unwrap();
        let mut byte = [7];
        group.recv(message(&mut byte, Dtype::Uint8, 1)).unwrap();
        assert_eq!(byte, [9]);
        let error = group.recv(message(&mut byte, Dtype::Uint8, 0)).unwrap_err();
        assert_eq!((error.status, error.rank), (Status::PeerLost, Some(0)));
        drop(middle);
        group.destroy();
    });
}

#[test]
fn a_neighbour_without_an_address_of_the_wire_is_named() {
    for rank in [0, 1] {
        let mut config = mlx(2, 1).swap_remove(rank);
        config.connect_timeout = Some(Duration::from_millis(300));
        // As a name has it that leads to no other address.
        config.entries[1 - rank][0].host = Host::Ip(Ipv6Addr::LOCALHOST.into());
        thread::scope(|threads| {
            let result = threads.spawn(|| Group::create(&config).err().unwrap());
            let _left = visit(own_place(&config, rank));
            let error = result.join().unwrap();
            assert_eq!((error.status, error.rank), (Status::ConnectFailed, Some(1 - rank)));
            assert!(error.text.contains("(right neighbour) could not be reached at [::1]:"), "{error}");
            assert!(error.text.contains("no IPv4 address is known"), "{error}");
        });
    }
}

/// Ranks give up at much the same time, and who did so first isn't the one who was missing.
#[test]
fn who_gave_up_is_not_who_was_missing() {
    let timeout = Duration::from_millis(500);
    let configs: Vec<_> =
        mlx(3, 1).into_iter().map(|config| Config { connect_timeout: Some(timeout), ..config }).collect();
    thread::scope(|threads| {
        let first = threads.spawn(|| Group::create(&configs[0]).err().unwrap());
        let last = visit(own_place(&configs[0], 0));
        thread::sleep(timeout / 4);
        drop(last);
        let error = first.join().unwrap();
        assert_eq!((error.status, error.rank), (Status::ConnectFailed, Some(1)), "{error}");
    });
    let first = TcpListener::bind(own_place(&configs[2], 0)).unwrap();
    thread::scope(|threads| {
        let last = threads.spawn(|| Group::create(&configs[2]).err().unwrap());
        drop(first.accept().unwrap());
        drop(first);
        let error = last.join().unwrap();
        assert_eq!((error.status, error.rank), (Status::ConnectFailed, Some(1)), "{error}");
    });
}
