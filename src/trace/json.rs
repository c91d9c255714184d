//! Chrome's trace format: one event a line, a process for the rank, a row for what runs one at a time.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write};

use super::call::{Record, Slept};
use super::{About, Member, State};
use crate::error::Status;
use crate::wire::Kind;

/// Times are told in steps of this many nanoseconds: as microseconds of the wall clock they then are numbers that a
/// double holds exactly, until 2041, and what comes after another in the trace does so in every reader.
const STEP: u64 = 250;

/// What runs one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    /// Collectives, and on stock MLX's wire all that goes both ways.
    Calls,
    SendTo(u32),
    RecvFrom(u32),
    /// Messages to this rank itself.
    Own,
}

impl Row {
    fn of(record: &Record, rank: usize) -> Row {
        match (record.call.kind, record.call.to, record.call.from) {
            (Kind::Message, Some(to), Some(from)) if to == from && to as usize == rank => Row::Own,
            (Kind::Message, Some(to), None) => Row::SendTo(to),
            (Kind::Message, None, Some(from)) => Row::RecvFrom(from),
            _ => Row::Calls,
        }
    }

    fn name(self, group: &Member) -> String {
        let within = |row: String| if group.name.is_empty() { row } else { format!("{}: {row}", group.name) };
        match self {
            Row::Calls if group.name.is_empty() => "collectives".to_owned(),
            Row::Calls => format!("{} (rank {} of {})", group.name, group.rank, group.size),
            Row::SendTo(peer) => within(format!("send to {peer}")),
            Row::RecvFrom(peer) => within(format!("recv from {peer}")),
            Row::Own => within(format!("to itself, {}", group.rank)),
        }
    }
}

/// The trace so far.
pub fn write(out: &mut dyn Write, about: &About, state: &State) -> io::Result<()> {
    let About { rank, size, ring, host, .. } = about;
    let (version, dropped) = (env!("CARGO_PKG_VERSION"), state.dropped());
    writeln!(
        out,
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"libring\":\"{version}\",\"ring\":{},\"rank\":{rank},\
         \"size\":{size},\"host\":{},\"dropped_calls\":{dropped}}},\"traceEvents\":[",
        Text(ring),
        Text(host)
    )?;
    let process = Text(&format!("rank {rank} of {size} ({host})")).to_string();
    write!(out, "{}", Metadata { rank: *rank, row: 0, what: "process_name", value: ("name", process) })?;
    let order = ("sort_index", rank.to_string());
    write!(out, ",\n{}", Metadata { rank: *rank, row: 0, what: "process_sort_index", value: order })?;
    let mut rows = rows(state);
    for (at, ((group, row), place)) in rows.iter_mut().enumerate() {
        let Some(group) = state.groups.get(group) else { continue };
        // Row 0 of process 0 is no row to some readers.
        place.number = at + 1;
        let name = ("name", Text(&row.name(group)).to_string());
        write!(out, ",\n{}", Metadata { rank: *rank, row: place.number, what: "thread_name", value: name })?;
        let order = ("sort_index", at.to_string());
        let sort = Metadata { rank: *rank, row: place.number, what: "thread_sort_index", value: order };
        write!(out, ",\n{sort}")?;
    }
    for record in &state.calls {
        let Some(group) = state.groups.get(&record.group) else { continue };
        let Some(place) = rows.get_mut(&(record.group, Row::of(record, group.rank))) else { continue };
        let event = Event { about, group, record, row: place.number };
        if record.is_refusal {
            write!(out, ",\n{}", event.refusal())?;
            continue;
        }
        // Messages to itself take no turns, and rows have one call at a time.
        let start = record.start.max(place.end);
        let end = record.end.max(start);
        place.end = end;
        write!(out, ",\n{}", event.whole(start, end))?;
        if let Some(slept) = &record.longest {
            write!(out, ",\n{}", event.sleep(slept, start, end))?;
        }
    }
    for (number, group) in &state.groups {
        let row = rows.get(&(*number, Row::Calls)).map_or(0, |place| place.number);
        if let Some(failure) = &group.failure {
            let (status, text) = (failure.error.status.name(), Text(&failure.error.text));
            let mut event = String::new();
            let name = format!("failed: {status}");
            let _ = begin(&mut event, about, row, &name, "failure", "i", failure.at);
            let _ = write!(event, ",\"s\":\"p\",\"args\":{{\"status\":\"{status}\",\"text\":{text}");
            let _ = write!(event, ",\"number\":{}", failure.error.sequence);
            if let Some(rank) = failure.error.rank {
                let _ = write!(event, ",\"rank\":{rank}");
            }
            write!(out, ",\n{event}}}}}")?;
        }
    }
    writeln!(out, "\n]}}")
}

#[derive(Default)]
struct Place {
    number: usize,
    /// When its last call ended.
    end: u64,
}

fn rows(state: &State) -> BTreeMap<(u32, Row), Place> {
    let first = state.groups.keys().map(|group| (*group, Row::Calls));
    let others = state.calls.iter().filter_map(|record| {
        let group = state.groups.get(&record.group)?;
        Some((record.group, Row::of(record, group.rank)))
    });
    first.chain(others).map(|row| (row, Place::default())).collect()
}

