//! Scratch memory through which a pass relays what has no other home.

use super::{Buffer, Plan, Receipt, Span, Take};

/// What is relayed is cut into blocks of so many bytes: some are under way at once, and all of them stay in a
/// core's second-level cache.
const BLOCK_BYTES: usize = 64 << 10;
/// Blocks that a pass holds. One leaves, one arrives, and the others make up for a neighbour that is
/// late.
const SLOTS: usize = 4;

/// Elements of a block.
pub fn block_elements(element_bytes: usize) -> usize {
    (BLOCK_BYTES / element_bytes).max(1)
}

/// A pass's slots, used in turn: a block may come in once the one that lay there before has left.
pub struct Window {
    start: usize,
    block: usize,
    /// By slot: how much of the pass's sent stream must have left before it is free.
    free: [usize; SLOTS],
    next: usize,
}

impl Window {
    /// A window for blocks of at most so many elements, in scratch memory of its own.
    pub fn new(plan: &mut Plan, block: usize) -> Window {
        let start = plan.scratch;
        plan.scratch += SLOTS * block;
        Window { start, block, free: [0; SLOTS], next: 0 }
    }

    /// Has the pass under way receive `len` elements, reduce `own` into them if there is one, and pass them
    /// on.
    pub fn relay(&mut self, plan: &mut Plan, len: usize, own: Option<Span>) {
        debug_assert!(len <= self.block);
        let slot = self.next % SLOTS;
        let to = Span { buffer: Buffer::Scratch, start: self.start + slot * self.block, len };
        let take = own.map_or(Take::Copy, |own| Take::Reduce { own, last: false });
        let at = plan.receive(Receipt { to, take, room: self.free[slot] });
        plan.pass_on(to, at);
        if len > 0 {
            self.free[slot] = plan.passes.last().map_or(0, |pass| pass.elements.0);
            self.next += 1;
        }
    }
}
