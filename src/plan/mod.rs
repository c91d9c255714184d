//! Collectives as pure data: what each rank sends, receives, reduces and copies, in which order.
//!
//! A [`Plan`] is made of passes. A pass is one direction of the ring on one lane, or a direct link to
//! another rank: the spans that this rank sends and those that it receives, as two streams. What has been
//! received and reduced may be sent on at once, element by element: see [`Departure::after`]. What is only
//! relayed passes through a window of scratch memory: see [`Receipt::room`]. No socket and no arithmetic here.

mod all_gather;
mod choose;
#[cfg(test)]
mod costs;
mod exchange;
mod flood;
#[cfg(test)]
mod loads;
mod mlx;
#[cfg(test)]
mod mlx_tests;
mod parts;
mod personal;
mod reduce_scatter;
mod ring;
mod rooted;
mod segment;
#[cfg(test)]
mod simulate;
#[cfg(test)]
mod tests;
mod window;

pub use parts::Parts;
pub use segment::Stretch;

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
    /// Memory of the group for partial sums that are wider than elements: see [`Plan::wide`].
    Sums,
}

/// `len` elements from element `start` of a buffer on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where it lies.
    pub buffer: Buffer,
    /// Its first element.
    pub start: usize,
    /// Its elements.
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
        /// What is received is another rank's input, not yet a partial sum.
        begins: bool,
        /// The chain ends here: a mean is divided now.
        last: bool,
    },
}

/// A span to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// What is sent.
    pub span: Span,
    /// None: it may leave whenever its turn comes. Otherwise it is passed on: its element i may leave once
    /// so many elements and i + 1 of the pass's received stream are in (and reduced).
    pub after: Option<usize>,
}

/// A span to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Where it goes.
    pub to: Span,
    /// What happens on the way.
    pub take: Take,
    /// So many elements of the pass's sent stream must have left before anything is stored here: the
    /// place still holds some of them. 0 where it is free from the start.
    pub room: usize,
}

/// A local reduction after all passes have ended: `to = own op received`; `to` and `own` are the
/// same memory or apart, `received` is apart from both, or the partial sum that `to` is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// Where the result goes.
    pub to: Span,
    /// The first operand.
    pub own: Span,
    /// The second operand.
    pub received: Span,
    /// The chain ends here: a mean is divided now.
    pub last: bool,
}

/// The links of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Received from one neighbour, sent to the other.
    Ring { flow: Flow, lane: usize },
    /// Sent to and received from one rank that is no neighbour, on a link of the two.
    Direct { rank: usize },
}

/// Two streams on their links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Its links.
    pub path: Path,
    /// Elements that must be received before anything is sent, the call header included: what was
    /// received then leaves in one write with what this rank adds.
    pub hold: usize,
    /// This pass's part of [`Plan::sends`].
    pub sends: Range<usize>,
    /// This pass's part of [`Plan::receipts`].
    pub receipts: Range<usize>,
    /// Elements of the whole sent stream, and of the received one.
    pub elements: (usize, usize),
}

/// How a collective is carried out. The numbers stand in the call header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Algorithm {
    /// Segments go round: reduced on the first round, passed around on the second.
    Ring = 1,
    /// Every rank's whole input reaches every other; each reduces for itself.
    Flood = 2,
    /// Every block goes straight to its rank.
    Direct = 3,
    /// An earlier stage of such a call: every rank has made it, so that direct links can be opened.
    Meet = 4,
    /// The next stage: every rank tells whether it has all of its direct links.
    Agree = 5,
    /// A stage before blocks are relayed: every rank tells its counts.
    Counts = 6,
}

/// A collective on one rank. Lists are flat and kept between calls, so that making a plan
/// allocates nothing once they have grown.
#[derive(Debug, Default)]
pub struct Plan {
    /// Local copies, before anything is sent: (from, to).
    pub copies: Vec<(Span, Span)>,
    /// What all passes send, pass by pass.
    pub sends: Vec<Departure>,
    /// What all passes receive, pass by pass.
    pub receipts: Vec<Receipt>,
    /// The passes. Those of lane 0 to the right and to the left always come first, since the call
    /// headers travel on them.
    pub passes: Vec<Pass>,
    /// Local reductions in order, after all passes.
    pub folds: Vec<Fold>,
    /// Elements of scratch memory that the plan uses.
    pub scratch: usize,
    /// So many of these, the first ones, are zeros when the call begins.
    pub blank: usize,
    /// Partial sums are wider than elements: they travel so, lie in [`Buffer::Sums`], and are rounded where
    /// their chain ends. To be set before the plan is made.
    pub wide: bool,
    /// Partial sums that [`Buffer::Sums`] holds.
    pub sums: usize,
}

