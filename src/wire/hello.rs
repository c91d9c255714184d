//! The first bytes of a link: who is there, and what it is for.

use super::{array_at, u16_at, u32_at};

/// No hello is longer, so that a stranger can't make a rank wait for more.
pub const MAX_HELLO: usize = HELLO_FIXED + MAX_JOB_ID;
/// A job id's length is one byte.
pub const MAX_JOB_ID: usize = 255;

/// How every link begins, in both directions.
pub const HELLO_MAGIC: [u8; 8] = *b"\x93LIBRING";
const HELLO_FIXED: usize = 72;

/// Whether the first bytes of a link are of this protocol, and not of another program's.
pub fn begins_native(bytes: &[u8]) -> bool {
    bytes.starts_with(&HELLO_MAGIC)
}

/// Byte orders of data.
const LITTLE: u8 = 1;
const BIG: u8 = 2;

/// A hello's flag: its sender keeps sums of 16-bit floats in f32.
pub const IS_WIDE: u32 = 1;
/// A hello's flag: its sender has a shared secret.
pub const HAS_SECRET: u32 = 1 << 31;

/// What a link carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LinkKind {
    /// Collectives, one of several.
    Lane = 1,
    /// Failure records and goodbyes.
    Control = 2,
    /// Messages from the connector to the acceptor; between ranks that are no neighbours made at first use.
    MessageOut = 3,
    /// Messages from the acceptor to the connector.
    MessageIn = 4,
    /// No link: a process that found its port taken tells the occupant which rank it is.
    Rival = 5,
    /// Blocks of all_to_all, both ways between two ranks; the lower one connects.
    Pair = 6,
    /// No link of the ring: a rank comes to the rendezvous, where rank 0 listens.
    Rendezvous = 16,
}

/// What the acceptor of a link says to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Answer {
    /// The connector's hello: nothing is answered yet.
    None = 0,
    /// The link is one of the acceptor's ring.
    Accepted = 1,
    /// The two claims differ.
    Differs = 2,
    /// Another process has that rank here already.
    Taken = 3,
    /// The job id is another.
    OtherJob = 4,
    /// The connection leads to the rank that made it.
    Myself = 5,
    /// The acceptor's ring has formed already; its next run may be the connector's.
    Formed = 6,
    /// The acceptor knows no such group, or not yet.
    NotYet = 7,
}

/// What each side of a new link says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    pub versions: (u16, u16),
    pub kind: LinkKind,
    pub little_endian: bool,
    pub answer: Answer,
    pub lane: u16,
    pub lanes: u16,
    pub size: u32,
    pub from: u32,
    pub to: u32,
    pub flags: u32,
    pub group: [u8; 16],
    pub nonce: [u8; 16],
    pub job_id: Vec<u8>,
}

/// Bytes that are no hello.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAHello;

