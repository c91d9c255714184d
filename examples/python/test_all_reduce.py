"""The smallest program in Python as ranks of rings, and its all_reduce of every type. Argument: libring. Exit status 77: skipped."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SYSTEM = "/usr/bin/python3"
EVERY_TYPE = """
import all_reduce as example, ctypes, numpy as np
group = example.group_p()
example.check(example.ring.ring_group_create_from_env(ctypes.byref(group)))
rank, size = example.ring.ring_group_rank(group), example.ring.ring_group_size(group)
for name in example.DTYPES:
    for count in [0, 1, 7, 1023, 20_001]:
        values = lambda rank: ((np.arange(count) + rank) % 5).astype(name)
        everybody = [values(rank) for rank in range(size)]
        for op, reduced in [("sum", np.add), ("max", np.maximum)]:
            got = values(rank)
            example.all_reduce(group, got, op)
            wanted = everybody[0]
            for other in everybody[1:]: wanted = reduced(wanted, other)
            assert got.dtype == name and (got == wanted).all(), (name, op, count)
matrix = np.full((3, 5), rank, np.float64)
example.all_reduce(group, matrix, "mean")
assert (matrix == (size - 1) / 2).all(), matrix
for refused in [matrix.T, matrix[:, 1:], matrix[::2], matrix.astype(">f8"), np.broadcast_to(matrix, (2, 3, 5))]:
    try:
        example.all_reduce(group, refused)
    except ValueError:
        continue
    raise AssertionError("an array that isn't contiguous was taken")
for array, op, status in [(matrix, "xor", 1), (matrix, "bxor", 3)]:
    try:
        example.all_reduce(group, array, op)
    except example.RingError as error:
        assert error.status == status and "all_reduce" in str(error), error
        continue
    raise AssertionError("the library took " + op)
for unknown in ["complex128", "datetime64[s]"]:
    try:
        example.all_reduce(group, np.zeros(2, unknown))
    except TypeError as error:
        assert str(error) == unknown + " has no libring type", error
        continue
    raise AssertionError("the library took " + unknown)
ones = np.ones(3, np.int8)
example.all_reduce(group, ones)
assert (ones == size).all(), ones
example.all_reduce(group, np.zeros(rank + 1))
"""


def ring(size, work, command):
    """Each rank's exit status and output."""
    port = 10000 + os.getpid() * 7 % 19990
    hosts = os.path.join(work, "hosts.json")
    with open(hosts, "w") as file:
        file.write(str([f"127.0.0.1:{port + rank}" for rank in range(size)]).replace("'", '"'))
    environment = dict(os.environ, RING_HOSTFILE=hosts, RING_CONNECT_TIMEOUT_MS="20000", RING_LIBRARY=sys.argv[1], PYTHONPATH=HERE)
    ranks = [
        subprocess.Popen(command, env=dict(environment, RING_RANK=str(rank)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for rank in range(size)
    ]
    outputs = [rank.communicate(timeout=60)[0] for rank in ranks]
    return [(rank.returncode, output) for rank, output in zip(ranks, outputs)]


def main():
    try:
        import numpy  # noqa: F401
    except ImportError:
        # Debian's python3-numpy is for Debian's Python, which may not be the first in PATH.
        if sys.executable != SYSTEM and os.path.exists(SYSTEM):
            os.execv(SYSTEM, [SYSTEM, *sys.argv])
        print("skipped: there is no NumPy")
        sys.exit(1 if os.environ.get("RING_TESTS_REQUIRE_NUMPY") else 77)
    with tempfile.TemporaryDirectory() as work:
        got = ring(3, work, [sys.executable, os.path.join(HERE, "all_reduce.py")])
        assert got == [(0, f"rank {rank} of 3: 4.5 7.5 10.5 13.5\n") for rank in range(3)], got
        alone = ring(1, work, [sys.executable, "-c", EVERY_TYPE])
        assert alone == [(0, "")], alone
        for size in [2, 3]:
            # Its last call differs between ranks.
            for status, output in ring(size, work, [sys.executable, "-c", EVERY_TYPE]):
                last = output.splitlines()[-1]
                assert status == 1 and last.startswith("all_reduce.RingError: rank ") and "called all_reduce(float64, sum, " in last, output


main()