/// A rank's place in the ring, and the lanes that it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// This rank.
    pub rank: usize,
    /// Ranks in the ring, 2 or more.
    pub size: usize,
    /// Lanes to each neighbour, 1 or more.
    pub lanes: usize,
}

impl Plan {
    /// Forgets what was planned and keeps the memory.
    pub fn clear(&mut self) {
        self.copies.clear();
        self.sends.clear();
        self.receipts.clear();
        self.passes.clear();
        self.folds.clear();
        self.scratch = 0;
        self.blank = 0;
        self.wide = false;
        self.sums = 0;
    }

    /// Adds a local copy.
    fn copy(&mut self, from: Span, to: Span) {
        if from.len > 0 {
            self.copies.push((from, to));
        }
    }

    /// Starts the next pass in a direction of the ring.
    pub fn begin(&mut self, flow: Flow, lane: usize) {
        self.begin_on(Path::Ring { flow, lane });
    }

    /// Starts the next pass.
    fn begin_on(&mut self, path: Path) {
        let (sends, receipts) = (self.sends.len(), self.receipts.len());
        let (sends, receipts) = (sends..sends, receipts..receipts);
        self.passes.push(Pass { path, hold: 0, sends, receipts, elements: (0, 0) });
    }

    /// Has the pass under way send nothing before it has received so many elements.
    fn hold(&mut self, elements: usize) {
        if let Some(pass) = self.passes.last_mut() {
            pass.hold = elements;
        }
    }

    /// Adds a span of this rank's own to what the pass under way sends.
    pub fn send(&mut self, span: Span) {
        self.depart(Departure { span, after: None });
    }

    /// Adds a span that this pass has received, `at` this place of its stream.
    fn pass_on(&mut self, span: Span, at: usize) {
        self.depart(Departure { span, after: Some(at) });
    }

    fn depart(&mut self, departure: Departure) {
        if let Some(pass) = self.passes.last_mut().filter(|_| departure.span.len > 0) {
            self.sends.push(departure);
            pass.sends.end += 1;
            pass.elements.0 += departure.span.len;
        }
    }

    /// Adds a span to receive and store; its place in the pass's received stream.
    pub fn store(&mut self, to: Span) -> usize {
        self.receive(Receipt { to, take: Take::Copy, room: 0 })
    }

    /// Adds a span to receive and reduce: `to = own op received`; its place in the pass's received stream.
    /// What is received is the partial result of `turn` ranks, of `size`.
    fn reduce_into(&mut self, to: Span, own: Span, turn: usize, size: usize) -> usize {
        let take = Take::Reduce { own, begins: turn == 1, last: turn == size - 1 };
        self.receive(Receipt { to, take, room: 0 })
    }

    /// Sets memory for partial results aside; where it begins.
    fn set_aside(&mut self, elements: usize) -> Span {
        let (buffer, used) =
            if self.wide { (Buffer::Sums, &mut self.sums) } else { (Buffer::Scratch, &mut self.scratch) };
        *used += elements;
        Span { buffer, start: *used - elements, len: elements }
    }

    fn receive(&mut self, receipt: Receipt) -> usize {
        let Some(pass) = self.passes.last_mut() else { return 0 };
        let at = pass.elements.1;
        if receipt.to.len > 0 {
            self.receipts.push(receipt);
            pass.receipts.end += 1;
            pass.elements.1 += receipt.to.len;
        }
        at
    }
}

impl Flow {
    /// The rank that lies `steps` before `rank` in this direction: what it sends arrives `steps`
    /// hops later.
    fn upstream(self, rank: usize, steps: usize, size: usize) -> usize {
        match self {
            Flow::Right => (rank + size - steps % size) % size,
            Flow::Left => (rank + steps) % size,
        }
    }

    /// The rank that lies `steps` after `rank` in this direction.
    fn downstream(self, rank: usize, steps: usize, size: usize) -> usize {
        match self {
            Flow::Right => Flow::Left.upstream(rank, steps, size),
            Flow::Left => Flow::Right.upstream(rank, steps, size),
        }
    }
}
