//! Collectives as pure data: what each rank sends, receives, reduces and copies, in which order.
//!
//! A [`Plan`] is made of passes. A pass is one direction of the ring on one lane: the spans that
//! this rank sends on one link and those that it receives on the other, as two byte streams. What
//! has been received and reduced may be sent on at once: a rank's send stream may be as far as its
//! receive stream plus [`Pass::ahead`]. No socket and no arithmetic here.

mod all_gather;
mod flood;
mod ring;
#[cfg(test)]
mod simulate;

use std::ops::Range;

/// Where a span lies: the caller's input or output, or the group's scratch memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// The input; never written, except where in place it is the output.
    Send,
    /// The output.
    Recv,
    /// Memory of the group, for what has no place in the output.
    Scratch,
}

/// `len` elements from element `start` of a buffer on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub buffer: Buffer,
    pub start: usize,
    pub len: usize,
}

/// The direction in which a pass goes round the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Received from the left neighbour (rank - 1), sent to the right one (rank + 1).
    Right,
    /// Received from the right neighbour, sent to the left one.
    Left,
}

/// What happens to a received span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// It is stored.
    Copy,
    /// `own op received` is stored. `own` has the span's length and is the same memory or apart.
    Reduce {
        own: Span,
        /// The chain ends here: a mean is divided now.
        last: bool,
    },
}

/// A span to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub to: Span,
    pub take: Take,
}

/// A local reduction after all passes have ended: `to = own op received`; `to` and `own` are the
/// same memory or apart, `received` is apart from both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    pub to: Span,
    pub own: Span,
    pub received: Span,
    /// The chain ends here: a mean is divided now.
    pub last: bool,
}

/// One direction of the ring on one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    pub flow: Flow,
    pub lane: usize,
    /// Elements that may be sent before any has been received; each further one needs one
    /// received (and reduced) element more.
    pub ahead: usize,
    /// This pass's part of [`Plan::sends`].
    pub sends: Range<usize>,
    /// This pass's part of [`Plan::receipts`].
    pub receipts: Range<usize>,
}

/// How a collective is carried out. The numbers stand in the call header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Algorithm {
    /// Segments go round: reduced on the first round, passed around on the second.
    Ring = 1,
    /// Whole inputs go both ways, half-way round; each rank reduces for itself.
    Flood = 2,
}

/// A collective on one rank. Lists are flat and kept between calls, so that making a plan
/// allocates nothing once they have grown.
#[derive(Debug, Default)]
pub struct Plan {
    /// Local copies, before anything is sent: (from, to).
    pub copies: Vec<(Span, Span)>,
    pub sends: Vec<Span>,
    pub receipts: Vec<Receipt>,
    pub passes: Vec<Pass>,
    /// Local reductions in order, after all passes.
    pub folds: Vec<Fold>,
    /// Elements of scratch memory that the plan uses.
    pub scratch: usize,
}

/// A rank's place in the ring, and the lanes that it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub rank: usize,
    /// Ranks in the ring, 2 or more.
    pub size: usize,
    /// Lanes to each neighbour, 1 or more.
    pub lanes: usize,
}
