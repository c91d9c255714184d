#!/usr/bin/env python3
"""Small MLX programs as users write them. What comes out is compared with what one process computes by itself: in plain
Python, or with MLX and no group.

    sums_and_extremes       all_sum, all_max and all_min of odd sizes, by turns, many before any is looked at
    gathers                 all_gather, and the gradient through it
    far_messages            send and recv between any two ranks, of odd and of large sizes
    splits                  groups of different sizes and turns of calls, a split of a split, the world in between
    averages                average_gradients of a tree
    sharded_layer           a linear layer of which each rank has a part
    parameters_gathered     a layer whose parameters are gathered for each call
    training                two layers, data-parallel: losses and weights are those of one process

On MLX's ring, which has neither splits nor messages to other ranks than neighbours, that part is left out.
"""
import random

import mlx.core as mx
import mlx.nn as nn
from mlx import optimizers
from mlx.nn.layers import distributed
from mlx.utils import tree_flatten, tree_unflatten

import cases
from cases import backend, case, check, check_close, check_equal, check_raises, data

# Of one addition of float32.
HALF_ULP = 2.0 ** -24


def numbers(count, rank, salt=0):
    """As Python's floats, each a float32 exactly."""
    generator = random.Random(1000 * salt + rank)
    return [generator.randrange(-(1 << 20), 1 << 20) / 1024 for _ in range(count)]


def sum_of_chain(values, first):
    """From rank `first` on upwards and round, each addition rounded: mx adds, one process."""
    total = values[first]
    for step in range(1, len(values)):
        total = values[(first + step) % len(values)] + total
    return total


