//! Chrome's trace format: one event a line, a process for the rank, a row for what runs one at a time.

use std::fmt::Write;

use super::call::{Record, Slept};
use super::{About, Failure, Member, State};
use crate::error::Status;
use crate::wire::Kind;

/// Times are told in steps of this many nanoseconds: as microseconds of the wall clock they then are numbers that a
/// double holds exactly, until 2041, and what comes after another in the trace does so in every reader.
const STEP: u64 = 250;
/// Bytes of a call and its longest wait, for the room that they need: more is got where it is too little.
const CALL_TEXT: usize = 400;

/// What runs one at a time, as a place among the rows of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    /// Collectives, and on stock MLX's wire what goes both ways.
    Calls,
    /// Messages to this rank itself, which take no turns.
    Own,
    SendTo(usize),
    RecvFrom(usize),
}

impl Row {
    fn of(record: &Record, rank: usize) -> Row {
        match (record.call.kind, record.call.to, record.call.from) {
            (Kind::Message, Some(to), Some(from)) if to == from && to as usize == rank => Row::Own,
            (Kind::Message, Some(to), None) => Row::SendTo(to as usize),
            (Kind::Message, None, Some(from)) => Row::RecvFrom(from as usize),
            _ => Row::Calls,
        }
    }

    /// Rows of a group of so many ranks.
    fn all(size: usize) -> impl Iterator<Item = Row> {
        let messages = (0..size).flat_map(|peer| [Row::SendTo(peer), Row::RecvFrom(peer)]);
        [Row::Calls, Row::Own].into_iter().chain(messages)
    }

    fn place(self) -> usize {
        match self {
            Row::Calls => 0,
            Row::Own => 1,
            Row::SendTo(peer) => 2 + 2 * peer,
            Row::RecvFrom(peer) => 3 + 2 * peer,
        }
    }

    fn name(self, group: &Member) -> String {
        let Member { name, rank, size, .. } = group;
        let within = if name.is_empty() { "" } else { ": " };
        match self {
            Row::Calls if name.is_empty() => "collectives".to_owned(),
            Row::Calls => format!("{name} (rank {rank} of {size})"),
            Row::Own => format!("{name}{within}to itself, {rank}"),
            Row::SendTo(peer) => format!("{name}{within}send to {peer}"),
            Row::RecvFrom(peer) => format!("{name}{within}recv from {peer}"),
        }
    }
}

/// The rows of a group in the file.
struct Rows {
    /// Number of the first; 0 would be none to some readers.
    first: usize,
    used: Vec<bool>,
    /// When the last message to this rank itself has ended.
    own_end: u64,
}

/// The trace so far.
pub fn text(about: &About, state: &State) -> String {
    let mut out = String::with_capacity(state.calls.len() * CALL_TEXT);
    let mut object = Object::begin(&mut out);
    object.text("displayTimeUnit", "ms");
    object.object("otherData");
    object.text("libring", env!("CARGO_PKG_VERSION"));
    object.text("ring", &about.ring);
    object.number("rank", about.rank as u64);
    object.number("size", about.size as u64);
    object.text("host", &about.host);
    object.number("dropped_calls", state.dropped());
    object.end();
    object.key("traceEvents");
    out.push('[');
    let file = File { about, state };
    let mut rows = file.rows();
    file.name_rows(&mut out, &rows);
    for record in &state.calls {
        if let Some(at) = file.group(record.group) {
            file.add_call(&mut out, &mut rows[at], &state.groups[at], record);
        }
    }
    for (group, rows) in state.groups.iter().zip(&rows) {
        if let Some(failure) = &group.failure {
            file.add_failure(&mut out, rows.first, failure);
        }
    }
    out.push_str("\n]}\n");
    out
}

struct File<'a> {
    about: &'a About,
    state: &'a State,
}

