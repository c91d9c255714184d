//! Functions of the host program's that the library runs: from inside one a call on a group could wait for the call
//! that runs it.

use std::cell::Cell;

use crate::error::{Error, Result, Status};
use crate::log;

thread_local! {
    /// True while this thread runs a function of the host program's.
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function of the host program's, which makes no calls on groups.
pub fn callback<T>(run: impl FnOnce() -> T) -> T {
    let _before = Before(IN_CALLBACK.replace(true));
    run()
}

/// Sets the flag back, also where the function panics.
struct Before(bool);

impl Drop for Before {
    fn drop(&mut self) {
        IN_CALLBACK.set(self.0);
    }
}

/// Refuses a call from inside such a function, the log's among them.
pub fn refuse_callback() -> Result<()> {
    match IN_CALLBACK.get() || log::is_writing() {
        true => Err(Error::new(Status::InvalidState, "called from a callback")),
        false => Ok(()),
    }
}
