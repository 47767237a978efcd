"""Messages, copies and sums under configurations drawn at random; a program of several ranks."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from runner.runtimes.intranode import ACCESSES, STRATEGIES, Cab, Config


def configuration(dice: random.Random) -> Config:
    """Any configuration, with chunks so small that there is much to steal."""
    chunks = sorted(64 * dice.randint(1, 200) for _ in range(3))
    return Config(
        steal=dice.random() < 0.9,
        strategy=dice.choice(STRATEGIES),
        saturation=dice.randint(1, 4),
        threshold=dice.choice((0, 1000, 20000)),
        medium_from=20000,
        large_from=60000,
        chunk_small=chunks[0],
        chunk_medium=chunks[1],
        chunk_large=chunks[2],
        access=dice.choice(ACCESSES),
        bundle=dice.random() < 0.5,
        stealers=dice.choice((-1, 0, 1, 2)),
        domains=dice.choice((0, 1, 2, 3)),
        waiting=dice.choice(("auto", "yield")),
        spins=dice.choice((0, 1, 50)),
        seed=dice.randint(0, 1000),
    )


def face(cab: Cab, dice: random.Random, shape: tuple[int, ...]) -> Any:
    """A new shared array of this shape, mostly with gaps."""
    gaps = [n + dice.choice((0, 0, 1, 5)) for n in shape]
    return cab.zeros(tuple(gaps))[tuple(slice(0, n) for n in shape)]


def value(rank: int, number: int, shape: tuple[int, ...]) -> Any:
    """The content of a message."""
    count = int(np.prod(shape))
    return (np.arange(count) * 3.0 + 1000.0 * number + rank).reshape(shape)


def exchange(cab: Cab, dice: random.Random) -> bool:
    """Each rank sends some messages to each other one, and receives them in another order."""
    shapes = [tuple(dice.randint(1, 24) for _ in range(dice.randint(1, 4))) for _ in range(5)]
    own = random.Random(dice.randint(0, 1 << 30) + cab.rank)
    came, requests = [], []
    for other in range(cab.size):
        order = own.sample(range(len(shapes)), len(shapes))
        for number in order:
            array = face(cab, own, shapes[number])
            requests.append(cab.irecv(array, other, number))
            came.append((other, number, array))
    for other in own.sample(range(cab.size), cab.size):
        for number in own.sample(range(len(shapes)), len(shapes)):
            array = face(cab, own, shapes[number])
            array[...] = value(cab.rank, number, shapes[number])
            requests.append(cab.isend(array, other, number))
    own.shuffle(requests)
    cab.waitall(requests)
    return all(np.array_equal(array, value(of, n, shapes[n])) for of, n, array in came)


def order(cab: Cab, dice: random.Random) -> bool:
    """Messages with one tag come in the order in which they were sent, some of MPI between."""
    count = dice.randint(1, 20)
    after, before = (cab.rank + 1) % cab.size, (cab.rank - 1) % cab.size
    sent = [cab.zeros(300) for _ in range(count)]
    got = [cab.zeros(300) for _ in range(count)]
    word = np.zeros(1)
    foreign = [
        cab.comm.Irecv(word, before, 1),
        cab.comm.Isend(np.array([cab.rank + 0.5]), after, 1),
    ]
    requests: list[Any] = [cab.irecv(array, before, 7) for array in got]
    for number, array in enumerate(sent):
        array[:] = number
        requests.append(cab.isend(array, after, 7))
    dice.shuffle(requests)
    cab.wait(requests[0])
    cab.waitall([*foreign, *requests])
    return word[0] == before + 0.5 and all((a == n).all() for n, a in enumerate(got))


def sums(cab: Cab, dice: random.Random) -> bool:
    """All ranks add to the memory of one; nothing is lost."""
    count, times = dice.randint(1, 20000), 3
    kind = dice.choice((np.float64, np.int64))
    target, source = cab.zeros(count, kind), cab.zeros(count, kind)
    source[:] = np.arange(count) + cab.rank
    at = dice.randrange(cab.size)
    shared = cab.arrays_of_all(target)[at]
    cab.barrier()
    for _ in range(times):
        cab.accumulate(shared, source, at)
    cab.barrier()
    expected = times * (cab.size * np.arange(count) + cab.size * (cab.size - 1) // 2)
    return bool(np.array_equal(shared, expected))


def packs(cab: Cab, dice: random.Random) -> bool:
    """Ranks pack and unpack while others wait."""
    own = random.Random(dice.randint(0, 1 << 30) + cab.rank)
    right = True
    for _ in range(own.randint(0, 3)):
        shape = own.randint(1, 40), own.randint(1, 40), own.randint(1, 12)
        array = face(cab, own, shape)
        array[...] = value(cab.rank, 1, shape)
        buffer, back = cab.zeros(shape), face(cab, own, shape)
        cab.pack(buffer, array)
        cab.unpack(back, buffer)
        right = right and np.array_equal(back, array)
    cab.barrier()
    return right


CHECKS: tuple[Callable[[Cab, random.Random], bool], ...] = (exchange, order, sums, packs)


def main() -> int:
    """Returns 1 if something is wrong."""
    from mpi4py import MPI

    cab = Cab(MPI.COMM_WORLD)
    for seed in range(int(sys.argv[1])):
        dice = random.Random(seed)
        config = configuration(dice)
        cab.configure(config)
        cab.barrier()
        for check in CHECKS:
            right = check(cab, dice)
            if not all(cab.comm.allgather(right)):
                print(f"{check.__name__} is wrong, seed {seed}: {config}", flush=True)
                return 1
    stolen = cab.comm.allreduce(cab.chunks.stolen)
    given = cab.comm.allreduce(cab.chunks.given)
    cab.close()
    if MPI.COMM_WORLD.size > 1 and not 0 < stolen == given:
        print(f"{stolen} chunks were stolen, {given} given", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
