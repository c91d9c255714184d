//! Scratch memory through which a pass relays what has no other home.

use super::{Buffer, Plan, Receipt, Span, Take};

/// What is relayed is cut into blocks of so many bytes: some are under way at once, and all of them stay in a
/// core's second-level cache. Of 32 to 256 KiB in 2 to 8 slots none was faster at all sizes from 1 to 64 MiB.
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
    slots: Span,
    block: usize,
    /// By slot: how much of the pass's sent stream must have left before it is free.
    free: [usize; SLOTS],
    next: usize,
}

impl Window {
    /// A window for blocks of at most so many elements, as they were sent.
    pub fn of_elements(plan: &mut Plan, block: usize) -> Window {
        let slots = Span { buffer: Buffer::Scratch, start: plan.scratch, len: SLOTS * block };
        plan.scratch += slots.len;
        Window { slots, block, free: [0; SLOTS], next: 0 }
    }

    /// A window for blocks of partial results.
    pub fn of_sums(plan: &mut Plan, block: usize) -> Window {
        Window { slots: plan.set_aside(SLOTS * block), block, free: [0; SLOTS], next: 0 }
    }

    /// Has the pass under way receive `len` elements and pass them on.
    pub fn relay(&mut self, plan: &mut Plan, len: usize) {
        self.pass_through(plan, len, Take::Copy);
    }

    /// Has the pass under way receive a partial result of `turn` ranks, reduce `own` into it and pass it on.
    pub fn reduce(&mut self, plan: &mut Plan, own: Span, turn: usize) {
        self.pass_through(plan, own.len, Take::Reduce { own, begins: turn == 1, last: false });
    }

    fn pass_through(&mut self, plan: &mut Plan, len: usize, take: Take) {
        debug_assert!(len <= self.block);
        let slot = self.next % SLOTS;
        let to = Span { start: self.slots.start + slot * self.block, len, ..self.slots };
        let at = plan.receive(Receipt { to, take, room: self.free[slot] });
        plan.pass_on(to, at);
        if len > 0 {
            self.free[slot] = plan.passes.last().map_or(0, |pass| pass.elements.0);
            self.next += 1;
        }
    }
}
