//! What two ranks claim of their ring, and where that differs.

use crate::bootstrap::config::Config;
use crate::bootstrap::handshake::{Acceptor, Connector};
use crate::bootstrap::secret::Secret;
use crate::error::{Error, Result, Status, os_words};
use crate::sys;
use crate::wire::{Answer, HAS_SECRET, Hello, IS_WIDE, LinkKind, NONCE, VERSION};

/// Names one of the links of an edge: its kind and its lane.
pub type LinkName = (LinkKind, u16);

/// This rank's view of the ring, and of one of its edges.
#[derive(Clone, Debug)]
pub struct Claims {
    rank: usize,
    size: usize,
    lanes: usize,
    wide: bool,
    job_id: Vec<u8>,
    /// Zeroes while the group of processes forms.
    group: [u8; 16],
    pub nonce: [u8; 16],
    secret: Option<Secret>,
}

impl Claims {
    pub fn new(config: &Config, nonce: [u8; 16]) -> Claims {
        Claims {
            rank: config.rank,
            size: config.entries.len(),
            lanes: config.entries[config.rank].len() * config.connections,
            wide: config.wide,
            job_id: config.job_id.clone(),
            group: [0; 16],
            nonce,
            secret: config.secret.clone(),
        }
    }

    /// The same process in a group that stands.
    pub fn of_group(&self, group: [u8; 16], rank: usize, size: usize) -> Claims {
        Claims { rank, size, group, ..self.clone() }
    }

    /// The group's id.
    pub fn group(&self) -> [u8; 16] {
        self.group
    }

    /// Whether a hello's sender may be a rank of this group that opens such a link to this one.
    pub fn may_open(&self, hello: &Hello) -> bool {
        let left = (self.rank + self.size - 1) % self.size;
        let from = hello.from as usize;
        let is_known = from < self.size && from != self.rank;
        is_known
            && match hello.kind {
                LinkKind::Lane => from == left && usize::from(hello.lane) < self.lanes,
                LinkKind::Control | LinkKind::MessageIn => from == left && hello.lane == 0,
                LinkKind::MessageOut => hello.lane == 0,
                LinkKind::Pair => from < self.rank && hello.lane == 0,
                LinkKind::Rival | LinkKind::Rendezvous => false,
            }
    }

    /// The links of an edge, which its left rank opens: control first, since it brings out every
    /// difference before the others are made.
    pub fn links(&self) -> impl Iterator<Item = LinkName> + use<> {
        let lanes = (0..self.lanes as u16).map(|lane| (LinkKind::Lane, lane));
        [(LinkKind::Control, 0), (LinkKind::MessageOut, 0), (LinkKind::MessageIn, 0)].into_iter().chain(lanes)
    }

    /// This rank's hello to `peer`.
    pub fn hello(&self, peer: usize, (kind, lane): LinkName, answer: Answer) -> Hello {
        Hello {
            versions: (VERSION, VERSION),
            kind,
            little_endian: cfg!(target_endian = "little"),
            answer,
            lane,
            lanes: self.lanes as u16,
            size: self.size as u32,
            from: self.rank as u32,
            to: peer as u32,
            flags: self.flags(),
            group: self.group,
            nonce: self.nonce,
            job_id: self.job_id.clone(),
        }
    }

    fn flags(&self) -> u32 {
        let secret = if self.secret.is_some() { HAS_SECRET } else { 0 };
        secret | if self.wide { IS_WIDE } else { 0 }
    }

    /// The connector's side of a handshake for this link to `peer`.
    pub fn connector(&self, peer: usize, link: LinkName) -> Result<Connector> {
        let hello = self.hello(peer, link, Answer::None);
        Ok(Connector::new(self.secret.as_ref(), &hello, self.fresh()?))
    }

    /// The acceptor's side of a handshake with whoever has connected.
    pub fn acceptor(&self) -> Result<Acceptor> {
        Ok(Acceptor::new(self.secret.as_ref(), self.fresh()?))
    }

    /// A nonce for one connection: what was said on another proves nothing on it.
    fn fresh(&self) -> Result<[u8; NONCE]> {
        if self.secret.is_none() {
            return Ok([0; NONCE]);
        }
        sys::random().map_err(|error| {
            let text = format!("drawing random bytes: {}", os_words(&error));
            Error::new(Status::System, text).with_os(&error)
        })
    }

    /// This rank's number.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Whether processes of another job can be told from this one's.
    pub fn has_job_id(&self) -> bool {
        !self.job_id.is_empty()
    }

    pub fn same_job(&self, theirs: &Hello) -> bool {
        self.job_id == theirs.job_id
    }

    /// A job id as texts show it.
    pub fn job_text(&self, job_id: &[u8]) -> String {
        format!("job id \"{}\"", job_id.escape_ascii())
    }

    pub fn own_job(&self) -> String {
        self.job_text(&self.job_id)
    }

