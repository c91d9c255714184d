#!/usr/bin/env python3
"""Times all_sum of one MLX program on MLX's own ring and on libring's plugin for MLX's MPI backend, in interleaved rounds, and
prints a table; bench.sh sees to both."""
import argparse
import json
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.dirname(HERE), f"{ROOT}/tests/mlx"]
import machine  # noqa: E402
import ranks  # noqa: E402
from units import parse_size, ratio_cell, size_name, time_cell  # noqa: E402

DTYPES = ("float32", "float16", "bfloat16")
BACKENDS = {"MLX ring": "ring", "libring": "mpi"}
TIMEOUT_S = 120


def measure(options, backend, n, dtype):
    """{bytes: us}; what went wrong is said on stderr."""
    command = [options.python, f"{HERE}/worker.py", backend, dtype, *map(str, options.sizes)]
    environment = ranks.shim_environment(options.shim) if backend == "mpi" else {}
    with ranks.Ranks([command] * n, environment) as ring:
        if not ring.wait(TIMEOUT_S):
            print(ring.failures(), file=sys.stderr)
        lines = [[line.split("\t") for line in ring.out(rank).splitlines()] for rank in range(n)]
    # The slowest rank's. Of a size that some rank hasn't finished there is nothing.
    return {int(rows[0][0]): max(float(row[2]) for row in rows) for rows in zip(*lines)}


def measure_all(options, cells):
    """Adds to {"n dtype bytes": {contender: [us a round, None where there is none]}}."""
    for number in range(options.rounds):
        for n in options.n:
            for dtype in options.dtypes:
                # Every round begins with another: what runs first may find a rested machine.
                earlier = cells.get(f"{n} {dtype} {options.sizes[0]}", {"MLX ring": []})["MLX ring"]
                order = list(BACKENDS) if len(earlier) % 2 == 0 else list(reversed(BACKENDS))
                found = {}
                for name in order:
                    print(f"# round {number + 1} of {options.rounds}, n={n}, {dtype}, {name}", file=sys.stderr, flush=True)
                    found[name] = measure(options, BACKENDS[name], n, dtype)
                for size in options.sizes:
                    cell = cells.setdefault(f"{n} {dtype} {size}", {name: [] for name in BACKENDS})
                    for name in BACKENDS:
                        cell[name].append(found[name].get(size))


def order(key):
    n, dtype, size = key.split()
    return int(n), DTYPES.index(dtype), int(size)


def table(cells):
    text = "| n | type | size | MLX ring | libring | libring / MLX ring |\n" + "|" + " --- |" * 6 + "\n"
    for key in sorted(cells, key=order):
        n, dtype, size = key.split()
        theirs, ours = (cells[key][name] for name in BACKENDS)
        pairs = zip(ours, theirs)
        ratios = [a / b for a, b in pairs if a is not None and b is not None]
        theirs, ours = ([us for us in times if us is not None] for times in (theirs, ours))
        text += f"| {n} | {dtype} | {size_name(int(size))} | {time_cell(theirs)} | {time_cell(ours)} | {ratio_cell(ratios, '.2g')} |\n"
    return text


def document(cells):
    rounds = sorted({len(times) for cell in cells.values() for times in cell.values()})
    return (f"# MLX programs on libring, beside MLX's ring\n\n{machine.describe()}\n\n"
            "mx.distributed.all_sum of one program, with MLX's ring backend and with libring's plugin for its MPI backend, over loopback.\n"
            "Time of a call, evaluated before the next, on the slowest rank: the average over calls that follow each other, then the\n"
            f"median over {' to '.join(map(str, rounds))} interleaved round(s), and the best. The ratio is the median of the rounds' own, "
            f"with their range: below 1, libring is faster.\n\n{table(cells)}")


def parse_dtypes(text):
    names = text.split(",")
    for name in names:
        if name not in DTYPES:
            raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(DTYPES)}")
    return names


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=f"{ROOT}/build/mlxenv/bin/python", help="that has mlx")
    parser.add_argument("--shim", default=f"{ROOT}/target/release/libring_mpi.so", help="libring's plugin")
    parser.add_argument("--n", type=lambda text: [int(number) for number in text.split(",")], default="2,4")
    parser.add_argument("--dtypes", type=parse_dtypes, default=DTYPES, metavar="NAME,...")
    parser.add_argument("--sizes", type=lambda text: [parse_size(size) for size in text.split(",")],
                        default="1K,16K,256K,1M,4M,16M,64M")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--times", metavar="FILE", help="adds the rounds to those of earlier runs in this file, and shows all")
    parser.add_argument("--markdown", metavar="FILE", help="writes the table there, too")
    options = parser.parse_args()
    if options.rounds < 0 or min(options.n) < 2:
        parser.error("a ring has two ranks at least")
    return options


def main():
    options = parse_options()
    ranks.end_when_told()
    cells = {}
    if options.times and os.path.exists(options.times):
        with open(options.times) as file:
            cells = json.load(file)
    measure_all(options, cells)
    if options.times:
        with open(options.times, "w") as file:
            json.dump(cells, file)
    text = document(cells)
    if options.markdown:
        with open(options.markdown, "w") as file:
            file.write(text)
    print(text, end="")


if __name__ == "__main__":
    main()
