//! What rank 0 and those who come to its rendezvous tell each other, until every rank knows where the others
//! listen.
//!
//! | | from | says | |
//! | --- | --- | --- | --- |
//! | 1 | rank 0 | host | whether it listens at more addresses than this one |
//! | 2 | guest | listening | the port where it listens itself |
//! | 3 | rank 0 | absent | which ranks have not come, each time that this has changed |
//! | 4 | rank 0 | places | where each rank is, once all have come |

use std::net::{IpAddr, SocketAddr};

use super::gossip::{ADDRESS, decode_address, encode_address};
use super::{array_at, u16_at, u32_at};

/// Absent ranks that are named at most: more than anybody reads.
pub const MAX_ABSENT: usize = 64;
/// Places of one message at most, as many as a frame has room for.
pub const MAX_PLACES: usize = 80;

const HOST: u8 = 1;
const LISTENING: u8 = 2;
const ABSENT: u8 = 3;
const PLACES: u8 = 4;

/// A word of a meeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meeting {
    Host {
        /// Whether it can be reached at more than one address, by other hosts too.
        is_everywhere: bool,
    },
    Listening {
        port: u16,
    },
    Absent {
        /// How many ranks have not come.
        count: u32,
        /// The first [`MAX_ABSENT`] of them.
        ranks: Vec<u32>,
    },
    Places {
        /// The rank that the first place is of.
        first: u32,
        places: Vec<Place>,
    },
}

/// Where a rank listens, for the one who is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On rank 0's host, at the address by which the one who is told reached it, at this port.
    BesideHost(u16),
    At(SocketAddr),
}

impl Meeting {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Meeting::Host { is_everywhere } => out.extend_from_slice(&[HOST, u8::from(*is_everywhere)]),
            Meeting::Listening { port } => {
                out.push(LISTENING);
                out.extend_from_slice(&port.to_le_bytes());
            }
            Meeting::Absent { count, ranks } => {
                out.push(ABSENT);
                out.extend_from_slice(&count.to_le_bytes());
                ranks.iter().take(MAX_ABSENT).for_each(|rank| out.extend_from_slice(&rank.to_le_bytes()));
            }
            Meeting::Places { first, places } => {
                out.push(PLACES);
                out.extend_from_slice(&first.to_le_bytes());
                for place in places.iter().take(MAX_PLACES) {
                    match place {
                        // No address has this one.
                        Place::BesideHost(port) => {
                            encode_address(Some(SocketAddr::new(UNSPECIFIED, *port)), out);
                        }
                        Place::At(address) => encode_address(Some(*address), out),
                    }
                }
            }
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Meeting> {
        let (kind, body) = bytes.split_first()?;
        match *kind {
            HOST if body.len() == 1 && body[0] <= 1 => Some(Meeting::Host { is_everywhere: body[0] == 1 }),
            LISTENING if body.len() == 2 => Some(Meeting::Listening { port: u16_at(body, 0) }),
            ABSENT if body.len() >= 4 => {
                let (count, ranks) = body.split_at(4);
                let fits = ranks.len().is_multiple_of(4) && ranks.len() <= 4 * MAX_ABSENT;
                let ranks = ranks.chunks_exact(4).map(|rank| u32::from_le_bytes(array_at(rank, 0)));
                fits.then(|| Meeting::Absent { count: u32_at(count, 0), ranks: ranks.collect() })
            }
            PLACES if body.len() >= 4 => {
                let (first, places) = body.split_at(4);
                let fits = places.len().is_multiple_of(ADDRESS) && places.len() <= ADDRESS * MAX_PLACES;
                let place = |bytes: &[u8]| match decode_address(bytes)?? {
                    beside if beside.ip() == UNSPECIFIED => Some(Place::BesideHost(beside.port())),
                    address => Some(Place::At(address)),
                };
                let places = places.chunks_exact(ADDRESS).map(place).collect::<Option<_>>()?;
                fits.then_some(Meeting::Places { first: u32_at(first, 0), places })
            }
            _ => None,
        }
    }
}

const UNSPECIFIED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Frame, MAX_FRAME};

    fn words() -> Vec<Meeting> {
        let at = |text: &str| Place::At(text.parse().unwrap());
        let some = vec![at("192.0.2.1:5000"), Place::BesideHost(7), at("[fe80::1%7]:5001"), at("[::]:1")];
        vec![
            Meeting::Host { is_everywhere: true },
            Meeting::Host { is_everywhere: false },
            Meeting::Listening { port: 40000 },
            Meeting::Absent { count: 0, ranks: Vec::new() },
            Meeting::Absent { count: 100_000, ranks: (7..7 + MAX_ABSENT as u32).collect() },
            Meeting::Places { first: 3, places: some },
            Meeting::Places { first: 80, places: vec![Place::BesideHost(7); MAX_PLACES] },
        ]
    }

    #[test]
    fn words_go_both_ways_and_no_other_length_does() {
        for word in words() {
            let frame = Frame::Meeting(word.clone());
            let bytes = frame.encode();
            assert!(bytes.len() <= MAX_FRAME);
            assert_eq!(Frame::decode(&bytes), Ok(Some((frame, bytes.len()))));
            let mut body = Vec::new();
            word.encode(&mut body);
            body.push(0);
            assert_eq!(Meeting::decode(&body), None, "{word:?}");
        }
        for wrong in [&[][..], &[0], &[5, 0], &[HOST, 2], &[PLACES, 0, 0, 0]] {
            assert_eq!(Meeting::decode(wrong), None);
        }
    }
}