def libring_sum(values):
    """The bits that libring gives on its own wire, for less than 64 KiB: segment j of n begins as rank j's numbers, and the
    ranks j + 1, j + 2, ... add theirs."""
    n, flat = len(values), [value.reshape(-1) for value in values]
    length = flat[0].size
    bounds = [j * length // n for j in range(n + 1)]
    parts = [sum_of_chain([x[bounds[j]:bounds[j + 1]] for x in flat], j) for j in range(n) if bounds[j] < bounds[j + 1]]
    return mx.concatenate(parts).reshape(values[0].shape)


@case
def sums_and_extremes(world):
    size = world.size()
    for count in (1, size - 1, size, size + 1, 1021, 20011):
        values = [numbers(count, rank) for rank in range(size)]
        x = mx.array(values[world.rank()])
        total = mx.distributed.all_sum(x, group=world)
        most, least = mx.distributed.all_max(x, group=world), mx.distributed.all_min(x, group=world)
        # Multiples of 1/1024 below 2^20 / 1024 * 8 have exact sums.
        check_equal(total, mx.array([sum(column) for column in zip(*values)]), "sum of", count)
        check_equal(most, mx.array([max(column) for column in zip(*values)]), "max of", count)
        check_equal(least, mx.array([min(column) for column in zip(*values)]), "min of", count)
    # Each call needs the one before; nothing is looked at before the last.
    x = mx.array([float(world.rank() + 1)] * 1021)
    for _ in range(10):
        x = mx.distributed.all_sum(x, group=world) / size + 1.0
        mx.async_eval(x)
    check_close(x, mx.full((1021,), (size + 1) / 2 + 10), rtol=20 * HALF_ULP)
    # Independent calls, of which one is left out by no rank.
    several = [mx.distributed.all_sum(mx.full((i + 1,), float(i * world.rank())), group=world) for i in range(20)]
    mx.eval(several)
    for i, found in enumerate(several):
        check_equal(found, mx.full((i + 1,), float(i * size * (size - 1) // 2)), "call", i)
    # Bits of fractions are those of the documented order.
    if backend() == "mpi":
        for dtype in (mx.float32, mx.float16, mx.bfloat16):
            values = [mx.random.normal((4099,), key=mx.random.key(rank)).astype(dtype) for rank in range(size)]
            check_equal(mx.distributed.all_sum(values[world.rank()], group=world), libring_sum(values), "fractions of", dtype)


@case
def gathers(world):
    size, rank = world.size(), world.rank()
    for shape in ((1,), (5, 3), (1021, 7)):
        count = mx.zeros(shape).size
        found = mx.distributed.all_gather(mx.array(numbers(count, rank)).reshape(shape), group=world)
        check_equal(found.reshape(-1), mx.array([x for other in range(size) for x in numbers(count, other)]), "gathered", shape)
    weights = mx.array(numbers(5 * size, 99)).reshape(size, 5)
    grad = mx.grad(lambda x: (mx.distributed.all_gather(x[None], group=world) * weights).sum())(mx.ones((5,)))
    check_equal(grad, weights[rank], "gradient")


@case
def far_messages(world):
    size, rank = world.size(), world.rank()
    for distance in range(1, size):
        if backend() == "ring" and distance not in (1, size - 1):
            continue
        for number, count in enumerate((1, 257, 300007)):
            for source in range(size):
                target = (source + distance) % size
                if rank == source:
                    mx.eval(mx.distributed.send(data((count,), mx.float32, rank, number), target, group=world))
                if rank == target:
                    found = mx.distributed.recv((count,), mx.float32, source, group=world)
                    check_equal(found, data((count,), mx.float32, source, number), "from", source, "to", target, "of", count)


def members_of(world, color_of):
    return [rank for rank in range(world.size()) if color_of(rank) == color_of(world.rank())]


@case
def splits(world):
    if backend() == "ring":
        return
    rank, size = world.rank(), world.size()

    def check_sum(group, members, salt):
        check(group.size() == len(members) and members[group.rank()] == rank, "rank", group.rank(), "of", members)
        values = [numbers(1021, member, salt) for member in members]
        found = mx.distributed.all_sum(mx.array(numbers(1021, rank, salt)), group=group)
        check_equal(found, mx.array([sum(column) for column in zip(*values)]), "sum of", members)

    for color_of in (lambda r: 0, lambda r: r, lambda r: min(r, 1), lambda r: r % 2):
        group, members = world.split(color_of(rank)), members_of(world, color_of)
        # Groups take as many turns as they like.
        for turn in range(3 + color_of(rank)):
            check_sum(group, members, turn)
        check_sum(world, list(range(size)), 50)
    # The group of the last split, split again: one rank alone, the rest together.
    inner, place = group.split(1 if group.rank() else 0), group.rank()
    check_sum(inner, members[1:] if place else members[:1], 60)
    turned = world.split(7, -rank + size)
    check_sum(turned, list(reversed(range(size))), 70)
    del inner, turned, group
    check_sum(world, list(range(size)), 80)


@case
def averages(world):
    size, rank = world.size(), world.rank()

    def tree(member):
        return {"a": [mx.array(numbers(1021, member)), mx.array(numbers(3, member, 1))],
                "b": {"c": mx.array(numbers(77, member, 2)).reshape(7, 11)}}

    found = nn.average_gradients(tree(rank), group=world)
    every = [dict(tree_flatten(tree(member))) for member in range(size)]
    for name, mean in tree_flatten(found):
        check_close(mean, sum(tree[name] for tree in every) / size, name, rtol=2 * HALF_ULP)


@case
def sharded_layer(world):
    mx.random.seed(5)
    width = 12 * 7
    layer, x = nn.Linear(width, width), mx.random.normal((5, width))
    model = nn.Sequential(distributed.shard_linear(layer, "all-to-sharded", group=world), nn.ReLU(),
                          distributed.shard_linear(layer, "sharded-to-all", group=world))
    expected = nn.Sequential(layer, nn.ReLU(), layer)(x)
    check_close(model(x), expected, rtol=1e-5, atol=1e-6)
    check_close(mx.compile(model)(x), expected, "compiled", rtol=1e-5, atol=1e-6)


@case
def parameters_gathered(world):
    mx.random.seed(6)
    layer, x = nn.Linear(13, 24), mx.random.normal((5, 13))
    expected = layer(x)
    sharded = distributed.fully_shard(layer, group=world)
    check(sharded.module.weight.shape == (24 // world.size(), 13))
    check_close(sharded(x), expected, rtol=4 * HALF_ULP, atol=1e-7)
    # MLX's own limit, of its ring as well: gradients would need a call that its MPI backend doesn't make.
    check_raises(RuntimeError, "sum_scatter", lambda: nn.value_and_grad(sharded, lambda m, x: m(x).sum())(sharded, x)[1])


# A share of it is 12, 8 or 6 for 2, 3 and 4 ranks.
BATCH, STEPS = 24, 20


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(7, 13), nn.Linear(13, 3)

    def __call__(self, x):
        return self.second(nn.relu(self.first(x)))


def mean_square(model, x, y):
    return ((model(x) - y) ** 2).mean()


def train(step_of):
    """The losses and the parameters in the end. `step_of(model, x, y)` gives loss and gradients of the whole batch."""
    mx.random.seed(8)
    model, optimizer = Net(), optimizers.SGD(learning_rate=0.05, momentum=0.9)
    x = mx.random.normal((BATCH, 7))
    y = mx.sin(x @ mx.random.normal((7, 3)))
    mx.eval(model.parameters(), x, y)
    losses = []
    for _ in range(STEPS):
        loss, grads = step_of(model, x, y)
        optimizer.update(model, grads)
        mx.eval(loss, model.parameters(), optimizer.state)
        losses.append(loss.item())
    return losses, tree_flatten(model.parameters())


@case
def training(world):
    """Means of shares of equal size have the mean of the whole batch as their mean; rounding alone differs, and grows step by
    step. Bit by bit it is what one process gets that computes share by share and adds in libring's order: the same
    programs run on the same numbers, of which each addition rounds alike."""
    size, share = world.size(), BATCH // world.size()
    gradient = nn.value_and_grad

    def share_of(rank, model, x, y):
        part = slice(rank * share, (rank + 1) * share)
        return gradient(model, mean_square)(model, x[part], y[part])

    def in_parallel(model, x, y):
        loss, grads = share_of(world.rank(), model, x, y)
        return mx.distributed.all_sum(loss, group=world) / size, nn.average_gradients(grads, group=world)

    def alone(model, x, y):
        return gradient(model, mean_square)(model, x, y)

    def share_by_share(model, x, y):
        steps = [share_of(rank, model, x, y) for rank in range(size)]
        flat = [tree_flatten(grads) for _, grads in steps]
        # One call for all gradients, as average_gradients makes it.
        total = libring_sum([mx.concatenate([grad.reshape(-1) for _, grad in grads]) for grads in flat]) / size
        at, averaged = 0, []
        for name, grad in flat[0]:
            averaged.append((name, total[at:at + grad.size].reshape(grad.shape)))
            at += grad.size
        return libring_sum([loss for loss, _ in steps]) / size, tree_unflatten(averaged)

    losses, parameters = train(in_parallel)
    check(losses[-1] < losses[0] / 2, "it learns:", losses[0], losses[-1])
    expected, parameters_alone = train(alone)
    check_close(mx.array(losses), mx.array(expected), "losses", rtol=1e-4)
    for (name, found), (_, one) in zip(parameters, parameters_alone):
        check_close(found, one, name, rtol=1e-3, atol=1e-5)
    if backend() == "mpi":
        expected, parameters_in_shares = train(share_by_share)
        check(losses == expected, "losses", losses, "expected bit by bit", expected)
        for (name, found), (_, one) in zip(parameters, parameters_in_shares):
            check_equal(found, one, name, "bit by bit")


if __name__ == "__main__":
    cases.main()
