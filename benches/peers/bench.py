#!/usr/bin/env python3
"""Runs libring and its peers in interleaved rounds and prints tables; bench.sh has built them.

    bench.py [--rounds 3] [--n 2,4] [--peers a,b] [--sizes 8,1K,1M] [--markdown FILE] [--lines FILE]
    bench.py --table FILE        only prints the tables of the lines that a run has written

Every round runs each peer once, so that a machine that changes its pace does so for all alike. A file of lines is one
run's: numbers of two runs don't compare.
"""
import argparse
import os
import subprocess
import sys
import time

import peers

sys.path.insert(0, os.path.dirname(peers.HERE))
import machine  # noqa: E402
import tables  # noqa: E402
from units import parse_size  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
# Calls a size, for a run of all peers to take minutes.
ITERATIONS = {8: 1000, KIB: 1000, 8 * KIB: 1000, 32 * KIB: 500, 64 * KIB: 500, 256 * KIB: 200, MIB: 100, 16 * MIB: 15,
              128 * MIB: 5}
OTHER_ITERATIONS = 10
# Where ranks outnumber cores, a peer that spins takes milliseconds for any size.
MOST_ITERATIONS_CROWDED = 100
# The size at which dtypes other than float32 are measured.
DTYPE_SIZE = 16 * MIB


def parse_sizes(text):
    return [parse_size(size) for size in text.split(",")]


def known_peers(text):
    names = text.split(",")
    for name in names:
        if name not in peers.PEERS:
            raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(peers.PEERS)}")
    return names


def arguments(n, dtype, sizes):
    most = max(ITERATIONS.values()) if n <= os.cpu_count() else MOST_ITERATIONS_CROWDED
    wanted = sizes if dtype == "float32" else [DTYPE_SIZE]
    return [f"{size}:{min(ITERATIONS.get(size, OTHER_ITERATIONS), most)}" for size in wanted]


def rotated(names, number, rounds):
    """Every round begins with another peer: what runs first may find a rested machine."""
    first = number * len(names) // rounds
    return names[first:] + names[:first]


def rounds(options, file):
    congestion = machine.congestion_control()
    for number in range(options.rounds):
        if options.limits:
            file.write(subprocess.run([f"{peers.BUILD}/limits"], stdout=subprocess.PIPE, text=True).stdout)
        for n in options.n:
            for name in rotated(options.peers, number, options.rounds):
                print(f"# round {number + 1} of {options.rounds}, n={n}, {name}", file=sys.stderr, flush=True)
                for dtype in peers.PEERS[name].get("dtypes", ("float32",)):
                    for line in peers.run(name, n, dtype, arguments(n, dtype, options.sizes)):
                        file.write(f"{congestion}\t{number}\t{line}\n")
        file.flush()


def main():
    parser = argparse.ArgumentParser(description="Compares libring with its peers.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--n", type=lambda text: [int(n) for n in text.split(",")], default=[2, 4])
    parser.add_argument("--peers", type=known_peers, default=peers.TCP, help="default: libring and the TCP peers")
    parser.add_argument("--sizes", type=parse_sizes, default=list(ITERATIONS))
    parser.add_argument("--no-limits", dest="limits", action="store_false", help="don't measure raw sockets")
    parser.add_argument("--lines", help="new file for what is measured")
    parser.add_argument("--table", metavar="FILE", help="measure nothing, and print the tables of these lines")
    parser.add_argument("--markdown", help="file for the tables, which are printed too")
    options = parser.parse_args()
    peers.end_when_told()
    lines = options.table or options.lines or os.path.join(peers.BUILD, f"lines-{time.strftime('%Y%m%d-%H%M%S')}.tsv")
    if not options.table:
        os.makedirs(os.path.dirname(os.path.abspath(lines)), exist_ok=True)
        try:
            with open(lines, "x") as file:
                file.writelines(f"about\t{line}\n" for line in machine.describe().splitlines())
                rounds(options, file)
        except FileExistsError:
            parser.error(f"{lines} is there already; --table prints its tables")
    with open(lines) as file:
        text = tables.document(file)
    if options.markdown:
        with open(options.markdown, "w") as file:
            file.write(text)
    print(text, end="")
    print(f"# measured lines: {lines}", file=sys.stderr)


if __name__ == "__main__":
    main()
