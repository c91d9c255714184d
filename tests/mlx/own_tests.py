#!/usr/bin/env python3
"""What MLX's own distributed tests hold their backends to, said anew for any number of ranks and with data that differ by
rank: 13 cases.

    groups                  the world, once more, and split by rank // 2 and by rank % 2
    all_reduce              sum, max and min of every type, in several shapes
    all_reduce_of_groups    the same within the groups of a split
    all_gather              every type, the world and the groups of a split
    all_gather_of_ranks     blocks of odd and of large sizes, each rank's in its place
    mixed                   a sum within pairs, gathered over the groups that cross them
    send_recv_in_pairs      ten messages that follow from each other, and one beside a computation
    send_recv_with_others   to the right neighbour and from the left one, every type
    average_gradients       values, and how many calls are made for which all_reduce_size
    donation                a sum takes its input's memory: no more for a product behind it
    shard_linear            layers and gradients, plain and quantised, equal the unsharded ones
    shard_predicate         convolutions sharded by a function of their paths
    clip_grad_norm_sharded  the norm is that of all shards

The tests of MLX that need another release than 0.32.4 (uneven shards, a type of its own for communication), a group without
communication or another backend (JACCL, NCCL) have nothing to do here. On MLX's ring, which can't split, only that is
checked of the splits.
"""
import math

import mlx.core as mx
import mlx.nn as nn
from mlx.nn import utils
from mlx.nn.layers import distributed

import cases
from cases import backend, case, check, check_close, check_equal, check_raises, data

DTYPES = [mx.bool_, mx.int8, mx.uint8, mx.int16, mx.uint16, mx.int32, mx.uint32, mx.int64, mx.uint64, mx.float16, mx.bfloat16,
          mx.float32, mx.float64, mx.complex64]
SHAPES = [(1,), (7,), (10,), (2, 2, 4), (3, 5, 7), (1021,), (99991,)]
LARGE_SHAPE = (1024, 1025)

# Sums of layers are added in another order when sharded: some rounding errors of values about 1.
RTOL, ATOL = 1e-4, 1e-5

# Beyond what a double or 32 bits can tell apart.
WIDE = (1 << 40) + 1


def value(shape, dtype, rank):
    x = data(shape, dtype, rank)
    return x * WIDE if dtype in (mx.int64, mx.uint64) else x


def in_whole_numbers(shape, dtype, rank):
    """(real, imaginary) of value(): everything but complex64 has zeros there."""
    x = data(shape, dtype, rank)
    if dtype == mx.complex64:
        return mx.real(x).astype(mx.int64), mx.imag(x).astype(mx.int64)
    return x.astype(mx.int64), mx.zeros(shape, mx.int64)


def from_whole_numbers(real, imaginary, dtype):
    if dtype == mx.bool_:
        return real > 0
    if dtype == mx.complex64:
        return real.astype(mx.complex64) + 1j * imaginary.astype(mx.complex64)
    x = real.astype(dtype)
    return x * WIDE if dtype in (mx.int64, mx.uint64) else x


# Complex numbers are compared by the real part, then by the imaginary one; that is below this.
IMAGINARY_BELOW = 100