    /// Where the peer's claims differ from this rank's, with both; None if nowhere. The job id is
    /// compared apart, since another job's rank is a stranger and no broken peer.
    pub fn differences(&self, peer: usize, theirs: &Hello) -> Option<String> {
        let ours = self.hello(peer, (theirs.kind, theirs.lane), Answer::None);
        let mut found = Vec::new();
        let mut compare = |what: &str, there: String, here: String| {
            if there != here {
                found.push(format!("{what} is {there} there, {here} here"));
            }
        };
        if theirs.versions.0 > VERSION || theirs.versions.1 < VERSION {
            let there = format!("{} to {}", theirs.versions.0, theirs.versions.1);
            compare("the protocol version", there, VERSION.to_string());
        }
        compare("the ring's size", theirs.size.to_string(), ours.size.to_string());
        compare("the peer's rank", theirs.from.to_string(), ours.to.to_string());
        compare("this rank's number", theirs.to.to_string(), ours.from.to_string());
        compare(
            "the number of connections (RING_CONNECTIONS times addresses)",
            theirs.lanes.to_string(),
            ours.lanes.to_string(),
        );
        compare("the byte order", order(theirs.little_endian), order(ours.little_endian));
        let wide = |hello: &Hello| if hello.flags & IS_WIDE != 0 { "on" } else { "off" }.to_owned();
        compare("wide accumulation", wide(theirs), wide(&ours));
        let others = |hello: &Hello| format!("{:#x}", hello.flags & !IS_WIDE);
        compare("the set of other flags", others(theirs), others(&ours));
        compare("the group", hex(&theirs.group), hex(&ours.group));
        if theirs.lane >= ours.lanes {
            compare("a lane", theirs.lane.to_string(), format!("below {}", ours.lanes));
        }
        (!found.is_empty()).then(|| found.join("; "))
    }

    /// Where another process that meets this rank on its own port is no second self of it.
    pub fn rival_differences(&self, theirs: &Hello) -> Option<String> {
        let mut theirs = theirs.clone();
        // Said of the link to a neighbour, and of no weight here.
        theirs.to = self.rank as u32;
        (theirs.lane, theirs.lanes) = (0, self.lanes as u16);
        self.differences(self.rank, &theirs)
    }
}

fn order(little_endian: bool) -> String {
    if little_endian { "little-endian" } else { "big-endian" }.to_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
impl Claims {
    /// Of a rank of four, for tests.
    pub fn example(rank: usize) -> Claims {
        Claims {
            rank,
            size: 4,
            lanes: 3,
            wide: false,
            job_id: b"a".to_vec(),
            group: [0; 16],
            nonce: [rank as u8; 16],
            secret: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(rank: usize) -> Claims {
        Claims::example(rank)
    }

    #[test]
    fn every_field_is_compared() {
        let good = claims(2).hello(1, (LinkKind::Lane, 2), Answer::None);
        assert_eq!(claims(1).differences(2, &good), None);
        type Change = fn(&mut Hello);
        let changes: [(&str, Change); 10] = [
            ("version is 2 to 3 there, 1 here", |h| h.versions = (2, 3)),
            ("size is 5 there, 4 here", |h| h.size = 5),
            ("peer's rank is 3 there, 2 here", |h| h.from = 3),
            ("number is 0 there, 1 here", |h| h.to = 0),
            ("addresses) is 1 there, 3 here", |h| h.lanes = 1),
            ("big-endian there", |h| h.little_endian = !h.little_endian),
            ("wide accumulation is on there, off here", |h| h.flags |= IS_WIDE),
            ("other flags is 0x2 there, 0x0 here", |h| h.flags = 2),
            ("the group is 01", |h| h.group = [1; 16]),
            ("a lane is 3 there, below 3 here", |h| h.lane = 3),
        ];
        for (text, change) in changes {
            let mut hello = good.clone();
            change(&mut hello);
            let found = claims(1).differences(2, &hello).unwrap_or_default();
            assert!(found.contains(text), "{found} lacks {text}");
        }
        assert!(claims(1).same_job(&good));
        let wide = |rank| Claims { wide: true, ..claims(rank) };
        assert_eq!(wide(1).differences(2, &wide(2).hello(1, (LinkKind::Lane, 2), Answer::None)), None);
        let text = wide(1).differences(2, &good);
        assert_eq!(text.as_deref(), Some("wide accumulation is off there, on here"));
    }

    #[test]
    fn a_rival_is_the_same_rank_of_the_same_ring() {
        let rival = claims(1).hello(1, (LinkKind::Rival, 0), Answer::None);
        assert_eq!(claims(1).rival_differences(&rival), None);
        let lanes = Hello { lanes: 1, ..rival.clone() };
        assert_eq!(claims(1).rival_differences(&lanes), None);
        assert!(
            claims(2).rival_differences(&rival).is_some_and(|text| text.contains("rank is 1 there, 2 here"))
        );
        let larger = Hello { size: 5, ..rival };
        assert!(claims(1).rival_differences(&larger).is_some_and(|text| text.contains("5 there, 4 here")));
    }

    #[test]
    fn an_edge_has_each_link_once() {
        let links: Vec<_> = claims(0).links().collect();
        assert_eq!(links.len(), 6);
        assert_eq!(links[0].0, LinkKind::Control);
    }
}
