"""A rank that times mx.distributed.all_sum: `worker.py BACKEND DTYPE BYTES...`. Prints a line (tabs) a size: bytes, calls, time
of a call in us."""
import sys
import time

import mlx.core as mx

# As tools/ring-perf/timing.c: long enough for a steady average.
MEASURE_S = 0.2
LEAST_CALLS, MOST_CALLS = 5, 5000
WARM_UP_CALLS, PROBE_CALLS = 3, 2
PERIOD = 7


def run(x, calls):
    """Time of these calls, which follow each other."""
    mx.eval(mx.distributed.all_sum(mx.ones((1,))))
    started = time.perf_counter()
    for _ in range(calls):
        # Nobody else has the input: MLX gives its memory to the result.
        x = mx.distributed.all_sum(x)
        mx.eval(x)
    return time.perf_counter() - started


def check_sum(rank, world, count, dtype):
    steps = mx.arange(count, dtype=mx.uint32) % PERIOD
    x = mx.distributed.all_sum((steps + (rank + 1)).astype(dtype))
    if not mx.all(x == (steps * world + world * (world + 1) // 2).astype(dtype)).item():
        sys.exit(f"wrong sum of {count} {dtype}")


def main():
    mx.set_default_device(mx.cpu)
    group = mx.distributed.init(strict=True, backend=sys.argv[1])
    dtype = getattr(mx, sys.argv[2])
    for size in map(int, sys.argv[3:]):
        count = size // dtype.size
        check_sum(group.rank(), group.size(), count, dtype)
        x = mx.zeros((count,), dtype=dtype)
        mx.eval(x)
        run(x, WARM_UP_CALLS)
        # All ranks make as many calls as the slowest would.
        probe = mx.distributed.all_max(mx.array(run(x, PROBE_CALLS) / PROBE_CALLS)).item()
        calls = min(max(int(MEASURE_S / probe), LEAST_CALLS), MOST_CALLS)
        print(f"{size}\t{calls}\t{run(x, calls) / calls * 1e6:.2f}", flush=True)
        del x
        mx.clear_cache()


main()
