//! Groups with threads as ranks.
#![allow(dead_code, reason = "each test uses a part")]

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use ring::bootstrap::config::{Address, Config, Host, Wire};
use ring::error::Result;
use ring::group::{Call, Group, Kind, Message};
use ring::memory::Region;

/// Ports from here on are below the range that the system gives to outgoing connections.
const FIRST_PORT: u16 = 20_000;
const LAST_PORT: u16 = 31_999;

/// A port of this host that nobody listens on.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let spread = (std::process::id() % 997) as u16 * 12;
    for _ in FIRST_PORT..=LAST_PORT {
        let offset = spread.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST_PORT + offset % (LAST_PORT - FIRST_PORT + 1);
        if TcpListener::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port");
}

/// Configurations of a ring on loopback, one a rank.
pub fn configurations(size: usize, addresses: usize, connections: usize) -> Vec<Config> {
    let ip = Host::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let entry = || (0..addresses).map(|_| Address { host: ip.clone(), port: free_port() }).collect();
    let entries: Vec<Vec<Address>> = (0..size).map(|_| entry()).collect();
    let config = |rank| Config {
        rendezvous: None,
        rank,
        entries: entries.clone(),
        job_id: b"test".to_vec(),
        secret: None,
        connect_timeout: Some(Duration::from_secs(20)),
        stall_warning: None,
        timeout: Some(Duration::from_secs(20)),
        wide: false,
        wire: Wire::Native,
        trace_dir: None,
        connections,
    };
    (0..size).map(config).collect()
}

/// Runs `body` on every rank of a ring, each on a thread of its own; the results by rank.
pub fn ring<T: Send>(configs: &[Config], body: impl Fn(&Group) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let rank = |config| {
            let body = &body;
            scope.spawn(move || {
                let group = Group::create(config).unwrap_or_else(|e| panic!("rank {}: {e}", config.rank));
                let result = body(&group);
                group.destroy();
                result
            })
        };
        let ranks: Vec<_> = configs.iter().map(rank).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// The bytes of some elements.
pub fn bytes<T: Copy, const N: usize>(values: &[T], to_bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|value| to_bytes(*value)).collect()
}

/// Runs a collective whose arguments are right.
pub fn run(group: &Group, call: Call<'_>) -> Result<()> {
    group.collective(call.kind, Ok(call))
}

/// A barrier.
pub fn barrier(group: &Group) -> Result<()> {
    run(group, Call::new(Kind::Barrier, 0))
}

/// An all-reduce between two byte vectors.
pub fn all_reduce<'a>(
    send: &'a mut [u8],
    recv: &'a mut [u8],
    dtype: ring::dtype::Dtype,
    op: ring::dtype::Op,
) -> Call<'a> {
    let count = recv.len() / dtype.size();
    let (send, recv) = (Region::from_slice(send), Region::from_slice(recv));
    Call::new(Kind::AllReduce, count).by_op(dtype, op).between(send, recv)
}

/// An all-gather between two byte vectors.
pub fn all_gather<'a>(send: &'a mut [u8], recv: &'a mut [u8], dtype: ring::dtype::Dtype) -> Call<'a> {
    let count = send.len() / dtype.size();
    let (send, recv) = (Region::from_slice(send), Region::from_slice(recv));
    Call::new(Kind::AllGather, count).of(dtype).between(send, recv)
}

/// A message in a byte vector.
pub fn message(buffer: &mut [u8], dtype: ring::dtype::Dtype, peer: usize) -> Message<'_> {
    Message::of(Region::from_slice(buffer), dtype, peer)
}