def expected(op, shape, dtype, ranks):
    """What a reduction of these ranks' values gives, by way of whole numbers."""
    parts = [in_whole_numbers(shape, dtype, rank) for rank in ranks]
    if op == "sum":
        return from_whole_numbers(sum(real for real, _ in parts), sum(imaginary for _, imaginary in parts), dtype)
    keys = mx.stack([real * IMAGINARY_BELOW + imaginary for real, imaginary in parts])
    key = keys.max(axis=0) if op == "max" else keys.min(axis=0)
    return from_whole_numbers(key // IMAGINARY_BELOW, key % IMAGINARY_BELOW, dtype)


def reduce(op, x, group):
    return getattr(mx.distributed, f"all_{op}")(x, group=group, stream=mx.cpu)


def check_reductions(group, ranks, rank, shapes):
    """`ranks` are the members by their ranks in the world; `rank` is this one's there."""
    for dtype in DTYPES:
        for shape in shapes:
            x = value(shape, dtype, rank)
            for op in ("sum", "max", "min"):
                check_equal(reduce(op, x, group), expected(op, shape, dtype, ranks), op, "of", dtype, shape)


def splits(world):
    """Both ways to split: (group, its members' ranks in the world)."""
    rank, size = world.rank(), world.size()
    for color_of in (lambda r: r // 2, lambda r: r % 2):
        yield world.split(color_of(rank)), [r for r in range(size) if color_of(r) == color_of(rank)]


def can_split():
    return backend() != "ring"


@case
def groups(world):
    check(world.size() >= 2 and 0 <= world.rank() < world.size())
    again = mx.distributed.init()
    check((again.rank(), again.size()) == (world.rank(), world.size()))
    every = mx.distributed.all_gather(mx.array([world.rank()]))
    check_equal(every, mx.arange(world.size()), "ranks")
    if not can_split():
        check_raises(RuntimeError, "split", lambda: world.split(0).rank())
        return
    for group, members in splits(world):
        check(group.size() == len(members), "a group has", group.size(), "of", members)
        check(members[group.rank()] == world.rank(), "rank", group.rank(), "of", members)
    # A key turns the order round.
    turned = world.split(0, world.size() - world.rank())
    check(turned.rank() == world.size() - 1 - world.rank() and turned.size() == world.size())
    check_equal(mx.distributed.all_gather(mx.array([world.rank()]), group=turned), mx.arange(world.size() - 1, -1, -1))


@case
def all_reduce(world):
    every = range(world.size())
    check_reductions(world, every, world.rank(), SHAPES)
    for dtype in (mx.float32, mx.bfloat16):
        check_equal(reduce("sum", value(LARGE_SHAPE, dtype, world.rank()), world),
                    expected("sum", LARGE_SHAPE, dtype, every), dtype, LARGE_SHAPE)
    # What isn't contiguous, and a scalar.
    x = value((13, 29), mx.float32, world.rank())
    check_equal(reduce("sum", x.T, world), expected("sum", (13, 29), mx.float32, every).T)
    check_equal(reduce("max", x[::2, 1::3], world), expected("max", (13, 29), mx.float32, every)[::2, 1::3])
    check_equal(reduce("sum", mx.array(world.rank() + 0.5), world), mx.array(sum(r + 0.5 for r in every)))
    # Fractions: every addition rounds, and there are size - 1 of them.
    key = mx.random.key(7)
    for dtype, half_ulp in ((mx.float32, 2 ** -24), (mx.float16, 2 ** -11), (mx.bfloat16, 2 ** -8)):
        x = mx.random.uniform(low=1, high=10, shape=(world.size(), 1023), key=key).astype(dtype)
        exact = x.astype(mx.float32).sum(axis=0)
        found = reduce("sum", x[world.rank()], world).astype(mx.float32)
        check_close(found, exact, "fractions of", dtype, rtol=half_ulp * world.size())


@case
def all_reduce_of_groups(world):
    if can_split():
        for group, members in splits(world):
            check_reductions(group, members, world.rank(), [(2, 2, 4), (1021,)])


def check_gathered(group, members, rank):
    for dtype in DTYPES:
        shape = (3, 2, 5)
        found = mx.distributed.all_gather(value(shape, dtype, rank), group=group, stream=mx.cpu)
        check_equal(found, mx.concatenate([value(shape, dtype, r) for r in members]), "gathered", dtype)


@case
def all_gather(world):
    check_gathered(world, range(world.size()), world.rank())
    if can_split():
        for group, members in splits(world):
            check_gathered(group, members, world.rank())


@case
def all_gather_of_ranks(world):
    for count in (1, 7, 1024, 1000003):
        found = mx.distributed.all_gather(data((count,), mx.int32, world.rank())).reshape(world.size(), count)
        for rank in range(world.size()):
            check_equal(found[rank], data((count,), mx.int32, rank), "block", rank, "of", count)


@case
def mixed(world):
    if not can_split():
        return
    size = world.size()
    (pair, in_pair), (crossing, in_crossing) = splits(world)
    x = mx.ones((1, 8)) * (world.rank() + 1)
    found = mx.distributed.all_gather(mx.distributed.all_sum(x, group=pair), group=crossing)
    check(pair.size() == len(in_pair))
    # Each of those that are crossed brings its pair's sum.
    sums = [sum(r + 1 for r in range(size) if r // 2 == other // 2) for other in in_crossing]
    check_equal(found, mx.ones((1, 8)) * mx.array(sums, mx.float32)[:, None])


@case
def send_recv_in_pairs(world):
    if can_split():
        pair = world.split(world.rank() // 2)
        size, rank, first = pair.size(), pair.rank(), world.rank() // 2 * 2
    else:
        # Pairs of neighbours need no group.
        pair, rank, first = world, world.rank() % 2, 0
        size = min(2, world.size() - world.rank() // 2 * 2)
    if size < 2:
        return
    other = 1 - rank if can_split() else world.rank() + 1 - 2 * rank
    sends = rank == 0
    x = mx.ones(10) * (first + 1)
    for _ in range(10):
        if sends:
            mx.eval(mx.distributed.send(2 * x, other, group=pair))
        else:
            x = mx.distributed.recv_like(x, other, group=pair)
            mx.eval(x)
        sends = not sends
    check_equal(x, mx.ones(10) * (first + 1) * (2 ** 10 if rank == 0 else 2 ** 9))
    beside = mx.ones((5, 5)) + mx.array(2.0)
    x = mx.distributed.send(2 * x, other, group=pair) if sends else mx.distributed.recv_like(x, other, group=pair)
    mx.eval(beside, x)
    check_equal(beside, mx.full((5, 5), 3.0))
    check_equal(x, mx.ones(10) * (first + 1) * 2 ** 11 if sends else mx.ones(10) * (first + 1) * 2 ** 10 * 2)


@case
def send_recv_with_others(world):
    rank, size = world.rank(), world.size()
    right, left = (rank + 1) % size, (rank - 1) % size
    for dtype in DTYPES:
        for shape in ((7,), (10,), (1024,), (99991,)):
            mine, others = value(shape, dtype, rank), value(shape, dtype, left)
            # One of the even ranks, if there is an odd number of ranks, sends to another even one.
            if rank % 2 == 0:
                sent = mx.distributed.send(mine, right, group=world, stream=mx.cpu)
                mx.eval(sent)
                got = mx.distributed.recv(shape, dtype, left, group=world, stream=mx.cpu)
            else:
                got = mx.distributed.recv_like(mine, left, group=world, stream=mx.cpu)
                mx.eval(got)
                sent = mx.distributed.send(mine, right, group=world, stream=mx.cpu)
            mx.eval(sent, got)
            check_equal(sent, mine, "what was sent of", dtype, shape)
            check_equal(got, others, "what was received of", dtype, shape)


@case
def average_gradients(world):
    size = world.size()
    grads = [mx.full((10,), float(world.rank() + i)) for i in range(10)]
    means = [mx.full((10,), (size - 1) / 2 + i) for i in range(10)]
    all_sum, calls = mx.distributed.all_sum, []

    def counted(x, **more):
        calls.append(x.dtype)
        return all_sum(x, **more)

    mx.distributed.all_sum = counted
    try:
        for all_reduce_size, expected_calls in ((None, 1), (4 * 50, 2), (4 * 30, 4), (0, 10)):
            calls.clear()
            options = {} if all_reduce_size is None else {"all_reduce_size": all_reduce_size}
            found = utils.average_gradients(grads, **options)
            mx.eval(found)
            check(len(calls) == expected_calls, len(calls), "calls for", all_reduce_size, "bytes")
            check(len(found) == len(grads))
            for mean, grad in zip(means, found):
                check_close(grad, mean, rtol=1e-6)
        # Types that differ go one by one.
        calls.clear()
        found = utils.average_gradients([grads[0], grads[1].astype(mx.float16)])
        mx.eval(found)
        check(calls == [mx.float32, mx.float16], calls)
        check_close(found[1], means[1].astype(mx.float16), rtol=1e-3)
    finally:
        mx.distributed.all_sum = all_sum


@case
def donation(world):
    def peak(function):
        x = mx.random.normal((10007,))
        mx.eval(x)
        mx.synchronize()
        mx.reset_peak_memory()
        mx.eval(function(x))
        mx.synchronize()
        return mx.get_peak_memory()

    scale = mx.array(2.0)
    mx.eval(scale)
    alone = peak(lambda x: mx.distributed.all_sum(x, group=world))
    scaled = peak(lambda x: mx.distributed.all_sum(x, group=world) * scale)
    check(alone == scaled, "peak memory", alone, "and with a product", scaled)


def shard_of(world, length):
    return slice(world.rank() * length // world.size(), (world.rank() + 1) * length // world.size())


def check_layer(world, layer, x, width):
    columns = shard_of(world, width)
    apart, together = (distributed.shard_linear(layer, way, group=world) for way in ("all-to-sharded", "sharded-to-all"))
    y = layer(x)
    check_close(apart(x), y[:, columns], "all to sharded", rtol=RTOL, atol=ATOL)
    check_close(together(x[:, columns]), y, "sharded to all", rtol=RTOL, atol=ATOL)
    return apart, together


# A multiple of the group size of quantisation for each of 2, 3, 4 and 8 ranks; 128 columns a rank at 8.
WIDTH = 64 * 24


@case
def shard_linear(world):
    mx.random.seed(1234)
    x = mx.random.normal((4, WIDTH))
    layer = nn.Linear(WIDTH, WIDTH)
    check_layer(world, layer, x, WIDTH)
    check_layer(world, layer.to_quantized(), x, WIDTH)
    quantized = layer.to_quantized(group_size=32, bits=8, mode="mxfp8")
    for shard in check_layer(world, quantized, x, WIDTH):
        check(shard.mode == "mxfp8" and shard.get("biases") is None)

    width = 48
    whole = nn.Sequential(*[nn.Linear(width, width) for _ in range(4)])
    ways = ("all-to-sharded", "sharded-to-all") * 2
    sharded = nn.Sequential(*[distributed.shard_linear(layer, way, group=world) for layer, way in zip(whole.layers, ways)])
    x, y = mx.random.normal((4, width)), mx.random.normal((4, width))

    def loss(model, x, y):
        return (model(x) * y).sum()

    found, expected_grads = nn.value_and_grad(sharded, loss)(sharded, x, y), nn.value_and_grad(whole, loss)(whole, x, y)
    mx.eval(found, expected_grads)
    check_close(found[0], expected_grads[0], "loss", rtol=RTOL, atol=ATOL)
    part = shard_of(world, width)
    for number, way in enumerate(ways):
        shard, grads = found[1]["layers"][number], expected_grads[1]["layers"][number]
        rows = way == "all-to-sharded"
        weight, bias = (grads["weight"][part], grads["bias"][part]) if rows else (grads["weight"][:, part], grads["bias"])
        check_close(shard["weight"], weight, "weight of", number, rtol=RTOL, atol=ATOL)
        check_close(shard["bias"], bias, "bias of", number, rtol=RTOL, atol=ATOL)


class Convolution(nn.Module):
    def __init__(self, inputs, outputs, group=None):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel_size=3)
        self.summed = group

    def __call__(self, x):
        x = self.conv(x)
        return x if self.summed is None else mx.distributed.all_sum(x, group=self.summed)


@case
def shard_predicate(world):
    mx.random.seed(4321)
    channels = 24

    def layers(group):
        return nn.Sequential(Convolution(3, channels), Convolution(channels, channels, group),
                             Convolution(channels, channels), Convolution(channels, 3, group))

    def axis(path, _):
        _, number, *_, name = path.split(".")
        if int(number) % 2 == 0:
            return 0
        return None if name == "bias" else -1

    whole, sharded = layers(None), layers(world)
    # A bias of a layer that is summed would be added by every rank.
    for number in (1, 3):
        whole.layers[number].conv.bias = mx.zeros_like(whole.layers[number].conv.bias)
    sharded.update(whole.parameters())
    distributed.shard_inplace(sharded, axis, group=world)
    check(sharded.layers[0].conv.weight.shape[0] == channels // world.size())
    check(sharded.layers[1].conv.weight.shape[-1] == channels // world.size())
    x = mx.random.normal((2, 16, 16, 3))
    check_close(sharded(x), whole(x), rtol=RTOL, atol=ATOL)


@case
def clip_grad_norm_sharded(world):
    ranks = range(world.size())
    grads = {"a": mx.full((4, 3), 3.0 + world.rank()), "b": mx.full((5,), 1.0)}
    norm = math.sqrt(sum(12 * (3.0 + rank) ** 2 + 5 for rank in ranks))
    for limit in (1e9, 1.0, norm / 2):
        clipped, found = utils.clip_grad_norm_sharded(grads, max_norm=limit, group=world)
        check_close(found, mx.array(norm), "norm", rtol=1e-5)
        for name, grad in grads.items():
            check_close(clipped[name], grad * min(1.0, limit / (norm + 1e-6)), name, rtol=1e-5)


if __name__ == "__main__":
    cases.main()
