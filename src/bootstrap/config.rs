//! What a group is made of: settings as they were given, and the configuration that they make.

use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use crate::bootstrap::hostfile::{self, MAX_RANKS};
use crate::bootstrap::secret::Secret;
use crate::bootstrap::trace_dir;
use crate::error::{Error, Result, Status};
use crate::wire::MAX_JOB_ID;

/// Without `connect_timeout_ms`: time for a cluster's processes to be started one by one.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// Without `timeout_ms`: longer than what ranks differ by in computing between two calls.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
/// In `flags`: 16-bit floats are summed in f32 along the ring and rounded once.
pub const WIDE_ACCUMULATION: u32 = 1;
/// Connections per neighbour and address.
const MAX_CONNECTIONS: u32 = 64;

/// One `host:port` of a hostfile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// What stands before the port.
    pub host: Host,
    /// TCP port; 0 only in entries that this rank doesn't use.
    pub port: u16,
}

/// The host of an [`Address`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// `192.0.2.1` or `[2001:db8::1]`.
    Ip(IpAddr),
    /// `[fe80::1%eth0]`: an address and the interface that it belongs to.
    Scoped(Ipv6Addr, String),
    /// A name, in lower case.
    Name(String),
}

impl Address {
    /// Of a rank that has not told where it listens.
    pub const UNKNOWN: Address = Address { host: Host::Ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), port: 0 };
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(IpAddr::V4(ip)) => write!(f, "{ip}:{}", self.port),
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]:{}", self.port),
            Host::Scoped(ip, interface) => write!(f, "[{ip}%{interface}]:{}", self.port),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

/// What ranks speak to each other, by ring.h's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// This library's own format.
    #[default]
    Native = 0,
    /// Stock MLX's: elements and nothing else.
    Mlx = 1,
}

/// Transports, by ring.h's numbers: the best that there is, TCP, and shared memory, which is yet to come.
pub const AUTO: i32 = 0;
pub const TCP: i32 = 1;
pub const SHM: i32 = 2;

/// What errors call a setting: a field of `ring_config_t`, or the variable that it came from.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    pub rank: &'static str,
    pub size: &'static str,
    pub hostfile: &'static str,
    pub rendezvous: &'static str,
    pub job_id: &'static str,
    pub secret: &'static str,
    pub connections: &'static str,
    pub wire: &'static str,
    pub transport: &'static str,
    pub trace_dir: &'static str,
}

impl Names {
    /// The fields of `ring_config_t`.
    pub const FIELDS: Names = Names {
        rank: "rank",
        size: "size",
        hostfile: "hostfile",
        rendezvous: "rendezvous",
        job_id: "job_id",
        secret: "secret",
        connections: "connections",
        wire: "wire",
        transport: "transport",
        trace_dir: "trace_dir",
    };
}

/// Settings as `ring_config_t` or the environment gave them, unchecked: its fields, in its numbers.
#[derive(Clone, Debug)]
pub struct Settings {
    pub names: Names,
    /// -1: not set.
    pub rank: i32,
    /// 0: not set.
    pub size: i32,
    pub hostfile: Option<OsString>,
    pub hosts: Option<Vec<u8>>,
    pub rendezvous: Option<Vec<u8>>,
    pub job_id: Vec<u8>,
    pub secret: Option<Secret>,
    /// 0 is the default, u32::MAX none; likewise `timeout_ms`.
    pub connect_timeout_ms: u32,
    pub timeout_ms: u32,
    /// 0 is the default.
    pub connections: u32,
    pub wire: i32,
    pub transport: i32,
    pub flags: u32,
    pub trace_dir: Option<OsString>,
    /// 0: none.
    pub stall_warning_ms: u32,
    pub reserved: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            names: Names::FIELDS,
            rank: -1,
            size: 0,
            hostfile: None,
            hosts: None,
            rendezvous: None,
            job_id: Vec::new(),
            secret: None,
            connect_timeout_ms: 0,
            timeout_ms: 0,
            connections: 0,
            wire: 0,
            transport: AUTO,
            flags: 0,
            trace_dir: None,
            stall_warning_ms: 0,
            reserved: 0,
        }
    }
}

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// This rank.
    pub rank: usize,
    /// Every rank's addresses; as many entries as there are ranks. With a rendezvous only rank 0's is known
    /// before the ranks have met.
    pub entries: Vec<Vec<Address>>,
    /// Where rank 0 listens, if it is there that the ranks tell each other where they do.
    pub rendezvous: Option<Address>,
    /// Ranks with another job id are refused; at most 255 bytes.
    pub job_id: Vec<u8>,
    /// Peers prove that they know it; None: they are not authenticated.
    pub secret: Option<Secret>,
    /// The whole of create; None waits for ever.
    pub connect_timeout: Option<Duration>,
    /// Without progress, each call; None waits for ever.
    pub timeout: Option<Duration>,
    /// A call that stands still for so long is worth a line in the log; None: none is.
    pub stall_warning: Option<Duration>,
    /// Connections per neighbour and address.
    pub connections: usize,
    /// Sums and means of 16-bit floats are kept in f32 until the end of a chain.
    pub wide: bool,
    /// What the ranks speak.
    pub wire: Wire,
    /// Where this rank writes its trace; an absolute path.
    pub trace_dir: Option<PathBuf>,
}

