//! What a group is made of, for Rust programs.

use std::path::Path;
use std::time::Duration;

pub use crate::bootstrap::config::Wire;

use crate::bootstrap::config::{Config as Checked, Settings, WIDE_ACCUMULATION};
use crate::bootstrap::environment;
use crate::bootstrap::secret::Secret;
use crate::error::Result;
use crate::log;

/// What a group is made of: this rank, where the others are, and settings that have defaults. Nothing is checked
/// before [`Group::create`](crate::Group::create).
///
/// ```
/// use std::time::Duration;
///
/// let config = ring::Config::hosts(0, r#"[["127.0.0.1:5000"], ["127.0.0.1:5001"]]"#)
///     .job_id("training-7")
///     .timeout(Some(Duration::from_secs(30)));
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    settings: Settings,
    log: Option<log::Level>,
}

impl Config {
    fn new(rank: usize, settings: Settings) -> Config {
        // What is no rank is refused with the others' numbers.
        let rank = i32::try_from(rank).unwrap_or(i32::MAX);
        Config { settings: Settings { rank, ..settings }, log: None }
    }

    /// Rank `rank` of the ranks in a hostfile, which is JSON: an array with one entry a rank, each an array of
    /// `"host:port"` strings.
    pub fn hostfile(rank: usize, path: impl AsRef<Path>) -> Config {
        let hostfile = Some(path.as_ref().as_os_str().to_owned());
        Config::new(rank, Settings { hostfile, ..Settings::default() })
    }

    /// The same, of a hostfile's text.
    pub fn hosts(rank: usize, text: &str) -> Config {
        Config::new(rank, Settings { hosts: Some(text.into()), ..Settings::default() })
    }

    /// Rank `rank` of `size` ranks that meet at `"host:port"`, where rank 0 listens.
    pub fn rendezvous(rank: usize, size: usize, address: &str) -> Config {
        let size = i32::try_from(size).unwrap_or(i32::MAX);
        Config::new(rank, Settings { size, rendezvous: Some(address.into()), ..Settings::default() })
    }

    /// From the environment, whose variables the README lists, launchers' among them. `RING_LOG` sends the log to
    /// stderr when the group is created, unless it goes somewhere already.
    ///
    /// # Errors
    ///
    /// INVALID_CONFIG: a variable is missing or malformed. UNSUPPORTED: one that this build doesn't have.
    pub fn from_env() -> Result<Config> {
        let (settings, log) = environment::settings(|name| std::env::var_os(name))?;
        Ok(Config { settings, log })
    }

    /// Ranks with another job id are refused; at most 255 bytes.
    pub fn job_id(mut self, job_id: &str) -> Config {
        self.settings.job_id = job_id.into();
        self
    }

    /// Peers must prove that they know it; 16 bytes or more that nobody can guess.
    pub fn secret(mut self, secret: &[u8]) -> Config {
        self.settings.secret = Some(Secret::new(secret.into()));
        self
    }

    /// For the whole of create; None waits for ever. 60 s by default.
    pub fn connect_timeout(mut self, timeout: Option<Duration>) -> Config {
        self.settings.connect_timeout_ms = milliseconds(timeout);
        self
    }

    /// Of each call, without progress; None waits for ever. 300 s by default. Ranks may differ.
    pub fn timeout(mut self, timeout: Option<Duration>) -> Config {
        self.settings.timeout_ms = milliseconds(timeout);
        self
    }

    /// TCP connections per neighbour and address, alike on all ranks; 1 by default, at most 64.
    pub fn connections(mut self, connections: u32) -> Config {
        self.settings.connections = connections;
        self
    }

    /// What the ranks speak: stock MLX's wire makes this process a rank among MLX's.
    pub fn wire(mut self, wire: Wire) -> Config {
        self.settings.wire = wire as i32;
        self
    }

    /// Sums and means of 16-bit floats are kept in f32 until the end and rounded once, alike on all ranks. Costs
    /// bytes: see RING_FLAG_WIDE_ACCUMULATION in ring.h.
    pub fn wide_accumulation(mut self, wide: bool) -> Config {
        self.settings.flags = if wide { WIDE_ACCUMULATION } else { 0 };
        self
    }

    /// A call that waits for so long says in the log for whom; None, the default: none does.
    pub fn stall_warning(mut self, after: Option<Duration>) -> Config {
        self.settings.stall_warning_ms = after.map_or(0, |after| milliseconds(Some(after)));
        self
    }

    /// Each rank writes a trace of its last calls to a file in this directory: see trace_dir in ring.h.
    pub fn trace_dir(mut self, path: impl AsRef<Path>) -> Config {
        self.settings.trace_dir = Some(path.as_ref().as_os_str().to_owned());
        self
    }

    /// Sends the log where it was to go, if it was, and checks everything.
    pub(super) fn check(&self) -> Result<Checked> {
        let checked = self.settings.check()?;
        if let Some(level) = self.log {
            log::set_if_off(log::stderr_sink(), level);
        }
        Ok(checked)
    }
}

/// A timeout in ring.h's numbers, in which 0 is the default. What is less than one is one.
pub(super) fn milliseconds(timeout: Option<Duration>) -> u32 {
    const LONGEST: u128 = u32::MAX as u128 - 1;
    timeout.map_or(u32::MAX, |timeout| timeout.as_millis().clamp(1, LONGEST) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;

    #[test]
    fn timeouts_are_ring_hs_numbers() {
        for (timeout, ms) in [
            (None, u32::MAX),
            (Some(Duration::ZERO), 1),
            (Some(Duration::from_micros(1500)), 1),
            (Some(Duration::from_secs(5)), 5000),
            (Some(Duration::MAX), u32::MAX - 1),
        ] {
            assert_eq!(milliseconds(timeout), ms);
        }
    }

    #[test]
    fn settings_are_checked_with_the_group() {
        let config = Config::rendezvous(2, 3, "[::1]:5000").connections(3).wide_accumulation(true);
        let checked = config.timeout(None).check().unwrap();
        assert_eq!((checked.rank, checked.entries.len(), checked.connections), (2, 3, 3));
        assert!(checked.wide && checked.timeout.is_none() && checked.stall_warning.is_none());
        let warned =
            |after| Config::hosts(0, r#"["a:1"]"#).stall_warning(after).check().unwrap().stall_warning;
        assert_eq!(warned(Some(Duration::from_micros(1))), Some(Duration::from_millis(1)));
        assert_eq!(warned(None), None);
        for wrong in [
            Config::hosts(2, r#"["a:1", "b:2"]"#),
            Config::hosts(usize::MAX, r#"["a:1", "b:2"]"#),
            Config::rendezvous(0, 0, "a:1"),
            Config::hosts(0, r#"["a:1", "b:2"]"#).secret(b"short"),
            Config::hosts(0, r#"["a:1", "b:2"]"#).connections(65),
            Config::hosts(0, r#"["a:1", "b:2"]"#).trace_dir("/dev/null"),
        ] {
            assert_eq!(wrong.check().unwrap_err().status, Status::InvalidConfig);
        }
    }
}
