"""Runs traced ranks and reads what they leave: trace.py PROGRAM SCENARIO RANKS."""
import collections
import decimal
import glob
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

MOST_CALLS = 10000
# A rank's two clocks are read one after the other, and the wall clock may be adjusted during the run.
CLOCKS_US = 1000


class Trace:
    """A rank's file."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            whole = json.load(file, parse_float=decimal.Decimal, parse_constant=lambda text: 1 / 0)
        self.about, self.events = whole["otherData"], whole["traceEvents"]
        self.rank = self.about["rank"]
        assert path.endswith(f"ring-{self.about['ring']}-rank-{self.rank}.json"), path
        assert all(event["pid"] == self.rank for event in self.events)
        names = {event["tid"]: event["args"]["name"] for event in self.events if event["name"] == "thread_name"}
        (process,) = [event for event in self.events if event["name"] == "process_name"]
        assert process["args"]["name"] == f"rank {self.rank} of {self.about['size']} ({self.about['host']})"
        self.calls, self.rows = [], collections.defaultdict(list)
        for event in self.events:
            if event["ph"] == "M":
                continue
            event["row"] = names[event["tid"]]
            event["group"] = group_of(event["row"])
            if event["ph"] == "X":
                self.rows[event["tid"]].append(event)
                if event["cat"] != "wait":
                    self.calls.append(event)
        self.moments = [event for event in self.events if event["ph"] == "i"]
        for row in self.rows.values():
            check_nesting(row)

    def failures(self):
        return [event for event in self.moments if event["cat"] == "failure"]


def group_of(row):
    """"" is the created ring."""
    if not row.startswith("split"):
        return ""
    return row.split(": ")[0].split(" (rank")[0]


def end(event):
    return event["ts"] + event["dur"]


def check_nesting(row):
    """Calls follow each other; a wait lies within its call."""
    calls = [event for event in row if event["cat"] != "wait"]
    for before, after in zip(calls, calls[1:]):
        assert end(before) <= after["ts"], (before, after)
    call = None
    for event in row:
        if event["cat"] == "wait":
            assert call["ts"] <= event["ts"] and end(event) <= end(call), (call, event)
            assert event["dur"] <= call["dur"]
        else:
            call = event


def check_numbers(trace):
    """Every collective of a group and every message of a pair's direction is there once."""
    numbers = collections.defaultdict(list)
    for event in trace.calls + [event for event in trace.moments if event["cat"] == "collective"]:
        if event["args"]["number"]:
            numbers[event["row"]].append((event["ts"], event["args"]["number"]))
    for row, found in numbers.items():
        in_order = [number for _, number in sorted(found)]
        assert in_order == list(range(1, len(found) + 1)), (row, in_order)


def check_stats(trace, directory):
    with open(f"{directory}/stats-{trace.rank}") as file:
        lines = [line.rstrip("\n").split("|") for line in file]
    assert {line[0] for line in lines} == {call["group"] for call in trace.calls}, lines
    for group, *counted in lines:
        calls = [call for call in trace.calls if call["group"] == group]
        assert all("status" not in call["args"] for call in calls)
        found = [sum(2 if call["name"] == "send_recv" else 1 for call in calls)]
        found += [sum(call["args"][key] for call in calls) for key in ("bytes_sent", "bytes_received")]
        found += [int(sum(call["args"][key] for call in calls) * 1000) for key in ("wait_right_us", "wait_left_us")]
        assert found == [int(number) for number in counted], (group, found, counted)
        for call in calls:
            assert max(call["args"]["wait_right_us"], call["args"]["wait_left_us"]) <= call["dur"] + 1, call


def check_overlap(traces):
    """All ranks are in a call of this kind at one moment."""
    calls = collections.defaultdict(list)
    for trace in traces:
        for call in trace.calls:
            if call["group"] == "" and call["name"] in ("barrier", "all_reduce", "all_gather", "all_to_all"):
                calls[call["args"]["number"]].append(call)
    assert calls
    for number, ranks in calls.items():
        assert len(ranks) == len(traces) and len({call["name"] for call in ranks}) == 1, number
        first_end, last_start = min(map(end, ranks)), max(call["ts"] for call in ranks)
        assert last_start <= first_end + CLOCKS_US, (number, ranks)


def check_late(traces):
    """Who waits for the late rank says so."""
    late = traces[0].rank
    for trace in traces:
        size = trace.about["size"]
        if size > 1 and trace.rank in ((late + 1) % size, (late - 1) % size):
            waits = [event for row in trace.rows.values() for event in row if event["cat"] == "wait"]
            waits = [event["name"] for event in waits if event["dur"] > 15000]
            assert any(str(late) in name.split() for name in waits), waits


