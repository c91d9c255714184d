//! A call that goes on without its caller, as the caller sees it.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::{Group, lock};
use crate::error::{Error, Result, Status};
use crate::sys::fork;

/// An operation that runs, or that has ended. It may outlive its group.
pub struct Request {
    /// Of a group that is still there.
    group: Weak<Group>,
    /// Of the process that made it: a forked child has another.
    generation: u32,
    result: OnceLock<Result<()>>,
    /// Held while the result is set, so that nobody begins to wait just then.
    waiting: Mutex<()>,
    done: Condvar,
}

/// The duty to say how an operation has ended.
pub struct Reply(Arc<Request>);

impl Request {
    /// One that runs in a group of this process's generation.
    pub fn new(group: Weak<Group>, generation: u32) -> (Arc<Request>, Reply) {
        let (result, waiting, done) = (OnceLock::new(), Mutex::default(), Condvar::new());
        let request = Arc::new(Request { group, generation, result, waiting, done });
        (request.clone(), Reply(request))
    }

    /// Refuses use in a forked child of the process that made the request: what would end it isn't there.
    pub fn check_usable(&self) -> Result<()> {
        if self.generation == fork::generation() {
            return Ok(());
        }
        let text = "the request belongs to the process that made it, and this is a forked child";
        Err(Error::new(Status::InvalidState, text))
    }

    /// Fails its group after a fault of the library's own.
    pub fn fail_internally(&self, text: &str) -> Error {
        let own = || Error::new(Status::Internal, text);
        self.group.upgrade().map_or_else(own, |group| group.fail_internally(text))
    }

    /// Whether the operation has ended.
    pub fn is_done(&self) -> bool {
        self.result.get().is_some()
    }

    /// How the operation has ended; None while it runs. The memory that it was lent is the caller's again
    /// once it has.
    pub fn result(&self) -> Option<Result<()>> {
        self.result.get().cloned()
    }

    /// How it has ended, once its driver has run all it had.
    pub fn outcome(&self) -> Result<()> {
        let lost = || Error::new(Status::Internal, "an operation's result was lost");
        self.result().unwrap_or_else(|| Err(lost()))
    }

    /// The same, after so long at most; None waits for the end.
    pub fn wait(&self, at_most: Option<Duration>) -> Option<Result<()>> {
        let deadline = at_most.and_then(|at_most| Instant::now().checked_add(at_most));
        let mut waiting = lock(&self.waiting);
        while self.result.get().is_none() {
            waiting = match deadline {
                None => self.done.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    self.done.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        drop(waiting);
        self.result()
    }
}

impl Reply {
    /// The operation has ended, and has let go of the memory that it was lent.
    pub fn done(self, result: Result<()>) {
        self.set(result);
    }

    fn set(&self, result: Result<()>) {
        let waiting = lock(&self.0.waiting);
        if self.0.result.set(result).is_ok() {
            self.0.done.notify_all();
        }
        drop(waiting);
    }
}

impl Drop for Reply {
    /// Nobody waits for ever for what a fault of the library has lost.
    fn drop(&mut self) {
        if self.0.result.get().is_none() {
            self.set(Err(Error::new(Status::Internal, "a fault of the library: the operation was lost")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_waited_for_again_and_again() {
        let (request, reply) = Request::new(Weak::new(), fork::generation());
        assert_eq!((request.result(), request.wait(Some(Duration::ZERO))), (None, None));
        let start = Instant::now();
        assert_eq!(request.wait(Some(Duration::from_millis(20))), None);
        assert!(start.elapsed() >= Duration::from_millis(20));
        let failed = Err(Error::new(Status::Timeout, "on purpose"));
        std::thread::scope(|scope| {
            let waits = [0; 3].map(|_| scope.spawn(|| request.wait(None)));
            reply.done(failed.clone());
            for wait in waits {
                assert_eq!(wait.join().unwrap(), Some(failed.clone()));
            }
        });
        assert_eq!(request.wait(Some(Duration::ZERO)), Some(failed.clone()));
        assert_eq!(request.result(), Some(failed));
        assert!(request.check_usable().is_ok());
    }

    #[test]
    fn a_reply_that_is_lost_is_a_failure() {
        let (request, reply) = Request::new(Weak::new(), fork::generation() + 1);
        drop(reply);
        assert_eq!(request.wait(None).unwrap().unwrap_err().status, Status::Internal);
        assert_eq!(request.check_usable().unwrap_err().status, Status::InvalidState);
    }
}
