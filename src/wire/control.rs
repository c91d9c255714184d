//! What goes over a control link.

use super::gossip::Member;
use super::meeting::Meeting;
use super::{CALL_HEADER, CallHeader, Kind, array_at, u16_at, u32_at};
use crate::dtype::Dtype;
use crate::error::{Error, Status};

/// No frame is longer; a text is cut to fit.
pub const MAX_FRAME: usize = 2048;
/// A [`Presence`] tells of so many messages at most, those that began first: one each way with 32 other ranks. Of
/// more ranks it says that there are more.
pub const MAX_MESSAGES: usize = 64;
/// Bytes of the text of [`Frame::Unreached`].
const MAX_REASON: usize = 512;

const ENVELOPE: usize = 4;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The group has failed, or a rank has given up forming it. While the ring forms TIMEOUT is the
    /// sender's connect timeout: its next run may still be waited for. On the wire -1 stands for a
    /// rank that isn't known.
    Record(Error),
    /// A rank has destroyed its group after this collective.
    Goodbye { rank: u32, sequence: u64 },
    /// Every rank is asked what it does. Rounds are counted by all ranks together.
    RollCall { round: u32 },
    /// A rank's answer.
    Present { round: u32, rank: u32, presence: Presence },
    /// While the ring forms: what a rank says of itself.
    Known(Member),
    /// While the ring forms: the rank knows all others, whose nonces make this group id.
    Confirmed { rank: u32, group: [u8; 16] },
    /// A rank could not make a link that others wait for, and why.
    Unreached(Unreached),
    /// Between rank 0 and those who come to its rendezvous.
    Meeting(Meeting),
}

/// In place of a receiver: every rank.
pub const EVERYBODY: u32 = u32::MAX;

/// A message that its sender could not send, since no link to the receiver could be made; or, to everybody, a split
/// for which the sender could not make a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    pub from: u32,
    pub to: u32,
    /// The message's number in its pair, or the split's.
    pub number: u64,
    pub os_error: i32,
    pub text: String,
}

/// What a rank does, as it answers a roll call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Presence {
    /// Number of the last collective that has ended here.
    pub last: u64,
    /// The collective that runs here, and what of it has gone over the lanes.
    pub call: Option<(CallHeader, Traffic)>,
    /// Messages that run here, in the order in which they began.
    pub messages: Vec<Message>,
    /// Of a rank that answered: more messages run there than it had room to tell of.
    pub has_more: bool,
}

/// Bytes of a call that this rank has sent and received: to and from the right, then the left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub sent: [u64; 2],
    pub received: [u64; 2],
    /// Whether it waits for more from there.
    pub awaits: [bool; 2],
}

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub peer: u32,
    /// Whether it goes to the peer.
    pub sends: bool,
    /// Whether it goes on beside what its rank does: nobody is known to be blocked in it.
    pub is_request: bool,
    pub header: CallHeader,
}

/// Bytes that are no control frame.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAFrame;

/// Kinds of frames.
const RECORD: u8 = 1;
const GOODBYE: u8 = 2;
const ROLL_CALL: u8 = 3;
const PRESENT: u8 = 4;
const KNOWN: u8 = 5;
const CONFIRMED: u8 = 6;
const UNREACHED: u8 = 7;
/// Apart from the kinds of a ring's links.
const MEETING: u8 = 0x20;

impl Frame {
    /// The record of a failure as `rank` saw it, or as it was told.
    pub fn record(error: &Error, rank: usize) -> Frame {
        Frame::Record(Error { detected_by: error.detected_by.or(Some(rank)), ..error.clone() })
    }

