//! Listening on a rank's own addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use crate::bootstrap::claims::Claims;
use crate::bootstrap::config::{Address, Host};
use crate::bootstrap::resolve::{Lookup, is_loopback};
use crate::bootstrap::rivals::Rival;
use crate::bootstrap::{Connection, printed};
use crate::error::{Error, Result, Status, os_words};
use crate::sys::Interest;

/// Connections that wait to be accepted: as many as a large job's ranks and some strangers.
const BACKLOG: i32 = 4096;
/// A rank that restarts may find its predecessor still closing.
const IN_USE: Duration = Duration::from_millis(500);

/// One of the own addresses on its way to listening.
pub struct Listening {
    address: Address,
    lookup: Lookup,
    /// Once the port was found taken.
    in_use: Option<InUse>,
    pub sockets: Vec<Connection>,
}

struct InUse {
    until: Instant,
    /// None where the ranks have no words for it.
    rival: Option<Rival>,
}

impl Listening {
    pub fn new(address: &Address) -> Listening {
        let lookup = Lookup::new(address);
        Listening { address: address.clone(), lookup, in_use: None, sockets: Vec::new() }
    }

    /// At a port that the system chooses.
    pub fn anywhere(at: SocketAddr) -> Result<Listening> {
        let mut at = at;
        at.set_port(0);
        let host = match at {
            SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_none() => Host::Ip((*v6.ip()).into()),
            other => Host::Ip(other.ip().to_canonical()),
        };
        let mut address = Address { host, port: 0 };
        let bound = listen(at, at.ip().is_unspecified()).and_then(|socket| {
            let port = socket.socket.local_addr()?.as_socket().map_or(0, |local| local.port());
            Ok((socket, port))
        });
        let (socket, port) = bound.map_err(|error| refused(&address, at, &error))?;
        address.port = port;
        let lookup = Lookup::known(SocketAddr::new(at.ip(), port));
        Ok(Listening { address, lookup, in_use: None, sockets: vec![socket] })
    }

    /// The port of its entry.
    pub fn port(&self) -> u16 {
        self.address.port
    }

    /// Binds what isn't bound yet; an error is final. Without claims nobody is asked who has the port.
    pub fn progress(&mut self, claims: Option<&Claims>, now: Instant) -> Result<()> {
        if self.is_listening() {
            return Ok(());
        }
        let Some(found) = self.lookup.addresses(now) else { return Ok(()) };
        let is_name = matches!(self.address.host, Host::Name(_));
        let is_wildcard = matches!(self.address.host, Host::Ip(ip) if ip.is_unspecified());
        let mut first_error = None;
        for address in wanted(&self.address, found) {
            match listen(address, is_wildcard) {
                Ok(socket) => self.sockets.push(socket),
                // A name's address that another host has, or a family that this one lacks.
                Err(error) if is_name && is_elsewhere(&error) => {
                    first_error.get_or_insert((address, error));
                }
                Err(error) => {
                    self.sockets.clear();
                    if error.kind() == io::ErrorKind::AddrInUse {
                        return self.ask_occupant(claims, address, &error, now);
                    }
                    return Err(refused(&self.address, address, &error));
                }
            }
        }
        if self.is_listening()
            && let Some(in_use) = self.in_use.take()
            && let (Some(mut rival), Some(claims)) = (in_use.rival, claims)
        {
            rival.last_word(claims, &self.address.to_string(), now)?;
        }
        match first_error {
            Some((address, error)) if self.sockets.is_empty() => Err(refused(&self.address, address, &error)),
            _ => Ok(()),
        }
    }

    /// Whoever has the port may be an old run, which ends soon; this same rank of this ring or of a
    /// job that shares the hostfile, which has to hear of it; or no rank at all.
    fn ask_occupant(
        &mut self,
        claims: Option<&Claims>,
        taken: SocketAddr,
        error: &io::Error,
        now: Instant,
    ) -> Result<()> {
        let in_use = self.in_use.get_or_insert_with(|| InUse {
            until: now + IN_USE,
            rival: claims.map(|claims| Rival::new(taken, claims.rank(), now)),
        });
        if let (Some(rival), Some(claims)) = (&mut in_use.rival, claims) {
            rival.progress(claims, &shown(&self.address, taken), now)?;
        }
        if now < in_use.until {
            return Ok(());
        }
        let error = refused(&self.address, taken, error);
        Err(match in_use.rival.as_ref().and_then(Rival::found) {
            Some(who) => Error { text: format!("{} by {who}", error.text), ..error },
            None => error,
        })
    }

