"""Messages for the errors found by compiled code."""

from __future__ import annotations

from collections.abc import Iterable

from runner.runtimes.core.core import Core
from runner.runtimes.core.words import (
    CORE,
    LOG_FULL,
    NO_COPY,
    NO_MEMORY,
    NO_RANK,
    NO_TAG,
    TRUNCATED,
)
from runner.runtimes.mate.errors import Deadlock, MateError
from runner.runtimes.mate.task import ENDED, Task


def native_failure(core: Core, code: int, task: Task | None, a: int, b: int, c: int) -> MateError:
    """The error with this code and its three words (:mod:`runner.runtimes.core.words`), except
    MPI's.
    """
    rank = f"rank {task.rank}" if task else "a rank"
    verb = "receive from" if b else "send to"
    size = core.word(CORE.total)
    if code == NO_RANK:
        return MateError(
            f"{rank} wants to {verb} rank {a}; expected a rank from 0 to {size - 1} "
            "(wildcards are not supported)",
            code="mate.message",
        )
    if code == NO_TAG:
        return MateError(
            f"{rank}: tag {a} is not possible: tags go from 0 to {core.word(CORE.tag_top)} "
            "(wildcards are not supported)",
            code="mate.message",
        )
    if code == TRUNCATED:
        return MateError(
            f"rank {c >> 32}: send to {rank} (tag {c & 0xFFFFFFFF}) of {a} bytes, but it "
            f"receives into {b} bytes: message truncated",
            code="mate.message",
        )
    if code == LOG_FULL:
        return MateError(
            f"the event log has room for {a} events: run fewer iterations", code="mate.message"
        )
    if code == NO_COPY:
        return MateError(
            f"{rank}: one side of a message within the process has an MPI datatype, the other "
            "side is a compiled region: use a contiguous array, or messages through MPI",
            code="mate.message",
        )
    assert code == NO_MEMORY
    return MateError(f"there is no memory for {a} bytes of messages under way", code="mate.message")


def deadlock(tasks: Iterable[Task]) -> Deadlock:
    """The error for ranks that wait although nothing can wake them."""
    lines = [
        f"  rank {t.rank}: {t.blocker.describe() if t.blocker else 'waits'}"
        for t in tasks
        if t.state != ENDED
    ]
    return Deadlock(
        "deadlock: no message is under way that could wake one of the waiting ranks\n"
        + "\n".join(lines),
        code="mate.deadlock",
    )
