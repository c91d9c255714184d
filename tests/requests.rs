//! Requests whose operations panic, reduce by a function, or are left behind.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::configurations;
use ring::error::Status;
use ring::group::{Call, Group, Kind, Request};
use ring::memory::Region;

/// Memory that lives as long as the program, as a host program's does.
fn lasting(bytes: usize) -> Region<'static> {
    Region::from_slice(vec![1; bytes].leak())
}

fn custom(
    count: usize,
    function: impl Fn(*mut u8, *const u8, usize) + Send + Sync + 'static,
) -> Call<'static> {
    let (send, recv) = (lasting(count), lasting(count));
    Call::new(Kind::AllReduceCustom, count).by_function(1, Box::new(function)).unwrap().between(send, recv)
}

fn start(group: &Arc<Group>, call: Call<'static>) -> Arc<Request> {
    group.collective_async(call.kind, Ok(call)).unwrap()
}

fn barrier(group: &Arc<Group>) -> Arc<Request> {
    start(group, Call::new(Kind::Barrier, 0))
}

/// Both ranks of a ring of two, each on a thread.
fn two(body: impl Fn(Arc<Group>) + Sync) {
    let configurations = configurations(2, 1, 1);
    std::thread::scope(|scope| {
        for config in &configurations {
            let body = &body;
            scope.spawn(move || body(Group::create(config).unwrap()));
        }
    });
}

#[test]
fn a_panic_fails_the_group_and_every_request() {
    two(|group| {
        barrier(&group).wait(None).unwrap().unwrap();
        let rank = group.rank();
        let receives = ring::group::Message::of(lasting(4), ring::dtype::Dtype::Int32, 1 - rank);
        let beside = group.message_async(receives, false).unwrap();
        let panics = start(&group, custom(5, move |_, _, _| assert!(rank == 1, "a panic on purpose")));
        let behind = barrier(&group);
        for request in [beside, panics, behind] {
            // Rank 1 may have done its part before rank 0 panics.
            if let Err(error) = request.wait(Some(Duration::from_secs(10))).expect("a request hangs") {
                assert_eq!((error.status, error.rank), (Status::Internal, Some(0)), "{error}");
                assert!(error.text.contains("a panic on purpose"), "{error}");
            } else {
                assert_eq!(rank, 1);
            }
        }
        let error = group.collective(Kind::Barrier, Ok(Call::new(Kind::Barrier, 0))).unwrap_err();
        assert_eq!(error.status, Status::Internal);
        let refused = group.collective_async(Kind::Barrier, Ok(Call::new(Kind::Barrier, 0)));
        assert_eq!(refused.err().map(|error| error.status), Some(Status::Internal));
        group.destroy();
    });
}

#[test]
fn a_function_reduces_on_the_groups_thread() {
    two(|group| {
        let elements = Arc::new(AtomicUsize::new(0));
        let seen = elements.clone();
        let caller = std::thread::current().id();
        let request = start(
            &group,
            custom(1000, move |_, _, count| {
                assert_ne!(std::thread::current().id(), caller);
                seen.fetch_add(count, Ordering::Relaxed);
            }),
        );
        request.wait(None).unwrap().unwrap();
        assert!(elements.load(Ordering::Relaxed) >= 1000);
        group.destroy();
    });
}

#[test]
fn a_group_that_nobody_destroys_lives_until_its_requests_are_done() {
    let sent = Arc::new(AtomicUsize::new(0));
    two(|group| {
        let (rank, buffer) = (group.rank(), lasting(4));
        let message = || ring::group::Message::of(buffer, ring::dtype::Dtype::Int32, 1 - rank);
        if rank == 0 {
            let request = group.message_async(message(), false).unwrap();
            drop(group);
            std::thread::sleep(Duration::from_millis(50));
            sent.store(1, Ordering::Release);
            request.wait(None).unwrap().unwrap();
        } else {
            while sent.load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            group.message_async(message(), true).unwrap().wait(None).unwrap().unwrap();
        }
    });
}
