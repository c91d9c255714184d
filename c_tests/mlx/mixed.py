"""Rings of the library's processes and others: `mixed.py stock|model RANK_PROGRAM [--python PYTHON] [--sizes 2,3] [--rings n:k:SPEC...]`.
A ring is a letter a rank: L is RANK_PROGRAM (src/mlx/rank.c) on MLX's wire, S stock MLX under PYTHON, M wire.py. For each
size and number of addresses a ring of the others alone says what is right; every mixed one must give each result bit for bit,
but for which NaN a sum has. Prints how many results agreed."""
import argparse
import array
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from wire import BYTES, PACKET

HERE = os.path.dirname(os.path.abspath(__file__))
FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64")
POOL_BYTES = 16 << 20
AT_ONCE = 6  # rings that form beside the one that runs: MLX sleeps for seconds where its neighbour isn't there yet
FORMS_S, RUNS_S = 90, 120


def write_pools(folder):
    """Files that ranks take elements from: any bits; and floats of a few magnitudes, whose sums round, among special ones."""
    source = random.Random(20)
    bits = source.randbytes(POOL_BYTES)

    def put(name, data):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)

    def masked(width, keep, base):
        pattern = lambda word: int.from_bytes(word.to_bytes(width, "little") * (POOL_BYTES // width), "little")
        return (int.from_bytes(bits, "little") & pattern(keep) | pattern(base)).to_bytes(POOL_BYTES, "little")

    put("bits", bits)
    bools = masked(1, 1, 0)
    put("bool", bools)
    put("truth", bools.translate(bytes((0, 0xA2)) + bytes(254)))  # the same for the library's callers
    for name, code, width, exponent, mantissa in (("f16", "H", 2, 5, 10), ("bf16", "H", 2, 8, 7), ("f32", "I", 4, 8, 23), ("f64", "Q", 8, 11, 52)):
        sign, infinity = 1 << 8 * width - 1, ((1 << exponent) - 1) << mantissa
        keep = sign | 7 << mantissa | (1 << mantissa) - 1  # eight magnitudes
        base = (1 << exponent - 1) - 8 << mantissa
        values = array.array(code, masked(width, keep, base))
        specials = [
            0, sign, infinity, sign | infinity, infinity | 1 << mantissa - 1, sign | infinity | 1 << mantissa - 1 | 5, infinity | 1,
            1, sign | 1, (1 << mantissa) - 1, 1 << mantissa, infinity - 1, sign | infinity - 1,
        ]
        stride = 61 * len(specials)
        for i, special in enumerate(specials):
            count = len(values[61 * i :: stride])
            values[61 * i :: stride] = array.array(code, [special]) * count
        put(name, values.tobytes())


def pools_of(dtype):
    if dtype == "bool":
        return ["bool"]
    if dtype in FLOATS:
        return [{"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "complex64": "f32"}[dtype], "bits"]
    return ["bits"]


THIN = {4: 2, 5: 4}  # MLX's threads spin, so that a call of five ranks on two cores takes 0.1 s: one line in so many


def script(n, k, full, heavy):
    """Lines for a ring of n with k addresses: with `full` every type with every count, else fewer."""
    source = random.Random(1000 * n + k)
    lines, modes, pools, turn = [], itertools.cycle("oia"), {d: itertools.cycle(pools_of(d)) for d in BYTES}, itertools.count()

    def add(name, dtype, count, mode=None):
        lines.append(f"{name} {dtype} {count} {16 * source.randrange(1 << 18)} {next(pools[dtype])} {mode or next(modes)}")

    small = sorted({0, 1, 2, n - 1, n, n + 1, 7, 1000})
    for dtype in BYTES:
        names = ["sum", "max", "min", "gather"] + (["mean"] if dtype in FLOATS else [])
        for name in names:
            for count in small if full else [small[next(turn) % len(small)]]:
                add(name, dtype, count)
            if full or next(turn) % 3 == 0:
                add(name, dtype, 65537 if heavy else 4099)
        add("right", dtype, small[next(turn) % len(small)], "s")
        add("left", dtype, small[next(turn) % len(small)], "x")
        add("right", dtype, 1000, "x")
        add("left", dtype, 1031, "a")
        add("barrier", "float32", 0)

    # Where one part becomes two, and where another follows.
    for parts in sorted({2, 2 * k - 1, 2 * k} - {1}):
        for dtype, name in (("float32", "sum"), ("uint8", "max"), ("float16", "sum"), ("complex64", "min")) if heavy else (("uint64", "sum"),):
            edge = n * PACKET * parts // BYTES[dtype]
            for count in (edge - 1, edge, edge + 1) if full else (edge - 1, edge + 1) if heavy else (edge,):
                add(name, dtype, count)
        for dtype in ("uint8", "int32")[: 2 if heavy else 1]:
            edge = PACKET * parts // BYTES[dtype]
            for count in (edge - 1, edge, edge + 1) if full else (edge - 1, edge + 1):
                add("gather", dtype, count)
    for count in (1023, 1024, 1025, 2047, 2048, 2049, 4097):  # the least share of a socket
        add("right", "uint8", count, "s")
        add("left", "uint8", count, "x")
    for rank in range(n):
        add(f"hop:{rank}:{(rank + 1) % n}", "float32", 1000)
        add(f"hop:{rank}:{(rank - 1) % n}", "int16", 65537)
    if heavy:
        for name in ("right", "left"):
            add(name, "float32", 1 << 20, "s")
            add(name, "float32", 1 << 20, "x")
        add("right", "float32", 3 << 20, "a")
        add("sum", "float32", 3 << 20)
        add("gather", "float32", 1 << 20)
        for dtype in FLOATS[: 3 if full else 1]:
            add("mean", dtype, (1 << 20) + 3)
        add("max", "float16", 3 << 20)
        add("sum", "bool", (1 << 20) + 1)
    return lines if full else lines[k % 2 :: THIN.get(n, 1) if heavy else n - 1]


class Ports:
    """Ports of this host below those that its connections get. Each is held by a socket that doesn't listen, beside which
    one that reuses addresses may."""

    def __init__(self):
        self.next = 10000 + os.getpid() * 61 % 20000
        self.held = []

    def take(self):
        while True:
            self.next = 10000 + (self.next + 1 - 10000) % 20000
            holder = socket.socket()
            try:
                holder.bind(("", self.next))
            except OSError:
                holder.close()
                continue
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            self.held.append(holder)
            return self.next


class RingOfProcesses:
    def __init__(self, job, spec, k, script_path, delays=None):
        self.spec, self.k, self.label = spec, k, f"{spec} with {k} address{'es' if k > 1 else ''}"
        n = len(spec)
        self.folder = tempfile.mkdtemp(dir=job.folder)
        hosts = [[f"127.0.0.1:{job.ports.take()}" for _ in range(k)] for _ in range(n)]
        hostfile = os.path.join(self.folder, "hosts")
        with open(hostfile, "w") as file:
            json.dump(hosts, file)
        self.outs = [os.path.join(self.folder, f"out.{rank}") for rank in range(n)]
        self.said = [open(os.path.join(self.folder, f"said.{rank}"), "w+b") for rank in range(n)]
        self.processes = []
        # The connections are made in a chain that the last rank begins; whoever is late is waited for.
        for rank in range(n):
            command = job.command(spec[rank]) + self.arguments(rank, hostfile, script_path, job)
            if delays:
                command = ["sh", "-c", 'sleep "$0" && exec "$@"', str(delays[rank])] + command
            self.processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said[rank], env=job.environment))

    def arguments(self, rank, hostfile, script_path, job):
        return [str(rank), hostfile, script_path, job.pool, self.outs[rank]]

    def fail(self, text):
        for rank, process in enumerate(self.processes):
            process.poll()
            self.said[rank].seek(0)
            print(f"  rank {rank} ({self.spec[rank]}), exit status {process.returncode}: {self.said[rank].read().decode()[-2000:].strip()}")
        self.end()
        sys.exit(f"ring {self.label}: {text}")

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
        for file in self.said:
            file.close()

    def run(self):
        """Returns each rank's lines."""
        for rank, process in enumerate(self.processes):
            os.set_blocking(process.stdout.fileno(), False)
        waiting, deadline = set(range(len(self.spec))), time.monotonic() + FORMS_S
        while waiting:
            for rank in list(waiting):
                if (self.processes[rank].stdout.read() or b"").startswith(b"formed"):
                    waiting.remove(rank)
                elif self.processes[rank].poll() is not None:
                    self.fail(f"rank {rank} ended before the ring stood")
            if time.monotonic() > deadline:
                self.fail(f"ranks {sorted(waiting)} had no ring after {FORMS_S} s")
            if waiting:
                time.sleep(0.005)
        for process in self.processes:
            process.stdin.write(b"\n")
            process.stdin.flush()
        deadline = time.monotonic() + RUNS_S
        for rank, process in enumerate(self.processes):
            try:
                status = process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.fail(f"rank {rank} still ran after {RUNS_S} s")
            if status:
                self.fail(f"rank {rank} failed")
        self.end()
        results = []
        for path in self.outs:
            with open(path) as file:
                results.append(file.read().splitlines())
        shutil.rmtree(self.folder)
        return results


class Job:
    def __init__(self, options, folder):
        self.options, self.folder, self.ports = options, folder, Ports()
        self.pool = os.path.join(folder, "pool")
        os.mkdir(self.pool)
        write_pools(self.pool)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("MLX_", "RING_"))}

    def command(self, letter):
        rank = os.path.join(HERE, "rank.py")
        return {"L": [self.options.program], "S": [self.options.python, rank, "stock"], "M": [sys.executable, rank, "model"]}[letter]

    def rings(self):
        """(n, k, [the ring that is right, mixed ones...])"""
        other = "S" if self.options.baseline == "stock" else "M"
        if self.options.rings:
            for n, k, specs in (ring.split(":") for ring in self.options.rings):
                yield int(n), int(k), [other * int(n)] + specs.split(",")
            return
        for n in self.options.sizes:
            for k in (1, 2):
                specs = ["".join(letters) for letters in itertools.product(other + "L", repeat=n)]
                yield n, k, [other * n] + [spec for spec in specs if "L" in spec and self.is_wanted(spec, n, k)]

    def is_wanted(self, spec, n, k):
        """All rings of two and three; of the larger ones a few, and with two addresses fewer."""
        lone = spec.count("L") == 1 or (spec.count("L") == n - 1 and k == 1)
        mixture = [letter == "L" for letter in spec] in ([True, False] * 2, [False, False, True, True], [True, False, True, False, True], [False, True, True, False, False])
        if self.options.baseline == "model" and n > 2:
            return mixture or spec in ("LMM", "MML", "LML") or spec == "L" * n
        return self.options.all or n < 4 or lone or mixture or spec == "L" * n

    def run(self):
        todo = []
        scripts = {}
        for n, k, specs in self.rings():
            path = os.path.join(self.folder, f"script.{n}.{k}")
            scripts[n, k] = script(n, k, full=self.options.all or (n == 2 and self.options.baseline == "stock"), heavy=not any("M" in spec for spec in specs))
            with open(path, "w") as file:
                file.write("\n".join(scripts[n, k]) + "\n")
            todo += [(spec, k, path) for spec in specs]
        forming, checks, rings, right = [], 0, 0, {}
        started = time.monotonic()
        try:
            while todo or forming:
                while todo and len(forming) < AT_ONCE:
                    forming.append(RingOfProcesses(self, *todo.pop(0)))
                ring = forming.pop(0)
                n, before = len(ring.spec), time.monotonic()
                results = ring.run()
                if (n, ring.k) not in right:
                    right[n, ring.k] = results
                    continue
                lines = scripts[n, ring.k]
                for rank in range(n):
                    for mine, theirs in itertools.zip_longest(results[rank], right[n, ring.k][rank]):
                        if mine != theirs:
                            number = int((mine or theirs).split()[0])
                            sys.exit(f"ring {ring.label}: rank {rank}: {lines[number]}: {mine}, not {theirs}")
                        checks += 1
                rings += 1
                if self.options.verbose:
                    print(f"{ring.label}: {len(results[0])} results a rank, {time.monotonic() - before:.1f} s", flush=True)
        finally:
            for ring in forming:
                ring.end()
        print(f"{rings} rings, {checks} results agree with {'stock MLX' if self.options.baseline == 'stock' else 'the model'}; {time.monotonic() - started:.0f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("baseline", choices=("stock", "model"))
    parser.add_argument("program")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=[2, 3, 4, 5])
    parser.add_argument("--rings", nargs="*", help="n:k:SPEC,SPEC")
    parser.add_argument("--all", action="store_true", help="every ring and every line: ten times as long")
    parser.add_argument("--verbose", action="store_true")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the ranks and their files go, too
    folder = tempfile.mkdtemp()
    try:
        Job(parser.parse_args(), folder).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