    /// The frame's bytes, at most [`MAX_FRAME`].
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; ENVELOPE];
        out[2] = match self {
            Frame::Record(error) => {
                let rank = |rank: Option<usize>| rank.map_or(-1, |rank| rank as i32);
                out.extend_from_slice(&error.sequence.to_le_bytes());
                for number in [error.status as i32, rank(error.rank), rank(error.detected_by), error.os_error]
                {
                    out.extend_from_slice(&number.to_le_bytes());
                }
                let kept = error.text.floor_char_boundary(MAX_FRAME - out.len());
                out.extend_from_slice(&error.text.as_bytes()[..kept]);
                RECORD
            }
            Frame::Goodbye { rank, sequence } => {
                out.extend_from_slice(&rank.to_le_bytes());
                out.extend_from_slice(&sequence.to_le_bytes());
                GOODBYE
            }
            Frame::RollCall { round } => {
                out.extend_from_slice(&round.to_le_bytes());
                ROLL_CALL
            }
            Frame::Present { round, rank, presence } => {
                out.extend_from_slice(&round.to_le_bytes());
                out.extend_from_slice(&rank.to_le_bytes());
                presence.encode(&mut out);
                PRESENT
            }
            Frame::Known(member) => {
                member.encode(&mut out);
                KNOWN
            }
            Frame::Confirmed { rank, group } => {
                out.extend_from_slice(&rank.to_le_bytes());
                out.extend_from_slice(group);
                CONFIRMED
            }
            Frame::Unreached(Unreached { from, to, number, os_error, text }) => {
                out.extend_from_slice(&number.to_le_bytes());
                out.extend_from_slice(&from.to_le_bytes());
                out.extend_from_slice(&to.to_le_bytes());
                out.extend_from_slice(&os_error.to_le_bytes());
                out.extend_from_slice(&text.as_bytes()[..text.floor_char_boundary(MAX_REASON)]);
                UNREACHED
            }
            Frame::Meeting(word) => {
                word.encode(&mut out);
                MEETING
            }
        };
        let whole = out.len() as u16;
        out[0..2].copy_from_slice(&whole.to_le_bytes());
        out
    }

    /// Reads a frame from the first bytes of a stream, and how many bytes it took; None while
    /// more are needed. A wrong length, kind or reserved byte is told as soon as it is there.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Frame, usize)>, NotAFrame> {
        if bytes.len() < 2 {
            return Ok(None);
        }
        let whole = usize::from(u16_at(bytes, 0));
        let is_frame = (ENVELOPE..=MAX_FRAME).contains(&whole)
            && bytes.get(2).is_none_or(|kind| (RECORD..=UNREACHED).contains(kind) || *kind == MEETING)
            && bytes.get(3).is_none_or(|reserved| *reserved == 0);
        if !is_frame {
            return Err(NotAFrame);
        }
        if bytes.len() < whole {
            return Ok(None);
        }
        let frame = Frame::body(bytes[2], &bytes[ENVELOPE..whole]).ok_or(NotAFrame)?;
        Ok(Some((frame, whole)))
    }

    fn body(kind: u8, bytes: &[u8]) -> Option<Frame> {
        let has = |len| bytes.len() == len;
        match kind {
            RECORD if bytes.len() >= 24 => {
                let number = |at| i32::from_le_bytes(array_at(bytes, at));
                let status = Status::from_number(number(8));
                let text = std::str::from_utf8(&bytes[24..]).ok()?;
                Some(Frame::Record(Error {
                    rank: usize::try_from(number(12)).ok(),
                    detected_by: usize::try_from(number(16)).ok(),
                    os_error: number(20),
                    sequence: u64_at(bytes, 0),
                    ..Error::new(status.unwrap_or(Status::Internal), text)
                }))
            }
            GOODBYE if has(12) => Some(Frame::Goodbye { rank: u32_at(bytes, 0), sequence: u64_at(bytes, 4) }),
            ROLL_CALL if has(4) => Some(Frame::RollCall { round: u32_at(bytes, 0) }),
            PRESENT if bytes.len() >= 8 => {
                let presence = Presence::decode(&bytes[8..])?;
                Some(Frame::Present { round: u32_at(bytes, 0), rank: u32_at(bytes, 4), presence })
            }
            KNOWN => Member::decode(bytes).map(Frame::Known),
            CONFIRMED if has(20) => {
                Some(Frame::Confirmed { rank: u32_at(bytes, 0), group: array_at(bytes, 4) })
            }
            UNREACHED if (UNREACHED_FIXED..=UNREACHED_FIXED + MAX_REASON).contains(&bytes.len()) => {
                Some(Frame::Unreached(Unreached {
                    number: u64_at(bytes, 0),
                    from: u32_at(bytes, 8),
                    to: u32_at(bytes, 12),
                    os_error: u32_at(bytes, 16) as i32,
                    text: std::str::from_utf8(&bytes[UNREACHED_FIXED..]).ok()?.to_owned(),
                }))
            }
            MEETING => Meeting::decode(bytes).map(Frame::Meeting),
            _ => None,
        }
    }
}

