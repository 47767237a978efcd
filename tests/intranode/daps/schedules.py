"""Operations and messages under configurations, delays and regions drawn at random; a program."""

from __future__ import annotations

import random
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from runner.runtimes.intranode import ConfigError
from runner.runtimes.intranode.daps import ORDERS, PROGRESS, Config, Daps

LARGEST_EAGER = 4096


def configuration(dice: random.Random) -> Config:
    """Any configuration that has no core of its own for a progress thread."""
    progress = dice.choice(PROGRESS)
    return Config(
        progress=progress,
        order=dice.choice(ORDERS),
        filter=dice.random() < 0.7,
        poll_gap_us=dice.choice((0, 0, 1, 30)),
        waiting=dice.choice(("auto", "yield")),
        spins=dice.choice((0, 1, 50)),
        eager=dice.choice((0, 100, LARGEST_EAGER)),
        seed=dice.randint(0, 1000),
    )


def small_buffers(daps: Daps) -> None:
    """Let the system take few bytes at once, so that most messages are sent in parts."""
    for one in daps.connections:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2048)


def now_and_then(own: random.Random) -> None:
    """Sometimes work outside of the library for a while."""
    if own.random() < 0.15:
        time.sleep(own.choice((0.0, 0.001, 0.004)))


def own_dice(daps: Daps, dice: random.Random) -> random.Random:
    return random.Random(dice.randint(0, 1 << 30) + daps.rank)


