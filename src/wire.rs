//! Every byte layout that crosses a native link, in one place and without I/O.
//!
//! Numbers of the handshake and of control frames are little-endian. A call header and the data
//! behind it are in the sender's own order, which the handshake has compared.
//!
//! | hello: offset | bytes | |
//! | --- | --- | --- |
//! | 0 | 8 | magic |
//! | 8 | 2, 2 | lowest and highest protocol version |
//! | 12 | 2 | bytes of the whole hello |
//! | 14 | 1 | link kind |
//! | 15 | 1 | byte order of data: 1 little, 2 big |
//! | 16 | 1 | answer (0 in the connector's hello) |
//! | 17 | 1 | bytes of the job id |
//! | 18 | 2, 2 | lane, number of lanes |
//! | 22 | 2 | reserved, 0 |
//! | 24 | 4, 4, 4 | ring size, own rank, the other's rank |
//! | 36 | 4 | flags |
//! | 40 | 16 | group id; 0 on the links that form the group |
//! | 56 | 16 | nonce, fresh at each create |
//! | 72 | 0 to 255 | job id |
//!
//! | call header: offset | bytes | |
//! | --- | --- | --- |
//! | 0 | 4 | magic |
//! | 4 | 1, 1, 1, 1 | collective, algorithm, dtype, op |
//! | 8 | 8 | sequence |
//! | 16 | 8 | count |
//! | 24 | 8 | digest of the counts array, 0 where there is none |
//! | 32 | 4 | root, -1 where there is none |
//! | 36 | 4 | status of the last refused call |
//! | 40 | 8 | sequence of the last refused call, 0 if there was none |
//!
//! | control frame: offset | bytes | |
//! | --- | --- | --- |
//! | 0 | 2 | bytes of the whole frame |
//! | 2 | 1 | kind: 1 record, 2 goodbye |
//! | 3 | 1 | reserved, 0 |
//! | 4 | 8 | sequence: the failed call, or the last finished one |
//! | 12 | 4, 4, 4, 4 | record: status, rank at fault, detected by, errno |
//! | 28 | rest | record: text |

use std::fmt;

use crate::dtype::{Dtype, Op};
use crate::error::Error;

/// The protocol's version: the rules of what goes where, in which order, in which bytes.
pub const VERSION: u16 = 1;
/// No hello is longer, so that a stranger can't make a rank wait for more.
pub const MAX_HELLO: usize = HELLO_FIXED + MAX_JOB_ID;
/// A job id's length is one byte.
pub const MAX_JOB_ID: usize = 255;
/// Bytes of a [`CallHeader`].
pub const CALL_HEADER: usize = 48;
/// No control frame is longer; a text is cut to fit.
pub const MAX_FRAME: usize = 2048;

const HELLO_MAGIC: [u8; 8] = *b"\x93LIBRING";
const HELLO_FIXED: usize = 72;
const CALL_MAGIC: u32 = 0x4752_4c93;
/// Kinds of control frames.
const RECORD: u8 = 1;
const GOODBYE: u8 = 2;
const RECORD_FIXED: usize = 28;
const GOODBYE_FIXED: usize = 12;

