#!/usr/bin/env python3
"""The benchmarks' scripts work: `test_benches.py RING_PERF RING_WORKER`. Nothing here depends on how fast anything is."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
RING_PERF, os.environ["RING_WORKER"] = sys.argv[1:3]
sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
sys.path[:0] = [HERE, f"{HERE}/peers"]
import peers  # noqa: E402
import plot  # noqa: E402
import tables  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
LARGEST_PLOT_BYTES = 20000
TIMEOUT_S = 60


def cells(markdown):
    """The cells of the tables' rows, without headers."""
    rows = [line.strip("|").split("|") for line in markdown.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in row] for row in rows]
    heads = {index - 1 for index, row in enumerate(rows) if row[0] == "---"}
    return [row for index, row in enumerate(rows) if index not in heads and row[0] != "---"]


def ranks_with(argument):
    """The pids of libring's workers that run with this argument."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                argv = file.read().split("\0")
        except OSError:
            continue
        if argv[0] == os.environ["RING_WORKER"] and argument in argv:
            found.append(int(pid))
    return found


def soon(condition):
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


class Bench(unittest.TestCase):
    def test_a_small_run_writes_tables_and_a_plot(self):
        with tempfile.TemporaryDirectory() as out:
            subprocess.run([sys.executable, f"{HERE}/bench.py", "--ring-perf", RING_PERF, "--out", out, "--sizes", "8:128K:128",
                            "--ranks", "2,3", "--dtypes", "float32,float16", "--connections", "1,2", "--rounds", "2",
                            "--iterations", "2"], check=True, timeout=TIMEOUT_S, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            with open(f"{out}/bench.md") as file:
                markdown = file.read()
            with open(f"{out}/busbw.svg") as file:
                svg = file.read()
        rows = cells(markdown)
        self.assertEqual([row[0] for row in rows], ["8 B", "1 KiB", "128 KiB"] * 2)
        for row in rows:
            self.assertEqual(len(row), 8)
            for time in row[1:4]:
                self.assertRegex(time, r"^\d[\d.]* (us|ms)$")
            large = row[0] == "128 KiB"
            self.assertEqual([bool(cell) for cell in row[4:]], [True, large, large, large])
        for what in ("machine: ", "TCP ", "system: ", "libring "):
            self.assertIn(what, markdown)
        self.assertRegex(markdown, r"\d{4}-\d\d-\d\d")
        self.assertLess(len(svg), LARGEST_PLOT_BYTES)
        root = xml.etree.ElementTree.fromstring(svg)
        self.assertEqual([len(line.get("points").split()) for line in root.iter(f"{SVG}polyline")], [3, 3])
        texts = [text.text for text in root.iter(f"{SVG}text")]
        for text in ("n = 2", "n = 3", "8 B", "32 KiB", "size of the array", "bus bandwidth, GB/s"):
            self.assertIn(text, texts)


class Collectives(unittest.TestCase):
    COMMAND = [sys.executable, f"{HERE}/collectives/bench.py", "--ring-perf", RING_PERF, RING_PERF, "--no-openmpi", "--n", "2,3",
               "--rounds", "2"]

    def test_builds_are_measured_beside_each_other(self):
        done = subprocess.run([*self.COMMAND, "--collectives", "broadcast,all_to_all,barrier", "--sizes", "8,1K"],
                              capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = cells(done.stdout)
        self.assertEqual([row[:3] for row in rows], [[n, *row] for n in "23" for row in (
            ["broadcast", "8 B"], ["broadcast", "1 KiB"], ["all_to_all", "8 B"], ["all_to_all", "1 KiB"], ["barrier", ""])])
        for row in rows:
            for time in row[3:5]:
                self.assertRegex(time, r"^\d[\d.]* (us|ms) \(\d[\d.]* (us|ms)\)$")
            self.assertRegex(row[5], r"^\d+\.\d\d \(\d+\.\d\d to \d+\.\d\d\)$")

    def test_an_unknown_collective_is_refused(self):
        done = subprocess.run([*self.COMMAND, "--collectives", "all-reduce"], capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 2)
        self.assertIn("all_reduce, reduce_scatter", done.stderr)

    def test_every_collective_of_ring_perf_is_measured(self):
        done = subprocess.run([RING_PERF, "--collective", ""], capture_output=True, text=True, timeout=TIMEOUT_S)
        names = done.stderr.split("one of ")[1].split()
        with open(f"{HERE}/collectives/bench.py") as file:
            measured = re.search(r"^COLLECTIVES = \[(.*?)\]", file.read(), re.M | re.S)[1]
        with open(f"{HERE}/collectives/openmpi.c") as file:
            beside = re.search(r"COLLECTIVES\[\] = \{\n(.*?)^\};", file.read(), re.M | re.S)[1]
        self.assertEqual(re.findall(r'"(\w+)"', measured), names)
        self.assertEqual(re.findall(r'\{"(\w+)"', beside), names)


class Plot(unittest.TestCase):
    def test_points_are_in_proportion_and_names_apart(self):
        lines = [("<a>", [(8, 1.0), (128, 2.0), (2048, 4.0)]), ("b", [(8, 0.0), (2048, 4.0)])]
        root = xml.etree.ElementTree.fromstring(plot.line_plot("a < b", lines, "GB/s"))
        first, second = root.iter(f"{SVG}polyline")
        (x0, y0), (x1, y1), (x2, y2) = (map(float, point.split(",")) for point in first.get("points").split())
        self.assertAlmostEqual(x1 - x0, x2 - x1, delta=0.2)
        self.assertAlmostEqual((y0 - y1) * 2, y1 - y2, delta=0.4)
        self.assertTrue(second.get("points").endswith(f"{x2:.1f},{y2:.1f}"))
        heights = [float(text.get("y")) for text in root.iter(f"{SVG}text") if text.text in ("<a>", "b")]
        self.assertGreaterEqual(abs(heights[0] - heights[1]), plot.NAME_HEIGHT)


LINES = """\
about	- a machine
limit	tcp ring	2	4	GB/s
limit	tcp ring, half added	2	3	GB/s
cubic	0	libring	2	float32	16777216	5000	6000	5100	8388.608
cubic	0	libring-2conn	2	float32	16777216	4000	6000	5100	8000
cubic	0	nuvec	2	float32	16777216	10000	11000	9000	33554.432
cubic	0	gloo-ring	2	float32	16777216	20000	21000	9000	16777.216
cubic	0	openmpi-shm	2	float32	16777216	100	110	100	200
cubic	1	libring	2	float32	16777216	18000	19000	9100	8388.608
cubic	1	libring-2conn	2	float32	16777216	16000	19000	9100	8000
cubic	1	nuvec	2	float32	16777216	20000	21000	9000	33554.432
cubic	1	gloo-ring	2	float32	16777216	30000	31000	9000	16777.216
cubic	1	openmpi-shm	2	float32	16777216	100	110	100	200
cubic	0	libring	2	float32	8	12	13	12	24
cubic	0	nuvec	2	float32	8	10	11	10	20
""".splitlines(keepends=True)


class Peers(unittest.TestCase):
    def test_ratios_are_to_the_best_tcp_peer_of_the_same_round(self):
        _, limits, measured = tables.read(LINES)
        with unittest.mock.patch("os.cpu_count", return_value=2):
            small, large = tables.comparison(limits, measured)
        self.assertEqual(small, ["2", "float32", "8 B", "12 us", "-", "10 us nuvec", "1.20 (1.20 to 1.20)", "-", "", "", "",
                                 ""])
        self.assertEqual(large[:8], ["2", "float32", "16 MiB", "11.5 ms", "10 ms", "15 ms nuvec", "0.70 (0.50 to 0.90)",
                                     "0.60 (0.40 to 0.80)"])
        # 16 MiB in 10 ms are 1.68 GB/s: of 4 where two ranks have a core each, of 3 where they share one.
        self.assertEqual(large[8:], ["0.42", "0.25", "0.238", "0.5 gloo-ring"])
        with unittest.mock.patch("os.cpu_count", return_value=1):
            self.assertEqual(tables.comparison(limits, measured)[1][8], "0.56")
        document = tables.document(LINES)
        self.assertIn("- a machine", document)
        self.assertIn("| openmpi-shm | 100.0 |", document)

    def test_libring_runs_as_a_peer(self):
        lines = peers.run("libring-2conn", 2, "float32", ["8:3", "100000:2"], TIMEOUT_S)
        self.assertEqual([line.split("\t")[:4] for line in lines],
                         [["libring-2conn", "2", "float32", size] for size in ("8", "100000")])
        for line in lines:
            median, p99, mean, _ = map(float, line.split("\t")[4:])
            self.assertTrue(0 < median <= p99 and mean > 0, line)

    @unittest.skipUnless(os.path.isdir("/proc/self"), "looks for processes in /proc")
    def test_who_is_told_to_end_ends_its_ranks(self):
        # More calls than are made before the end, in a number that no other process has among its arguments.
        calls = f"8:{30000000 + os.getpid()}"
        runner = subprocess.Popen([sys.executable, f"{HERE}/peers/peers.py", "run", "libring", "2", "float32", calls],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: [os.kill(pid, signal.SIGKILL) for pid in ranks_with(calls)])
        self.assertTrue(soon(lambda: len(ranks_with(calls)) == 2))
        runner.terminate()
        runner.wait(TIMEOUT_S)
        self.assertTrue(soon(lambda: not ranks_with(calls)))

    def test_a_file_of_lines_is_one_runs(self):
        with tempfile.TemporaryDirectory() as out:
            command = [sys.executable, f"{HERE}/peers/bench.py", "--rounds", "1", "--n", "2", "--peers", "libring", "--sizes", "8",
                       "--no-limits", "--lines", f"{out}/lines"]
            first = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
            self.assertEqual(first.returncode, 0, first.stderr)
            self.assertTrue(re.search(r"^\| libring \| [\d.,]+ \|", first.stdout, re.M), first.stdout)
            again = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
            self.assertEqual(again.returncode, 2, again.stderr)
            table = subprocess.run([*command[:2], "--table", f"{out}/lines"], capture_output=True, text=True)
            self.assertEqual(table.stdout, first.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
