//! What ranks tell each other of themselves while the ring forms.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

use super::{array_at, u16_at, u32_at};

/// A rank as it describes itself; the newest version of a process's word counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    pub rank: u32,
    /// Grows with each change.
    pub version: u32,
    /// Of this process, fresh at each create.
    pub nonce: [u8; 16],
    /// Of its right and left neighbours' processes; 0 while a neighbour isn't connected.
    pub neighbours: [[u8; 16]; 2],
    /// Where it reached its right neighbour, or tries to.
    pub right_address: Option<SocketAddr>,
    /// Which run of which machine it is on.
    pub boot_id: [u8; 16],
    /// Cores that it may run on.
    pub cpus: u32,
}

const MEMBER: usize = 100;
/// Bytes of an address.
pub(super) const ADDRESS: usize = 24;

/// An address of family 0 is none; IPv4 takes the first 4 of 16 bytes.
pub(super) fn encode_address(address: Option<SocketAddr>, out: &mut Vec<u8>) {
    let (family, ip, port, scope) = match address {
        None => (0_u16, [0; 16], 0, 0),
        Some(SocketAddr::V4(v4)) => {
            let mut ip = [0; 16];
            ip[..4].copy_from_slice(&v4.ip().octets());
            (4, ip, v4.port(), 0)
        }
        Some(SocketAddr::V6(v6)) => (6, v6.ip().octets(), v6.port(), v6.scope_id()),
    };
    out.extend_from_slice(&family.to_le_bytes());
    out.extend_from_slice(&port.to_le_bytes());
    out.extend_from_slice(&scope.to_le_bytes());
    out.extend_from_slice(&ip);
}

/// Reads the [`ADDRESS`] bytes of an address, which may be none.
pub(super) fn decode_address(bytes: &[u8]) -> Option<Option<SocketAddr>> {
    let port = u16_at(bytes, 2);
    match u16_at(bytes, 0) {
        0 => Some(None),
        4 => Some(Some(SocketAddr::new(IpAddr::from(array_at::<4>(bytes, 8)), port))),
        6 => {
            let ip = Ipv6Addr::from(array_at::<16>(bytes, 8));
            Some(Some(SocketAddrV6::new(ip, port, 0, u32_at(bytes, 4)).into()))
        }
        _ => None,
    }
}

/// The id of the group that these processes make: FNV-1a of 128 bits over their nonces in the order
/// of ranks. The nonces are random, so that nothing better than even spreading is asked of it.
pub fn group_id<'n>(nonces: impl Iterator<Item = &'n [u8; 16]>) -> [u8; 16] {
    fnv(nonces.flatten().copied())
}

/// The id of the group that the ranks of `parent` with this color make in the split of this number.
pub fn child_id(parent: &[u8; 16], split: u64, color: i32) -> [u8; 16] {
    fnv(parent.iter().copied().chain(split.to_le_bytes()).chain(color.to_le_bytes()))
}

fn fnv(bytes: impl Iterator<Item = u8>) -> [u8; 16] {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = (1 << 88) + 0x13b;
    let hash = bytes.fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    hash.to_le_bytes()
}

impl Member {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.rank, self.version, self.cpus] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for id in [self.nonce, self.neighbours[0], self.neighbours[1], self.boot_id] {
            out.extend_from_slice(&id);
        }
        encode_address(self.right_address, out);
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Member> {
        if bytes.len() != MEMBER {
            return None;
        }
        let right_address = decode_address(&bytes[MEMBER - ADDRESS..])?;
        Some(Member {
            rank: u32_at(bytes, 0),
            version: u32_at(bytes, 4),
            cpus: u32_at(bytes, 8),
            nonce: array_at(bytes, 12),
            neighbours: [array_at(bytes, 28), array_at(bytes, 44)],
            boot_id: array_at(bytes, 60),
            right_address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_id_is_fnv_1a() {
        assert_eq!(u128::from_le_bytes(group_id([].iter())), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        let (a, b) = ([1; 16], [2; 16]);
        assert_ne!(group_id([a, b].iter()), group_id([b, a].iter()));
        let ids = [child_id(&a, 1, 0), child_id(&a, 1, 1), child_id(&a, 2, 0), child_id(&b, 1, 0), a, b];
        assert!((0..6).all(|i| (0..i).all(|j| ids[i] != ids[j])));
    }

    #[test]
    fn a_member_goes_both_ways() {
        for address in [None, Some("192.0.2.1:5000"), Some("[fe80::1%7]:5001"), Some("[2001:db8::1]:0")] {
            let member = Member {
                rank: 3,
                version: 2,
                nonce: [1; 16],
                neighbours: [[2; 16], [3; 16]],
                right_address: address.map(|text| text.parse().unwrap()),
                boot_id: [4; 16],
                cpus: 5,
            };
            let mut bytes = Vec::new();
            member.encode(&mut bytes);
            assert_eq!(Member::decode(&bytes), Some(member));
            assert_eq!(Member::decode(&bytes[1..]), None);
        }
    }
}
