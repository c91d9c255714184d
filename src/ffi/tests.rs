//! Every entry survives a panic inside it, and no entry works from inside a callback.

use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;

use super::boundary::PANIC_NEXT;
use super::collectives::{
    ring_all_gather, ring_all_reduce, ring_all_to_all, ring_barrier, ring_broadcast, ring_gather,
    ring_reduce, ring_reduce_scatter, ring_scatter,
};
use super::collectives_v::{ring_all_gather_v, ring_all_to_all_v, ring_reduce_scatter_v};
use super::config::{ring_config, ring_config_init};
use super::custom::{ring_all_reduce_custom, ring_reduce_scatter_v_custom};
use super::errors::{ring_failure, ring_group_failure, ring_group_last_error, ring_last_error};
use super::group::{
    ring_group_abort, ring_group_create, ring_group_create_from_env, ring_group_destroy, ring_group_rank,
    ring_group_set_timeout, ring_group_size, ring_group_t,
};
use super::log::ring_set_log_callback;
use super::messages::{ring_recv, ring_send, ring_send_recv};
use super::requests::*;
use super::stats::ring_group_stats;
use crate::Status;

fn group_of_one() -> *mut ring_group_t {
    let mut group = null_mut();
    // SAFETY: valid pointers throughout.
    unsafe {
        let mut config: ring_config = std::mem::zeroed();
        ring_config_init(&mut config, size_of::<ring_config>());
        config.rank = 0;
        config.hosts = c"[\"here:0\"]".as_ptr();
        assert_eq!(ring_group_create(&config, &mut group), 0);
    }
    group
}

fn last() -> String {
    let mut text = vec![0_u8; 1000];
    // SAFETY: the buffer is as long as it says.
    let len = unsafe { ring_last_error(text.as_mut_ptr().cast(), text.len()) };
    String::from_utf8_lossy(&text[..len]).into_owned()
}

type Call = Box<dyn Fn() -> i32>;

/// Counts and displacements of a group of one.
static ZERO: usize = 0;

unsafe extern "C" fn reduces_nothing(_: *mut c_void, _: *const c_void, _: usize, _: *mut c_void) {}

/// Room for a request that never comes to be.
fn out() -> *mut *mut ring_request_t {
    static ROOM: AtomicPtr<ring_request_t> = AtomicPtr::new(null_mut());
    ROOM.as_ptr()
}

/// Every entry that works on a group and returns a status.
fn entries(group: *mut ring_group_t) -> Vec<(&'static str, Call)> {
    let failure =
        ring_failure { struct_size: 32, status: 0, rank: 0, detected_by: 0, os_error: 0, sequence: 0 };
    let none = std::ptr::null::<c_void>();
    let list = &raw const ZERO;
    // SAFETY: a live group, and no bytes behind the other pointers.
    unsafe {
        vec![
            ("failure", Box::new(move || ring_group_failure(group, &mut { failure }))),
            ("abort", Box::new(move || ring_group_abort(group))),
            ("set_timeout", Box::new(move || ring_group_set_timeout(group, 5))),
            ("all_reduce", Box::new(move || ring_all_reduce(group, none, null_mut(), 0, 10, 0))),
            ("reduce_scatter", Box::new(move || ring_reduce_scatter(group, none, null_mut(), 0, 10, 0))),
            ("all_gather", Box::new(move || ring_all_gather(group, none, null_mut(), 0, 10))),
            ("broadcast", Box::new(move || ring_broadcast(group, null_mut(), 0, 10, 0))),
            ("reduce", Box::new(move || ring_reduce(group, none, null_mut(), 0, 10, 0, 0))),
            ("gather", Box::new(move || ring_gather(group, none, null_mut(), 0, 10, 0))),
            ("scatter", Box::new(move || ring_scatter(group, none, null_mut(), 0, 10, 0))),
            ("all_to_all", Box::new(move || ring_all_to_all(group, none, null_mut(), 0, 10))),
            ("barrier", Box::new(move || ring_barrier(group))),
            ("stats", Box::new(move || ring_group_stats(group, null_mut()))),
            ("barrier_async", Box::new(move || ring_barrier_async(group, out()))),
            (
                "all_reduce_async",
                Box::new(move || ring_all_reduce_async(group, none, null_mut(), 0, 10, 0, out())),
            ),
            (
                "reduce_scatter_async",
                Box::new(move || ring_reduce_scatter_async(group, none, null_mut(), 0, 10, 0, out())),
            ),
            (
                "all_gather_async",
                Box::new(move || ring_all_gather_async(group, none, null_mut(), 0, 10, out())),
            ),
            ("broadcast_async", Box::new(move || ring_broadcast_async(group, null_mut(), 0, 10, 0, out()))),
            (
                "all_to_all_async",
                Box::new(move || ring_all_to_all_async(group, none, null_mut(), 0, 10, out())),
            ),
            ("send_async", Box::new(move || ring_send_async(group, none, 0, 10, 0, out()))),
            ("recv_async", Box::new(move || ring_recv_async(group, null_mut(), 0, 10, 0, out()))),
            ("all_gather_v", Box::new(move || ring_all_gather_v(group, none, 0, null_mut(), list, list, 10))),
            (
                "reduce_scatter_v",
                Box::new(move || ring_reduce_scatter_v(group, none, null_mut(), list, 10, 0)),
            ),
            (
                "all_to_all_v",
                Box::new(move || ring_all_to_all_v(group, none, list, list, null_mut(), list, list, 10)),
            ),
            ("send", Box::new(move || ring_send(group, none, 0, 10, 0))),
            ("recv", Box::new(move || ring_recv(group, null_mut(), 0, 10, 0))),
            ("send_recv", Box::new(move || ring_send_recv(group, none, 0, 0, null_mut(), 0, 0, 10))),
            (
                "all_reduce_custom",
                Box::new(move || {
                    ring_all_reduce_custom(group, none, null_mut(), 0, 5, Some(reduces_nothing), null_mut())
                }),
            ),
            (
                "reduce_scatter_v_custom",
                Box::new(move || {
                    let function = Some(reduces_nothing as _);
                    ring_reduce_scatter_v_custom(group, none, null_mut(), list, 5, function, null_mut())
                }),
            ),
        ]
    }
}