/// A timeout as ring.h gives it: 0 is the default, UINT32_MAX none.
pub fn timeout_from_ms(ms: u32, default: Duration) -> Option<Duration> {
    match ms {
        0 => Some(default),
        u32::MAX => None,
        ms => Some(Duration::from_millis(ms.into())),
    }
}

fn invalid(text: String) -> Error {
    Error::new(Status::InvalidConfig, text)
}

impl Settings {
    /// Checks everything that can be checked without a peer. What is wrong comes before what this
    /// build lacks.
    pub fn check(&self) -> Result<Config> {
        let names = &self.names;
        if self.rank < 0 {
            let what = if self.rank == -1 { "is not set".into() } else { format!("is {}", self.rank) };
            return Err(invalid(format!(
                "{} {what}; it must be from 0 to the number of ranks - 1",
                names.rank
            )));
        }
        if self.size < 0 {
            return Err(invalid(format!("{} is {}, which is no number of ranks", names.size, self.size)));
        }
        let config = match self.entries()? {
            Some(entries) => self.place(&entries)?,
            None => self.place_at_rendezvous()?,
        };
        self.check_values()?;
        if config.wire == Wire::Mlx {
            self.check_mlx(&config)?;
        }
        self.check_supported()?;
        // Last: it may make a directory.
        let trace_dir = self.trace_dir.as_ref().map(|path| trace_dir::prepare(path, names.trace_dir));
        Ok(Config { trace_dir: trace_dir.transpose()?, ..config })
    }

    /// The entries of the hostfile, or None with a rendezvous.
    fn entries(&self) -> Result<Option<Vec<Vec<Address>>>> {
        match (&self.hostfile, &self.hosts, &self.rendezvous) {
            (Some(path), None, None) if path.is_empty() => {
                Err(invalid(format!("{} is empty; it must be the path of a hostfile", self.names.hostfile)))
            }
            (Some(path), None, None) => {
                let source = self.source();
                hostfile::parse(&hostfile::read(path, &source)?, &source).map(Some)
            }
            (None, Some(text), None) => hostfile::parse(text, "hosts").map(Some),
            (None, None, Some(_)) => Ok(None),
            (None, None, None) => Err(invalid(
                "none of hostfile, hosts and rendezvous is set, and exactly one of them must be".to_owned(),
            )),
            _ => {
                let given = [
                    (self.hostfile.is_some(), "hostfile"),
                    (self.hosts.is_some(), "hosts"),
                    (self.rendezvous.is_some(), "rendezvous"),
                ];
                let given: Vec<_> = given.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
                Err(invalid(format!("{} are set, and only one of them may be", given.join(" and "))))
            }
        }
    }

    /// This rank among the entries.
    fn place(&self, entries: &[Vec<Address>]) -> Result<Config> {
        let names = &self.names;
        let source = self.source();
        let rank = self.rank as usize;
        let size = entries.len();
        if self.size != 0 && self.size as usize != size {
            return Err(invalid(format!("{} is {}, but {source} has {size} entries", names.size, self.size)));
        }
        if rank >= size {
            let last = size - 1;
            return Err(invalid(format!("{} is {rank}, but {source} has ranks 0 to {last}", names.rank)));
        }
        let right = (rank + 1) % size;
        if size > 1 {
            for used in [rank, right] {
                if let Some(address) = entries[used].iter().find(|address| address.port == 0) {
                    return Err(invalid(format!(
                        "{source}, entry {used}, {address}: port 0 stands in an entry that rank {rank} uses"
                    )));
                }
            }
        }
        let (own, next) = (entries[rank].len(), entries[right].len());
        if own != next {
            return Err(invalid(format!(
                "{source}: entry {rank} has {own} addresses and entry {right} has {next}; neighbours need as many"
            )));
        }
        Ok(self.config(entries.to_vec(), None))
    }

