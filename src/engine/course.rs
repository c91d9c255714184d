//! One pass under way: a send and a receive cursor over the plan's spans.

use super::{Fault, Links, Route, Task, Traffic};
use crate::memory::Region;
use crate::plan::{Pass, Take};
use crate::wire::{CALL_HEADER, CallHeader};

/// Pieces gathered by one send: the header and the next few spans.
const PIECES: usize = 6;
/// What one send offers at most, so that the receive side gets its turn while data is warm.
const SEND_BYTES: usize = 1 << 20;
/// What one read straight into the caller's memory takes at most, for the same reason.
const READ_BYTES: usize = 1 << 20;

/// A place in a list of spans.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    /// Index of the span, up to `end`.
    index: usize,
    end: usize,
    /// Bytes of that span that are done.
    offset: usize,
}

impl Cursor {
    fn is_done(&self) -> bool {
        self.index == self.end
    }

    /// Moves on by `bytes` within a span of `len`.
    fn advance(&mut self, bytes: usize, len: usize) {
        self.offset += bytes;
        if self.offset == len {
            *self = Cursor { index: self.index + 1, offset: 0, ..*self };
        }
    }
}

#[derive(Debug)]
enum Incoming {
    /// No header travels on this pass.
    None,
    Awaited(CallHeader),
    Accepted,
}

/// A pass on its links.
pub struct Course {
    out: Option<usize>,
    into: Option<usize>,
    gate: usize,
    header: [u8; CALL_HEADER],
    /// Bytes of `header` that are still to be sent.
    header_left: usize,
    incoming: Incoming,
    sends: Cursor,
    receipts: Cursor,
    /// Bytes that have been sent and received, headers included.
    moved: (u64, u64),
    /// Bytes that may be sent now: what the pass may be ahead, and what it has received and
    /// reduced, less what it has sent.
    credit: usize,
    /// Bytes that are still to be received before anything is sent.
    hold: usize,
}

impl Course {
    pub fn new(pass: &Pass, route: Route, element: usize) -> Course {
        let cursor =
            |range: &std::ops::Range<usize>| Cursor { index: range.start, end: range.end, offset: 0 };
        Course {
            out: route.out,
            into: route.into,
            gate: route.gate,
            header: route.announce.map_or([0; CALL_HEADER], |header| header.encode()),
            header_left: if route.announce.is_some() { CALL_HEADER } else { 0 },
            incoming: route.expect.map_or(Incoming::None, Incoming::Awaited),
            sends: cursor(&pass.sends),
            receipts: cursor(&pass.receipts),
            moved: (0, 0),
            credit: pass.ahead * element,
            hold: pass.hold * element,
        }
    }

    pub fn gate(&self) -> usize {
        self.gate
    }

    /// Whether no header is awaited, so that data may be taken.
    pub fn is_accepted(&self) -> bool {
        !matches!(self.incoming, Incoming::Awaited(_))
    }

    pub fn is_done(&self) -> bool {
        self.header_left == 0 && self.is_accepted() && self.sends.is_done() && self.receipts.is_done()
    }

    /// Adds what has gone over its links so far.
    pub fn add_to(&self, traffic: &mut [Traffic]) {
        if let Some(link) = self.out {
            traffic[link].sent += self.moved.0;
        }
        if let Some(link) = self.into {
            traffic[link].received += self.moved.1;
            traffic[link].awaits |= self.wants_to_receive().is_some();
        }
    }

    /// The link that this pass waits to send on.
    pub fn wants_to_send(&self) -> Option<usize> {
        let has_something = self.header_left > 0 || (self.credit > 0 && !self.sends.is_done());
        self.out.filter(|_| has_something && self.hold == 0)
    }

    /// The link that this pass waits to receive on.
    pub fn wants_to_receive(&self) -> Option<usize> {
        self.into.filter(|_| !self.is_accepted() || !self.receipts.is_done())
    }

