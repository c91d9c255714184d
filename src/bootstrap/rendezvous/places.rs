//! Where ranks are, as rank 0 has seen it, and as each rank is told.
//!
//! A rank is where its connection to rank 0 came from. Those on rank 0's own host, itself among them, are the
//! exception: what rank 0 sees of them may be a loopback address, or one in a network that others don't have.
//! A rank of another host finds them at the address by which it has reached rank 0 itself.

use std::net::{IpAddr, SocketAddr};

use crate::bootstrap::config::{Address, Host};
use crate::bootstrap::resolve::is_loopback;
use crate::sys;
use crate::wire::Place;

/// A guest as rank 0 sees it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Where its connection came from.
    pub from: SocketAddr,
    /// The address of rank 0 that it came to.
    pub to: SocketAddr,
    /// Where it listens.
    pub port: u16,
}

impl Seen {
    fn is_beside_host(&self) -> bool {
        is_one_host(self.from.ip(), self.to.ip())
    }
}

/// Whether a connection between these is within one host.
pub fn is_one_host(from: IpAddr, to: IpAddr) -> bool {
    is_loopback(from) || from.to_canonical() == to.to_canonical()
}

/// What a rank is told of all, in the order of ranks. `guests` are those from rank 1 on.
pub fn told_to(asker: usize, port: u16, guests: &[Seen]) -> Vec<Place> {
    let guest = |rank: usize| rank.checked_sub(1).map(|i| &guests[i]);
    let is_beside = |rank| guest(rank).is_none_or(Seen::is_beside_host);
    // Where others look for the ranks of this host its own ranks do as well: what a rank says of where
    // it has reached its neighbour is then of use to all.
    let outside = guests.iter().find(|guest| !guest.is_beside_host()).map(|guest| guest.to);
    let place = |rank| {
        let port = guest(rank).map_or(port, |guest| guest.port);
        let here = outside.or(guest(rank).map(|guest| guest.from));
        match (guest(rank), is_beside(rank), is_beside(asker)) {
            (Some(guest), false, _) => Place::At(with_port(guest.from, port)),
            (_, true, true) => here.map_or(Place::BesideHost(port), |here| Place::At(with_port(here, port))),
            _ => Place::BesideHost(port),
        }
    };
    (0..=guests.len()).map(place).collect()
}

fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    match address {
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_some() => {
            SocketAddr::new(v6.ip().to_canonical(), port)
        }
        other => other,
    }
}

/// An entry for a place that rank 0 has told to one who had reached it there; to itself, at nowhere.
pub fn entry(place: Place, reached: Option<SocketAddr>) -> Address {
    let address = match (place, reached) {
        (Place::At(SocketAddr::V6(mut v6)), Some(SocketAddr::V6(own))) if v6.ip().is_unicast_link_local() => {
            // An interface's number means something to one host alone.
            if own.scope_id() != 0 {
                v6.set_scope_id(own.scope_id());
            }
            v6.into()
        }
        (Place::At(address), _) => address,
        (Place::BesideHost(port), Some(reached)) => with_port(reached, port),
        (Place::BesideHost(port), None) => return Address { port, ..Address::UNKNOWN },
    };
    let host = match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => {
            let scope = v6.scope_id();
            Host::Scoped(*v6.ip(), sys::interface_name(scope).unwrap_or_else(|_| scope.to_string()))
        }
        address => Host::Ip(address.ip()),
    };
    Address { host, port: address.port() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(from: &str, to: &str, port: u16) -> Seen {
        let address = |ip: &str| SocketAddr::new(ip.parse().unwrap(), 50000);
        Seen { from: address(from), to: address(to), port }
    }

    /// What a rank makes of what it is told.
    fn entries(asker: usize, reached: Option<&str>, guests: &[Seen]) -> Vec<String> {
        let reached = reached.map(|text| text.parse().unwrap());
        told_to(asker, 5000, guests).into_iter().map(|place| entry(place, reached).to_string()).collect()
    }

    #[test]
    fn one_host_stays_on_loopback() {
        let guests = [seen("127.0.0.1", "127.0.0.1", 1), seen("::1", "::1", 2)];
        assert_eq!(entries(0, None, &guests), ["0.0.0.0:5000", "127.0.0.1:1", "[::1]:2"]);
        let told = ["127.0.0.1:5000", "127.0.0.1:1", "[::1]:2"];
        assert_eq!(entries(1, Some("127.0.0.1:5000"), &guests), told);
        let mapped = [seen("::ffff:127.0.0.1", "::ffff:127.0.0.1", 1)];
        assert_eq!(entries(0, None, &mapped)[1], "127.0.0.1:1");
    }

    #[test]
    fn a_rank_is_where_it_came_from() {
        let guests = [seen("10.0.0.2", "10.0.0.1", 1), seen("::ffff:10.0.0.3", "::ffff:10.0.0.1", 2)];
        assert_eq!(entries(0, None, &guests)[1..], ["10.0.0.2:1", "10.0.0.3:2"]);
        let told = ["10.0.0.1:5000", "10.0.0.2:1", "10.0.0.3:2"];
        assert_eq!(entries(1, Some("10.0.0.1:5000"), &guests), told);
        // Behind a translated address.
        let told = ["192.0.2.9:5000", "10.0.0.2:1", "10.0.0.3:2"];
        assert_eq!(entries(2, Some("192.0.2.9:7"), &guests), told);
    }

    #[test]
    fn ranks_beside_rank_0_are_where_each_has_reached_it() {
        let guests = [
            seen("127.0.0.1", "127.0.0.1", 1),
            seen("10.0.0.2", "10.0.0.1", 2),
            seen("10.9.0.3", "10.9.0.1", 3),
            seen("10.9.0.1", "10.9.0.1", 4),
        ];
        let remote = ["10.0.0.2:2", "10.9.0.3:3"];
        let at = |host: &str| {
            [
                format!("{host}:5000"),
                format!("{host}:1"),
                remote[0].into(),
                remote[1].into(),
                format!("{host}:4"),
            ]
        };
        assert_eq!(entries(2, Some("10.0.0.1:5000"), &guests), at("10.0.0.1"));
        assert_eq!(entries(3, Some("10.9.0.1:5000"), &guests), at("10.9.0.1"));
        // Those of the host use an address that others can, too.
        assert_eq!(entries(0, None, &guests), at("10.0.0.1"));
        assert_eq!(entries(1, Some("127.0.0.1:5000"), &guests), at("10.0.0.1"));
        assert_eq!(entries(4, Some("10.9.0.1:5000"), &guests), at("10.0.0.1"));
    }

    #[test]
    fn an_interface_is_the_askers_own() {
        let local = |text: &str| text.parse::<SocketAddr>().unwrap();
        let guests = [
            Seen { from: local("[fe80::2%1]:9"), to: local("[fe80::1%1]:5000"), port: 1 },
            Seen { from: local("[fe80::3%1]:9"), to: local("[fe80::1%1]:5000"), port: 2 },
        ];
        assert_eq!(entries(0, None, &guests)[1..], ["[fe80::2%lo]:1", "[fe80::3%lo]:2"]);
        // No interface has this number, so that it stands there itself.
        let told = ["[fe80::1%4000000]:5000", "[fe80::2%4000000]:1", "[fe80::3%4000000]:2"];
        assert_eq!(entries(2, Some("[fe80::1%4000000]:5000"), &guests), told);
    }
}