impl File<'_> {
    /// Where a group stands, which has this number.
    fn group(&self, number: u32) -> Option<usize> {
        self.state.groups.binary_search_by_key(&number, |group| group.number).ok()
    }

    fn rows(&self) -> Vec<Rows> {
        let mut next = 1;
        let mut rows: Vec<_> = (self.state.groups.iter())
            .map(|group| {
                let mut used = vec![false; 2 + 2 * group.size];
                used[0] = true;
                let first = next;
                next += used.len();
                Rows { first, used, own_end: 0 }
            })
            .collect();
        for record in &self.state.calls {
            if let Some(at) = self.group(record.group) {
                rows[at].used[Row::of(record, self.state.groups[at].rank).place()] = true;
            }
        }
        rows
    }

    /// What comes in every event; the rest is to follow.
    fn event<'o>(&self, out: &'o mut String, phase: &str, row: usize, name: &str) -> Object<'o> {
        out.push_str(if out.ends_with('[') { "\n" } else { ",\n" });
        let mut event = Object::begin(out);
        event.text("ph", phase);
        event.number("pid", self.about.rank as u64);
        event.number("tid", row as u64);
        event.text("name", name);
        event
    }

    fn name_rows(&self, out: &mut String, rows: &[Rows]) {
        let About { rank, size, host, .. } = self.about;
        self.name(out, 0, "process", &format!("rank {rank} of {size} ({host})"), *rank);
        for (group, rows) in self.state.groups.iter().zip(rows) {
            for row in Row::all(group.size).filter(|row| rows.used[row.place()]) {
                let number = rows.first + row.place();
                self.name(out, number, "thread", &row.name(group), number);
            }
        }
    }

    fn name(&self, out: &mut String, row: usize, what: &str, name: &str, place: usize) {
        let mut event = self.event(out, "M", row, &format!("{what}_name"));
        event.object("args");
        event.text("name", name);
        event.end();
        event.end();
        let mut event = self.event(out, "M", row, &format!("{what}_sort_index"));
        event.object("args");
        event.number("sort_index", place as u64);
        event.end();
        event.end();
    }

    /// The wall clock, in steps.
    fn wall(&self, at: u64) -> u64 {
        (self.about.epoch + at) / STEP * STEP
    }

    /// A call from its turn to its end, and its longest sleep within; or one that was refused.
    fn add_call(&self, out: &mut String, rows: &mut Rows, group: &Member, record: &Record) {
        let row = Row::of(record, group.rank);
        let number = rows.first + row.place();
        let Record { call, moved, queued, waits, is_refusal, .. } = record;
        let (mut start, mut end) = (record.start, record.end);
        if row == Row::Own {
            // Those of several threads run at a time, and rows have one call at a time.
            start = start.max(rows.own_end);
            end = end.max(start);
            rows.own_end = end;
        }
        let name = if *is_refusal { &format!("{} refused", call.name()) } else { call.name() };
        let mut event = self.event(out, if *is_refusal { "i" } else { "X" }, number, name);
        event.text("cat", if call.kind == Kind::Message { "message" } else { "collective" });
        event.micros("ts", self.wall(start));
        if *is_refusal {
            event.text("s", "t");
        } else {
            event.micros("dur", self.wall(end) - self.wall(start));
        }
        event.object("args");
        event.number("number", call.number);
        event.number("count", call.count);
        for (key, name) in
            [("dtype", call.dtype.map(|dtype| dtype.name())), ("op", call.op.map(|op| op.name()))]
        {
            name.into_iter().for_each(|name| event.text(key, name));
        }
        for (key, rank) in [("root", call.root), ("to", call.to), ("from", call.from)] {
            rank.into_iter().for_each(|rank| event.number(key, rank.into()));
        }
        if record.status != Status::Ok {
            event.text("status", record.status.name());
        }
        if !is_refusal {
            event.number("bytes_sent", moved.0);
            event.number("bytes_received", moved.1);
            event.micros("wait_right_us", waits[0]);
            event.micros("wait_left_us", waits[1]);
            event.micros("queued_us", *queued);
        }
        event.end();
        event.end();
        if let Some(slept) = &record.longest {
            self.add_sleep(out, number, group, slept);
        }
    }

    fn add_sleep(&self, out: &mut String, row: usize, group: &Member, slept: &Slept) {
        let Member { rank, size, .. } = *group;
        let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
        let name = match slept.sides {
            [true, true] if right != left => format!("waits for {right} and {left}"),
            [true, _] => format!("waits for {right}"),
            _ => format!("waits for {left}"),
        };
        let mut event = self.event(out, "X", row, &name);
        event.text("cat", "wait");
        event.micros("ts", self.wall(slept.start));
        event.micros("dur", self.wall(slept.end) - self.wall(slept.start));
        event.object("args");
        event.number("right", slept.sides[0].into());
        event.number("left", slept.sides[1].into());
        event.end();
        event.end();
    }

    fn add_failure(&self, out: &mut String, row: usize, failure: &Failure) {
        let error = &failure.error;
        let mut event = self.event(out, "i", row, &format!("failed: {}", error.status.name()));
        event.text("cat", "failure");
        event.micros("ts", self.wall(failure.at));
        event.text("s", "p");
        event.object("args");
        event.text("status", error.status.name());
        event.text("text", &error.text);
        event.number("number", error.sequence);
        error.rank.into_iter().for_each(|rank| event.number("rank", rank as u64));
        event.end();
        event.end();
    }
}

