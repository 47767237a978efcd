"""Compiled copies between regions, and sums: the operations on a chunk.

A chunk is a range of bytes of a region as if it were packed. Sums are of doubles or 64-bit
integers, in chunks of whole elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from runner.runtimes.core.atomic import copy, inner, load, load_real, store, store_real
from runner.runtimes.intranode.cab_records import ADD_REALS, ADD_WORDS, BOUNCE, MOVE, PACK, REGION

Walk = Callable[[int, int, int, int], None]
_WORD = 8
_LANES = 8
"""Elements added by one operation; the compiler does not vectorise this by itself."""


@inner
def is_whole(region: int) -> bool:
    """True if the region has no gaps."""
    rows = load(region + REGION.n0) * load(region + REGION.n1) * load(region + REGION.n2)
    return rows == 1


@inner
def _copy_words(target: int, target_step: int, source: int, source_step: int, count: int) -> None:
    for n in range(count):
        store(target + target_step * n, load(source + source_step * n))


def _lanes(kind: Any, operation: str) -> Any:
    """Machine code that adds ``_LANES`` elements at one address to those at another one."""

    def generate(context: Any, builder: Any, signature: Any, addresses: Any) -> Any:
        vector = ir.VectorType(kind, _LANES).as_pointer()
        target, source = (builder.inttoptr(address, vector) for address in addresses)
        values = builder.load(target, align=_WORD), builder.load(source, align=_WORD)
        builder.store(getattr(builder, operation)(*values), target, align=_WORD)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _add_real_lanes(typing: Any, target: Any, source: Any) -> Any:
    return _lanes(ir.DoubleType(), "fadd")


@intrinsic  # type: ignore[untyped-decorator]
def _add_word_lanes(typing: Any, target: Any, source: Any) -> Any:
    return _lanes(ir.IntType(64), "add")


@inner
def add_to(a: int, b: int, size: int, operation: int) -> None:
    """Add ``size`` bytes of elements at ``b`` to those at ``a``."""
    last, reals = a + size, operation == ADD_REALS
    while a + _WORD * _LANES <= last:
        if reals:
            _add_real_lanes(a, b)
        else:
            _add_word_lanes(a, b)
        a += _WORD * _LANES
        b += _WORD * _LANES
    while a < last:
        if reals:
            store_real(a, load_real(a) + load_real(b))
        else:
            store(a, load(a) + load(b))
        a += _WORD
        b += _WORD


def _walk(operation: int) -> Walk:
    """The walk over a region for one operation, compiled separately: rows need no decisions.

    ``PACK`` copies bytes of the region to the beginning of a buffer; others copy or add from there.
    """

    @inner
    def walk(buffer: int, region: int, begin: int, end: int) -> None:
        run = load(region + REGION.run)
        row = begin // run
        inside = begin - row * run
        n0, s0 = load(region + REGION.n0), load(region + REGION.s0)
        n1, s1 = load(region + REGION.n1), load(region + REGION.s1)
        s2 = load(region + REGION.s2)
        i0, rest = row % n0, row // n0
        i1, i2 = rest % n1, rest // n1
        first = load(region + REGION.address)
        words = run == _WORD and inside == 0 and ((first | s0 | s1 | s2 | buffer) & 7) == 0
        words = words and (operation == MOVE or operation == PACK)  # noqa: SIM109
        left = end - begin
        while left > 0:
            at = first + i2 * s2 + i1 * s1 + i0 * s0
            if words:
                rows = min(n0 - i0, left // _WORD)
                if operation == PACK:
                    _copy_words(buffer, _WORD, at, s0, rows)
                else:
                    _copy_words(at, s0, buffer, _WORD, rows)
                buffer += _WORD * rows
                left -= _WORD * rows
                i0 += rows
            else:
                piece = min(run - inside, left)
                if operation == PACK:
                    copy(buffer, at + inside, piece)
                elif operation == MOVE:
                    copy(at + inside, buffer, piece)
                else:
                    add_to(at + inside, buffer, piece, operation)
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

    return walk


pack, unpack, _add_reals, _add_words = map(_walk, (PACK, MOVE, ADD_REALS, ADD_WORDS))


@inner
def put_in(buffer: int, region: int, begin: int, end: int, operation: int) -> None:
    """Copy or add the beginning of a buffer to these bytes of a region."""
    if operation == MOVE:
        unpack(buffer, region, begin, end)
    elif operation == ADD_REALS:
        _add_reals(buffer, region, begin, end)
    else:
        _add_words(buffer, region, begin, end)


@inner
def move(target: int, source: int, begin: int, end: int, bounce: int) -> None:
    """Copy bytes ``begin`` to ``end`` (excluded) of a region to another one of the same size.

    Between two regions with gaps, blocks are packed to ``bounce`` and unpacked from there.
    """
    if is_whole(target):
        pack(load(target + REGION.address) + begin, source, begin, end)
        return
    if is_whole(source):
        unpack(load(source + REGION.address) + begin, target, begin, end)
        return
    at = begin
    while at < end:
        stop = min(at + BOUNCE, end)
        pack(bounce, source, at, stop)
        unpack(bounce, target, at, stop)
        at = stop


def copy_over(target: int, source: int, size: int, chunk: int, times: int) -> None:
    """Copy ``size`` bytes chunk by chunk, ``times`` times: the probe of the machine."""
    while times > 0:
        at = 0
        while at < size:
            copy(target + at, source + at, min(chunk, size - at))
            at += chunk
        times -= 1