    /// Sends what the link takes now, header first; tells whether anything moved.
    pub fn send(&mut self, task: &Task<'_>, links: &mut Links) -> Result<bool, Fault> {
        let Some(link) = self.wants_to_send() else { return Ok(false) };
        let mut pieces = [Region::empty(); PIECES];
        let mut used = 0;
        if self.header_left > 0 {
            let unsent = CALL_HEADER - self.header_left;
            pieces[used] = Region::from_slice(&mut self.header[unsent..]);
            used += 1;
        }
        let mut ahead = self.sends;
        let mut credit = self.credit.min(SEND_BYTES);
        while used < PIECES && credit > 0 && !ahead.is_done() {
            let span = task.memory(task.plan.sends[ahead.index]);
            let bytes = credit.min(span.len() - ahead.offset);
            pieces[used] = span.part(ahead.offset, bytes);
            used += 1;
            credit -= bytes;
            ahead.advance(bytes, span.len());
        }
        let sent = links[link].send(&pieces[..used]).map_err(|error| Fault::of(link, error))?;
        self.sent(sent, task);
        Ok(sent > 0)
    }

    fn sent(&mut self, bytes: usize, task: &Task<'_>) {
        let header = bytes.min(self.header_left);
        self.header_left -= header;
        let mut left = bytes - header;
        self.credit -= left;
        self.moved.0 += bytes as u64;
        while left > 0 {
            let len = task.plan.sends[self.sends.index].len * task.element;
            let step = left.min(len - self.sends.offset);
            self.sends.advance(step, len);
            left -= step;
        }
    }

    /// Takes what has arrived; tells whether anything moved. Data waits in the link until its
    /// neighbour's header is accepted (`open`).
    pub fn receive(&mut self, task: &Task<'_>, links: &mut Links, open: bool) -> Result<bool, Fault> {
        let Some(link) = self.into else { return Ok(false) };
        let mut moved = false;
        if let Incoming::Awaited(ours) = self.incoming {
            let Some(theirs) = header(links, link)? else { return Ok(false) };
            if !ours.matches(&theirs) {
                return Err(Fault::Differs { link, ours, theirs });
            }
            links[link].consume(CALL_HEADER);
            self.incoming = Incoming::Accepted;
            self.moved.1 += CALL_HEADER as u64;
            moved = true;
        } else if !open {
            return Ok(false);
        }
        // One read a turn: a second would find nothing, as the first took all that was there.
        let mut may_read = !moved;
        while !self.receipts.is_done() && (may_read || links[link].buffered() > 0) {
            may_read &= links[link].buffered() > 0;
            let bytes = self.take(task, links, link)?;
            if bytes == 0 {
                break;
            }
            self.credit += bytes;
            self.hold = self.hold.saturating_sub(bytes);
            self.moved.1 += bytes as u64;
            moved = true;
        }
        Ok(moved)
    }

    /// Stores or reduces a stretch of the current span; its bytes.
    fn take(&mut self, task: &Task<'_>, links: &mut Links, link: usize) -> Result<usize, Fault> {
        let ended = |error| Fault::of(link, error);
        let receipt = task.plan.receipts[self.receipts.index];
        let to = task.memory(receipt.to);
        let left = to.len() - self.receipts.offset;
        let bytes = match receipt.take {
            Take::Copy => {
                let stretch = to.part(self.receipts.offset, left.min(READ_BYTES));
                links[link].receive(stretch).map_err(ended)?
            }
            Take::Reduce { own, last } => {
                let arrived = links[link].peek(task.element).map_err(ended)?;
                let bytes = arrived.len().min(left) / task.element * task.element;
                let at = self.receipts.offset;
                let own = task.memory(own).part(at, bytes);
                task.reduce(to.part(at, bytes), own, arrived.part(0, bytes), last);
                links[link].consume(bytes);
                bytes
            }
        };
        self.receipts.advance(bytes, to.len());
        Ok(bytes)
    }
}

/// The header that stands first in the link's stream, once it is whole; it is left there.
fn header(links: &mut Links, link: usize) -> Result<Option<CallHeader>, Fault> {
    let arrived = links[link].peek(CALL_HEADER).map_err(|error| Fault::of(link, error))?;
    if arrived.len() < CALL_HEADER {
        return Ok(None);
    }
    let mut bytes = [0; CALL_HEADER];
    Region::from_slice(&mut bytes).copy_from(arrived.part(0, CALL_HEADER));
    CallHeader::decode(&bytes).map(Some).ok_or(Fault::Garbled { link })
}
