"""A rank that isn't the library's: `rank.py stock|model RANK HOSTFILE SCRIPT POOL OUT`. It joins the ring as stock MLX or as
wire.py does, says so, waits for a line, does what the script says and writes a line a result. See mixed.py."""
import array
import json
import os
import struct
import sys
import zlib

from wire import BYTES, WORDS, Ring, packed, values_of

NAN = {  # sign and exponent's least NaN of each type whose sums are compared without their NaNs' bits
    "float16": (2, 0x7FFF, 0x7C00, 0x7E00), "bfloat16": (2, 0x7FFF, 0x7F80, 0x7FC0), "float32": (4, 0x7FFFFFFF, 0x7F800000, 0x7FC00000),
    "complex64": (4, 0x7FFFFFFF, 0x7F800000, 0x7FC00000), "float64": (8, (1 << 63) - 1, 0x7FF << 52, 0x7FF8 << 48),
}


class Stock:
    """MLX as it is installed. Results are arrays of bytes."""

    def __init__(self, rank, hostfile):
        os.environ["MLX_RANK"], os.environ["MLX_HOSTFILE"] = str(rank), hostfile
        import mlx.core as mx
        self.mx = mx
        self.group = mx.distributed.init(strict=True, backend="ring")
        self.rank, self.size = self.group.rank(), self.group.size()

    def array(self, dtype, data):
        flat = self.mx.array(memoryview(data)) if len(data) else self.mx.zeros((0,), self.mx.uint8)
        return flat.view(self.type(dtype))

    def type(self, dtype):
        return getattr(self.mx, dtype if dtype != "bool" else "bool_")

    def done(self, result):
        self.mx.eval(result)
        return bytes(memoryview(result.view(self.mx.uint8)))

    def all_reduce(self, op, dtype, data):
        distributed, x = self.mx.distributed, self.array(dtype, data)
        if op == "max":
            return self.done(distributed.all_max(x, group=self.group))
        if op == "min":
            return self.done(distributed.all_min(x, group=self.group))
        result = distributed.all_sum(x, group=self.group)
        if op == "mean":
            self.mx.eval(result)
            if dtype == "complex64":  # a complex division rounds otherwise
                result = result.view(self.mx.float32)
            result = result / self.mx.array(self.size, result.dtype)
        return self.done(result)

    def all_gather(self, dtype, data):
        return self.done(self.mx.distributed.all_gather(self.array(dtype, data), group=self.group))

    def barrier(self):
        return self.done(self.mx.distributed.all_sum(self.mx.array(1.0), group=self.group).reshape(1))

    def send(self, dtype, data, to):
        self.mx.eval(self.mx.distributed.send(self.array(dtype, data), to, group=self.group))

    def recv(self, dtype, count, source):
        return self.done(self.mx.distributed.recv((count,), self.type(dtype), source, group=self.group))

    def without_nans(self, dtype, data):
        width, magnitude, infinity, nan = NAN[dtype]
        if not data:
            return data
        word = getattr(self.mx, f"uint{8 * width}")
        bits = self.mx.array(memoryview(data)).view(word)
        constant = lambda value: self.mx.array(memoryview(value.to_bytes(width, "little"))).view(word)
        return self.done(self.mx.where((bits & constant(magnitude)) > constant(infinity), constant(nan), bits))


class Model:
    def __init__(self, rank, hostfile):
        with open(hostfile) as file:
            self.ring = Ring(rank, json.load(file))
        self.rank, self.size = rank, self.ring.size

    def all_reduce(self, op, dtype, data):
        result = self.ring.all_reduce("sum" if op == "mean" else op, dtype, data)
        if op != "mean":
            return result
        return mean(dtype, result, self.size)

    def all_gather(self, dtype, data):
        return self.ring.all_gather(data)

    def barrier(self):
        return self.ring.all_reduce("sum", "float32", b"\x00\x00\x80\x3f")

    def send(self, dtype, data, to):
        self.ring.send(data, to)

    def recv(self, dtype, count, source):
        return self.ring.recv(count * BYTES[dtype], source)

    def without_nans(self, dtype, data):
        width, magnitude, infinity, nan = NAN[dtype]
        return array.array(WORDS[width], [nan if b & magnitude > infinity else b for b in array.array(WORDS[width], data)]).tobytes()


def mean(dtype, data, size):
    dtype = "float32" if dtype == "complex64" else dtype
    return packed(dtype, [value / size for value in values_of(dtype, data)])


class Pool:
    """What ranks take their elements from: a file a kind, at a position that differs by rank."""

    def __init__(self, folder):
        self.folder, self.files = folder, {}

    def take(self, kind, position, rank, count):
        if kind not in self.files:
            with open(os.path.join(self.folder, kind), "rb") as file:
                self.files[kind] = file.read()
        data = self.files[kind]
        start = (position + rank * 4194352) % (len(data) - count) & ~15
        return data[start : start + count]


def run(engine, lines, pool, out):
    rank, size = engine.rank, engine.size
    for number, line in enumerate(lines):
        name, dtype, count, position, kind, mode = line.split()
        count = int(count)
        results = []
        take = lambda: pool.take(kind, int(position), rank, count * BYTES[dtype])
        if name in ("sum", "max", "min", "mean"):
            result = engine.all_reduce(name, dtype, take())
            if name in ("sum", "mean") and dtype in NAN:
                result = engine.without_nans(dtype, result)
            results.append(result)
        elif name == "gather":
            results.append(engine.all_gather(dtype, take()))
        elif name == "barrier":
            result = engine.barrier()
            assert struct.unpack("<f", result)[0] == size, result
        elif name in ("right", "left"):
            step = 1 if name == "right" else -1
            to, source = (rank + step) % size, (rank - step) % size
            if rank == 0:  # one rank begins; the others take first
                engine.send(dtype, take(), to)
                results.append(engine.recv(dtype, count, source))
            else:
                results.append(engine.recv(dtype, count, source))
                engine.send(dtype, take(), to)
        elif name.startswith("hop"):  # hop:FROM:TO
            source, to = map(int, name.split(":")[1:])
            if rank == source:
                engine.send(dtype, take(), to)
            if rank == to:
                results.append(engine.recv(dtype, count, source))
        else:
            raise ValueError(line)
        for result in results:
            out.write(f"{number} {zlib.crc32(result):08x} {len(result)}\n")


def main():
    kind, rank, hostfile, script, pool, out = sys.argv[1:]
    engine = {"stock": Stock, "model": Model}[kind](int(rank), hostfile)
    print("formed", flush=True)
    sys.stdin.readline()
    with open(script) as file:
        lines = file.read().splitlines()
    with open(out, "w") as file:
        run(engine, lines, Pool(pool), file)
    if kind == "model":
        surplus = engine.ring.close_when_alone()
        assert surplus == 0, f"rank {rank}: {surplus} bytes that nobody asked for"


if __name__ == "__main__":
    main()