#[test]
fn a_panic_fails_the_group_and_goes_no_further() {
    for i in 0..entries(null_mut()).len() {
        let group = group_of_one();
        let (name, call) = &entries(group)[i];
        PANIC_NEXT.set(true);
        assert_eq!(call(), Status::Internal as i32, "{name}");
        assert!(last().contains("a panic on purpose"), "{name}: {}", last());
        // SAFETY: the group is live until it is destroyed.
        unsafe {
            assert_eq!(ring_barrier(group), Status::Internal as i32, "{name}");
            ring_group_destroy(group);
        }
    }
}

#[test]
fn entries_without_a_status_survive_a_panic_too() {
    let group = group_of_one();
    let panicking = || PANIC_NEXT.set(true);
    // SAFETY: a live group and NULLs.
    unsafe {
        panicking();
        assert_eq!(ring_group_rank(group), -1);
        panicking();
        assert_eq!(ring_group_size(group), -1);
        panicking();
        assert_eq!(ring_last_error(null_mut(), 0), 0);
        panicking();
        assert_eq!(ring_group_last_error(group, null_mut(), 0), 0);
        panicking();
        assert_eq!(ring_group_create(std::ptr::null(), null_mut()), Status::Internal as i32);
        panicking();
        assert_eq!(ring_group_create_from_env(null_mut()), Status::Internal as i32);
        panicking();
        assert_eq!(ring_set_log_callback(None, null_mut(), 0), Status::Internal as i32);
        ring_group_destroy(group);
    }
}

#[test]
fn a_failed_group_says_so_whatever_the_arguments() {
    let group = group_of_one();
    // SAFETY: a live group, and NULLs.
    unsafe {
        assert_eq!(ring_send(group, std::ptr::null(), 1, 99, 7), Status::InvalidArgument as i32);
        assert!(last().starts_with("ring_send: dtype is 99"), "{}", last());
        PANIC_NEXT.set(true);
        assert_eq!(ring_barrier(group), Status::Internal as i32);
        let first = last();
        for call in [
            ring_send(group, std::ptr::null(), 1, 99, 7),
            ring_recv(group, null_mut(), 1, 99, 7),
            ring_send_recv(group, std::ptr::null(), 1, 7, null_mut(), 1, 7, 99),
            ring_all_reduce(group, std::ptr::null(), null_mut(), 1, 99, 99),
        ] {
            assert_eq!(call, Status::Internal as i32);
            assert_eq!(last(), first);
        }
        ring_group_destroy(group);
    }
}

#[test]
fn a_text_is_one_line_whatever_it_quotes() {
    let mut group = null_mut();
    // SAFETY: valid pointers throughout.
    unsafe {
        let mut config: ring_config = std::mem::zeroed();
        ring_config_init(&mut config, size_of::<ring_config>());
        config.rank = 0;
        config.hostfile = c"no\nsuch".as_ptr();
        assert_eq!(ring_group_create(&config, &mut group), Status::InvalidConfig as i32);
    }
    assert!(last().contains("no such") && !last().contains('\n'), "{}", last());
}

