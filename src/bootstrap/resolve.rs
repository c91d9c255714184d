//! From a hostfile's address to socket addresses.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, ToSocketAddrs};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use crate::bootstrap::config::{Address, Host};
use crate::sys;

/// A name that wasn't found may be there a little later, when a whole cluster starts at once.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// An address under look-up. Names are asked for on a thread of their own, since that may take
/// long and can't be cut short; the thread ends by itself.
pub struct Lookup {
    address: Address,
    state: State,
}

enum State {
    Found(Vec<SocketAddr>),
    Asked(Receiver<io::Result<Vec<SocketAddr>>>),
    Failed { error: io::Error, again: Instant },
}

impl Lookup {
    pub fn new(address: &Address) -> Lookup {
        let state = match &address.host {
            Host::Ip(ip) => State::Found(vec![SocketAddr::new(*ip, address.port)]),
            Host::Scoped(..) | Host::Name(_) => ask(address),
        };
        Lookup { address: address.clone(), state }
    }

    /// An address that needs no look-up.
    pub fn known(address: SocketAddr) -> Lookup {
        let shown = Address { host: Host::Ip(address.ip()), port: address.port() };
        Lookup { address: shown, state: State::Found(vec![address]) }
    }

    /// What is looked up.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The addresses, once they are known.
    pub fn addresses(&mut self, now: Instant) -> Option<&[SocketAddr]> {
        if let State::Asked(answer) = &self.state {
            match answer.try_recv() {
                Ok(Ok(found)) => self.state = State::Found(found),
                Ok(Err(error)) => self.state = State::Failed { error, again: now + ASK_AGAIN },
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => {
                    let error = io::Error::other("the look-up ended without an answer");
                    self.state = State::Failed { error, again: now + ASK_AGAIN };
                }
            }
        } else if let State::Failed { again, .. } = self.state
            && now >= again
        {
            self.state = ask(&self.address);
        }
        match &self.state {
            State::Found(addresses) => Some(addresses),
            _ => None,
        }
    }

    /// Why there are none yet.
    pub fn error(&self) -> Option<&io::Error> {
        match &self.state {
            State::Failed { error, .. } => Some(error),
            _ => None,
        }
    }
}

fn ask(address: &Address) -> State {
    let port = address.port;
    match &address.host {
        Host::Ip(ip) => State::Found(vec![SocketAddr::new(*ip, port)]),
        Host::Scoped(ip, interface) => match sys::interface_index(interface) {
            Ok(index) => State::Found(vec![SocketAddrV6::new(*ip, port, 0, index).into()]),
            Err(error) => State::Failed { error, again: Instant::now() + ASK_AGAIN },
        },
        Host::Name(name) => {
            let (answer, answered) = channel();
            let name = name.clone();
            let asked = sys::spawn("ring-resolve", move || {
                let found = (name.as_str(), port).to_socket_addrs().map(distinct);
                let _ = answer.send(found);
            });
            match asked {
                Ok(_) => State::Asked(answered),
                Err(error) => State::Failed { error, again: Instant::now() + ASK_AGAIN },
            }
        }
    }
}

fn distinct(found: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut addresses = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// Whether the address stands for "this host" on every network.
pub fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(mut lookup: Lookup) -> Result<Vec<SocketAddr>, String> {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(found) = lookup.addresses(Instant::now()) {
                return Ok(found.to_vec());
            }
            if let Some(error) = lookup.error() {
                return Err(error.to_string());
            }
            assert!(Instant::now() < end);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn names_and_scopes_are_resolved() {
        let localhost = Address { host: Host::Name("localhost".into()), port: 7 };
        let found = wait(Lookup::new(&localhost)).unwrap();
        assert!(found.iter().all(|a| is_loopback(a.ip()) && a.port() == 7) && !found.is_empty());
        let scoped = Address { host: Host::Scoped("fe80::1".parse().unwrap(), "lo".into()), port: 8 };
        assert_eq!(wait(Lookup::new(&scoped)).unwrap()[0].to_string(), "[fe80::1%1]:8");
        let nowhere = Address { host: Host::Scoped("fe80::1".parse().unwrap(), "no-such".into()), port: 8 };
        assert!(wait(Lookup::new(&nowhere)).unwrap_err().contains("No such device"));
    }
}