/// What a link carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LinkKind {
    /// Collectives, one of several.
    Lane = 1,
    /// Failure records and goodbyes.
    Control = 2,
    /// Messages from the connector to the acceptor.
    MessageOut = 3,
    /// Messages from the acceptor to the connector.
    MessageIn = 4,
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
        let order = if self.little_endian { 1 } else { 2 };
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
        let known = bytes.get(17).map_or(0, |job_id| usize::from(*job_id));
        let whole = if bytes.len() < HELLO_FIXED { HELLO_FIXED } else { HELLO_FIXED + known };
        whole.saturating_sub(bytes.len())
    }

    /// Reads a hello from the first bytes of a stream; None while more are needed. A wrong byte is
    /// told as soon as it is there.
    pub fn decode(bytes: &[u8]) -> Result<Option<Hello>, NotAHello> {
        let magic = bytes.len().min(HELLO_MAGIC.len());
        if bytes[..magic] != HELLO_MAGIC[..magic] {
            return Err(NotAHello);
        }
        if bytes.len() < HELLO_FIXED {
            return Ok(None);
        }
        let whole = HELLO_FIXED + usize::from(bytes[17]);
        if usize::from(u16_at(bytes, 12)) != whole {
            return Err(NotAHello);
        }
        if bytes.len() < whole {
            return Ok(None);
        }
        Ok(Some(Hello {
            versions: (u16_at(bytes, 8), u16_at(bytes, 10)),
            kind: link_kind(bytes[14]).ok_or(NotAHello)?,
            little_endian: bytes[15] == 1,
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
    [LinkKind::Lane, LinkKind::Control, LinkKind::MessageOut, LinkKind::MessageIn]
        .into_iter()
        .find(|kind| *kind as u8 == number)
}

fn answer(number: u8) -> Option<Answer> {
    [Answer::None, Answer::Accepted, Answer::Differs, Answer::Taken, Answer::OtherJob, Answer::Myself]
        .into_iter()
        .find(|answer| *answer as u8 == number)
}

/// What is called: the first field of a call that two ranks compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Every rank's array reduced, on every rank.
    AllReduce = 1,
    /// Every rank's array, on every rank.
    AllGather = 2,
    /// Nobody returns before all have called.
    Barrier = 3,
    /// A message: the sender's and the receiver's header are alike.
    Message = 16,
}

impl Kind {
    /// The function's name without its prefix.
    pub fn name(self) -> &'static str {
        match self {
            Kind::AllReduce => "all_reduce",
            Kind::AllGather => "all_gather",
            Kind::Barrier => "barrier",
            Kind::Message => "message",
        }
    }
}

/// A number that stands for "none" in the header's one-byte fields.
const NONE: u8 = 255;

/// A call that its own rank refused, which has a number but moves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// 0 if there was none.
    pub sequence: u64,
    /// Its status in ring.h.
    pub status: i32,
}

/// A call as a neighbour sees it. Two headers match when all but `refused` is equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallHeader {
    pub kind: Kind,
    /// How it is carried out; 0 where there is no choice.
    pub algorithm: u8,
    pub dtype: Option<Dtype>,
    pub op: Option<Op>,
    pub sequence: u64,
    pub count: u64,
    pub digest: u64,
    pub root: i32,
    pub refused: Refused,
}

impl CallHeader {
    /// A call without elements.
    pub fn new(kind: Kind, sequence: u64) -> CallHeader {
        CallHeader {
            kind,
            algorithm: 0,
            dtype: None,
            op: None,
            sequence,
            count: 0,
            digest: 0,
            root: -1,
            refused: Refused::default(),
        }
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; CALL_HEADER] {
        let mut out = [0; CALL_HEADER];
        out[0..4].copy_from_slice(&CALL_MAGIC.to_ne_bytes());
        out[4] = self.kind as u8;
        out[5] = self.algorithm;
        out[6] = self.dtype.map_or(NONE, Dtype::number);
        out[7] = self.op.map_or(NONE, Op::number);
        out[8..16].copy_from_slice(&self.sequence.to_ne_bytes());
        out[16..24].copy_from_slice(&self.count.to_ne_bytes());
        out[24..32].copy_from_slice(&self.digest.to_ne_bytes());
        out[32..36].copy_from_slice(&self.root.to_ne_bytes());
        out[36..40].copy_from_slice(&self.refused.status.to_ne_bytes());
        out[40..48].copy_from_slice(&self.refused.sequence.to_ne_bytes());
        out
    }