    /// This rank among those that meet at a rendezvous.
    fn place_at_rendezvous(&self) -> Result<Config> {
        let names = &self.names;
        let shown = names.rendezvous;
        let text = String::from_utf8_lossy(self.rendezvous.as_deref().unwrap_or_default());
        let wrong = |problem: String| invalid(format!("{shown} \"{}\": {problem}", text.escape_debug()));
        let address: Address = text.parse().map_err(wrong)?;
        if address.port == 0 {
            return Err(wrong("port 0 is none that other ranks could know".to_owned()));
        }
        if self.size == 0 {
            let size = names.size;
            return Err(invalid(format!("{size} is not set, or 0, and {shown} needs the number of ranks")));
        }
        let size = self.size as usize;
        if size > MAX_RANKS {
            return Err(invalid(format!("{} is {size}; at most {MAX_RANKS} are possible", names.size)));
        }
        if self.rank >= self.size {
            let (rank, last) = (self.rank, size - 1);
            return Err(invalid(format!(
                "{} is {rank}, but {} is {size}: ranks are 0 to {last}",
                names.rank, names.size
            )));
        }
        if self.rank > 0 && matches!(address.host, Host::Ip(ip) if ip.is_unspecified()) {
            return Err(wrong(format!(
                "only rank 0 may listen on every address, and this is rank {}",
                self.rank
            )));
        }
        let mut entries = vec![vec![Address::UNKNOWN]; size];
        entries[0] = vec![address.clone()];
        Ok(self.config(entries, Some(address)))
    }

    fn config(&self, entries: Vec<Vec<Address>>, rendezvous: Option<Address>) -> Config {
        Config {
            rank: self.rank as usize,
            entries,
            rendezvous,
            job_id: self.job_id.clone(),
            secret: self.secret.clone(),
            connect_timeout: timeout_from_ms(self.connect_timeout_ms, DEFAULT_CONNECT_TIMEOUT),
            timeout: timeout_from_ms(self.timeout_ms, DEFAULT_TIMEOUT),
            stall_warning: (self.stall_warning_ms > 0)
                .then(|| Duration::from_millis(self.stall_warning_ms.into())),
            connections: self.connections.max(1) as usize,
            wide: self.flags & WIDE_ACCUMULATION != 0,
            wire: if self.wire == Wire::Mlx as i32 { Wire::Mlx } else { Wire::Native },
            trace_dir: None,
        }
    }

    fn source(&self) -> String {
        match &self.hostfile {
            Some(path) => format!("{} {}", self.names.hostfile, path.display()),
            None => "hosts".to_owned(),
        }
    }

    fn check_values(&self) -> Result<()> {
        let names = &self.names;
        if self.connections > MAX_CONNECTIONS {
            let given = self.connections;
            return Err(invalid(format!(
                "{} is {given}; at most {MAX_CONNECTIONS} are possible",
                names.connections
            )));
        }
        if self.job_id.len() > MAX_JOB_ID {
            let given = self.job_id.len();
            return Err(invalid(format!(
                "{} has {given} bytes; at most {MAX_JOB_ID} are possible",
                names.job_id
            )));
        }
        if let Some(problem) = self.secret.as_ref().and_then(Secret::problem) {
            return Err(invalid(format!("{} {problem}", names.secret)));
        }
        if ![Wire::Native as i32, Wire::Mlx as i32].contains(&self.wire) {
            return Err(invalid(format!("wire is {}, which is no ring_wire_t", self.wire)));
        }
        if !(AUTO..=SHM).contains(&self.transport) {
            return Err(invalid(format!("transport is {}, which is no ring_transport_t", self.transport)));
        }
        if self.flags & !WIDE_ACCUMULATION != 0 {
            return Err(invalid(format!("flags is {:#x}, which has unknown bits", self.flags)));
        }
        if self.reserved != 0 {
            return Err(invalid(format!("reserved is {} and must be 0", self.reserved)));
        }
        Ok(())
    }

