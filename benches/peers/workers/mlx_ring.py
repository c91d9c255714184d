"""mx.distributed.all_sum with MLX's ring backend, which reads MLX_RANK and MLX_HOSTFILE."""
import os
import resource
import sys
import time

import mlx.core as mx

mx.set_default_device(mx.cpu)
PERIOD = 7


def cpu_us():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1e6


def fail(what):
    print("ERR", str(what).strip(), flush=True)
    os._exit(1)


def all_sum(x):
    """`x = all_sum(x)` lets MLX give the input's buffer to the result, so that it reduces in place."""
    x = mx.distributed.all_sum(x)
    mx.eval(x)
    return x


def bench(rank, world, dtype, size, iterations):
    dtype_of_mlx = getattr(mx, dtype)
    count = size // dtype_of_mlx.size
    steps = mx.arange(count, dtype=mx.uint32) % PERIOD
    x = all_sum((steps + (rank + 1)).astype(dtype_of_mlx))
    if not mx.all(x == (steps * world + world * (world + 1) // 2).astype(dtype_of_mlx)).item():
        fail("wrong sum")
    del steps
    x = mx.zeros((count,), dtype=dtype_of_mlx)
    mx.eval(x)
    for _ in range(iterations // 10 + 1):
        x = all_sum(x)
    times = []
    cpu, start = cpu_us(), time.perf_counter()
    for _ in range(iterations):
        called = time.perf_counter()
        x = all_sum(x)
        times.append((time.perf_counter() - called) * 1e6)
    mean, cpu = (time.perf_counter() - start) * 1e6 / iterations, (cpu_us() - cpu) / iterations
    times.sort()
    print(f"R\t{rank}\t{dtype}\t{size}\t{times[iterations // 2]:.2f}\t{times[int(iterations * 0.99)]:.2f}\t{mean:.2f}"
          f"\t{cpu:.2f}", flush=True)
    del x
    mx.clear_cache()


def loop(size):
    x = mx.zeros((size // 4,))
    call = 0
    while True:
        x = all_sum(x)
        print("it", call, flush=True)
        call += 1


def mismatch(rank, world):
    count, equal = 1000 if rank == 0 else 2000, 500
    x = all_sum(mx.ones((count,)))
    print(f"returned without error: {mx.sum(x == world).item()} of {count} elements are the sum", flush=True)
    x = all_sum(mx.ones((equal,)))
    print(f"next (equal) call: {mx.sum(x == world).item()} of {equal} elements are the sum", flush=True)


def main():
    group = mx.distributed.init(strict=True, backend="ring")
    rank, world = group.rank(), group.size()
    mode = sys.argv[1]
    if mode == "bench":
        for argument in sys.argv[3:]:
            size, iterations = map(int, argument.split(":"))
            bench(rank, world, sys.argv[2], size, iterations)
    elif mode == "loop":
        loop(int(sys.argv[2]))
    elif mode == "mismatch":
        mismatch(rank, world)


try:
    main()
except Exception as e:
    fail(e)
