//! One pass under way: a send and a receive cursor over the plan's spans.

use std::ops::Range;

use super::{Fault, Links, Route, Task, Traffic};
use crate::memory::Region;
use crate::plan::{Departure, Pass, Span, Take};
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
    /// Elements of the spans before it.
    before: usize,
}

impl Cursor {
    fn new(range: &Range<usize>) -> Cursor {
        Cursor { index: range.start, end: range.end, offset: 0, before: 0 }
    }

    fn is_done(&self) -> bool {
        self.index == self.end
    }

    /// Whole elements of the stream that are done, where those of this span have so many bytes.
    fn elements(&self, width: usize) -> usize {
        // Mostly nothing of a span is done, or all; a division takes as long as the rest of a turn's look.
        if self.offset == 0 { self.before } else { self.before + self.offset / width }
    }

    /// Moves on by `bytes` within a span of `len` elements of `width` bytes.
    fn advance(&mut self, bytes: usize, len: usize, width: usize) {
        self.offset += bytes;
        if self.offset == len * width {
            *self = Cursor { index: self.index + 1, offset: 0, before: self.before + len, ..*self };
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
    /// Elements that must have been received before anything is sent.
    hold: usize,
    /// The pass may end before its header has come: see [`Owed`].
    owes: bool,
}

/// Headers of calls that have ended on this rank without them, by link, in the order in which they come. A rank
/// that needs nothing of a neighbour doesn't wait for it; the next call that hears from it compares first.
#[derive(Default)]
pub struct Owed(Vec<(usize, CallHeader)>);

/// A rank is at most so many calls ahead of a neighbour: their headers, 768 bytes, fit into any link's buffer.
const MOST_OWED: usize = 16;

impl Owed {
    fn has_room(&self, link: usize) -> bool {
        self.0.iter().filter(|(other, _)| *other == link).count() < MOST_OWED
    }

    /// Compares what has come of them with what was called; whether none is left.
    fn settle(&mut self, links: &mut Links, link: usize) -> Result<bool, Fault> {
        while let Some(at) = self.0.iter().position(|(other, _)| *other == link) {
            let ours = self.0[at].1;
            if !takes_header(links, link, ours)? {
                return Ok(false);
            }
            self.0.remove(at);
        }
        Ok(true)
    }
}

impl Course {
    pub fn new(pass: &Pass, route: Route) -> Course {
        Course {
            out: route.out,
            into: route.into,
            gate: route.gate,
            header: route.announce.map_or([0; CALL_HEADER], |header| header.encode()),
            header_left: if route.announce.is_some() { CALL_HEADER } else { 0 },
            incoming: route.expect.map_or(Incoming::None, Incoming::Awaited),
            sends: Cursor::new(&pass.sends),
            receipts: Cursor::new(&pass.receipts),
            moved: (0, 0),
            hold: pass.hold,
            owes: route.may_owe,
        }
    }

    /// Whether the pass receives any data.
    pub fn receives(&self) -> bool {
        !self.receipts.is_done()
    }

    /// Whether it may end before its header has come.
    pub fn may_owe(&self) -> bool {
        self.owes
    }

    /// It does wait for its header if it or another pass needs to know that it is accepted.
    pub fn settle_owing(&mut self, is_needed: bool, owed: &Owed) {
        self.owes &= !is_needed && self.into.is_some_and(|link| owed.has_room(link));
    }

    /// The call has ended well: leaves a header that has not come to the next one.
    pub fn leave_owed(&self, owed: &mut Owed) {
        if let (Incoming::Awaited(header), Some(link)) = (&self.incoming, self.into) {
            owed.0.push((link, *header));
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
        let is_heard = self.is_accepted() || self.owes;
        self.header_left == 0 && is_heard && self.sends.is_done() && self.receipts.is_done()
    }

    /// Adds what has gone over its links so far.
    pub fn add_to(&self, task: &Task<'_>, traffic: &mut [Traffic]) {
        if let Some(link) = self.out {
            traffic[link].sent += self.moved.0;
            traffic[link].sends |= self.wants_to_send(task).is_some();
        }
        if let Some(link) = self.into {
            traffic[link].received += self.moved.1;
            traffic[link].awaits |= self.wants_to_receive(task).is_some();
        }
    }

    /// Bytes that have been sent and received.
    pub fn moved(&self) -> (u64, u64) {
        self.moved
    }

    /// Whole elements that have been received, and reduced.
    fn received(&self, task: &Task<'_>) -> usize {
        match task.plan.receipts[..self.receipts.end].get(self.receipts.index) {
            Some(receipt) => self.receipts.elements(task.arriving_width(receipt)),
            None => self.receipts.before,
        }
    }

    /// Whole elements that have left.
    fn sent(&self, task: &Task<'_>) -> usize {
        match task.plan.sends[..self.sends.end].get(self.sends.index) {
            Some(departure) => self.sends.elements(task.width(departure.span)),
            None => self.sends.before,
        }
    }

    /// Bytes of the span at `at` that may leave now.
    fn ready(&self, task: &Task<'_>, at: &Cursor, received: usize) -> usize {
        let Departure { span, after } = task.plan.sends[at.index];
        let elements = after.map_or(span.len, |after| received.saturating_sub(after).min(span.len));
        elements * task.width(span) - at.offset
    }

    /// The link that this pass waits to send on.
    pub fn wants_to_send(&self, task: &Task<'_>) -> Option<usize> {
        let received = self.received(task);
        let has_data = || !self.sends.is_done() && self.ready(task, &self.sends, received) > 0;
        self.out.filter(|_| received >= self.hold && (self.header_left > 0 || has_data()))
    }

    /// The link that this pass waits to receive on.
    pub fn wants_to_receive(&self, task: &Task<'_>) -> Option<usize> {
        let has_room = || !self.receipts.is_done() && self.has_room(task);
        self.into.filter(|_| !self.is_accepted() || has_room())
    }

    /// Whether the place of what is received next is free.
    fn has_room(&self, task: &Task<'_>) -> bool {
        let room = task.plan.receipts[self.receipts.index].room;
        room == 0 || self.sent(task) >= room
    }

    /// Sends what the link takes now, header first; tells whether anything moved.
    pub fn send(&mut self, task: &Task<'_>, links: &mut Links) -> Result<bool, Fault> {
        let Some(link) = self.wants_to_send(task) else { return Ok(false) };
        let mut header = self.header;
        let mut pieces = [Region::empty(); PIECES];
        let mut used = 0;
        if self.header_left > 0 {
            let unsent = CALL_HEADER - self.header_left;
            pieces[used] = Region::from_slice(&mut header[unsent..]);
            used += 1;
        }
        let (mut ahead, mut offered) = (self.sends, 0);
        let received = self.received(task);
        while used < PIECES && offered < SEND_BYTES && !ahead.is_done() {
            let span = task.plan.sends[ahead.index].span;
            let bytes = self.ready(task, &ahead, received).min(SEND_BYTES - offered);
            if bytes == 0 {
                break;
            }
            pieces[used] = task.memory(span).part(ahead.offset, bytes);
            used += 1;
            offered += bytes;
            ahead.advance(bytes, span.len, task.width(span));
        }
        let sent = links[link].send(&pieces[..used]).map_err(|error| Fault::of(link, error))?;
        self.count_sent(sent, task);
        Ok(sent > 0)
    }

    fn count_sent(&mut self, bytes: usize, task: &Task<'_>) {
        let header = bytes.min(self.header_left);
        self.header_left -= header;
        let mut left = bytes - header;
        self.moved.0 += bytes as u64;
        while left > 0 {
            let span = task.plan.sends[self.sends.index].span;
            let width = task.width(span);
            let step = left.min(span.len * width - self.sends.offset);
            self.sends.advance(step, span.len, width);
            left -= step;
        }
    }

    /// Takes what has arrived; tells whether anything moved. Data waits in the link until its
    /// neighbour's header is accepted (`open`).
    pub fn receive(
        &mut self,
        task: &Task<'_>,
        links: &mut Links,
        owed: &mut Owed,
        open: bool,
    ) -> Result<bool, Fault> {
        let Some(link) = self.into else { return Ok(false) };
        let mut moved = false;
        if let Incoming::Awaited(ours) = self.incoming {
            if !owed.settle(links, link)? || !takes_header(links, link, ours)? {
                return Ok(false);
            }
            self.incoming = Incoming::Accepted;
            self.moved.1 += CALL_HEADER as u64;
            moved = true;
        } else if !open {
            return Ok(false);
        }
        // One read a turn: a second would find nothing, as the first took all that was there.
        let mut may_read = !moved;
        while !self.receipts.is_done() && self.has_room(task) && (may_read || links[link].buffered() > 0) {
            may_read &= links[link].buffered() > 0;
            let bytes = self.take(task, links, link)?;
            if bytes == 0 {
                break;
            }
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
        let width = task.arriving_width(&receipt);
        let left = receipt.to.len * width - self.receipts.offset;
        let bytes = match receipt.take {
            Take::Copy => {
                let stretch = to.part(self.receipts.offset, left.min(READ_BYTES));
                links[link].receive(stretch).map_err(ended)?
            }
            Take::Reduce { own, begins, last } => {
                let arrived = links[link].peek(width).map_err(ended)?;
                let (done, elements) = (self.receipts.offset / width, arrived.len().min(left) / width);
                let cut = |span: Span| {
                    let width = task.width(span);
                    task.memory(span).part(done * width, elements * width)
                };
                let bytes = elements * width;
                task.reduce(cut(receipt.to), cut(own), arrived.part(0, bytes), begins, last);
                links[link].consume(bytes);
                bytes
            }
        };
        self.receipts.advance(bytes, receipt.to.len, width);
        Ok(bytes)
    }
}

/// Takes the header that stands first in the link's stream, once it is whole, if it is of this call. Any other is
/// left there.
fn takes_header(links: &mut Links, link: usize, ours: CallHeader) -> Result<bool, Fault> {
    let arrived = links[link].peek(CALL_HEADER).map_err(|error| Fault::of(link, error))?;
    if arrived.len() < CALL_HEADER {
        return Ok(false);
    }
    let mut bytes = [0; CALL_HEADER];
    Region::from_slice(&mut bytes).copy_from(arrived.part(0, CALL_HEADER));
    match CallHeader::decode(&bytes) {
        None => Err(Fault::Garbled { link }),
        Some(theirs) if !ours.matches(&theirs) => Err(Fault::Differs { link, ours, theirs }),
        Some(_) => {
            links[link].consume(CALL_HEADER);
            Ok(true)
        }
    }
}
