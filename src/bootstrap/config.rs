//! What a group is made of: settings as they were given, and the configuration they make.

use std::ffi::OsString;
use std::time::Duration;

/// One `host:port` of a hostfile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// What stands before the port.
    pub host: Host,
    /// TCP port; 0 only in entries that this rank doesn't use.
    pub port: u16,
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.host {
            Host::Ip(std::net::IpAddr::V4(ip)) => write!(f, "{ip}:{}", self.port),
            Host::Ip(std::net::IpAddr::V6(ip)) => write!(f, "[{ip}]:{}", self.port),
            Host::Scoped(ip, interface) => write!(f, "[{ip}%{interface}]:{}", self.port),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

/// The host of an [`Address`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// `192.0.2.1` or `[2001:db8::1]`.
    Ip(std::net::IpAddr),
    /// `[fe80::1%eth0]`: an address and the interface that it belongs to.
    Scoped(std::net::Ipv6Addr, String),
    /// A name, in lower case.
    Name(String),
}

/// Settings as `ring_config_t` or the environment gave them, unchecked.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// -1: not set.
    pub rank: i32,
    /// 0: not set.
    pub size: i32,
    pub hostfile: Option<OsString>,
    pub hosts: Option<Vec<u8>>,
    pub rendezvous: Option<Vec<u8>>,
    pub job_id: Vec<u8>,
    pub secret: Option<Vec<u8>>,
    pub connect_timeout_ms: u32,
    pub timeout_ms: u32,
    pub connections: u32,
    pub wire: i32,
    pub transport: i32,
    pub flags: u32,
    pub trace_dir: Option<OsString>,
    pub stall_warning_ms: u32,
    pub reserved: u32,
}

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// This rank.
    pub rank: usize,
    /// Every rank's addresses; as many as there are ranks.
    pub entries: Vec<Vec<Address>>,
    /// Ranks with another job id are refused; at most 255 bytes.
    pub job_id: Vec<u8>,
    /// The whole of create; None waits for ever.
    pub connect_timeout: Option<Duration>,
    /// Without progress, each call; None waits for ever.
    pub timeout: Option<Duration>,
    /// Connections per neighbour and address.
    pub connections: usize,
}