/// An object that is being written; within it others.
struct Object<'o>(&'o mut String);

impl<'o> Object<'o> {
    fn begin(out: &'o mut String) -> Object<'o> {
        out.push('{');
        Object(out)
    }

    fn end(&mut self) {
        self.0.push('}');
    }

    #[inline(never)]
    fn key(&mut self, key: &str) {
        if !self.0.ends_with('{') {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
    }

    fn object(&mut self, key: &str) {
        self.key(key);
        self.0.push('{');
    }

    #[inline(never)]
    fn number(&mut self, key: &str, number: u64) {
        self.key(key);
        let _ = write!(self.0, "{number}");
    }

    /// Nanoseconds as microseconds.
    #[inline(never)]
    fn micros(&mut self, key: &str, time: u64) {
        self.key(key);
        let _ = write!(self.0, "{}.{:03}", time / 1000, time % 1000);
    }

    #[inline(never)]
    fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        self.0.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.0.extend(['\\', c]),
                c if c < ' ' => {
                    let _ = write!(self.0, "\\u{:04x}", c as u32);
                }
                c => self.0.push(c),
            }
        }
        self.0.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::super::call::Call;
    use super::super::{Trace, lock};
    use super::*;
    use crate::dtype::{Dtype, Op};
    use crate::error::Error;
    use crate::wire::CallHeader;
    use serde_json::{Value, json};

    fn about() -> About {
        let (ring, host) = ("abad1dea".to_owned(), "a \"host\"\\\u{1}\u{e4}".to_owned());
        About { rank: 2, size: 4, ring, host, epoch: 1_700_000_000_000_000_123 }
    }

    fn record(call: Call, start: u64, end: u64) -> Record {
        Record {
            group: 0,
            call,
            status: Status::Ok,
            is_refusal: false,
            start,
            end,
            queued: 5,
            moved: (1048, 2048),
            waits: [1_000_007, 0],
            longest: None,
        }
    }

    fn events(state: &State) -> (Value, Vec<Value>) {
        let whole: Value = serde_json::from_str(&text(&about(), state)).unwrap();
        (whole["otherData"].clone(), whole["traceEvents"].as_array().unwrap().clone())
    }

    fn state() -> State {
        let trace = Trace::new(std::path::Path::new("nowhere"), 2, 4, None);
        trace.of_split(12, 0, 1, 2);
        lock(&trace.family.state).clone()
    }

    fn message(number: u64) -> Call {
        Call::of(&CallHeader::new(Kind::Message, number))
    }