def part(dice: random.Random, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """A part of an array of this shape, mostly with gaps; sometimes of one element."""
    found = []
    for count in shape:
        first = dice.randrange(count)
        found.append(slice(first, dice.randint(first + 1, count), dice.choice((1, 1, 2, 3))))
    return tuple(found)


def like(daps: Daps, dice: random.Random, shape: tuple[int, ...], kind: Any = np.float64) -> Any:
    """A new shared array of this shape, mostly with gaps."""
    gaps = tuple(n + dice.choice((0, 0, 1, 4)) for n in shape)
    return daps.zeros(gaps, kind)[tuple(slice(0, n) for n in shape)]


def puts_and_gets(daps: Daps, dice: random.Random) -> bool:
    """Each user writes parts of its rows of every array, and reads them back."""
    shape = dice.randint(1, 8), dice.randint(1, 40), dice.randint(1, 60)
    target = daps.zeros((len(daps.users), *shape))
    window = daps.window(target)
    own, right = own_dice(daps, dice), True
    if not daps.ghost:
        mine = daps.users.index(daps.rank)
        copies = {rank: np.zeros(shape) for rank in daps.users}
        for _ in range(own.randint(1, 12)):
            rank, at = own.choice(daps.users), part(own, shape)
            source = like(daps, own, copies[rank][at].shape)
            source[...] = np.random.default_rng(own.randint(0, 1 << 30)).random(source.shape)
            window.put(rank, source, at=(mine, *at))
            copies[rank][at] = source
            now_and_then(own)
            # Operations on one place have an order only with a flush between them.
            daps.flush(own.choice((rank, None)))
        back = {rank: like(daps, own, shape) for rank in daps.users}
        for rank in own.sample(daps.users, len(daps.users)):
            window.get(rank, back[rank], at=mine)
        now_and_then(own)
        daps.flush()
        right = all(np.array_equal(back[rank], copies[rank]) for rank in daps.users)
    daps.barrier()
    window.free()
    return right


def many_at_once(daps: Daps, dice: random.Random) -> bool:
    """More operations than may be under way, without a flush between them."""
    count = dice.randint(1, 200)
    target = daps.zeros((daps.size, count))
    window = daps.window(target)
    own = own_dice(daps, dice)
    if not daps.ghost:
        source = daps.zeros(count)
        source[:] = np.arange(count) + 1000.0 * daps.rank
        for number in range(count):
            for rank in daps.users:
                window.put(rank, source[number : number + 1], at=(daps.rank, number))
            now_and_then(own)
        daps.flush()
        daps.barrier(users=True)
    daps.barrier()
    window.free()
    if daps.ghost:
        return not target.any()
    wanted = np.zeros(target.shape)
    for rank in daps.users:
        wanted[rank] = np.arange(count) + 1000.0 * rank
    return bool(np.array_equal(target, wanted))


def sums(daps: Daps, dice: random.Random) -> bool:
    """All users add to parts of all arrays at the same time; nothing is lost."""
    kind = dice.choice((np.float64, np.int64))
    shape = dice.randint(1, 6), dice.randint(1, 50), dice.randint(1, 90)
    target = daps.zeros(shape, kind)
    window = daps.window(target)
    own = own_dice(daps, dice)
    added = np.zeros((daps.size, *shape), kind)
    if not daps.ghost:
        for _ in range(own.randint(0, 8)):
            rank, at = own.choice(daps.users), part(own, shape)
            source = like(daps, own, added[rank][at].shape, kind)
            source[...] = np.arange(source.size).reshape(source.shape) + daps.rank
            window.accumulate(rank, source, at=at)
            added[rank][at] += source
            now_and_then(own)
        daps.flush()
        daps.barrier(users=True)
    daps.barrier()
    window.free()
    return bool(np.array_equal(target, daps.comm.allreduce(added)[daps.rank]))


def counters(daps: Daps, dice: random.Random) -> bool:
    """Numbers that users draw from counters are all different, and none is left out."""
    words = daps.zeros((2, 3), np.int64)
    window = daps.window(words)
    own, drawn = own_dice(daps, dice), []
    at = daps.users[dice.randrange(len(daps.users))]
    if not daps.ghost:
        for _ in range(own.randint(0, 15)):
            drawn.append(window.fetch_add(at, (1, -1), 1))
            now_and_then(own)
        daps.barrier(users=True)
    daps.barrier()
    window.free()
    every = sorted(n for one in daps.comm.allgather(drawn) for n in one)
    return every == list(range(len(every))) and words.sum() == len(every) * (daps.rank == at)


def value(rank: int, number: int, shape: tuple[int, ...]) -> Any:
    """The content of a message."""
    count = int(np.prod(shape))
    return (np.arange(count) * 3.0 + 1000.0 * number + rank).reshape(shape)


def exchange(daps: Daps, dice: random.Random) -> bool:
    """Each user sends messages to each one, and receives them in another order, by tag."""
    shapes = [tuple(dice.randint(1, 40) for _ in range(dice.randint(1, 3))) for _ in range(4)]
    own, came, requests = own_dice(daps, dice), [], []
    if not daps.ghost:
        todo = [(rank, n, sends) for rank in daps.users for n in range(4) for sends in (0, 1)]
        for rank, number, sends in own.sample(todo, len(todo)):
            array = like(daps, own, shapes[number])
            if sends:
                array[...] = value(daps.rank, number, shapes[number])
                requests.append(daps.isend(array, rank, number))
            else:
                requests.append(daps.irecv(array, rank, number))
                came.append((rank, number, array))
            now_and_then(own)
        own.shuffle(requests)
        daps.wait(requests[0])
        daps.waitall(requests[1:])
    daps.barrier()
    return all(np.array_equal(array, value(of, n, shapes[n])) for of, n, array in came)


def order(daps: Daps, dice: random.Random) -> bool:
    """Messages with one tag come in the order in which they were sent, short and long ones."""
    count = dice.randint(1, 30)
    sizes = [dice.choice((0, 1, 7, 300, 3000)) for _ in range(count)]
    own, right = own_dice(daps, dice), True
    if not daps.ghost:
        mine, users = daps.users.index(daps.rank), daps.users
        after, before = users[(mine + 1) % len(users)], users[mine - 1]
        sent, got = ([daps.zeros(size) for size in sizes] for _ in range(2))
        for number, array in enumerate(sent):
            array[:] = number
        requests = []
        early = own.randint(0, count)
        requests += [daps.irecv(array, before, 7) for array in got[:early]]
        for array in sent:
            requests.append(daps.isend(array, after, 7))
            now_and_then(own)
        requests += [daps.irecv(array, before, 7) for array in got[early:]]
        daps.waitall(requests)
        right = all((array == n).all() for n, array in enumerate(got))
    daps.barrier()
    return right


def parts(daps: Daps) -> bool:
    """A message of 2 MB with gaps takes many steps, since no step moves all of it."""
    target = next((rank for rank in range(daps.size) if daps.nodes[rank]), None)
    if target is None or daps.rank not in (0, target):
        daps.barrier()
        return True
    array = daps.zeros((1 << 18, 2))[:, 0]
    wanted = np.arange(array.size)
    before = daps.counts
    if daps.rank == 0:
        array[:] = wanted
        daps.send(array, target)
    else:
        daps.recv(array, 0)
    after = daps.counts
    daps.barrier()
    steps = after.own + after.given - before.own - before.given
    return bool(np.array_equal(array, wanted)) and steps >= 4


CHECKS: tuple[Callable[[Daps, random.Random], bool], ...] = (
    *(puts_and_gets, many_at_once, sums, counters, exchange, order),
)


def main(nodes: int, first: int, count: int) -> int:
    """Returns 1 if something is wrong."""
    from mpi4py import MPI

    daps = Daps(MPI.COMM_WORLD, Config(eager=LARGEST_EAGER), nodes)
    small_buffers(daps)
    if not parts(daps):
        print("a message in parts is wrong", flush=True)
        return 1
    for seed in range(first, first + count):
        dice = random.Random(seed)
        config = configuration(dice)
        try:
            daps.configure(config)
        except ConfigError:
            # A node of one rank has no ghost.
            continue
        for check in CHECKS:
            if not all(daps.comm.allgather(check(daps, dice))):
                print(f"{check.__name__} is wrong, seed {seed}: {config}", flush=True)
                return 1
    counts = [daps.comm.allreduce(n) for n in (daps.counts.given, daps.counts.stolen)]
    daps.close()
    if counts[0] != counts[1]:
        print(f"{counts[0]} steps were given, {counts[1]} stolen", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