/// A name of a process or of a row, or its place among them; the value is JSON.
struct Metadata {
    rank: usize,
    row: usize,
    what: &'static str,
    value: (&'static str, String),
}

impl fmt::Display for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Metadata { rank, row, what, value: (key, value) } = self;
        write!(
            f,
            "{{\"ph\":\"M\",\"pid\":{rank},\"tid\":{row},\"name\":\"{what}\",\"args\":{{\"{key}\":{value}}}}}"
        )
    }
}

/// What all events begin with; the closing brace is theirs.
fn begin(
    event: &mut String,
    about: &About,
    row: usize,
    name: &str,
    kind: &str,
    phase: &str,
    at: u64,
) -> fmt::Result {
    let (rank, name, time) = (about.rank, Text(name), Micros(wall(about, at)));
    write!(
        event,
        "{{\"ph\":\"{phase}\",\"pid\":{rank},\"tid\":{row},\"cat\":\"{kind}\",\"name\":{name},\"ts\":{time}"
    )
}

/// The wall clock, in steps.
fn wall(about: &About, at: u64) -> u64 {
    (about.epoch + at) / STEP * STEP
}

struct Event<'a> {
    about: &'a About,
    group: &'a Member,
    record: &'a Record,
    row: usize,
}

impl Event<'_> {
    /// From its turn to its end.
    fn whole(&self, start: u64, end: u64) -> String {
        let (about, Record { call, moved, waits, queued, .. }) = (self.about, self.record);
        let mut event = String::new();
        let kind = if call.kind == Kind::Message { "message" } else { "collective" };
        let _ = begin(&mut event, about, self.row, call.name(), kind, "X", start);
        let length = Micros(wall(about, end) - wall(about, start));
        let _ = write!(event, ",\"dur\":{length},\"args\":{{");
        self.tell_call(&mut event);
        let _ = write!(event, ",\"bytes_sent\":{},\"bytes_received\":{}", moved.0, moved.1);
        let [right, left] = waits.map(Micros);
        let _ = write!(event, ",\"wait_right_us\":{right},\"wait_left_us\":{left}");
        let _ = write!(event, ",\"queued_us\":{}}}}}", Micros(*queued));
        event
    }

    /// Its longest sleep, within it.
    fn sleep(&self, slept: &Slept, start: u64, end: u64) -> String {
        let Member { rank, size, .. } = *self.group;
        let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
        let name = match slept.sides {
            [true, true] if right != left => format!("waits for {right} and {left}"),
            [true, _] => format!("waits for {right}"),
            _ => format!("waits for {left}"),
        };
        let mut event = String::new();
        let (since, until) = (slept.start.clamp(start, end), slept.end.clamp(start, end));
        let _ = begin(&mut event, self.about, self.row, &name, "wait", "X", since);
        let length = Micros(wall(self.about, until) - wall(self.about, since));
        let _ = write!(event, ",\"dur\":{length},\"args\":{{");
        let [is_right, is_left] = slept.sides;
        let _ = write!(event, "\"right\":{is_right},\"left\":{is_left}}}}}");
        event
    }

    fn refusal(&self) -> String {
        let mut event = String::new();
        let name = format!("{} refused", self.record.call.name());
        let _ = begin(&mut event, self.about, self.row, &name, "refusal", "i", self.record.start);
        event.push_str(",\"s\":\"t\",\"args\":{");
        self.tell_call(&mut event);
        event.push_str("}}");
        event
    }

    fn tell_call(&self, event: &mut String) {
        let Record { call, status, .. } = self.record;
        let _ = write!(event, "\"number\":{},\"count\":{}", call.number, call.count);
        if let Some(dtype) = call.dtype {
            let _ = write!(event, ",\"dtype\":\"{}\"", dtype.name());
        }
        if let Some(op) = call.op {
            let _ = write!(event, ",\"op\":\"{}\"", op.name());
        }
        for (key, rank) in [("root", call.root), ("to", call.to), ("from", call.from)] {
            if let Some(rank) = rank {
                let _ = write!(event, ",\"{key}\":{rank}");
            }
        }
        if *status != Status::Ok {
            let _ = write!(event, ",\"status\":\"{}\"", status.name());
        }
    }
}

/// Nanoseconds as microseconds.
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A JSON string.
struct Text<'t>(&'t str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c < ' ' => write!(f, "\\u{:04x}", c as u32)?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::super::call::Call;
    use super::super::{Failure, Trace, lock};
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
        let mut text = Vec::new();
        write(&mut text, &about(), state).unwrap();
        let whole: Value = serde_json::from_slice(&text).unwrap();
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
        let slept = Some(Slept { sides: [true, false], start: 2000, end: 9_000_000 });
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
        state.groups.get_mut(&1).unwrap().failure = Some(failure);
        let (_, events) = events(&state);
        let [refusal, failed] = &events[events.len() - 2..] else { panic!("no events") };
        assert_eq!((&refusal["name"], &refusal["ph"]), (&json!("barrier refused"), &json!("i")));
        let told = json!({"number": 7, "count": 0, "status": "RING_STATUS_INVALID_ARGUMENT"});
        assert_eq!(refusal["args"], told);
        let told =
            json!({"status": "RING_STATUS_PEER_LOST", "text": "rank 1: \"gone\"", "number": 8, "rank": 1});
        assert_eq!((&failed["args"], &failed["tid"]), (&told, &json!(2)));
    }
}
