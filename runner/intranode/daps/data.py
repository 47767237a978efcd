"""What is done with the data of a message: copied or added, with gaps on either side; compiled."""

from __future__ import annotations

from runner.intranode.daps.words import ADD_REALS, ME, STAGE
from runner.intranode.moves import add_to, is_whole, move, walk
from runner.intranode.words import REGION
from runner.native.atomic import inner, load, store


@inner
def move_all(me: int, target: int, source: int, size: int) -> None:
    """Copy a region to another one of the same size."""
    if size > 0:
        move(target, source, 0, size, load(me + ME.bounce))


@inner
def add_all(me: int, target: int, source: int, size: int, kind: int) -> None:
    """Add a region to another one of the same size."""
    if is_whole(source):
        add_packed(me, target, load(source + REGION.address), 0, size, kind)
        return
    at, bounce = 0, load(me + ME.bounce)
    while at < size:
        stop = min(at + STAGE, size)
        walk(bounce, source, at, stop, 1)
        add_packed(me, target, bounce, at, stop, kind)
        at = stop


@inner
def add_packed(me: int, region: int, buffer: int, begin: int, end: int, kind: int) -> None:
    """Add what lies in a buffer to bytes ``begin`` to ``end`` (excluded) of a region.

    Both are multiples of 8, and so are all gaps.
    """
    if begin >= end:
        return
    run, n0 = load(region + REGION.run), load(region + REGION.n0)
    row = begin // run
    inside = begin - row * run
    i0, rest = row % n0, row // n0
    n1 = load(region + REGION.n1)
    i1, i2 = rest % n1, rest // n1
    to, source = load(me + ME.to_), load(me + ME.from_)
    left = end - begin
    while left > 0:
        at = load(region + REGION.address) + inside + i0 * load(region + REGION.s0)
        at += i1 * load(region + REGION.s1) + i2 * load(region + REGION.s2)
        piece = min(run - inside, left)
        store(to + REGION.address, at)
        store(source + REGION.address, buffer)
        add_to(to, source, 0, piece, kind == ADD_REALS)
        buffer += piece
        left -= piece
        inside = 0
        i0 += 1
        if i0 == n0:
            i0 = 0
            i1 += 1
            if i1 == n1:
                i1 = 0
                i2 += 1