/// Bytes before the text.
const UNREACHED_FIXED: usize = 20;
/// Bytes before the call: the last number, whether there is a call and more messages than fit, how many
/// messages are told, what the call awaits.
const PRESENCE_FIXED: usize = 12;
const HAS_CALL: u8 = 1;
const HAS_MORE: u8 = 2;
const CALL: usize = CALL_HEADER + 32;
/// The peer, whether it goes there, the type (255: none), whether it is a request, the number, the count.
const MESSAGE: usize = 24;
const NO_DTYPE: u8 = 255;

impl Presence {
    fn encode(&self, out: &mut Vec<u8>) {
        let messages = &self.messages[..self.messages.len().min(MAX_MESSAGES)];
        out.extend_from_slice(&self.last.to_le_bytes());
        let awaits = self.call.map_or([false; 2], |(_, traffic)| traffic.awaits).map(u8::from);
        let has_more = self.has_more || messages.len() < self.messages.len();
        let flags = HAS_CALL * u8::from(self.call.is_some()) + HAS_MORE * u8::from(has_more);
        out.extend_from_slice(&[flags, messages.len() as u8, awaits[0], awaits[1]]);
        if let Some((header, traffic)) = &self.call {
            out.extend_from_slice(&header.encode());
            for bytes in traffic.sent.iter().chain(&traffic.received) {
                out.extend_from_slice(&bytes.to_le_bytes());
            }
        }
        messages.iter().for_each(|message| message.encode(out));
    }

    fn decode(bytes: &[u8]) -> Option<Presence> {
        let fits = bytes.len() >= PRESENCE_FIXED
            && bytes[8] <= HAS_CALL + HAS_MORE
            && usize::from(bytes[9]) <= MAX_MESSAGES;
        if !fits {
            return None;
        }
        let (has_call, messages) = (usize::from(bytes[8] & HAS_CALL), usize::from(bytes[9]));
        if bytes.len() != PRESENCE_FIXED + has_call * CALL + messages * MESSAGE {
            return None;
        }
        let call = match has_call {
            0 => None,
            _ => {
                let at = PRESENCE_FIXED + CALL_HEADER;
                let numbers = |at| [u64_at(bytes, at), u64_at(bytes, at + 8)];
                let awaits = [bytes[10] != 0, bytes[11] != 0];
                let traffic = Traffic { sent: numbers(at), received: numbers(at + 16), awaits };
                Some((CallHeader::decode(&array_at(bytes, PRESENCE_FIXED))?, traffic))
            }
        };
        let messages = bytes[PRESENCE_FIXED + has_call * CALL..].chunks_exact(MESSAGE).map(Message::decode);
        Some(Presence {
            last: u64_at(bytes, 0),
            call,
            messages: messages.collect::<Option<_>>()?,
            has_more: bytes[8] & HAS_MORE != 0,
        })
    }
}

