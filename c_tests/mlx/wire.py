"""The wire of MLX's ring once more, for tests: a peer that puts exactly those bytes on exactly those sockets. It needs
nothing but Python, and shares no code with the library."""
import array
import queue
import socket
import struct
import threading
import time

PACKET = 262144  # bytes of a rank's share from which on a call is cut into more parts
SMALL = 1024  # bytes that a call of fewer elements than ranks may take, and the least share of a message's socket
BYTES = {
    "bool": 1, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "float16": 2, "bfloat16": 2, "uint32": 4, "int32": 4,
    "float32": 4, "uint64": 8, "int64": 8, "float64": 8, "complex64": 8,
}
CODES = {
    "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q", "int8": "b", "int16": "h", "int32": "i", "int64": "q",
    "float32": "f", "float64": "d", "bool": "B",
}
WORDS = {1: "B", 2: "H", 4: "I", 8: "Q"}


class Lost(Exception):
    """A neighbour has closed a connection."""


def values_of(dtype, data):
    """Elements as numbers that compare as the type's do; complex ones as pairs."""
    if dtype == "float16":
        return struct.unpack(f"<{len(data) // 2}e", data)
    if dtype == "bfloat16":
        return array.array("f", array.array("I", [bits << 16 for bits in array.array("H", data)]).tobytes())
    if dtype == "complex64":
        parts = array.array("f", data)
        return list(zip(parts[::2], parts[1::2]))
    return array.array(CODES[dtype], data)


def half(value):
    if value != value or abs(value) < 65520:  # where rounding to the nearest half gives infinity
        return struct.pack("<e", value)
    return b"\x00\x7c" if value > 0 else b"\x00\xfc"


def packed(dtype, values):
    """Elements of a floating-point type, each value rounded once."""
    if dtype == "float16":
        return b"".join(half(value) for value in values)
    # An array of floats rounds a double once, and a double holds a sum of two floats well enough for that.
    if dtype == "bfloat16":
        bits = array.array("I", array.array("f", values).tobytes())
        return array.array("H", [
            (b >> 16 | 0x40) if b & 0x7FFFFFFF > 0x7F800000 else b + 0x7FFF + (b >> 16 & 1) >> 16 for b in bits
        ]).tobytes()
    return array.array(CODES[dtype], values).tobytes()


def summed(dtype, own, received):
    if dtype == "complex64":
        dtype = "float32"
    mine, theirs = values_of(dtype, own), values_of(dtype, received)
    if dtype == "bool":
        return bytes(a | b for a, b in zip(mine, theirs))
    if dtype in ("float16", "bfloat16", "float32", "float64"):
        return packed(dtype, [a + b for a, b in zip(mine, theirs)])
    mask = (1 << 8 * BYTES[dtype]) - 1
    return array.array(WORDS[BYTES[dtype]], [a + b & mask for a, b in zip(mine, theirs)]).tobytes()


def less(a, b):
    """Complex numbers go by real part, then by imaginary part, and by neither where a NaN is met."""
    if isinstance(a, tuple):
        return a[0] < b[0] or (a[0] == b[0] and a[1] < b[1])
    return a < b


def chosen(op, dtype, own, received):
    width = BYTES[dtype]
    mine, theirs = values_of(dtype, own), values_of(dtype, received)
    own_bits, received_bits = array.array(WORDS[width], own), array.array(WORDS[width], received)
    takes = less if op == "max" else lambda a, b: less(b, a)
    return array.array(WORDS[width], [
        received_bits[i] if takes(mine[i], theirs[i]) else own_bits[i] for i in range(len(own_bits))
    ]).tobytes()


def reduce_bytes(op, dtype, own, received):
    return summed(dtype, own, received) if op == "sum" else chosen(op, dtype, own, received)


def address_of(text):
    host, port = text.split(":")
    return host, int(port)


class Writer:
    """Sends what it is given beside its caller."""

    def __init__(self, connection):
        self.connection, self.parts, self.error = connection, queue.Queue(), None
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            part = self.parts.get()
            try:
                if self.error is None:
                    self.connection.sendall(part)
            except OSError as error:
                self.error = error
            self.parts.task_done()

    def put(self, part):
        if len(part):
            self.parts.put(bytes(part))

    def flush(self):
        self.parts.join()
        if self.error:
            raise Lost(str(self.error))


