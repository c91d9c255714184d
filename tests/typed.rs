//! The crate's own API: groups with threads as ranks, over slices of typed elements.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use common::free_port;
use ring::{Bool, Complex64, Config, Element, Group, Op, Status, bf16, f16};

/// The text of a hostfile for so many ranks on this host.
fn hosts(size: usize) -> String {
    let entries: Vec<_> = (0..size).map(|_| format!("[\"127.0.0.1:{}\"]", free_port())).collect();
    format!("[{}]", entries.join(", "))
}

fn config(rank: usize, hosts: &str) -> Config {
    Config::hosts(rank, hosts).job_id("typed").timeout(Some(Duration::from_secs(20)))
}

/// Runs `body` on every rank of a ring, each on a thread of its own; the results by rank.
fn ring<T: Send>(size: usize, body: impl Fn(Group) -> T + Sync) -> Vec<T> {
    let hosts = hosts(size);
    std::thread::scope(|scope| {
        let rank = |rank| {
            let (body, hosts) = (&body, &hosts);
            scope.spawn(move || body(Group::create(&config(rank, hosts)).unwrap()))
        };
        let ranks: Vec<_> = (0..size).map(rank).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// A value of element i of a rank, small enough for every type's sums.
fn value(rank: usize, i: usize) -> u8 {
    (rank * 3 + i % 5) as u8 % 9
}

fn sums<T: Element + PartialEq + std::fmt::Debug>(group: &Group, of: impl Fn(u8) -> T, op: Op) {
    let (rank, size) = (group.rank(), group.size());
    for count in [0, 1, 7, 1025] {
        let own: Vec<T> = (0..count).map(|i| of(value(rank, i))).collect();
        let total = |i| (0..size).map(|rank| value(rank, i)).sum();
        let right: Vec<T> = (0..count).map(|i| of(total(i))).collect();
        let mut in_place = own.clone();
        group.all_reduce(&mut in_place, op).unwrap();
        assert_eq!(in_place, right);
        let mut apart = own.clone();
        group.all_reduce_into(&own, &mut apart, op).unwrap();
        assert_eq!(apart, right);
    }
}

#[test]
fn every_type_is_summed() {
    for size in 1..=8 {
        ring(size, |group| {
            sums::<u8>(&group, |v| v, Op::Sum);
            sums::<u16>(&group, u16::from, Op::Sum);
            sums::<u32>(&group, u32::from, Op::Sum);
            sums::<u64>(&group, u64::from, Op::Sum);
            sums::<i8>(&group, |v| v as i8, Op::Sum);
            sums::<i16>(&group, i16::from, Op::Sum);
            sums::<i32>(&group, i32::from, Op::Sum);
            sums::<i64>(&group, i64::from, Op::Sum);
            sums::<usize>(&group, usize::from, Op::Sum);
            sums::<isize>(&group, isize::from, Op::Sum);
            sums::<f16>(&group, |v| f16::from_f32(v.into()), Op::Sum);
            sums::<bf16>(&group, |v| bf16::from_f32(v.into()), Op::Sum);
            sums::<f32>(&group, f32::from, Op::Sum);
            sums::<f64>(&group, f64::from, Op::Sum);
            sums::<Bool>(&group, Bool, Op::Sum);
            sums::<Complex64>(&group, |v| Complex64 { re: v.into(), im: -f32::from(v) }, Op::Sum);
        });
    }
}

#[test]
fn parts_go_where_they_belong() {
    for size in 1..=6 {
        ring(size, |group| {
            let rank = group.rank();
            let own = [rank as i64 * 10, rank as i64 * 10 + 1, rank as i64 * 10 + 2];
            let all: Vec<i64> = (0..size as i64).flat_map(|r| [r * 10, r * 10 + 1, r * 10 + 2]).collect();

            let mut gathered = vec![-1; 3 * size];
            group.all_gather(&own, &mut gathered).unwrap();
            assert_eq!(gathered, all);
            let mut in_place = vec![-1; 3 * size];
            in_place[3 * rank..3 * rank + 3].copy_from_slice(&own);
            group.all_gather_in_place(&mut in_place).unwrap();
            assert_eq!(in_place, all);

            let mut part = [0; 3];
            group.reduce_scatter(&all, &mut part, Op::Sum).unwrap();
            assert_eq!(part, own.map(|v| v * size as i64));
            let mut scattered = all.clone();
            let place = group.reduce_scatter_in_place(&mut scattered, Op::Max).unwrap();
            assert_eq!((place.clone(), &scattered[place]), (3 * rank..3 * rank + 3, &own[..]));

            for root in 0..size {
                let mut buffer = own;
                group.broadcast(&mut buffer, root).unwrap();
                assert_eq!(buffer, [all[3 * root], all[3 * root + 1], all[3 * root + 2]]);
                let mut at_root = vec![0; if rank == root { 3 } else { 0 }];
                group.reduce(&own, &mut at_root, Op::Min, root).unwrap();
                let mut whole = vec![0; if rank == root { 3 * size } else { 0 }];
                group.gather(&own, &mut whole, root).unwrap();
                if rank == root {
                    assert_eq!((&at_root[..], &whole), (&all[..3], &all));
                }
                let mut part = [0; 3];
                group.scatter(&whole, &mut part, root).unwrap();
                assert_eq!(part, own);
            }

            let blocks: Vec<i64> = (0..size).map(|to| (rank * 100 + to) as i64).collect();
            let mut exchanged = vec![0; size];
            group.all_to_all(&blocks, &mut exchanged).unwrap();
            assert_eq!(exchanged, (0..size).map(|from| (from * 100 + rank) as i64).collect::<Vec<_>>());
            group.barrier().unwrap();
        });
    }
}

#[test]
fn parts_have_lengths_of_their_own() {
    ring(4, |group| {
        let rank = group.rank();
        let counts = [2, 0, 5, 1];
        let own = vec![rank as u16 + 1; counts[rank]];
        let mut packed = vec![0; 8];
        group.all_gather_v(&own, &mut packed, &counts, None).unwrap();
        assert_eq!(packed, [1, 1, 3, 3, 3, 3, 3, 4]);
        let mut displaced = vec![9; 11];
        group.all_gather_v(&own, &mut displaced, &counts, Some(&[9, 0, 3, 0])).unwrap();
        assert_eq!(displaced, [4, 9, 9, 3, 3, 3, 3, 3, 9, 1, 1]);
        let mut part = vec![0; counts[rank]];
        group.reduce_scatter_v(&packed, &mut part, &counts, Op::Sum).unwrap();
        assert_eq!(part, vec![4 * (rank as u16 + 1); counts[rank]]);
        let (out, into) = ([rank; 4], [0, 1, 2, 3]);
        let (send, mut recv) = (vec![rank as u16; 4 * rank], vec![9; 6]);
        group.all_to_all_v((&send, &out, None), (&mut recv, &into, None)).unwrap();
        assert_eq!(recv, [1, 2, 2, 3, 3, 3]);
        // An array that isn't one entry a rank is refused on all.
        let refused = group.all_gather_v(&own, &mut packed, &counts[..3], None).unwrap_err();
        assert_eq!(refused.status, Status::InvalidArgument);
        group.barrier().unwrap();
    });
}

#[test]
fn lengths_that_do_not_fit_are_refused_and_take_their_number() {
    ring(3, |group| {
        let mut short = [0_f32; 5];
        let refusals = [
            group.all_reduce_into(&[0.0; 6], &mut short, Op::Sum),
            group.all_gather(&[0.0; 2], &mut short),
            group.reduce_scatter(&[0.0; 14], &mut short, Op::Sum),
            group.reduce_scatter_in_place(&mut short, Op::Sum).map(drop),
            group.all_gather_in_place(&mut short),
            group.all_to_all(&[0.0; 6], &mut short),
            group.broadcast(&mut short, 3),
            group.gather(&[0.0; 2], &mut short, usize::MAX),
            group.split(Some(u32::MAX), 0).map(drop),
        ];
        for refusal in refusals {
            let refusal = refusal.unwrap_err();
            assert_eq!(refusal.status, Status::InvalidArgument, "{refusal}");
        }
        let text = group.all_gather(&[1_u64; 3], &mut [0; 4]).unwrap_err().text;
        assert_eq!(text, "all_gather, call 10: recv has 4 elements and needs 9");
        let refused = group.all_reduce(&mut short, Op::Band).unwrap_err();
        assert_eq!((refused.status, refused.sequence), (Status::Unsupported, 11));
        group.barrier().unwrap();
    });
    // Of one rank alone: the others' call of that number was good.
    let ends = ring(3, |group| {
        let mut buffer = vec![1_i32; 4];
        let count = if group.rank() == 1 { 3 } else { 4 };
        let first = group.all_reduce_into(&vec![1; count], &mut buffer, Op::Sum);
        let second = group.barrier();
        (first.map_err(|error| error.status), second.unwrap_err())
    });
    assert_eq!(ends[1].0, Err(Status::InvalidArgument));
    for (_, error) in ends {
        assert_eq!(error.status, Status::Mismatch, "{error}");
    }
}

#[test]
fn messages_go_between_any_ranks() {
    ring(5, |group| {
        let (rank, size) = (group.rank(), group.size());
        for distance in 1..size {
            let (to, from) = ((rank + distance) % size, (rank + size - distance) % size);
            let mut got = [0_u32; 3];
            group.send_recv(&[rank as u32; 3], Some(to), &mut got, Some(from)).unwrap();
            assert_eq!(got, [from as u32; 3]);
            let request = group.recv_async(vec![0_u8; 10], from).unwrap();
            group.send(&[rank as u8; 10], to).unwrap();
            assert_eq!(request.wait().unwrap(), [from as u8; 10]);
        }
        let mut got = [0_u32; 2];
        group.send_recv(&[7, 8], Some(rank), &mut got, Some(rank)).unwrap();
        assert_eq!(got, [7, 8]);
        group.send_recv::<u32>(&[], None, &mut [], None).unwrap();
        assert_eq!(group.send(&[0_u8], size).unwrap_err().status, Status::InvalidArgument);
        assert_eq!(group.recv(&mut [0_u8], rank).unwrap_err().status, Status::InvalidArgument);
    });
}

#[test]
fn requests_own_their_buffers() {
    for size in [1, 2, 5] {
        ring(size, |group| {
            let rank = group.rank();
            let ranks = size as i32;
            let sums = group.all_reduce_async(vec![rank as i32; 5000], Op::Sum).unwrap();
            let gathered = group.all_gather_async(vec![rank as u8; 2], vec![0; 2 * size]).unwrap();
            let scattered = group.reduce_scatter_async(vec![1_f64; 3 * size], vec![0.0; 3], Op::Sum).unwrap();
            let sent = group.broadcast_async(vec![rank as i16; 4], size - 1).unwrap();
            let blocks = group.all_to_all_async(vec![rank as i64; size], vec![0; size]).unwrap();
            // Dropped before it is done: it is waited for.
            drop(group.all_reduce_async(vec![1_u64; 100_000], Op::Sum).unwrap());
            group.barrier_async().unwrap().wait().unwrap();
            assert!(sums.is_done() && sums.wait_for(Duration::ZERO));
            assert_eq!(sums.wait().unwrap(), vec![ranks * (ranks - 1) / 2; 5000]);
            let ranks_twice: Vec<u8> = (0..2 * size).map(|i| i as u8 / 2).collect();
            assert_eq!(gathered.wait().unwrap().1, ranks_twice);
            assert_eq!(scattered.wait().unwrap().1, [size as f64; 3]);
            assert_eq!(sent.wait().unwrap(), [size as i16 - 1; 4]);
            assert_eq!(blocks.wait().unwrap().1, (0..size as i64).collect::<Vec<_>>());
            for refused in [
                group.all_gather_async(vec![0_u8; 2], vec![0; 2 * size + 1]).map(drop),
                group.reduce_scatter_async(vec![0_u8; 3 * size + 1], vec![0; 3], Op::Sum).map(drop),
                group.all_to_all_async(vec![0_u8; size], vec![0; size + 1]).map(drop),
                group.send_async(vec![0_u8], rank).map(drop),
            ] {
                assert_eq!(refused.unwrap_err().status, Status::InvalidArgument);
            }
        });
    }
}

#[test]
fn a_request_outlives_its_group() {
    let outcomes = ring(2, |group| {
        if group.rank() == 1 {
            let request = group.recv_async(vec![0_u8; 4], 0).unwrap();
            drop(group);
            return request.wait().map(drop).map_err(|error| error.status);
        }
        let outcome = group.barrier().map_err(|error| error.status);
        assert_eq!(outcome, Err(Status::PeerLost));
        Ok(())
    });
    assert_eq!(outcomes, [Ok(()), Err(Status::Aborted)]);
}

#[test]
fn functions_reduce_elements_of_any_plain_type() {
    for size in 1..=5 {
        ring(size, |group| {
            // The pair with the larger second number wins.
            let rank = group.rank() as u32;
            let larger = |acc: &mut [[u32; 2]], input: &[[u32; 2]]| {
                for (acc, input) in acc.iter_mut().zip(input) {
                    *acc = if input[1] > acc[1] { *input } else { *acc };
                }
            };
            let mut pairs: Vec<_> = (0..333).map(|i| [rank, (rank * 7 + i) % size as u32]).collect();
            group.all_reduce_by(&mut pairs, larger).unwrap();
            for (i, pair) in pairs.iter().enumerate() {
                assert_eq!(pair[1], size as u32 - 1);
                assert_eq!((pair[0] * 7 + i as u32) % size as u32, pair[1]);
            }
            let counts: Vec<_> = (0..size).map(|rank| rank + 1).collect();
            let send = vec![[rank, rank]; counts.iter().sum()];
            let mut part = vec![[0, 0]; group.rank() + 1];
            group.reduce_scatter_v_by(&send, &mut part, &counts, larger).unwrap();
            assert_eq!(part, vec![[size as u32 - 1; 2]; group.rank() + 1]);
        });
    }
}

#[test]
fn a_function_that_calls_is_refused_and_waits_for_nothing() {
    ring(2, |group| {
        let request = Mutex::new(None);
        let reduces = |acc: &mut [u64], input: &[u64]| {
            // Behind the call that this function is run by.
            drop(request.lock().unwrap().take());
            let refused =
                [group.barrier(), group.recv(&mut [0_u8], 1 - group.rank()), group.split(None, 0).map(drop)];
            assert!(refused.into_iter().all(|refused| refused.unwrap_err().status == Status::InvalidState));
            acc.iter_mut().zip(input).for_each(|(acc, input)| *acc += input);
        };
        *request.lock().unwrap() = Some(group.recv_async(vec![0_u8], 1 - group.rank()).unwrap());
        let mut sums = [group.rank() as u64; 9];
        group.all_reduce_by(&mut sums, reduces).unwrap();
        assert_eq!(sums, [1; 9]);
        group.send(&[1_u8], 1 - group.rank()).unwrap();
        group.barrier().unwrap();
    });
}

/// Makes a call when it is dropped.
struct CallsAtDrop<'g>(&'g Group);

impl Drop for CallsAtDrop<'_> {
    fn drop(&mut self) {
        self.0.barrier().unwrap();
    }
}

#[test]
fn a_call_while_the_thread_unwinds_is_as_good_as_any() {
    ring(2, |group| {
        let unwinds = || {
            let _calls = CallsAtDrop(&group);
            panic!("on purpose");
        };
        assert!(catch_unwind(AssertUnwindSafe(unwinds)).is_err());
        group.barrier().unwrap();
    });
}

#[test]
fn a_function_that_panics_fails_the_group_and_panics_on() {
    let outcomes = ring(3, |group| {
        let reduces = |acc: &mut [u64], input: &[u64]| {
            assert!(group.rank() != 1, "on purpose");
            acc.iter_mut().zip(input).for_each(|(acc, input)| *acc += input);
        };
        let call = || group.all_reduce_by(&mut [1_u64; 100], reduces);
        let first = catch_unwind(AssertUnwindSafe(call));
        let later = group.barrier().unwrap_err();
        (first.is_err(), later)
    });
    for (rank, (panicked, later)) in outcomes.into_iter().enumerate() {
        assert_eq!(panicked, rank == 1);
        assert_eq!((later.status, later.rank), (Status::Aborted, Some(1)), "{later}");
    }
}

#[test]
fn a_group_that_is_dropped_has_left() {
    let outcomes = ring(3, |group| {
        group.barrier().unwrap();
        if group.rank() == 2 {
            return None;
        }
        let error = group.all_reduce(&mut [1.0_f32; 10], Op::Sum).unwrap_err();
        assert_eq!(group.failure(), Some(&error));
        Some((error.status, error.rank))
    });
    let lost = Some((Status::PeerLost, Some(2)));
    assert_eq!(outcomes, [lost, lost, None]);
}

#[test]
fn splits_aborts_and_counters() {
    ring(4, |group| {
        let rank = group.rank();
        let half = group.split(Some(rank as u32 % 2), -(rank as i32)).unwrap().unwrap();
        assert_eq!((half.size(), half.rank()), (2, 1 - rank / 2));
        let mut sum = [rank as u32];
        half.all_reduce(&mut sum, Op::Sum).unwrap();
        assert_eq!(sum, [if rank % 2 == 0 { 2 } else { 4 }]);
        assert!(group.split(if rank == 0 { None } else { Some(0) }, 0).unwrap().is_none() == (rank == 0));
        assert_eq!((group.stats().operations, half.stats().operations), (2, 1));
        if rank == 3 {
            half.abort();
        }
        if rank % 2 == 1 {
            let error = half.barrier().unwrap_err();
            assert_eq!((error.status, error.rank), (Status::Aborted, Some(0)));
        }
        group.barrier().unwrap();
        group.set_timeout(Some(Duration::from_millis(300)));
        let late = if rank == 1 { Ok(()) } else { group.barrier().map_err(|error| error.status) };
        assert_eq!(late, if rank == 1 { Ok(()) } else { Err(Status::Timeout) });
        while group.failure().is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(group.failure().unwrap().rank, Some(1));
    });
}

/// The example as three processes.
#[test]
fn the_example_runs_as_processes() {
    // Which cargo has built together with all tests, but not with this one alone.
    let mut build = Command::new(env!("CARGO"));
    build.current_dir(env!("CARGO_MANIFEST_DIR")).args([
        "build",
        "--quiet",
        "--locked",
        "--example",
        "all_reduce",
    ]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success());
    let own = std::env::current_exe().unwrap();
    let example = own.ancestors().nth(2).unwrap().join("examples/all_reduce");
    let folder = std::env::temp_dir().join(format!("ring-typed-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let hostfile = folder.join("hosts.json");
    std::fs::write(&hostfile, hosts(3)).unwrap();
    let start = |rank: usize| {
        let mut command = Command::new(&example);
        command.env("RING_RANK", rank.to_string()).env("RING_HOSTFILE", &hostfile);
        command.env("RING_CONNECT_TIMEOUT_MS", "20000");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let ranks: Vec<_> = (0..3).map(start).collect();
    for (rank, process) in ranks.into_iter().enumerate() {
        let output = process.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), format!("rank {rank} of 3: 4.5 7.5 10.5 13.5\n"));
    }
    std::fs::remove_dir_all(folder).unwrap();
}
