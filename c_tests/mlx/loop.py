"""What src/mlx/loop.c is, with stock MLX: `loop.py RANK HOSTFILE IGNORED ELEMENTS`."""
import os
import sys
import time


def main():
    rank, hostfile, _, count = sys.argv[1:]
    count = int(count)
    os.environ["MLX_RANK"], os.environ["MLX_HOSTFILE"] = rank, hostfile
    import mlx.core as mx
    group = mx.distributed.init(strict=True, backend="ring")
    rank, size = group.rank(), group.size()
    print("formed", flush=True)
    for line in sys.stdin:
        if line == "call\n":
            try:
                while True:
                    mx.eval(mx.distributed.all_sum(mx.zeros((count,)), group=group))
            except Exception as error:
                print(f"exception -1 0 {time.monotonic():.6f} 0 {error}", flush=True)
                os._exit(0)
        elif line == "send\n":
            mx.eval(mx.distributed.send(mx.arange(count, dtype=mx.float32), (rank + 1) % size, group=group))
            return
        elif line == "recv\n":
            values = mx.distributed.recv((count,), mx.float32, (rank - 1) % size, group=group)
            assert mx.array_equal(values, mx.arange(count, dtype=mx.float32)).item()
            print("received", flush=True)


if __name__ == "__main__":
    main()
