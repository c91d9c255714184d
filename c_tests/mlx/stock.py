"""Rings of the library and stock MLX that form late or lose a rank: `stock.py starts|faults PROGRAMS --python PYTHON`. PROGRAMS
is the folder of mlx_rank and mlx_loop."""
import argparse
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import mixed
from mixed import HERE, RingOfProcesses

HEARS_S = 1.0  # from a rank's end to what the library's ranks are told
THROWS_S = 3.0  # MLX promises nothing; it tries ten times
TIMEOUT_S = 2.0
CPU_SHARE = 0.05


class StockJob(mixed.Job):
    def __init__(self, options, folder, loops):
        super().__init__(options, folder)
        self.loops = loops

    def command(self, letter):
        if self.loops:
            return [os.path.join(self.options.programs, "mlx_loop")] if letter == "L" else [self.options.python, os.path.join(HERE, "loop.py")]
        return super().command(letter)


def starts(options, folder):
    """Every order of coming, seconds apart: MLX tries again after 1, 2 and 4 s."""
    options.program = os.path.join(options.programs, "mlx_rank")
    job = StockJob(options, folder, loops=False)
    script = os.path.join(folder, "script")
    with open(script, "w") as file:
        file.write("sum float32 1000 0 f32 o\ngather int16 77 160 bits i\nright int32 5000 320 bits x\nbarrier float32 0 0 f32 o\nmax float64 2 480 f64 o\n")
    todo = []
    for spec in ("LS", "SL", "LSS", "SLS", "SSL", "LLS"):
        for order in itertools.permutations(range(len(spec))):
            apart = 0.7 + 0.8 * (len(todo) % 3)
            todo.append((spec, 1 + len(todo) % 2, script, [apart * place for place in order]))
    right, rings, running = {}, 0, []
    for spec, k in (("SS", 1), ("SSS", 1), ("SS", 2), ("SSS", 2)):
        right[len(spec), k] = RingOfProcesses(job, spec, k, script).run()
    while todo or running:
        while todo and len(running) < 8:
            running.append(RingOfProcesses(job, *todo.pop(0)))
        ring = running.pop(0)
        results = ring.run()
        if results != right[len(ring.spec), ring.k]:
            sys.exit(f"ring {ring.label}: {results}, not {right[len(ring.spec), ring.k]}")
        rings += 1
    print(f"{rings} rings whose ranks came in every order work")


class Loops(RingOfProcesses):
    """A ring of loops."""

    forgotten = 0  # times that MLX waited for ever

    def __init__(self, job, spec, k=1, count=1 << 20):
        self.count = count
        super().__init__(job, spec, k, None)
        for rank, process in enumerate(self.processes):
            if self.line(rank, 60) != "formed":
                self.fail(f"rank {rank} has no ring")

    def arguments(self, rank, hostfile, script, job):
        return [str(rank), hostfile, str(int(TIMEOUT_S * 1000)), str(self.count)]

    def process_line(self, rank):
        """The next line of a rank, or None."""
        os.set_blocking(self.processes[rank].stdout.fileno(), False)
        ended = self.processes[rank].poll() is not None
        text = (self.processes[rank].stdout.readline() or b"").decode()
        if ended and not text:
            self.fail(f"rank {rank} ended")
        return text.rstrip("\n") or None  # a line is written whole

    def line(self, rank, limit_s):
        """The next line of a rank, within the limit."""
        deadline = time.monotonic() + limit_s
        while not (text := self.process_line(rank)):
            if time.monotonic() > deadline:
                self.fail(f"rank {rank} said nothing for {limit_s} s")
            time.sleep(0.002)
        return text

    def tell(self, ranks, line):
        for rank in ranks:
            self.processes[rank].stdin.write(line.encode() + b"\n")
            self.processes[rank].stdin.flush()

    def letters(self, letter, besides=()):
        return [rank for rank in range(len(self.spec)) if self.spec[rank] == letter and rank not in besides]

    def signal(self, rank, number):
        self.when = time.monotonic()
        os.kill(self.processes[rank].pid, number)

    def expect_library(self, rank, status, named, from_s, to_s):
        said = self.line(rank, to_s + 5).split(" ", 5)
        got, blamed, entered, failed, used, text = said[0], int(said[1]), float(said[2]), float(said[3]), float(said[4]), said[5]
        took = failed - self.when
        if got != status or not from_s <= took <= to_s:
            self.fail(f"rank {rank}: {got} after {took:.3f} s: {text}")
        neighbours = ((rank + 1) % len(self.spec), (rank - 1) % len(self.spec))
        if named is not None and (blamed != named or f"rank {named}" not in text) or blamed not in neighbours:
            self.fail(f"rank {rank} names {blamed}, not {named}: {text}")
        if status == "RING_STATUS_TIMEOUT" and used > CPU_SHARE * (failed - entered):
            self.fail(f"rank {rank} used {used:.3f} s of a core in {failed - entered:.3f} s")

    def expect_exception(self, rank):
        """Or what stands for one: MLX 0.32.4 now and then forgets a task when its connections have ended, in rings of its
        own kind as well, and waits for ever. It has found the end then, and says so."""
        deadline = self.when + THROWS_S
        while not (said := self.process_line(rank)):
            if time.monotonic() > deadline:
                self.said[rank].seek(0)
                if b"Too many send/recv errors" not in self.said[rank].read():
                    self.fail(f"rank {rank} hasn't found the end of its connections")
                Loops.forgotten += 1
                return
            time.sleep(0.005)
        if not said.startswith("exception"):
            self.fail(f"rank {rank}: {said}")