class Ring:
    """A rank of a ring. `sent` and `received` count bytes."""

    def __init__(self, rank, hosts, patience_s=30):
        self.rank, self.size, self.lanes = rank, len(hosts), len(hosts[rank])
        self.received = self.sent = 0
        self.own, self.next = hosts[rank], hosts[(rank + 1) % self.size]
        self.patience_s = patience_s
        if rank == self.size - 1:
            self.right = self.connect()
            self.left = self.accept()
        else:
            self.left = self.accept()
            self.right = self.connect()
        self.writers = {s: Writer(s) for s in self.left + self.right}
        self.lock = threading.Lock()

    def accept(self):
        accepted = []
        for text in self.own:
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.settimeout(self.patience_s)
            listener.bind(address_of(text))
            listener.listen(0)
            accepted.append(listener.accept()[0])
            listener.close()
        for connection in accepted:
            connection.settimeout(self.patience_s)
        return accepted

    def connect(self):
        connected, deadline = [], time.monotonic() + self.patience_s
        for text in self.next:
            while True:
                try:
                    connection = socket.create_connection(address_of(text), timeout=self.patience_s)
                    break
                except ConnectionRefusedError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.02)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.append(connection)
        return connected

    def take(self, connection, count):
        data = bytearray(count)
        view, got = memoryview(data), 0
        while got < count:
            some = connection.recv_into(view[got:])
            if some == 0:
                raise Lost("closed")
            got += some
        with self.lock:
            self.received += count
        return data

    def give(self, connection, data):
        with self.lock:
            self.sent += len(data)
        self.writers[connection].put(data)

    def sockets(self, part):
        """Where a part leaves, where it arrives, and to which side its segments go."""
        right, left = self.right[part // 2], self.left[part // 2]
        return (left, right, 1) if part % 2 == 0 else (right, left, -1)

    def in_parallel(self, jobs):
        failures = []

        def run(job):
            try:
                job()
            except (Lost, OSError) as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        for writer in self.writers.values():
            writer.flush()

    def reduce_part(self, op, dtype, data, start, length, sockets):
        out, into, d = sockets
        n, width = self.size, BYTES[dtype]
        segment = -(-length // n)

        def span(index):
            first = start + min(index * segment, length)
            last = start + min((index + 1) * segment, length)
            return slice(first * width, last * width)

        s, t = self.rank, (self.rank + d) % n
        for step in range(2 * (n - 1)):
            self.give(out, data[span(s)])
            there = span(t)
            received = self.take(into, there.stop - there.start)
            data[there] = reduce_bytes(op, dtype, bytes(data[there]), bytes(received)) if step < n - 1 else received
            s, t = (s + d) % n, (t + d) % n

    def all_reduce(self, op, dtype, data):
        n, width = self.size, BYTES[dtype]
        size = len(data) // width
        if size < n:
            if width * n > SMALL:
                raise ValueError("fewer elements than ranks")
            padded = bytearray(data) + bytes(width * (n - size))
            whole = (self.right[0], self.left[0], -1)
            self.in_parallel([lambda: self.reduce_part(op, dtype, padded, 0, n, whole)])
            return bytes(padded[: len(data)])
        result = bytearray(data)
        parts = max(1, min(2 * self.lanes, len(data) // (n * PACKET)))
        step = -(-size // parts)
        self.in_parallel([
            lambda i=i: self.reduce_part(op, dtype, result, i * step, max(0, min(size, (i + 1) * step) - i * step), self.sockets(i))
            for i in range(parts)
        ])
        return bytes(result)

    def gather_part(self, blocks, block, start, stop, sockets):
        out, into, d = sockets
        s, t = self.rank, (self.rank + d) % self.size
        for _ in range(self.size - 1):
            self.give(out, blocks[s * block + start : s * block + stop])
            blocks[t * block + start : t * block + stop] = self.take(into, stop - start)
            s, t = (s + d) % self.size, (t + d) % self.size

    def all_gather(self, data):
        block = len(data)
        blocks = bytearray(self.size * block)
        blocks[self.rank * block : (self.rank + 1) * block] = data
        parts = max(1, min(2 * self.lanes, block // PACKET))
        per = -(-block // parts)
        self.in_parallel([
            lambda i=i: self.gather_part(blocks, block, min(i * per, block), min((i + 1) * per, block), self.sockets(i))
            for i in range(parts)
        ])
        return bytes(blocks)

    def shares(self, count):
        segment = max(SMALL, -(-count // self.lanes))
        return [(i * segment, min((i + 1) * segment, count)) for i in range(self.lanes) if i * segment < count]

    def send(self, data, to):
        sockets = self.right if to == (self.rank + 1) % self.size else self.left
        for connection, (start, stop) in zip(sockets, self.shares(len(data))):
            self.give(connection, data[start:stop])
        for writer in self.writers.values():
            writer.flush()

    def recv(self, count, source):
        sockets = self.left if source == (self.rank - 1) % self.size else self.right
        data = bytearray(count)

        def take(connection, start, stop):
            data[start:stop] = self.take(connection, stop - start)

        self.in_parallel([lambda c=c, s=s: take(c, *s) for c, s in zip(sockets, self.shares(count))])
        return bytes(data)

    def close(self):
        for connection in self.left + self.right:
            connection.close()

    def close_when_alone(self):
        """Waits for the neighbours to close; what they may still have sent was not asked for."""
        for connection in self.left + self.right:
            connection.shutdown(socket.SHUT_WR)
        surplus = 0
        for connection in self.left + self.right:
            while more := connection.recv(1 << 16):
                surplus += len(more)
        self.close()
        return surplus
