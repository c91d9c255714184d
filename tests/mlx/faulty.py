#!/usr/bin/env python3
"""Sums in a loop, for test_mlx.py to disturb: `faulty.py BACKEND COUNT [--pause RANK CALL] [--differ RANK CALL]`.

Call i sums rank r's (r + 1) * i, and prints the least and the largest element. With --pause that rank computes something
else for ever after that call; with --differ it sums an element more in that call.
"""
import argparse
import time

import mlx.core as mx


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backend")
    parser.add_argument("count", type=int)
    parser.add_argument("--pause", type=int, nargs=2, metavar=("RANK", "CALL"))
    parser.add_argument("--differ", type=int, nargs=2, metavar=("RANK", "CALL"))
    options = parser.parse_args()
    mx.set_default_device(mx.cpu)
    world = mx.distributed.init(strict=True, backend=options.backend)
    call = 0
    while True:
        call += 1
        # Sums stay whole numbers that float32 has.
        number = call % 100000
        count = options.count + (options.differ == [world.rank(), call])
        found = mx.distributed.all_sum(mx.full((count,), float((world.rank() + 1) * number)))
        least, largest = found.min(), found.max()
        mx.eval(least, largest)
        print(f"call {call}: {least.item():.0f} {largest.item():.0f}", flush=True)
        while options.pause == [world.rank(), call]:
            time.sleep(3600)


if __name__ == "__main__":
    main()