impl Hello {
    /// The hello's bytes. The job id has at most [`MAX_JOB_ID`] bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(MAX_HELLO);
        out.extend_from_slice(&HELLO_MAGIC);
        out.extend_from_slice(&self.versions.0.to_le_bytes());
        out.extend_from_slice(&self.versions.1.to_le_bytes());
        out.extend_from_slice(&((HELLO_FIXED + self.job_id.len()) as u16).to_le_bytes());
        let order = if self.little_endian { LITTLE } else { BIG };
        out.extend_from_slice(&[self.kind as u8, order, self.answer as u8, self.job_id.len() as u8]);
        for number in [self.lane, self.lanes, 0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.size, self.from, self.to, self.flags] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.group);
        out.extend_from_slice(&self.nonce);
        out.extend_from_slice(&self.job_id);
        out
    }

    /// How many bytes to read next, after these: never past the hello's end, since the peer's first
    /// call may follow at once.
    pub fn wanted(bytes: &[u8]) -> usize {
        let whole = if bytes.len() < HELLO_FIXED { HELLO_FIXED } else { Hello::len(bytes) };
        whole.saturating_sub(bytes.len())
    }

    /// Bytes of the hello that begins with these.
    pub fn len(bytes: &[u8]) -> usize {
        HELLO_FIXED + bytes.get(17).map_or(0, |job_id| usize::from(*job_id))
    }

    /// Reads a hello from the first bytes of a stream; None while more are needed. A wrong byte is
    /// told as soon as it is there.
    pub fn decode(bytes: &[u8]) -> Result<Option<Hello>, NotAHello> {
        let magic = bytes.len().min(HELLO_MAGIC.len());
        let whole = Hello::len(bytes);
        let fits = |at: usize, is_right: fn(u8) -> bool| bytes.get(at).is_none_or(|byte| is_right(*byte));
        let is_hello = bytes[..magic] == HELLO_MAGIC[..magic]
            && fits(14, |kind| link_kind(kind).is_some())
            && fits(15, |order| [LITTLE, BIG].contains(&order))
            && fits(16, |number| answer(number).is_some())
            && (bytes.len() <= 17 || usize::from(u16_at(bytes, 12)) == whole)
            && [22, 23].into_iter().all(|reserved| fits(reserved, |byte| byte == 0));
        if !is_hello {
            return Err(NotAHello);
        }
        if bytes.len() < whole {
            return Ok(None);
        }
        Ok(Some(Hello {
            versions: (u16_at(bytes, 8), u16_at(bytes, 10)),
            kind: link_kind(bytes[14]).ok_or(NotAHello)?,
            little_endian: bytes[15] == LITTLE,
            answer: answer(bytes[16]).ok_or(NotAHello)?,
            lane: u16_at(bytes, 18),
            lanes: u16_at(bytes, 20),
            size: u32_at(bytes, 24),
            from: u32_at(bytes, 28),
            to: u32_at(bytes, 32),
            flags: u32_at(bytes, 36),
            group: array_at(bytes, 40),
            nonce: array_at(bytes, 56),
            job_id: bytes[HELLO_FIXED..whole].to_vec(),
        }))
    }
}

fn link_kind(number: u8) -> Option<LinkKind> {
    use LinkKind::*;
    [Lane, Control, MessageOut, MessageIn, Rival, Pair, Rendezvous]
        .into_iter()
        .find(|kind| *kind as u8 == number)
}

fn answer(number: u8) -> Option<Answer> {
    use Answer::*;
    [None, Accepted, Differs, Taken, OtherJob, Myself, Formed, NotYet]
        .into_iter()
        .find(|answer| *answer as u8 == number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello(job_id: Vec<u8>) -> Hello {
        Hello {
            versions: (1, 3),
            kind: LinkKind::MessageOut,
            little_endian: true,
            answer: Answer::Differs,
            lane: 5,
            lanes: 7,
            size: 9,
            from: 3,
            to: 4,
            flags: 0x8000_0001,
            group: [1; 16],
            nonce: [2; 16],
            job_id,
        }
    }

    #[test]
    fn a_wrong_byte_is_told_as_soon_as_it_is_there() {
        let bytes = hello(b"job".to_vec()).encode();
        let places = [(0, 0), (7, 0), (14, 0), (14, 7), (15, 0), (15, 3), (16, 8), (17, 4), (22, 1), (23, 1)];
        for (at, wrong) in places {
            let mut bytes = bytes.clone();
            bytes[at] = wrong;
            assert_eq!(Hello::decode(&bytes[..at]), Ok(None), "before byte {at}");
            assert_eq!(Hello::decode(&bytes[..=at]), Err(NotAHello), "byte {at}");
            assert_eq!(Hello::decode(&bytes), Err(NotAHello), "byte {at}");
        }
        let big = Hello { little_endian: false, ..hello(Vec::new()) };
        assert_eq!(Hello::decode(&big.encode()), Ok(Some(big)));
    }

    proptest! {
        #[test]
        fn hellos_go_both_ways_in_pieces(job in proptest::collection::vec(any::<u8>(), 0..=MAX_JOB_ID)) {
            let hello = hello(job);
            let bytes = hello.encode();
            prop_assert!(bytes.len() <= MAX_HELLO);
            for cut in 0..bytes.len() {
                prop_assert_eq!(Hello::decode(&bytes[..cut]), Ok(None));
                let wanted = Hello::wanted(&bytes[..cut]);
                prop_assert!(wanted > 0 && cut + wanted <= bytes.len());
            }
            prop_assert_eq!(Hello::wanted(&bytes), 0);
            prop_assert_eq!(Hello::decode(&bytes), Ok(Some(hello)));
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = Hello::decode(&bytes);
            let magic = bytes.len().min(8);
            bytes[..magic].copy_from_slice(&HELLO_MAGIC[..magic]);
            let _ = Hello::decode(&bytes);
        }
    }
}