    /// Reads a header; None if the bytes are none.
    pub fn decode(bytes: &[u8; CALL_HEADER]) -> Option<CallHeader> {
        let kind = [Kind::AllReduce, Kind::AllGather, Kind::Barrier, Kind::Message]
            .into_iter()
            .find(|kind| *kind as u8 == bytes[4])?;
        let dtype = Dtype::from_number(bytes[6].into());
        let op = Op::from_number(bytes[7].into());
        let whole = u32::from_ne_bytes(array_at(bytes, 0)) == CALL_MAGIC
            && (dtype.is_some() || bytes[6] == NONE)
            && (op.is_some() || bytes[7] == NONE);
        whole.then(|| CallHeader {
            kind,
            algorithm: bytes[5],
            dtype,
            op,
            sequence: u64::from_ne_bytes(array_at(bytes, 8)),
            count: u64::from_ne_bytes(array_at(bytes, 16)),
            digest: u64::from_ne_bytes(array_at(bytes, 24)),
            root: i32::from_ne_bytes(array_at(bytes, 32)),
            refused: Refused {
                status: i32::from_ne_bytes(array_at(bytes, 36)),
                sequence: u64::from_ne_bytes(array_at(bytes, 40)),
            },
        })
    }

    /// Whether the two ranks make the same call.
    pub fn matches(&self, other: &CallHeader) -> bool {
        CallHeader { refused: other.refused, ..*self } == *other
    }
}

/// `all_reduce(float32, sum, 1000)`
impl fmt::Display for CallHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.kind.name())?;
        if let Some(dtype) = self.dtype {
            write!(f, "{}, ", dtype.name())?;
        }
        if let Some(op) = self.op {
            write!(f, "{}, ", op.name())?;
        }
        if self.kind != Kind::Barrier {
            write!(f, "{}", self.count)?;
        }
        if self.root >= 0 {
            write!(f, ", root {}", self.root)?;
        }
        f.write_str(")")
    }
}

/// What goes over a control link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The group has failed on the sender; -1 stands for a rank that isn't known.
    Record { sequence: u64, status: i32, rank: i32, detected_by: i32, os_error: i32, text: String },
    /// The sender has destroyed its group after this collective.
    Goodbye { sequence: u64 },
}

/// Bytes that are no control frame.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAFrame;

impl Frame {
    /// The record of a failure as `rank` saw it, or as it was told.
    pub fn record(error: &Error, rank: usize) -> Frame {
        let number = |rank: Option<usize>| rank.map_or(-1, |rank| rank as i32);
        Frame::Record {
            sequence: error.sequence,
            status: error.status as i32,
            rank: number(error.rank),
            detected_by: number(error.detected_by.or(Some(rank))),
            os_error: error.os_error,
            text: error.text.clone(),
        }
    }

    /// Bytes from which a frame's kind is known.
    pub const KNOWN_FROM: usize = 3;

    /// Whether the first bytes of a frame are a goodbye's; fewer than [`Frame::KNOWN_FROM`] are none.
    pub fn is_goodbye(bytes: &[u8]) -> bool {
        bytes.get(2) == Some(&GOODBYE)
    }

