"""Sums a NumPy array over all ranks, through ctypes. The ring comes from the environment: RING_RANK, RING_HOSTFILE."""

import ctypes
import os
import sys

import numpy as np

OPS = {"sum": 0, "max": 1, "min": 2, "prod": 3, "mean": 4, "band": 5, "bor": 6, "bxor": 7}
DTYPES = {"bool": 0, "uint8": 1, "uint16": 2, "uint32": 3, "uint64": 4, "int8": 5, "int16": 6, "int32": 7, "int64": 8,
          "float16": 9, "float32": 10, "float64": 11, "complex64": 13}
INVALID_ARGUMENT = 1

# RING_LIBRARY is for a library that isn't where the system looks.
NAME = "libring.0.dylib" if sys.platform == "darwin" else "libring.so.0"
ring = ctypes.CDLL(os.environ.get("RING_LIBRARY", NAME))
group_p, buffer_p, size_t, int32 = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32
# Without these ctypes would pass every pointer and every count as an int of 32 bits.
ring.ring_group_create_from_env.argtypes = [ctypes.POINTER(group_p)]
ring.ring_group_rank.argtypes = ring.ring_group_size.argtypes = [group_p]
ring.ring_group_destroy.argtypes = [group_p]
ring.ring_group_destroy.restype = None
ring.ring_all_reduce.argtypes = [group_p, buffer_p, buffer_p, size_t, int32, int32]
ring.ring_last_error.argtypes = [ctypes.c_char_p, size_t]
ring.ring_last_error.restype = size_t


class RingError(Exception):
    def __init__(self, status):
        # The library keeps the text by thread, until its next failure: it is fetched at once.
        text = ctypes.create_string_buffer(ring.ring_last_error(None, 0) + 1)
        ring.ring_last_error(text, len(text))
        super().__init__(text.value.decode())
        self.status = status


def check(status):
    if status != 0:
        raise RingError(status)


def all_reduce(group, array, op="sum"):
    """Reduces the array in place. Python's other threads run meanwhile: ctypes lets go of the interpreter's lock."""
    if not array.flags.c_contiguous or not array.flags.writeable or not array.dtype.isnative:
        raise ValueError("the array's memory must be contiguous, writeable and in the machine's byte order")
    # An unknown type or operation is for the library to refuse: so the call takes its number on every rank.
    dtype, number = DTYPES.get(array.dtype.name, -1), OPS.get(op, -1)
    status = ring.ring_all_reduce(group, array.ctypes.data, array.ctypes.data, array.size, dtype, number)
    if dtype == -1 and status == INVALID_ARGUMENT:
        raise TypeError(f"{array.dtype.name} has no libring type")
    check(status)


if __name__ == "__main__":
    group = group_p()
    check(ring.ring_group_create_from_env(ctypes.byref(group)))
    rank, size = ring.ring_group_rank(group), ring.ring_group_size(group)
    gradient = np.arange(4, dtype=np.float32) + rank + 0.5
    all_reduce(group, gradient)
    print(f"rank {rank} of {size}:", *(f"{value:g}" for value in gradient))
    ring.ring_group_destroy(group)
