#!/usr/bin/env python3
"""Times every collective of libring beside Open MPI's over TCP, in interleaved rounds, and prints a table; bench.sh has built
both.

The calls of both are timed by the same code (tools/ring-perf/timing.c): averages on the slowest rank of calls that follow
each other, of as many as take 0.2 s. Where there is a form out of place it is that.
"""
import argparse
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), f"{os.path.dirname(HERE)}/peers"]
import machine  # noqa: E402
import peers  # noqa: E402
from units import parse_size, ratio_cell, size_name, time_cell  # noqa: E402

COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter", "all_to_all",
               "all_gather_v", "reduce_scatter_v", "all_to_all_v", "all_reduce_custom", "reduce_scatter_v_custom", "send_recv",
               "barrier"]
# Those that ring-perf measures in place only, and those without a size.
IN_PLACE, WITHOUT_SIZE = ("broadcast",), ("barrier",)
TIMEOUT_S = 300
BUILD = os.environ.get("COLLECTIVES_BUILD", f"{machine.ROOT}/build/collectives")


def parse_collectives(text):
    names = text.split(",")
    for name in names:
        if name not in COLLECTIVES:
            raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(COLLECTIVES)}")
    return names


def sizes_of(collective, sizes):
    return sizes[:1] if collective in WITHOUT_SIZE else sizes


def run(command):
    """What a program prints; None if it failed, which is said on stderr."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        print(f"# {' '.join(command)}: not done after {TIMEOUT_S} s", file=sys.stderr)
        return None
    if done.returncode:
        print(f"# {' '.join(command)}: exit status {done.returncode}: {done.stderr[-300:]}", file=sys.stderr)
        return None
    return done.stdout


def libring(program, collective, n, sizes):
    """{bytes: us}"""
    form = "--in-place" if collective in IN_PLACE else "--out-of-place"
    found = {}
    for size in sizes:
        text = run([program, "--json", "--collective", collective, "--ranks", str(n), "-b", str(size), "-e", str(size), form])
        if text is None:
            break
        result = json.loads(text)["results"][0]
        found[size] = (result["in_place"] or result["out_of_place"])["time_us"]
    return found


def open_mpi(collective, n, sizes):
    launcher = peers.OPEN_MPI_TCP + (peers.YIELD if n > os.cpu_count() else [])
    text = run([*launcher, "-n", str(n), f"{BUILD}/openmpi", collective, *map(str, sizes)])
    lines = [line.split("\t") for line in (text or "").splitlines()]
    return {int(line[0]): float(line[2]) for line in lines if len(line) == 6}


def measure(options):
    """{(n, collective, bytes): {contender: {round: us}}}"""
    contenders = {f"libring {i}" if i > 1 else "libring": lambda *what, program=program: libring(program, *what)
                  for i, program in enumerate(options.ring_perf, 1)}
    if options.openmpi:
        contenders["Open MPI"] = open_mpi
    cells = {}
    for number in range(options.rounds):
        for n in options.n:
            for collective in options.collectives:
                print(f"# round {number + 1} of {options.rounds}, n={n}, {collective}", file=sys.stderr, flush=True)
                sizes = sizes_of(collective, options.sizes)
                # Every round begins with another: what runs first may find a rested machine.
                order = list(contenders) if number % 2 == 0 else list(reversed(contenders))
                for name in order:
                    for size, us in contenders[name](collective, n, sizes).items():
                        cells.setdefault((n, collective, size), {}).setdefault(name, {})[number] = us
    return list(contenders), cells


def table(contenders, cells):
    base = contenders[-1]
    others = contenders[:-1] or contenders
    header = ["n", "collective", "size", *contenders, *(f"{name} / {base}" for name in others)]
    text = "| " + " | ".join(header) + " |\n" + "|" + " --- |" * len(header) + "\n"
    for (n, collective, size), times in sorted(cells.items(), key=lambda item: (item[0][0], COLLECTIVES.index(item[0][1]))):
        row = [str(n), collective, "" if collective in WITHOUT_SIZE else size_name(size)]
        row += [time_cell(list(times.get(name, {}).values())) for name in contenders]
        of_base = times.get(base, {})
        for name in others:
            row.append(ratio_cell([us / of_base[number] for number, us in times.get(name, {}).items() if number in of_base], ".2f"))
        text += "| " + " | ".join(row) + " |\n"
    return text


def document(options, contenders, cells):
    return (f"# Collectives beside Open MPI\n\n{machine.describe()}\n\n"
            f"float32, sum, out of place (broadcast in place), over loopback; sizes as nccl-tests counts them, parts of those in _v in "
            f"proportion to 1, 2, 3, ...\nTime of a call on the slowest rank: the average over calls that follow each other, "
            f"then the median over {options.rounds} interleaved\nround(s), and the best. The ratio is the median of the rounds' "
            f"own, with their range: below 1, libring is faster.\n\n{table(contenders, cells)}")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ring-perf", nargs="+", default=[f"{machine.ROOT}/build/tools/ring-perf"], metavar="PROGRAM",
                        help="one, or several builds to compare")
    parser.add_argument("--collectives", type=parse_collectives, default=COLLECTIVES, metavar="NAME,...")
    parser.add_argument("--n", type=lambda text: [int(number) for number in text.split(",")], default="2,4")
    parser.add_argument("--sizes", type=lambda text: [parse_size(size) for size in text.split(",")], default="8,1K,32K,1M,16M")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-openmpi", dest="openmpi", action="store_false", help="libring alone")
    parser.add_argument("--markdown", metavar="FILE", help="writes the table there, too")
    options = parser.parse_args()
    if options.rounds < 1 or min(options.n) < 2:
        parser.error("a benchmark has a round at least, and a ring two ranks")
    return options


def main():
    options = parse_options()
    text = document(options, *measure(options))
    if options.markdown:
        with open(options.markdown, "w") as file:
            file.write(text)
    print(text, end="")


if __name__ == "__main__":
    main()
