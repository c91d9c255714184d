"""What the programs of these tests share: cases, each a function of the world, run one after the other in each rank's one
process, since importing MLX and forming a ring take longer than a case.

    program.py BACKEND [CASE...]

BACKEND is mpi (libring's plugin, by MLX_MPI_LIBNAME) or ring (MLX's own). The last line says how many cases and checks
there were.
"""
import os
import sys
import traceback

import mlx.core as mx

CASES = []
checks = 0


def case(function):
    CASES.append(function)
    return function


def check(holds, *text):
    """`text` is joined only where the check fails."""
    global checks
    checks += 1
    if isinstance(holds, mx.array):
        holds = holds.item()
    if not holds:
        raise AssertionError(" ".join(map(str, text)) or "this doesn't hold")


def check_equal(found, expected, *text):
    """Equal in type, shape and every element. A NaN equals nothing."""
    check(found.dtype == expected.dtype and found.shape == expected.shape, *text,
          f": {found.dtype} {found.shape}, expected {expected.dtype} {expected.shape}")
    check(mx.all(found == expected), *text, ": found", found, "expected", expected)


def check_close(found, expected, *text, rtol, atol=0.0):
    """|found - expected| <= atol + rtol |expected|, element by element."""
    check(found.dtype == expected.dtype and found.shape == expected.shape, *text,
          f": {found.dtype} {found.shape}, expected {expected.dtype} {expected.shape}")
    check(mx.allclose(found, expected, rtol=rtol, atol=atol), *text, ": found", found, "expected", expected)


def check_raises(error, part, function):
    try:
        mx.eval(function())
    except error as e:
        check(part in str(e), f"it says {e}, not {part}")
        return
    check(False, f"no {error.__name__} was raised")


def data(shape, dtype, rank, salt=0):
    """Small whole numbers, so that sums of eight ranks are exact in every type and in any order of additions, which differ
    by rank and from element to element: any rank can compute what another has."""
    count = 1
    for length in shape:
        count *= length
    steps = mx.arange(count, dtype=mx.uint32)
    values = (steps * (2 * rank + 3) + 7 * rank + salt) % 13
    if dtype == mx.bool_:
        return (values % 3 == 0).reshape(shape)
    values = values.astype(dtype)
    if dtype == mx.complex64:
        values = values + 1j * ((steps * (rank + 5) + salt) % 11).astype(dtype)
    return values.reshape(shape)


def backend():
    return sys.argv[1]


def main():
    mx.set_default_device(mx.cpu)
    wanted = sys.argv[2:]
    world = mx.distributed.init(strict=True, backend=backend())
    ran = 0
    for function in CASES:
        if wanted and function.__name__ not in wanted:
            continue
        try:
            function(world)
        except BaseException:
            print(f"{function.__name__} failed on rank {world.rank()} of {world.size()}:", file=sys.stderr)
            traceback.print_exc()
            sys.stderr.flush()
            # Without MLX's destructors: these may wait for ranks that are in the midst of the case.
            os._exit(1)
        ran += 1
    # A rank that ends early mustn't be another's failure.
    mx.eval(mx.distributed.all_sum(mx.ones((1,)), group=world))
    print(f"{ran} cases, {checks} checks", flush=True)
