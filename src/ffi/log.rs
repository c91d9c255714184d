//! The log callback.

use std::ffi::{CString, c_char, c_void};

use super::boundary::{UserData, refuse_callback, status};
use super::types::{ring_log_level_t, ring_status_t};
use crate::log::{self, Level, Sink};
use crate::untyped::callback;
use crate::{Error, Status};

/// Takes a log line: its level, a NUL-terminated UTF-8 text that lives for the call, and the
/// user_data that was set with the callback. Runs on any thread, one at a time; it must not unwind
/// or longjmp. Calls on groups from inside it give RING_STATUS_INVALID_STATE.
pub type ring_log_fn =
    Option<unsafe extern "C" fn(level: ring_log_level_t, message: *const c_char, user_data: *mut c_void)>;

/// Sends log lines of max_level and below (more serious) to log from now on, for the whole process;
/// NULL turns the log off, as it is at first. user_data is handed to log and stays the caller's. Blocks while the
/// former callback runs: when this returns it isn't running and won't be called again.
///
/// - RING_STATUS_INVALID_ARGUMENT: max_level is unknown (ignored when log is NULL).
/// - RING_STATUS_INVALID_STATE: called from a callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ring_set_log_callback(
    log: ring_log_fn,
    user_data: *mut c_void,
    max_level: ring_log_level_t,
) -> ring_status_t {
    status(|| {
        refuse_callback("ring_set_log_callback")?;
        let Some(log) = log else {
            log::set(None);
            return Ok(());
        };
        let level = Level::from_number(max_level).ok_or_else(|| {
            let text =
                format!("ring_set_log_callback: max_level is {max_level}, which is no ring_log_level_t");
            Error::new(Status::InvalidArgument, text)
        })?;
        log::set(Some((sink(log, UserData(user_data)), level)));
        Ok(())
    })
}

fn sink(
    log: unsafe extern "C" fn(ring_log_level_t, *const c_char, *mut c_void),
    user_data: UserData,
) -> Sink {
    Box::new(move |level, line| {
        let UserData(user_data) = &user_data;
        let text = CString::new(line.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the host's function, with its own pointer and a text that lives for the call.
        callback(|| unsafe { log(level as ring_log_level_t, text.as_ptr(), *user_data) });
    })
}