def work(traces, size, directory, began):
    for trace in traces:
        assert trace.about["dropped_calls"] == 0 and not trace.failures()
        check_numbers(trace)
        check_stats(trace, directory)
        for call in trace.calls:
            assert began - CLOCKS_US <= call["ts"] and end(call) <= time.time() * 1e6 + CLOCKS_US, call
        kinds = {call["name"] for call in trace.calls}
        assert {"all_reduce", "split", "send_recv", "reduce", "broadcast", "all_to_all"} <= kinds, kinds
        refused = [event for event in trace.moments if event["name"] == "all_gather refused"]
        assert all(event["args"]["status"] == "RING_STATUS_INVALID_ARGUMENT" for event in refused)
        assert len(refused) >= 2
        reduce = next(call for call in trace.calls if call["name"] == "reduce")
        wanted = {"count": 100, "dtype": "int32", "op": "min", "root": size - 1}
        assert wanted.items() <= reduce["args"].items(), reduce
        if size > 1:
            row = f"send to {(trace.rank + 1) % size}"
            assert any(call["row"] == row and call["args"]["to"] == (trace.rank + 1) % size for call in trace.calls)
            # Of two requests of one queue the second waits for its turn.
            assert any(call["args"]["queued_us"] > 20 for call in trace.calls if call["name"] == "barrier")
    check_overlap(traces)
    check_late(traces)


def many(traces, *_):
    for trace in traces:
        numbers = [call["args"]["number"] for call in trace.calls]
        assert trace.about["dropped_calls"] == 50 and len(numbers) == MOST_CALLS
        assert numbers == list(range(51, 51 + MOST_CALLS))


def death(scenario, traces, size):
    assert sorted(trace.rank for trace in traces) == [rank for rank in range(size) if rank != 1]
    for trace in traces:
        failures = {event["group"]: event for event in trace.failures() if event["row"].startswith("coll")}
        failed = failures[""]["args"]
        assert (failed["status"], failed["rank"]) == ("RING_STATUS_PEER_LOST", 1) and "rank 1" in failed["text"], failed
        if scenario != "idle":
            call = trace.calls[-1]
            assert (call["name"], call["args"]["number"]) == ("all_reduce", 3), call
            assert call["args"]["status"] == "RING_STATUS_PEER_LOST"
            assert "all_reduce" in failed["text"] or failed["number"] in (0, 2), failed


def tool(paths, traces):
    """What README says to join and draw them with."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools/trace.py")
    made = [subprocess.run([sys.executable, program, what, *paths], check=True, capture_output=True, text=True).stdout
            for what in ("join", "draw")]
    assert len(json.loads(made[0])["traceEvents"]) == sum(len(trace.events) for trace in traces)
    bars = [element for element in xml.etree.ElementTree.fromstring(made[1]).iter() if element.tag.endswith("rect")]
    assert len(bars) > sum(len(trace.calls) for trace in traces)


def odd_files(paths, directory):
    """What is no trace is named; failures alone, and nothing at all, can be in one."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools/trace.py")

    def run(*arguments):
        done = subprocess.run([sys.executable, program, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def made(name, content):
        with open(f"{directory}/{name}", "w", encoding="utf-8") as file:
            file.write(content)
        return file.name

    with open(paths[0], encoding="utf-8") as file:
        text = file.read()
    whole = json.loads(text)
    for content in ("", "{}", "[]", "7", '{"otherData": {}, "traceEvents": []}', text[:300]):
        path = made("odd", content)
        for what in ("join", "draw"):
            assert run(what, path) == (1, "", f"trace.py: {path} is no trace of a rank\n"), content
    missing = f"{directory}/missing"
    assert run("draw", missing) == (1, "", f"trace.py: {missing}: No such file or directory\n")
    calls = [event for event in whole["traceEvents"] if event["ph"] == "X"]
    names = [event for event in whole["traceEvents"] if event["ph"] == "M"]
    failure = {"ph": "i", "pid": whole["otherData"]["rank"], "tid": calls[0]["tid"], "name": "failed", "cat": "failure",
               "ts": calls[0]["ts"], "s": "p", "args": {}}
    path = made("failure", json.dumps({**whole, "traceEvents": [*names, failure]}))
    status, drawn, _ = run("draw", path)
    assert status == 0 and xml.etree.ElementTree.fromstring(drawn) is not None
    path = made("nothing", json.dumps({**whole, "traceEvents": names}))
    assert run("draw", path) == (1, "", "trace.py: there are no calls to draw\n")
    assert run("join", path)[0] == 0
    for span in (["--from", "5", "--to", "3"], ["--from", "1e9"], ["--to", "0"]):
        status, drawn, told = run("draw", *span, paths[0])
        assert (status, drawn) == (1, "") and told.startswith("trace.py: there is nothing from "), told


def main():
    program, scenario, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with tempfile.TemporaryDirectory() as directory:
        began = time.time() * 1e6
        # The last part is made.
        traces = f"{directory}/traces"
        subprocess.run([program, scenario, str(size), traces], check=True)
        read = [Trace(path) for path in sorted(glob.glob(f"{traces}/ring-*.json"))]
        assert len({trace.about["ring"] for trace in read}) == (1 if size > 1 else len(read))
        tool(sorted(glob.glob(f"{traces}/ring-*.json")), read)
        if (scenario, size) == ("work", 2):
            odd_files(sorted(glob.glob(f"{traces}/ring-*.json")), directory)
        if scenario in ("work", "many"):
            left = [name for name in os.listdir(traces) if not name.endswith(".json") and not name.startswith("stats")]
            assert not left, left
            assert [trace.rank for trace in read] == list(range(size))
            {"work": work, "many": many}[scenario](read, size, traces, began)
        else:
            death(scenario, read, size)


main()
