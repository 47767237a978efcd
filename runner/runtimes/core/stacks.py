"""The stacks of fibers and of the workers that run them (see :mod:`runner.runtimes.core.fiber`)."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence

import numpy as np

from runner.errors import RunnerError
from runner.runtimes.core.core import Core
from runner.runtimes.core.memory import Memory
from runner.runtimes.core.words import FIBER, LINE, NODE, PAGE, WORKER

STACK = 256 * 1024
"""Bytes of a stack; only used pages take memory. MPI's functions run on it."""
_CONTEXT = 8192
"""Room for a C library's context on any processor."""
_SIZE = FIBER.size + 2 * NODE.size
"""Bytes of a fiber's record and the two nodes after it."""
_LINK, _STACK, _LENGTH = 8, 16, 32
"""Offsets in a context of its successor and its stack."""


class Stacks:
    """Gives each of a core's regions a stack; lives as long as the core."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._kept: list[object] = []
        for worker, context in zip(core.workers, self._contexts(len(core.workers)), strict=True):
            core.memory.put(worker + WORKER.context, context)

    def _contexts(self, count: int) -> list[int]:
        memory = np.zeros(count * _CONTEXT + LINE, np.uint8)
        self._kept.append(memory)
        first = -(-memory.ctypes.data // LINE) * LINE
        return [first + n * _CONTEXT for n in range(count)]

    def give(self, nodes: Sequence[tuple[Memory, int]]) -> None:
        """Give each of these regions (memory, address) a stack, before any of them runs.

        Raises :class:`RunnerError` if there is no memory.
        """
        if not nodes:
            return
        try:
            room = mmap.mmap(-1, len(nodes) * (STACK + PAGE))
        except OSError as error:
            raise RunnerError(
                f"{len(nodes)} stacks of {STACK} bytes: {error}", code="native.memory"
            ) from None
        base = ctypes.addressof(ctypes.c_char.from_buffer(room))
        records = Memory(len(nodes) * _SIZE)
        self._kept += [room, records]
        live = ctypes.c_void_p(self._core.address_of("live_on"))
        for n, ((memory, node), context) in enumerate(
            zip(nodes, self._contexts(len(nodes)), strict=True)
        ):
            low = base + n * (STACK + PAGE)
            # A stack overflow ends the program instead of changing its neighbour.
            if self._libc.mprotect(ctypes.c_void_p(low), ctypes.c_size_t(PAGE), 0):
                raise RunnerError(
                    f"mprotect failed: error {ctypes.get_errno()}", code="native.memory"
                )
            fiber = records.address + n * _SIZE
            single, ahead = fiber + FIBER.size, fiber + FIBER.size + NODE.size
            rank = memory.get(node + NODE.rank)
            for place, value in (
                (fiber + FIBER.context, context),
                (fiber + FIBER.node, node),
                (fiber + FIBER.single, single),
                (fiber + FIBER.ahead, ahead),
                *((one + NODE.rank, rank) for one in (single, ahead)),
                *((one + NODE.fiber, fiber) for one in (single, ahead)),
            ):
                records.put(place, value)
            self._libc.getcontext(ctypes.c_void_p(context))
            for place, value in ((_LINK, 0), (_STACK, low + PAGE), (_LENGTH, STACK)):
                ctypes.c_int64.from_address(context + place).value = value
            self._libc.makecontext(ctypes.c_void_p(context), live, 1, ctypes.c_int64(fiber))
            memory.put(node + NODE.fiber, fiber)
