#!/usr/bin/env python3
"""Measures all-reduces on this host with ring-perf, in interleaved rounds, and writes tables (bench.md) and a plot of the
bus bandwidth (busbw.svg).

The first type and number of connections are measured in place and out of place, at all sizes; the others in place at the
large ones, and given as ratios of the first's times in the same rounds.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

import machine
import plot
from units import parse_size, size_name, time_name

# Below, a call takes its time for system calls, whatever the type of its elements.
LEAST_BYTES_OF_RATIOS = 64 << 10
# Ranks of more than that many share cores so much that ratios cost more time than they tell.
MOST_RANKS_OF_RATIOS = 4
TIMEOUT_S = 300


def parse_sizes(text):
    """FIRST:LAST:FACTOR"""
    first, last, factor = text.split(":")
    sizes = [parse_size(first)]
    if sizes[0] < 1 or int(factor) < 2 or parse_size(last) < sizes[0]:
        raise ValueError(text)
    while sizes[-1] * int(factor) <= parse_size(last):
        sizes.append(sizes[-1] * int(factor))
    return sizes


def parse_numbers(text):
    return [int(number) for number in text.split(",")]


class Series:
    """What is measured for one n: a type and a number of connections. `times` are {bytes: {round: result of ring-perf}}."""

    def __init__(self, ranks, dtype, connections, sizes, both_ways):
        self.ranks, self.dtype, self.connections, self.sizes, self.both_ways = ranks, dtype, connections, sizes, both_ways
        self.out_of_place, self.in_place = {}, {}

    def measure(self, options, number):
        factor = self.sizes[1] // self.sizes[0] if len(self.sizes) > 1 else 2
        command = [options.ring_perf, "--json", "--ranks", str(self.ranks), "--connections", str(self.connections),
                   "-d", self.dtype, "-b", str(self.sizes[0]), "-e", str(self.sizes[-1]), "-f", str(factor), "-w", "2"]
        if options.iterations:
            command += ["-n", str(options.iterations)]
        if not self.both_ways:
            command.append("--in-place")
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S)
        if done.returncode:
            sys.exit(f"bench.py: exit status {done.returncode} of {' '.join(command)}")
        for result in json.loads(done.stdout)["results"]:
            self.in_place.setdefault(result["bytes"], {})[number] = result["in_place"]
            if self.both_ways:
                self.out_of_place.setdefault(result["bytes"], {})[number] = result["out_of_place"]

    def busbw(self, size):
        """GB/s in place, as nccl-tests count it."""
        return 2 * (self.ranks - 1) / self.ranks * size / median(self.in_place[size], "median_us") / 1e3


def median(rounds, field):
    return statistics.median(result[field] for result in rounds.values())


def ratio(rounds, base):
    """Time over time in place: the median of the rounds' own ratios."""
    return statistics.median(rounds[number]["median_us"] / base[number]["median_us"] for number in rounds)


def plan(options):
    """{ranks: [series]}, the first of which is the base of the others' ratios."""
    large = [size for size in options.sizes if size >= LEAST_BYTES_OF_RATIOS]
    series = {}
    for ranks in options.ranks:
        base, *types = options.dtypes
        series[ranks] = [Series(ranks, base, options.connections[0], options.sizes, both_ways=True)]
        if large and ranks <= MOST_RANKS_OF_RATIOS:
            series[ranks] += [Series(ranks, dtype, options.connections[0], large, both_ways=False) for dtype in types]
            series[ranks] += [Series(ranks, base, count, large, both_ways=False) for count in options.connections[1:]]
    return series


def row(size, base, others):
    cpu_ns = median(base.in_place[size], "cpu_us") * 1e3 / (base.ranks * size)
    cells = [size_name(size), time_name(median(base.out_of_place[size], "median_us")),
             time_name(median(base.in_place[size], "median_us")), time_name(median(base.in_place[size], "p99_us")),
             f"{base.busbw(size):.3g}", f"{cpu_ns:.3g}" if size >= LEAST_BYTES_OF_RATIOS else ""]
    cells += [f"{ratio(other.in_place[size], base.in_place[size]):.2f}" if size in other.in_place else ""
              for other in others]
    return "| " + " | ".join(cells) + " |\n"


def table(series):
    base, *others = series
    header = ["size", "out of place", "in place", "p99 in place", "busbw GB/s", "CPU ns/B"]
    header += [other.dtype if other.dtype != base.dtype else f"{other.connections} connections" for other in others]
    text = "| " + " | ".join(header) + " |\n" + "|" + " --- |" * len(header) + "\n"
    return text + "".join(row(size, base, others) for size in base.sizes)


def document(options, series):
    base = options.dtypes[0]
    text = (f"# libring on one host\n\n{machine.describe()}\n\n"
            f"`ring_all_reduce`, {base}, sum, {options.connections[0]} connection(s) a neighbour, over loopback. Times are of a "
            f"call on the slowest rank: the median over its calls,\nthen over {options.rounds} interleaved round(s). Bus "
            "bandwidth is 2(n-1)/n times bytes per time, in place. CPU is user and system time of all ranks, in ns\nper "
            "byte and rank. Other types and connections: time in place as a ratio of the third column's, for the same "
            "bytes.\n")
    text += "\n![Bus bandwidth by size](busbw.svg)\n"
    for ranks, of_ranks in series.items():
        text += f"\n## n = {ranks}\n\n{table(of_ranks)}"
    return text


def parse_options():
    root = machine.ROOT
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ring-perf", default=f"{root}/build/tools/ring-perf", metavar="PROGRAM")
    parser.add_argument("--out", default=f"{root}/benches/results", metavar="FOLDER")
    parser.add_argument("--sizes", type=parse_sizes, default="8:128M:4", metavar="FIRST:LAST:FACTOR")
    parser.add_argument("--ranks", type=parse_numbers, default="2,4,8")
    parser.add_argument("--dtypes", type=lambda text: text.split(","), default="float32,float16,bfloat16")
    parser.add_argument("--connections", type=parse_numbers, default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, help="calls a size (as many as take 0.2 s)")
    options = parser.parse_args()
    if options.rounds < 1 or min(options.ranks) < 2:
        parser.error("a benchmark has a round at least, and a ring two ranks")
    return options


def main():
    options = parse_options()
    series = plan(options)
    for number in range(options.rounds):
        for ranks, of_ranks in series.items():
            for one in of_ranks:
                print(f"# round {number + 1} of {options.rounds}, n={ranks}, {one.dtype}, {one.connections} connection(s)",
                      file=sys.stderr, flush=True)
                one.measure(options, number)
    os.makedirs(options.out, exist_ok=True)
    text = document(options, series)
    with open(os.path.join(options.out, "bench.md"), "w") as file:
        file.write(text)
    lines = [(f"n = {ranks}", [(size, of_ranks[0].busbw(size)) for size in options.sizes])
             for ranks, of_ranks in series.items()]
    with open(os.path.join(options.out, "busbw.svg"), "w") as file:
        file.write(plot.line_plot(f"Bus bandwidth of ring_all_reduce, {options.dtypes[0]}, on one host", lines,
                                  "bus bandwidth, GB/s"))
    print(text, end="")


if __name__ == "__main__":
    main()