    /// The frame's bytes, at most [`MAX_FRAME`].
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0, 0, 0, 0];
        match self {
            Frame::Record { sequence, status, rank, detected_by, os_error, text } => {
                out[2] = RECORD;
                out.extend_from_slice(&sequence.to_le_bytes());
                for number in [status, rank, detected_by, os_error] {
                    out.extend_from_slice(&number.to_le_bytes());
                }
                out.extend_from_slice(&text.as_bytes()[..text.floor_char_boundary(MAX_FRAME - RECORD_FIXED)]);
            }
            Frame::Goodbye { sequence } => {
                out[2] = GOODBYE;
                out.extend_from_slice(&sequence.to_le_bytes());
            }
        }
        let whole = out.len() as u16;
        out[0..2].copy_from_slice(&whole.to_le_bytes());
        out
    }

    /// Reads a frame from the first bytes of a stream, and how many bytes it took; None while
    /// more are needed.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Frame, usize)>, NotAFrame> {
        if bytes.len() < GOODBYE_FIXED {
            return Ok(None);
        }
        let whole = usize::from(u16_at(bytes, 0));
        let least = match bytes[2] {
            RECORD => RECORD_FIXED,
            GOODBYE => GOODBYE_FIXED,
            _ => return Err(NotAFrame),
        };
        if whole < least || whole > MAX_FRAME {
            return Err(NotAFrame);
        }
        if bytes.len() < whole {
            return Ok(None);
        }
        let sequence = u64::from_le_bytes(array_at(bytes, 4));
        let number = |at| i32::from_le_bytes(array_at(bytes, at));
        let frame = if Frame::is_goodbye(bytes) {
            Frame::Goodbye { sequence }
        } else {
            Frame::Record {
                sequence,
                status: number(12),
                rank: number(16),
                detected_by: number(20),
                os_error: number(24),
                text: String::from_utf8_lossy(&bytes[RECORD_FIXED..whole]).into_owned(),
            }
        };
        Ok(Some((frame, whole)))
    }
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
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
    fn headers_go_both_ways_and_show_the_call() {
        let header = CallHeader {
            algorithm: 2,
            dtype: Some(Dtype::Float32),
            op: Some(Op::Sum),
            count: 1000,
            ..CallHeader::new(Kind::AllReduce, 17)
        };
        assert_eq!(CallHeader::decode(&header.encode()), Some(header));
        assert_eq!(header.to_string(), "all_reduce(float32, sum, 1000)");
        assert_eq!(CallHeader::new(Kind::Barrier, 1).to_string(), "barrier()");
        let refused = CallHeader { refused: Refused { sequence: 3, status: 1 }, ..header };
        assert!(header.matches(&refused) && CallHeader::decode(&refused.encode()) == Some(refused));
        for change in [
            CallHeader { count: 1001, ..header },
            CallHeader { sequence: 18, ..header },
            CallHeader { dtype: Some(Dtype::Int32), ..header },
            CallHeader { op: Some(Op::Max), ..header },
            CallHeader { kind: Kind::AllGather, ..header },
            CallHeader { root: 0, ..header },
            CallHeader { digest: 1, ..header },
            CallHeader { algorithm: 1, ..header },
        ] {
            assert!(!header.matches(&change));
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let text = "ä".repeat(MAX_FRAME);
        let record =
            |text| Frame::Record { sequence: 1, status: 8, rank: 2, detected_by: -1, os_error: 104, text };
        let bytes = record(text.clone()).encode();
        assert!(bytes.len() <= MAX_FRAME);
        let kept = text[..(MAX_FRAME - RECORD_FIXED) / 2 * 2].to_owned();
        assert_eq!(Frame::decode(&bytes), Ok(Some((record(kept), bytes.len()))));
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
        fn no_bytes_make_a_decoder_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = Frame::decode(&bytes);
            let _ = Hello::decode(&bytes);
            let magic = bytes.len().min(8);
            bytes[..magic].copy_from_slice(&HELLO_MAGIC[..magic]);
            let _ = Hello::decode(&bytes);
            if let Some(header) = bytes.first_chunk() {
                let _ = CallHeader::decode(header);
            }
        }

        #[test]
        fn frames_go_both_ways(sequence: u64, status: i32, rank: i32, text in ".{0,200}") {
            let record = Frame::Record { sequence, status, rank, detected_by: 3, os_error: 4, text };
            for frame in [record, Frame::Goodbye { sequence }] {
                let bytes = frame.encode();
                prop_assert_eq!(Frame::decode(&bytes[..bytes.len() - 1]), Ok(None));
                let len = bytes.len();
                prop_assert_eq!(Frame::decode(&bytes), Ok(Some((frame, len))));
            }
        }
    }
}