impl Message {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.peer.to_le_bytes());
        let dtype = self.header.dtype.map_or(NO_DTYPE, Dtype::number);
        out.extend_from_slice(&[u8::from(self.sends), dtype, u8::from(self.is_request), 0]);
        out.extend_from_slice(&self.header.sequence.to_le_bytes());
        out.extend_from_slice(&self.header.count.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Message> {
        let dtype = Dtype::from_number(bytes[5].into());
        if dtype.is_none() && bytes[5] != NO_DTYPE {
            return None;
        }
        let header = CallHeader::new(Kind::Message, u64_at(bytes, 8));
        let header = CallHeader { dtype, count: u64_at(bytes, 16), ..header };
        let (sends, is_request) = (bytes[4] != 0, bytes[6] != 0);
        Some(Message { peer: u32_at(bytes, 0), sends, is_request, header })
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;
    use proptest::prelude::*;

    fn record(text: String) -> Frame {
        Frame::Record(Error { sequence: 1, os_error: 104, ..Error::new(Status::PeerLost, text).at_rank(2) })
    }

    fn unreached(text: String) -> Unreached {
        Unreached { from: 0, to: 2, number: 3, os_error: 111, text }
    }

    fn presence(messages: usize, in_call: bool) -> Presence {
        let header = |kind, sequence| CallHeader { count: 5, ..CallHeader::new(kind, sequence) };
        let message = |i| {
            let dtype = Dtype::ALL.get(i).copied();
            let header = CallHeader { dtype, ..header(Kind::Message, 7 + i as u64) };
            Message { peer: i as u32, sends: i % 2 == 0, is_request: i % 3 == 1, header }
        };
        let traffic = Traffic { sent: [1, 2], received: [3, u64::MAX], awaits: [false, true] };
        Presence {
            last: 16,
            call: in_call.then(|| (header(Kind::AllReduce, 17), traffic)),
            messages: (0..messages).map(message).collect(),
            has_more: false,
        }
    }

    fn frames() -> Vec<Frame> {
        let mut frames = vec![
            record("rank 2 has gone".into()),
            Frame::Goodbye { rank: 3, sequence: 17 },
            Frame::RollCall { round: 9 },
            Frame::Known(Member::default()),
            Frame::Confirmed { rank: 1, group: [7; 16] },
            Frame::Unreached(unreached("rank 0 can't reach rank 2".into())),
        ];
        for (messages, in_call) in [(0, false), (0, true), (MAX_MESSAGES, true), (1, false)] {
            frames.push(Frame::Present { round: 9, rank: 4, presence: presence(messages, in_call) });
        }
        frames
    }

    #[test]
    fn frames_go_both_ways_in_pieces() {
        for frame in frames() {
            let mut bytes = frame.encode();
            for cut in 0..bytes.len() {
                assert_eq!(Frame::decode(&bytes[..cut]), Ok(None));
            }
            let len = bytes.len();
            bytes.push(1);
            assert_eq!(Frame::decode(&bytes), Ok(Some((frame, len))));
        }
    }

    #[test]
    fn a_wrong_envelope_is_told_as_soon_as_it_is_there() {
        let bytes = Frame::RollCall { round: 9 }.encode();
        for (at, wrong) in [(1, 0xff), (2, 0), (2, UNREACHED + 1), (3, 1)] {
            let mut bytes = bytes.clone();
            bytes[at] = wrong;
            assert_eq!(Frame::decode(&bytes[..at]), Ok(None), "before byte {at}");
            assert_eq!(Frame::decode(&bytes[..=at]), Err(NotAFrame), "byte {at}");
            assert_eq!(Frame::decode(&bytes), Err(NotAFrame), "byte {at}");
        }
        assert_eq!(Frame::decode(&[3, 0]), Err(NotAFrame));
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let text = "ä".repeat(MAX_FRAME);
        let told = Frame::Unreached(unreached(text.clone())).encode();
        let cut = Frame::Unreached(unreached(text[..MAX_REASON].to_owned()));
        assert_eq!(Frame::decode(&told), Ok(Some((cut, told.len()))));
        let bytes = record(text.clone()).encode();
        assert!(bytes.len() <= MAX_FRAME);
        let kept = text[..(MAX_FRAME - ENVELOPE - 24) / 2 * 2].to_owned();
        assert_eq!(Frame::decode(&bytes), Ok(Some((record(kept), bytes.len()))));
    }

    #[test]
    fn a_rank_with_more_messages_than_fit_says_so() {
        let many = presence(MAX_MESSAGES + 1, true);
        let bytes = Frame::Present { round: 9, rank: 4, presence: many.clone() }.encode();
        assert!(bytes.len() <= MAX_FRAME, "{}", bytes.len());
        let Ok(Some((Frame::Present { presence, .. }, _))) = Frame::decode(&bytes) else { panic!() };
        assert!(presence.has_more);
        assert_eq!(presence.messages, many.messages[..MAX_MESSAGES]);
        // Who passes it on doesn't lose that.
        let bytes = Frame::Present { round: 9, rank: 4, presence: presence.clone() }.encode();
        assert_eq!(Frame::decode(&bytes).unwrap().unwrap().0, Frame::Present { round: 9, rank: 4, presence });
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = Frame::decode(&bytes);
            if bytes.len() >= ENVELOPE {
                let whole = bytes.len() as u16;
                bytes[0..2].copy_from_slice(&whole.to_le_bytes());
                bytes[2] = if bytes[2] == MEETING { MEETING } else { bytes[2] % UNREACHED + 1 };
                bytes[3] = 0;
                let _ = Frame::decode(&bytes);
            }
        }

        #[test]
        fn a_changed_byte_makes_no_decoder_panic(which in 0..10_usize, at in 0..200_usize, byte: u8) {
            let mut bytes = frames()[which].encode();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = Frame::decode(&bytes);
        }
    }
}
