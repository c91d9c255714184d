//! What every entry shares: no panic leaves it, no callback calls back into a group, and a failure
//! leaves its text for this thread.

#[cfg(test)]
use std::cell::Cell;
use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::Arc;

use super::group::ring_group_t;
use super::requests::ring_request_t;
use super::types::ring_status_t;
use crate::untyped::{self, Group, Request};
use crate::{Error, Result, Status};

thread_local! {
    static LAST_ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

#[cfg(test)]
thread_local! {
    /// Makes the next body that a boundary call runs panic.
    pub static PANIC_NEXT: Cell<bool> = const { Cell::new(false) };
}

/// Runs an entry's body; the text of a panic is an error.
fn caught<T>(body: impl FnOnce() -> T) -> std::result::Result<T, String> {
    untyped::caught(|| {
        #[cfg(test)]
        assert!(!PANIC_NEXT.replace(false), "a panic on purpose");
        body()
    })
}

/// An entry that returns a status.
pub fn status(body: impl FnOnce() -> Result<()>) -> ring_status_t {
    report(caught(body).unwrap_or_else(|text| Err(Error::new(Status::Internal, text))))
}

/// An entry that returns a status and works on a group; `name` is the function's.
pub fn on_group(
    name: &str,
    group: *const ring_group_t,
    body: impl FnOnce(&Arc<Group>) -> Result<()>,
) -> ring_status_t {
    let group = match usable(name, group) {
        Ok(group) => group,
        Err(error) => return report(Err(error)),
    };
    report(caught(|| body(&group)).unwrap_or_else(|text| Err(group.fail_internally(&text))))
}

/// An entry that returns a status and works on a request.
pub fn on_request(
    name: &str,
    request: *const ring_request_t,
    body: impl FnOnce(&Request) -> Result<()>,
) -> ring_status_t {
    let request = match usable_request(name, request) {
        Ok(request) => request,
        Err(error) => return report(Err(error)),
    };
    report(caught(|| body(&request)).unwrap_or_else(|text| Err(request.fail_internally(&text))))
}

/// An entry that can't fail; after a panic it gives `otherwise`.
pub fn value<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    caught(body).unwrap_or(otherwise)
}

/// The request behind a handle, unless it may not be used here and now.
pub fn usable_request(name: &str, request: *const ring_request_t) -> Result<Arc<Request>> {
    let Some(request) = shared(request.cast::<Request>()) else {
        return Err(Error::new(Status::InvalidArgument, format!("{name}: request is NULL")));
    };
    refuse_callback(name)?;
    request.check_usable().map_err(|error| Error { text: format!("{name}: {}", error.text), ..error })?;
    Ok(request)
}

fn usable(name: &str, group: *const ring_group_t) -> Result<Arc<Group>> {
    let Some(group) = borrow(group) else {
        return Err(Error::new(Status::InvalidArgument, format!("{name}: group is NULL")));
    };
    refuse_callback(name)?;
    group.check_usable().map_err(|error| Error { text: format!("{name}: {}", error.text), ..error })?;
    Ok(group)
}

/// From inside a callback a call on a group could wait for the call that runs the callback.
pub fn refuse_callback(name: &str) -> Result<()> {
    untyped::refuse_callback().map_err(|error| Error { text: format!("{name}: {}", error.text), ..error })
}

/// The group behind a handle.
pub fn borrow(group: *const ring_group_t) -> Option<Arc<Group>> {
    shared(group.cast::<Group>())
}

/// What is behind a handle, kept alive while a call works on it: destroy on another thread ends the call first,
/// but not what comes after a panic in it. None for NULL.
fn shared<T>(handle: *const T) -> Option<Arc<T>> {
    if handle.is_null() {
        return None;
    }
    // SAFETY: what an entry that makes handles made of an Arc of this type; its owner destroys it once, and after
    // the calls on it have begun.
    unsafe {
        Arc::increment_strong_count(handle);
        Some(Arc::from_raw(handle))
    }
}

/// The host's pointer on its way back to the host.
pub struct UserData(pub *mut c_void);

// SAFETY: the library never follows it; the host knows on which threads its callback runs.
unsafe impl Send for UserData {}
// SAFETY: likewise.
unsafe impl Sync for UserData {}

/// Maps a result to its status, and keeps a failure's text for this thread.
fn report(result: Result<()>) -> ring_status_t {
    match result {
        Ok(()) => Status::Ok as ring_status_t,
        Err(error) => {
            // A destructor that runs at a thread's end may find its locals gone; the status is left.
            let _ = LAST_ERROR.try_with(|last| last.replace(error.text));
            error.status as ring_status_t
        }
    }
}

/// This thread's last failure.
pub fn last_error() -> String {
    LAST_ERROR.try_with(|last| last.borrow().clone()).unwrap_or_default()
}