    /// What the MLX wire has no room for: a setting that would do nothing is one that somebody relies on. A job id
    /// stands for itself, and nobody hears of it.
    fn check_mlx(&self, config: &Config) -> Result<()> {
        let names = &self.names;
        let no_room = [
            (self.rendezvous.is_some(), names.rendezvous, "its ranks know each other by a hostfile"),
            (self.connections > 1, names.connections, "it has one connection per address"),
            (self.secret.is_some(), names.secret, "its ranks don't authenticate each other"),
            (config.wide, "RING_FLAG_WIDE_ACCUMULATION", "its sums are rounded at each addition"),
        ];
        if let Some((_, name, why)) = no_room.iter().find(|(set, ..)| *set) {
            return Err(invalid(format!("{name} is set and {} is mlx: {why}", names.wire)));
        }
        let used = [config.rank, (config.rank + 1) % config.entries.len()];
        let hosts =
            used.iter().flat_map(|entry| config.entries[*entry].iter().map(move |host| (entry, host)));
        for (entry, address) in hosts {
            if matches!(address.host, Host::Ip(IpAddr::V6(_)) | Host::Scoped(..)) {
                let (source, wire) = (self.source(), names.wire);
                return Err(invalid(format!(
                    "{source}, entry {entry}, {address}: {wire} is mlx, which has IPv4 addresses only"
                )));
            }
        }
        Ok(())
    }