def killed_stock(job, spec, victim, idle):
    """The library's ranks hear of a dead MLX neighbour, and from them MLX's of the end."""
    ring = Loops(job, spec)
    if not idle:
        ring.tell(range(len(spec)), "call")
        time.sleep(0.2)
    ring.signal(victim, signal.SIGKILL)
    if idle:
        time.sleep(0.2)
        ring.when = time.monotonic()
        ring.tell((rank for rank in range(len(spec)) if rank != victim), "call")
    for rank in ring.letters("L"):
        ring.expect_library(rank, "RING_STATUS_PEER_LOST", victim if len(spec) == 2 else None, 0, HEARS_S)
    for rank in ring.letters("S", (victim,)):
        ring.expect_exception(rank)
    ring.end()


def killed_library(job, spec, victim, how):
    ring = Loops(job, spec)
    ring.tell(range(len(spec)), "call")
    time.sleep(0.2)
    if how == "abort":
        ring.when = time.monotonic()
        ring.tell((victim,), "abort")
        if not ring.line(victim, 1).startswith("RING_STATUS_ABORTED"):
            ring.fail(f"rank {victim} isn't aborted")
    else:
        ring.signal(victim, signal.SIGKILL)
    for rank in ring.letters("S"):
        ring.expect_exception(rank)
    for rank in ring.letters("L", (victim,)):
        ring.expect_library(rank, "RING_STATUS_PEER_LOST", None, 0, HEARS_S)
    ring.end()


def stopped_stock(job, spec, victim, count):
    """The library's ranks wait until their deadline, asleep, and close; the stopped one finds that when it goes on."""
    ring = Loops(job, spec, count=count)
    ring.tell(range(len(spec)), "call")
    time.sleep(0.2)
    ring.signal(victim, signal.SIGSTOP)
    for rank in ring.letters("L"):
        ring.expect_library(rank, "RING_STATUS_TIMEOUT", victim if len(spec) == 2 else None, TIMEOUT_S - 0.3, TIMEOUT_S + 0.6 + HEARS_S)
    for rank in ring.letters("S", (victim,)):
        ring.expect_exception(rank)
    ring.signal(victim, signal.SIGCONT)
    ring.expect_exception(victim)
    ring.end()


def last_message(job, spec, count):
    """Whoever sends and leaves at once has delivered."""
    ring = Loops(job, spec, count=count)
    ring.tell((0,), "send")
    time.sleep(0.3)
    ring.tell((1,), "recv")
    if ring.line(1, 10) != "received":
        ring.fail("nothing came")
    if ring.processes[0].wait(10):
        ring.fail("rank 0 failed")
    ring.end()


def faults(options, folder):
    options.program = None
    job = StockJob(options, folder, loops=True)
    cases = 0
    for case in (
        lambda: [killed_stock(job, spec, spec.index("S"), idle) for spec in ("LS", "SL", "LSL", "LLS", "SLL") for idle in (False, True)],
        lambda: [killed_stock(job, "SLS", victim, False) for victim in (0, 2)],
        lambda: [killed_stock(job, "SLSL", victim, False) for victim in (0, 2)],
        lambda: [killed_library(job, spec, spec.index("L"), how) for spec in ("LS", "SL", "SLS", "SSL", "LLS") for how in ("kill", "abort")],
        lambda: [stopped_stock(job, spec, spec.index("S"), count) for spec in ("LS", "SL") for count in (1, 1 << 20)],
        lambda: [last_message(job, spec, count) for spec in ("LS", "SL", "LSS", "SLS", "SLL") for count in (100, 1 << 18, 6 << 20)],
    ):
        cases += len(case())
    print(f"{cases} faults of rings with stock MLX end as they should; MLX found {Loops.forgotten} without throwing")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=("starts", "faults"))
    parser.add_argument("programs")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the ranks and their files go, too
    folder = tempfile.mkdtemp()
    try:
        {"starts": starts, "faults": faults}[options.part](options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