#[test]
fn a_destructor_at_a_threads_end_may_call() {
    struct Late;
    impl Drop for Late {
        fn drop(&mut self) {
            // SAFETY: NULL is refused.
            unsafe {
                assert_eq!(ring_barrier(null_mut()), Status::InvalidArgument as i32);
                PANIC_NEXT.set(true);
                assert_eq!(ring_set_log_callback(None, null_mut(), 0), Status::Internal as i32);
                ring_last_error(null_mut(), 0);
            }
        }
    }
    thread_local! { static LATE: Late = const { Late } }
    let thread = std::thread::spawn(|| {
        // Destroyed in the reverse order of first use: the library's locals before the host's.
        LATE.with(|_| ());
        // SAFETY: NULL is refused.
        assert_eq!(unsafe { ring_barrier(null_mut()) }, Status::InvalidArgument as i32);
    });
    thread.join().unwrap();
}

/// Every entry that works on a request and returns a status.
fn request_entries(request: *mut ring_request_t) -> [(&'static str, Call); 2] {
    // SAFETY: a live request, and a bool.
    unsafe {
        [
            ("test", Box::new(move || ring_request_test(request, &mut false))),
            ("wait", Box::new(move || ring_request_wait(request, 0))),
        ]
    }
}

#[test]
fn a_panic_in_a_requests_entry_fails_its_group() {
    for i in 0..2 {
        let group = group_of_one();
        let mut request = null_mut();
        // SAFETY: a live group and a live request, each until it is destroyed.
        unsafe {
            assert_eq!(ring_barrier_async(group, &mut request), 0);
            let (name, call) = &request_entries(request)[i];
            assert_eq!(call(), 0, "{name}");
            PANIC_NEXT.set(true);
            assert_eq!(call(), Status::Internal as i32, "{name}");
            assert_eq!(ring_barrier(group), Status::Internal as i32, "{name}");
            ring_group_destroy(group);
            assert_eq!(call(), 0, "{name}");
            PANIC_NEXT.set(true);
            assert_eq!(call(), Status::Internal as i32, "{name}");
            ring_request_destroy(request);
        }
    }
}

#[test]
fn requests_refuse_what_they_cannot_take() {
    let group = group_of_one();
    let mut request = null_mut();
    let none = std::ptr::null();
    // SAFETY: a live group and a live request, each until it is destroyed, and NULLs.
    unsafe {
        assert_eq!(ring_barrier_async(group, null_mut()), Status::InvalidArgument as i32);
        assert!(last().contains("out is NULL"), "{}", last());
        assert_eq!(ring_all_gather_async(group, none, null_mut(), 1, 10, &mut request), 1);
        assert!(request.is_null());
        assert_eq!(ring_barrier_async(group, &mut request), 0);
        assert_eq!(ring_request_test(request, null_mut()), Status::InvalidArgument as i32);
        assert_eq!(ring_request_test(null_mut(), &mut false), Status::InvalidArgument as i32);
        assert_eq!(ring_request_wait(null_mut(), 0), Status::InvalidArgument as i32);
        ring_request_destroy(null_mut());
        ring_request_destroy(request);
        ring_group_destroy(group);
    }
}

/// What `nosy` calls back into, and the statuses that it got.
struct Seen {
    group: *mut ring_group_t,
    request: *mut ring_request_t,
    statuses: Vec<i32>,
}

/// Calls back into the group and the request that are its user data, and keeps the statuses.
unsafe extern "C" fn nosy(_: i32, _: *const c_char, user_data: *mut c_void) {
    // SAFETY: the test's own pair.
    let Seen { group, request, statuses } = unsafe { &mut *user_data.cast::<Seen>() };
    statuses.extend(entries(*group).iter().map(|(_, call)| call()));
    statuses.extend(request_entries(*request).iter().map(|(_, call)| call()));
    // SAFETY: refused, both of them.
    unsafe {
        statuses.push(ring_set_log_callback(None, null_mut(), 0));
        ring_request_destroy(*request);
        ring_group_destroy(*group);
    }
}

#[test]
fn a_callback_calls_no_group() {
    let group = group_of_one();
    let mut seen = Seen { group, request: null_mut(), statuses: Vec::new() };
    // SAFETY: the callback is off before its data goes.
    unsafe {
        assert_eq!(ring_barrier_async(group, &mut seen.request), 0);
        assert_eq!(ring_set_log_callback(Some(nosy), (&raw mut seen).cast(), 4), 0);
        crate::log::write(crate::log::Level::Error, "a line");
        assert_eq!(ring_set_log_callback(None, null_mut(), 0), 0);
        assert_eq!(ring_request_wait(seen.request, 0), 0);
        ring_request_destroy(seen.request);
        assert_eq!(ring_barrier(group), 0);
        ring_group_destroy(group);
    }
    let refused = seen.statuses.iter().filter(|status| **status == Status::InvalidState as i32).count();
    assert!(refused >= 32 && refused == seen.statuses.len(), "{:?}", seen.statuses);
}