    /// What ring.h reserves and this build lacks.
    fn check_supported(&self) -> Result<()> {
        if self.transport == SHM {
            let text = format!("{} is shm, which this build does not have", self.names.transport);
            return Err(Error::new(Status::Unsupported, text));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(rank: i32, hosts: &str) -> Settings {
        Settings { rank, hosts: Some(hosts.into()), ..Settings::default() }
    }

    const THREE: &str = r#"[["a:1"], ["b:2"], ["c:3", "d:4"]]"#;

    #[test]
    fn a_good_configuration_has_its_defaults() {
        let config = settings(0, THREE).check().unwrap();
        assert_eq!((config.rank, config.entries.len(), config.connections), (0, 3, 1));
        assert_eq!(config.connect_timeout, Some(DEFAULT_CONNECT_TIMEOUT));
        let endless = Settings { timeout_ms: u32::MAX, connect_timeout_ms: 7, ..settings(0, THREE) };
        let config = endless.check().unwrap();
        assert_eq!((config.timeout, config.connect_timeout), (None, Some(Duration::from_millis(7))));
        let guarded =
            Settings { secret: Some(Secret::new(b"0123456789abcdef".to_vec())), ..settings(0, THREE) };
        assert!(guarded.check().unwrap().secret.is_some());
        assert!(!format!("{guarded:?} {:?}", guarded.check()).contains("48, 49"));
        let wide = Settings { flags: WIDE_ACCUMULATION, ..settings(0, THREE) };
        assert!(wide.check().unwrap().wide && !config.wide);
        let alone = settings(0, r#"["a:0"]"#).check().unwrap();
        assert_eq!(alone.entries.len(), 1);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let good = || settings(0, THREE);
        let bad = [
            (settings(-1, THREE), "rank is not set"),
            (settings(-7, THREE), "rank is -7"),
            (settings(3, THREE), "rank is 3, but hosts has ranks 0 to 2"),
            (settings(1, THREE), "entry 1 has 1 addresses and entry 2 has 2"),
            (settings(1, r#"["a:1", "b:2", "c:0"]"#), "entry 2, c:0: port 0"),
            (settings(2, r#"["a:1", "b:2", "c:0"]"#), "entry 2, c:0: port 0"),
            (Settings { size: -1, ..good() }, "size is -1"),
            (Settings { size: 4, ..good() }, "size is 4, but hosts has 3 entries"),
            (Settings { hosts: None, ..good() }, "none of hostfile, hosts and rendezvous is set"),
            (Settings { hostfile: Some("x".into()), ..good() }, "hostfile and hosts are set"),
            (Settings { rendezvous: Some("".into()), ..good() }, "hosts and rendezvous are set"),
            (Settings { connections: 65, ..good() }, "connections is 65; at most 64"),
            (Settings { job_id: vec![b'x'; 256], ..good() }, "job_id has 256 bytes"),
            (Settings { secret: Some(Secret::new(vec![1; 15])), ..good() }, "secret has fewer than 16"),
            (Settings { secret: Some(Secret::new(vec![1; 4097])), ..good() }, "secret has more than 4096"),
            (Settings { wire: 2, ..good() }, "wire is 2"),
            (Settings { transport: -1, ..good() }, "transport is -1"),
            (Settings { flags: 3, ..good() }, "flags is 0x3"),
            (Settings { reserved: 1, ..good() }, "reserved is 1"),
            (Settings { hosts: Some("".into()), ..good() }, "hosts: it is empty"),
        ];
        for (settings, text) in bad {
            let error = settings.check().unwrap_err();
            assert_eq!(error.status, Status::InvalidConfig, "{text}");
            assert!(error.text.contains(text), "{} lacks {text}", error.text);
        }
    }

    fn meeting(rank: i32, size: i32, rendezvous: &str) -> Settings {
        Settings { rank, size, rendezvous: Some(rendezvous.into()), ..Settings::default() }
    }

    #[test]
    fn a_rendezvous_needs_rank_and_size() {
        let config = meeting(1, 3, "[fe80::1%eth0]:29500").check().unwrap();
        assert_eq!((config.rank, config.entries.len()), (1, 3));
        assert_eq!(config.rendezvous.unwrap().to_string(), "[fe80::1%eth0]:29500");
        assert!(meeting(0, 2, "0.0.0.0:29500").check().is_ok());
        let bad = [
            (meeting(-1, 2, "a:1"), "rank is not set"),
            (meeting(0, 0, "a:1"), "size is not set, or 0, and rendezvous needs"),
            (meeting(0, -2, "a:1"), "size is -2"),
            (meeting(2, 2, "a:1"), "rank is 2, but size is 2: ranks are 0 to 1"),
            (meeting(0, i32::MAX, "a:1"), "size is 2147483647; at most 65535"),
            (meeting(0, 2, ""), "rendezvous \"\": it is empty"),
            (meeting(0, 2, "a"), "rendezvous \"a\": it has no port"),
            (meeting(0, 2, "a:0"), "rendezvous \"a:0\": port 0"),
            (meeting(0, 2, "a:65536"), "is above 65535"),
            (meeting(0, 2, "::1:5000"), "[::1]:5000"),
            (meeting(1, 2, "0.0.0.0:5"), "only rank 0 may listen on every address"),
            (meeting(1, 2, "[::]:5"), "only rank 0 may listen on every address"),
            (Settings { hosts: Some(THREE.into()), ..meeting(0, 3, "a:1") }, "hosts and rendezvous are set"),
            (Settings { connections: 65, ..meeting(0, 2, "a:1") }, "connections is 65"),
        ];
        for (settings, text) in bad {
            let error = settings.check().unwrap_err();
            assert_eq!(error.status, Status::InvalidConfig, "{text}");
            assert!(error.text.contains(text), "{} lacks {text}", error.text);
        }
    }

    #[test]
    fn the_mlx_wire_has_no_room_for_some_settings() {
        const FOUR: &str = r#"["a:1", "127.0.0.1:2", "[::1]:3", "[fe80::1%eth0]:4"]"#;
        let good = || Settings { wire: Wire::Mlx as i32, ..settings(0, FOUR) };
        assert_eq!(good().check().unwrap().wire, Wire::Mlx);
        assert_eq!(settings(2, FOUR).check().unwrap().wire, Wire::Native);
        let bad = [
            (Settings { connections: 2, ..good() }, "connections is set and wire is mlx"),
            (Settings { secret: Some(Secret::new(vec![1; 16])), ..good() }, "secret is set and wire is mlx"),
            (Settings { flags: WIDE_ACCUMULATION, ..good() }, "RING_FLAG_WIDE_ACCUMULATION is set and"),
            (
                Settings { wire: Wire::Mlx as i32, ..meeting(0, 2, "a:1") },
                "rendezvous is set and wire is mlx",
            ),
            (Settings { rank: 1, ..good() }, "hosts, entry 2, [::1]:3: wire is mlx, which has IPv4"),
            (Settings { rank: 3, ..good() }, "hosts, entry 3, [fe80::1%eth0]:4: wire is mlx, which has IPv4"),
        ];
        for (settings, text) in bad {
            let error = settings.check().unwrap_err();
            assert_eq!(error.status, Status::InvalidConfig, "{text}");
            assert!(error.text.contains(text), "{} lacks {text}", error.text);
        }
        assert!(Settings { connections: 1, job_id: b"x".to_vec(), ..good() }.check().is_ok());
    }

    #[test]
    fn what_this_build_lacks_is_unsupported() {
        let good = || settings(0, THREE);
        let lacking = Settings { transport: SHM, ..good() }.check().unwrap_err();
        assert_eq!(
            (lacking.status, &*lacking.text),
            (Status::Unsupported, "transport is shm, which this build does not have")
        );
        assert!(Settings { transport: TCP, ..good() }.check().is_ok());
        let warning =
            |stall_warning_ms| Settings { stall_warning_ms, ..good() }.check().unwrap().stall_warning;
        assert_eq!((warning(0), warning(5)), (None, Some(Duration::from_millis(5))));
    }
}
