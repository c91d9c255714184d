#!/usr/bin/env python3
"""Stock MLX programs on libring's plugin for MLX's MPI backend: `test_mlx.py PYTHON SHIM own|programs|faults|bench`.

PYTHON is an interpreter that has mlx, SHIM the path of libring_mpi.so. Exit status 77: mlx can't be had here, which
RING_TESTS_REQUIRE_MLX=1 makes a failure. `test_mlx.py PYTHON ring faults` shows what MLX's own ring does instead when a rank
dies; that is no test.
"""
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from ranks import Ranks, end_when_told, shim_environment  # noqa: E402

SKIPPED = 77

# Of a ring of one size; a healthy one takes a tenth of it.
LIMIT_S = 60

# A dead rank's neighbours and all others have ended by then.
SEEN_WITHIN_S = 5

# Sums before a rank is disturbed.
GOING = 5

# The third call of a rank that differs.
DIFFERENT_CALL = 3

RING_SIZES = {"own": (2, 3, 4, 8), "programs": (2, 3, 4)}
PROGRAM = {"own": "own_tests.py", "programs": "programs.py"}

# Elements: less than a packet, and more than any socket holds.
SMALL, LARGE = 1021, 1 << 21


class Failed(Exception):
    pass


def require(holds, text):
    if not holds:
        raise Failed(text)


class Run:
    """Programs of one Python, on the shim or (`shim` is "ring") on MLX's own ring."""

    def __init__(self, python, shim):
        self.python = python
        self.backend = "ring" if shim == "ring" else "mpi"
        self.environment = {} if shim == "ring" else shim_environment(shim)

    def ranks(self, n, program, *arguments):
        command = [self.python, f"{HERE}/{program}", self.backend, *map(str, arguments)]
        return Ranks([command] * n, self.environment)

    def cases(self, name):
        for n in RING_SIZES[name]:
            started = time.monotonic()
            with self.ranks(n, PROGRAM[name]) as ranks:
                require(ranks.wait(LIMIT_S), f"{PROGRAM[name]} with {n} ranks:\n{ranks.failures()}")
                said = [re.fullmatch(r"(\d+) cases, (\d+) checks\n", ranks.out(rank)) for rank in range(n)]
                require(all(said), f"{PROGRAM[name]} with {n} ranks: it printed {ranks.out(0)}")
                # A warning of the plugin's is a fault, too.
                require(not any(map(ranks.err, range(n))), f"{PROGRAM[name]} with {n} ranks said {list(map(ranks.err, range(n)))}")
                checks = sum(int(found[2]) for found in said)
                print(f"{n} ranks: {said[0][1]} cases, {checks} checks, {time.monotonic() - started:.1f} s")


def sums(text):
    """[(call, least, largest)] of what faulty.py has printed; its last line may be cut."""
    return [tuple(map(int, found)) for found in re.findall(r"^call (\d+): (\S+) (\S+)\n", text, re.M)]


def check_sums(ranks, n, last):
    """Every sum that was printed is one, up to call `last`."""
    for rank in range(n):
        printed = sums(ranks.out(rank))
        for at, (call, least, largest) in enumerate(printed, 1):
            expected = call % 100000 * n * (n + 1) // 2
            require(call == at and least == largest == expected,
                    f"rank {rank} printed {least} to {largest} for call {call}, not {expected}")
        require(len(printed) <= last, f"rank {rank} printed a sum for call {len(printed)}, but the last that there can be is {last}")


def check_survivors(ranks, n, victims, parts):
    """All but the victims end soon, badly and not without a word."""
    others = [rank for rank in range(n) if rank not in victims]
    ended = ranks.wait_until(lambda: all(ranks.status[rank] is not None for rank in others), SEEN_WITHIN_S)
    require(ended, f"after {SEEN_WITHIN_S} s:\n{ranks.failures()}")
    for rank in others:
        require(ranks.status[rank] != 0, f"rank {rank} ended as if all were well")
        for part in parts:
            require(part in ranks.err(rank), f'rank {rank} doesn\'t say "{part}" but:\n{ranks.err(rank)}')


