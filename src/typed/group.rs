//! A group as its Rust program holds it.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use super::config::{Config, milliseconds};
use crate::bootstrap::config::{DEFAULT_TIMEOUT, timeout_from_ms};
use crate::error::{Error, Result};
use crate::group::{Call, Group as Core, Kind, Stats};
use crate::untyped::refuse_callback;

/// A communicator: this process's place in a ring of processes. Any thread may call any method; collectives are
/// served first come, first served. All ranks make the same collectives in the same order.
///
/// A group that is dropped leaves the ring (but not in a function that the library runs): what successful calls sent is delivered, for up to a second; a peer
/// that still needs this rank gets PEER_LOST. Every error of a call but INVALID_ARGUMENT, UNSUPPORTED,
/// OUT_OF_MEMORY, INVALID_STATE and the CONNECT_FAILED of a message or split is the group's one failure, which
/// every later call returns.
///
/// ```
/// # fn main() -> ring::Result<()> {
/// use ring::{Config, Group, Op};
///
/// // A ring of one; two entries would make a ring of two processes.
/// let group = Group::create(&Config::hosts(0, r#"[["127.0.0.1:5000"]]"#))?;
/// let mut gradient = [0.5_f32, 1.5, 2.5];
/// group.all_reduce(&mut gradient, Op::Mean)?;
/// # Ok(())
/// # }
/// ```
pub struct Group(ManuallyDrop<Arc<Core>>);

impl Group {
    fn new(core: Arc<Core>) -> Group {
        Group(ManuallyDrop::new(core))
    }

    /// Joins the ring that the configuration describes. Blocks until all ranks have joined or the connect timeout is
    /// over.
    ///
    /// # Errors
    ///
    /// INVALID_CONFIG: a setting or the hostfile is wrong. UNSUPPORTED: one that this build doesn't have.
    /// CONNECT_FAILED: an own address is taken, or ranks didn't come, have other settings or aren't of this ring.
    /// AUTH_FAILED: a neighbour didn't prove that it knows the secret. SYSTEM: the host refused descriptors or
    /// threads.
    pub fn create(config: &Config) -> Result<Group> {
        Ok(Group::new(Core::create(&config.check()?)?))
    }

    /// Joins the ring that the environment describes: [`Config::from_env`] and [`Group::create`].
    ///
    /// # Errors
    ///
    /// Those of both.
    pub fn create_from_env() -> Result<Group> {
        Group::create(&Config::from_env()?)
    }

    /// This process's rank, from 0.
    pub fn rank(&self) -> usize {
        self.0.rank()
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// Without progress for so long, calls that start later fail; None waits for ever. Ranks may differ.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        self.0.set_timeout(timeout_from_ms(milliseconds(timeout), DEFAULT_TIMEOUT));
    }

    /// A collective: the ranks of one color form a group of their own, in the order of their keys and, where these
    /// are equal, of their ranks here. None is in no group.
    ///
    /// # Errors
    ///
    /// CONNECT_FAILED: two ranks of a new group can't reach each other; this group stays healthy. Else as
    /// [`Group::all_reduce`].
    pub fn split(&self, color: Option<u32>, key: i32) -> Result<Option<Group>> {
        self.checked(|core| {
            let number = |color| i32::try_from(color).map_err(|_| too_large(color));
            let color = color.map_or(Ok(-1), number);
            core.split(color.map(|color| (color, key)))
        })
        .map(|child| child.map(Group::new))
    }

    /// Fails the group on every rank: calls that are blocked on it return ABORTED within 100 ms, with this rank
    /// named, and so does every later call. Never blocks.
    pub fn abort(&self) {
        self.0.abort();
    }

    /// The group's one failure, also between calls: a failure anywhere in the ring is known here within moments.
    pub fn failure(&self) -> Option<&Error> {
        self.0.failure()
    }

    /// What has been counted so far.
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }

    /// The group for calls whose types are known only as the program runs.
    pub fn untyped(&self) -> &Arc<Core> {
        &self.0
    }

    /// Runs a call; a panic in it is a fault of the library's.
    pub(super) fn checked<T>(&self, call: impl FnOnce(&Arc<Core>) -> Result<T>) -> Result<T> {
        self.guarded(call, |core| drop(core.fail_internally("a panic in a call")))
    }

    /// Runs a call; a panic in it has the group fail in this way, since the other ranks would wait.
    pub(super) fn guarded<T>(
        &self,
        call: impl FnOnce(&Arc<Core>) -> Result<T>,
        on_panic: fn(&Core),
    ) -> Result<T> {
        refuse_callback()?;
        self.0.check_usable()?;
        let guard = FailsOnPanic(&self.0, on_panic);
        let result = call(&self.0);
        std::mem::forget(guard);
        result
    }

    /// Runs a collective; one whose arguments are refused takes its number all the same.
    pub(super) fn collective<'a>(
        &self,
        kind: Kind,
        call: impl FnOnce((usize, usize)) -> Result<Call<'a>>,
    ) -> Result<()> {
        self.checked(|core| core.collective(kind, call((core.rank(), core.size()))))
    }
}

fn too_large(color: u32) -> Error {
    let text = format!("color is {color}, more than {}", i32::MAX);
    Error::new(crate::error::Status::InvalidArgument, text)
}

/// Forgotten when the call has returned. Whether the thread panics doesn't tell: a destructor that runs then may call.
struct FailsOnPanic<'g>(&'g Core, fn(&Core));

impl Drop for FailsOnPanic<'_> {
    fn drop(&mut self) {
        self.1(self.0);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // In a forked child the descriptors are closed, and their numbers may be others' by now; a function that the
        // library runs may run on a thread that leaving waits for. There the group stays.
        if refuse_callback().is_ok() && self.0.check_usable().is_ok() {
            self.0.destroy();
            // SAFETY: nothing uses the handle after its drop.
            #[allow(unsafe_code)]
            unsafe {
                ManuallyDrop::drop(&mut self.0);
            }
        }
    }
}