    /// What to poll, and until when at most.
    pub fn waits(&self, add: &mut dyn FnMut(&Connection, Interest)) -> Option<Instant> {
        self.in_use.as_ref()?.rival.as_ref()?.waits(add)
    }

    pub fn is_listening(&self) -> bool {
        !self.sockets.is_empty()
    }

    /// Why it doesn't listen, at the deadline.
    pub fn error(&self) -> Error {
        let reason = match (&self.in_use, self.lookup.error()) {
            (Some(_), _) => "Address already in use".to_owned(),
            (None, Some(error)) => os_words(error),
            (None, None) => "the name is still being looked up".to_owned(),
        };
        let text = format!("this rank can't listen on {}: {reason}", self.address);
        Error::new(Status::ConnectFailed, text)
    }
}

fn shown(entry: &Address, address: SocketAddr) -> String {
    match entry.host {
        Host::Name(_) => format!("{entry} ({})", printed(&address)),
        _ => entry.to_string(),
    }
}

fn refused(entry: &Address, address: SocketAddr, error: &io::Error) -> Error {
    let shown = shown(entry, address);
    let text = format!("this rank can't listen on {shown}: {}", os_words(error));
    Error::new(Status::ConnectFailed, text).with_os(error)
}

fn is_elsewhere(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(libc::EAFNOSUPPORT)
}

/// What to bind for an entry. A host's own name often stands for a loopback address in its hosts
/// file, where no other host could reach it: then the wildcard address is meant.
fn wanted(entry: &Address, found: &[SocketAddr]) -> Vec<SocketAddr> {
    match &entry.host {
        Host::Name(name) if name != "localhost" && found.iter().all(|a| is_loopback(a.ip())) => {
            [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()]
                .map(|ip| SocketAddr::new(ip, entry.port))
                .to_vec()
        }
        _ => found.to_vec(),
    }
}

/// A listening socket. SO_REUSEADDR lets a rank restart over connections of its old run that are
/// still in TIME_WAIT; two listeners on one port remain impossible without SO_REUSEPORT. `dual`
/// makes an IPv6 socket take IPv4 as well.
fn listen(address: SocketAddr, dual: bool) -> io::Result<Connection> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Of two that ask for any port at once, both may be given one that may be used again.
    socket.set_reuse_address(address.port() != 0)?;
    if address.is_ipv6() {
        socket.set_only_v6(!dual)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Connection::new(socket, address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_one_listener() {
        let any = "127.0.0.1:0".parse().unwrap();
        let first = listen(any, false).unwrap();
        let port = first.socket.local_addr().unwrap().as_socket().unwrap().port();
        let entry = Address { host: Host::Ip(Ipv4Addr::LOCALHOST.into()), port };
        let start = Instant::now();
        let mut second = Listening::new(&entry);
        let claims = Claims::example(0);
        assert_eq!(second.progress(Some(&claims), start), Ok(()));
        assert!(!second.is_listening());
        let error = second.progress(Some(&claims), start + IN_USE).unwrap_err();
        assert_eq!(error.status, Status::ConnectFailed);
        assert!(error.text.contains(&format!("127.0.0.1:{port}: Address already in use")), "{}", error.text);
        drop(first);
        assert_eq!(second.progress(None, start + IN_USE), Ok(()));
        assert!(second.is_listening());
    }

    #[test]
    fn an_own_name_on_loopback_means_every_address() {
        let entry = |name: &str| Address { host: Host::Name(name.into()), port: 5 };
        let loopback: Vec<SocketAddr> = vec!["127.0.1.1:5".parse().unwrap()];
        let both: Vec<_> = wanted(&entry("host-a"), &loopback).iter().map(printed).collect();
        assert_eq!(both, ["0.0.0.0:5", "[::]:5"]);
        assert_eq!(wanted(&entry("localhost"), &loopback), loopback);
    }
}