def killed(run, n, victim, count, pause):
    """The victim dies between two calls where `pause`, else anywhere."""
    arguments = ("--pause", victim, GOING) if pause else ()
    with run.ranks(n, "faulty.py", count, *arguments) as ranks:
        going = ranks.wait_until(lambda: all(len(sums(ranks.out(rank))) >= GOING for rank in range(n))
                                 or any(status is not None for status in ranks.status), LIMIT_S)
        require(going and ranks.status == [None] * n, f"{n} ranks don't sum:\n{ranks.failures()}")
        ranks.kill(victim)
        check_survivors(ranks, n, [victim], [f"rank {victim}"])
        # The call in which it died may have had all it needed of it.
        check_sums(ranks, n, len(sums(ranks.out(victim))) + 1)


def differing(run, n, count):
    """One rank sums an element more than the others: no rank has a sum."""
    with run.ranks(n, "faulty.py", count, "--differ", n - 1, DIFFERENT_CALL) as ranks:
        ranks.wait_until(lambda: None not in ranks.status, LIMIT_S)
        check_survivors(ranks, n, [], [str(count), str(count + 1)])
        check_sums(ranks, n, DIFFERENT_CALL - 1)


def faults(run):
    for n, victim, count, pause in ((2, 0, SMALL, False), (3, 1, LARGE, False), (4, 2, SMALL, True), (4, 3, LARGE, False)):
        what = f"{n} ranks, {count} elements, rank {victim} killed {'between' if pause else 'in'} calls"
        started = time.monotonic()
        try:
            killed(run, n, victim, count, pause)
        except Failed as e:
            raise Failed(f"{what}: {e}") from None
        print(f"{what}: {time.monotonic() - started:.1f} s")
    for n, count in ((2, SMALL), (3, LARGE)):
        started = time.monotonic()
        try:
            differing(run, n, count)
        except Failed as e:
            raise Failed(f"{n} ranks, {count} elements, but one more on one of them: {e}") from None
        print(f"{n} ranks, {count} elements, but one more on one of them: {time.monotonic() - started:.1f} s")


def show_faults(run):
    """What happens, whatever it is."""
    for n, victim, count in ((2, 0, SMALL), (3, 1, LARGE), (4, 2, LARGE)):
        with run.ranks(n, "faulty.py", count) as ranks:
            ranks.wait_until(lambda: all(len(sums(ranks.out(rank))) >= GOING for rank in range(n)), LIMIT_S)
            ranks.kill(victim)
            print(f"{n} ranks, {count} elements, rank {victim} killed; {SEEN_WITHIN_S} s later:")
            ranks.wait_until(lambda: None not in ranks.status, SEEN_WITHIN_S)
            last = len(sums(ranks.out(victim))) + 1
            for rank in range(n):
                if rank == victim:
                    continue
                printed, status = sums(ranks.out(rank)), ranks.status[rank]
                wrong = sum(call > last or least != largest for call, least, largest in printed)
                said = ranks.err(rank).strip().splitlines()
                print(f"    rank {rank}: {'still running' if status is None else f'status {status}'}, {wrong} wrong sums, "
                      f"says {said[-1] if said else 'nothing'}")


def bench(run, shim):
    """Its script runs and prints a table; nothing here depends on how fast anything is."""
    command = [sys.executable, f"{HERE}/../../benches/mlx/bench.py", "--python", run.python, "--shim", shim]
    command += ["--n", "2", "--dtypes", "bfloat16", "--sizes", "1K,1M", "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    rows = re.findall(r"^\| 2 \| bfloat16 \| (1 [KM]iB) \|( \S+ [mu]s \(\S+ [mu]s\) \|){2} \S+ \(\S+ to \S+\) \|$", done.stdout, re.M)
    require(done.returncode == 0 and [row[0] for row in rows] == ["1 KiB", "1 MiB"], done.stdout + done.stderr)


def has_mlx(python):
    try:
        done = subprocess.run([python, "-c", "import mlx.core as mx; assert mx.distributed.is_available()"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def main():
    if len(sys.argv) != 4 or sys.argv[3] not in (*PROGRAM, "faults", "bench"):
        sys.exit(__doc__)
    python, shim, what = sys.argv[1:]
    end_when_told()
    if not has_mlx(python):
        required = os.environ.get("RING_TESTS_REQUIRE_MLX") == "1"
        print("there is no mlx" + (", but RING_TESTS_REQUIRE_MLX is 1" if required else ": skipped"))
        return 1 if required else SKIPPED
    run = Run(python, shim)
    try:
        if what in PROGRAM:
            run.cases(what)
        elif what == "bench":
            bench(run, shim)
        elif run.backend == "ring":
            show_faults(run)
        else:
            faults(run)
    except Failed as e:
        print(e, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