    #[test]
    fn each_call_is_an_event_with_all_that_is_known() {
        let (dtype, op) = (Some(Dtype::Float32), Some(Op::Sum));
        let header = CallHeader { dtype, op, count: 1000, root: 3, ..CallHeader::new(Kind::Reduce, 1 << 60) };
        let mut state = state();
        let slept = Some(Slept { sides: [true, false], start: 2000, end: 2_000_000 });
        state.record(Record { longest: slept, ..record(Call::of(&header), 1000, 2_000_000) });
        let (other, events) = events(&state);
        assert_eq!(other["host"], about().host);
        assert_eq!((&other["rank"], &other["dropped_calls"]), (&json!(2), &json!(0)));
        assert_eq!(events[0]["args"]["name"], format!("rank 2 of 4 ({})", about().host));
        let names: Vec<_> = events.iter().filter(|event| event["name"] == "thread_name").collect();
        assert_eq!(names[0]["args"]["name"], "collectives");
        assert_eq!(names[1]["args"]["name"], "split 12 color 0 (rank 1 of 2)");
        let [call, wait] = &events[events.len() - 2..] else { panic!("no wait") };
        let expected = json!({
            "ph": "X", "pid": 2, "tid": 1, "cat": "collective", "name": "reduce", "ts": 1_700_000_000_000_001.0,
            "dur": 1999.0, "args": {
                "number": 1_u64 << 60, "count": 1000, "dtype": "float32", "op": "sum", "root": 3,
                "bytes_sent": 1048, "bytes_received": 2048, "wait_right_us": 1000.007, "wait_left_us": 0.0,
                "queued_us": 0.005,
            }
        });
        assert_eq!(call, &expected);
        assert_eq!((&wait["name"], &wait["ts"]), (&json!("waits for 3"), &json!(1_700_000_000_000_002.0)));
        assert_eq!(wait["dur"], 1998.0);
    }

    #[test]
    fn messages_have_rows_of_their_own() {
        let mut state = state();
        let calls =
            [(Some(3), None), (None, Some(1)), (Some(3), Some(1)), (Some(2), Some(2)), (Some(2), Some(2))];
        for (number, (to, from)) in (1..).zip(calls) {
            state.record(record(message(number).between(to, from), 0, 1000 * number));
        }
        let (_, events) = events(&state);
        let row = |tid: &Value| {
            let is_name = |event: &&Value| event["name"] == "thread_name" && event["tid"] == *tid;
            events.iter().find(is_name).unwrap()["args"]["name"].clone()
        };
        let calls: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
        let told: Vec<_> = calls.iter().map(|call| (call["name"].clone(), row(&call["tid"]))).collect();
        let expected = [
            ("send", "send to 3"),
            ("recv", "recv from 1"),
            ("send_recv", "collectives"),
            ("send_recv", "to itself, 2"),
            ("send_recv", "to itself, 2"),
        ];
        assert_eq!(told, expected.map(|(name, row)| (json!(name), json!(row))));
        // Two threads' at a time are told one after the other.
        assert_eq!((&calls[4]["ts"], &calls[4]["dur"]), (&json!(1_700_000_000_000_004.0), &json!(1.0)));
    }

    #[test]
    fn failures_and_refusals_are_moments() {
        let mut state = state();
        let call = Call::of(&CallHeader::new(Kind::Barrier, 7));
        let status = Status::InvalidArgument;
        state.record(Record { status, is_refusal: true, ..record(call, 5000, 5000) });
        let error = Error::new(Status::PeerLost, "rank 1: \"gone\"").at_rank(1);
        let failure = Failure { error: Error { sequence: 8, ..error }, at: 9000, is_written: true };
        state.groups[1].failure = Some(failure);
        let (_, events) = events(&state);
        let [refusal, failed] = &events[events.len() - 2..] else { panic!("no events") };
        assert_eq!((&refusal["name"], &refusal["ph"]), (&json!("barrier refused"), &json!("i")));
        let told = json!({"number": 7, "count": 0, "status": "RING_STATUS_INVALID_ARGUMENT"});
        assert_eq!(refusal["args"], told);
        let told =
            json!({"status": "RING_STATUS_PEER_LOST", "text": "rank 1: \"gone\"", "number": 8, "rank": 1});
        assert_eq!((&failed["args"], &failed["tid"]), (&told, &json!(11)));
    }
}
