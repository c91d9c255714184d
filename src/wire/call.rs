//! A call as its header tells it to the neighbours.

use std::fmt;

use super::array_at;
use crate::dtype::{Dtype, Op};

/// Bytes of a [`CallHeader`].
pub const CALL_HEADER: usize = 48;
const CALL_MAGIC: u32 = 0x4752_4c93;

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(mut bytes: [u8; CALL_HEADER]) {
            let _ = CallHeader::decode(&bytes);
            bytes[0..4].copy_from_slice(&CALL_MAGIC.to_ne_bytes());
            if let Some(header) = CallHeader::decode(&bytes) {
                prop_assert_eq!(header.encode(), bytes);
            }
        }
    }
}
