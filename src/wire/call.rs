//! A call as its header tells it to the neighbours.

use std::fmt;

use super::array_at;
use crate::dtype::{Dtype, Op};

/// What stands for an array of counts in a header: FNV-1a of 64 bits over the counts.
pub fn digest(counts: impl IntoIterator<Item = usize>) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x100_0000_01b3;
    let bytes = counts.into_iter().flat_map(|count| (count as u64).to_le_bytes());
    bytes.fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// Bytes of a [`CallHeader`].
pub const CALL_HEADER: usize = 48;
const CALL_MAGIC: u32 = 0x4752_4c93;

/// Kinds of calls: number on the wire, name and meaning in one table.
macro_rules! kinds {
    ($($(#[$meaning:meta])* $variant:ident = $number:literal, $name:literal;)*) => {
        /// What is called: the first field of a call that two ranks compare.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Kind { $($(#[$meaning])* $variant = $number,)* }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Kind] = &[$(Kind::$variant,)*];

            fn from_number(number: u8) -> Option<Kind> {
                match number { $($number => Some(Kind::$variant),)* _ => None }
            }

            /// The function's name without its prefix.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$variant => $name,)* }
            }
        }
    };
}

kinds! {
    /// Every rank's array reduced, on every rank.
    AllReduce = 1, "all_reduce";
    /// Every rank's array, on every rank.
    AllGather = 2, "all_gather";
    /// Nobody returns before all have called.
    Barrier = 3, "barrier";
    /// Every rank's array reduced, a part of the result on each rank.
    ReduceScatter = 4, "reduce_scatter";
    /// The root's array, on every rank.
    Broadcast = 5, "broadcast";
    /// Every rank's array reduced, on the root.
    Reduce = 6, "reduce";
    /// Every rank's array, on the root.
    Gather = 7, "gather";
    /// Each rank's part of the root's array.
    Scatter = 8, "scatter";
    /// A block from every rank for every rank.
    AllToAll = 9, "all_to_all";
    /// Likewise with parts of different lengths.
    AllGatherV = 10, "all_gather_v";
    /// Likewise with parts of different lengths.
    ReduceScatterV = 11, "reduce_scatter_v";
    /// Likewise with blocks of different lengths.
    AllToAllV = 12, "all_to_all_v";
    /// Reduced by a function of the host program's.
    AllReduceCustom = 13, "all_reduce_custom";
    /// Reduced by a function of the host program's.
    ReduceScatterVCustom = 14, "reduce_scatter_v_custom";
    /// Ranks form groups of their own.
    Split = 15, "split";
    /// A message: the sender's and the receiver's header are alike.
    Message = 16, "message";
}

impl Kind {
    /// Whether elements are the host program's, so that their bytes stand for a dtype.
    pub fn is_custom(self) -> bool {
        matches!(self, Kind::AllReduceCustom | Kind::ReduceScatterVCustom)
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
    /// See [`digest`]; 0 where there is no array of counts. Two ranks of an all_to_all_v compare what goes one way
    /// (`count`) and what comes back (this).
    pub digest: u64,
    pub root: i32,
    /// Bytes of an element of the host program's own; 0 where there is a dtype or nothing.
    pub element: u32,
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
            element: 0,
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
        let root = if self.kind.is_custom() { self.element } else { self.root as u32 };
        out[32..36].copy_from_slice(&root.to_ne_bytes());
        out[36..40].copy_from_slice(&self.refused.status.to_ne_bytes());
        out[40..48].copy_from_slice(&self.refused.sequence.to_ne_bytes());
        out
    }

    /// Reads a header; None if the bytes are none.
    pub fn decode(bytes: &[u8; CALL_HEADER]) -> Option<CallHeader> {
        let kind = Kind::from_number(bytes[4])?;
        let root = u32::from_ne_bytes(array_at(bytes, 32));
        let (root, element) = if kind.is_custom() { (-1, root) } else { (root as i32, 0) };
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
            root,
            element,
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
        if self.kind.is_custom() {
            write!(f, "elements of {} bytes, ", self.element)?;
        }
        match self.kind {
            Kind::Barrier | Kind::Split => {}
            Kind::AllToAllV => write!(f, "a block of {} for one of {}", self.count, self.digest)?,
            _ => write!(f, "{}", self.count)?,
        }
        if self.digest != 0 && self.kind != Kind::AllToAllV {
            write!(f, ", counts #{:08x}", (self.digest ^ (self.digest >> 32)) as u32)?;
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
        let custom = CallHeader { element: 24, count: 5, ..CallHeader::new(Kind::AllReduceCustom, 2) };
        assert_eq!(CallHeader::decode(&custom.encode()), Some(custom));
        assert_eq!(custom.to_string(), "all_reduce_custom(elements of 24 bytes, 5)");
        let counts =
            CallHeader { digest: digest([3, 0, 5]), count: 8, ..CallHeader::new(Kind::AllGatherV, 3) };
        assert_ne!(counts.digest, digest([3, 5, 0]));
        assert_eq!(CallHeader::decode(&counts.encode()), Some(counts));
        assert!(counts.to_string().starts_with("all_gather_v(8, counts #"), "{counts}");
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
            CallHeader { element: 1, ..header },
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
