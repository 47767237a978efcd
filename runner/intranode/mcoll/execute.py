"""The steps of a program, one after the other; compiled.  MPI is called from here, too.

A rank that waits looks a number of times, and then gives its core away: it yields, or sleeps until
another rank of the node wakes it.  While messages are under way it lets MPI go on meanwhile.
"""

from __future__ import annotations

from runner.intranode.mcoll.elements import combine
from runner.intranode.mcoll.words import (
    ARRIVE,
    AWAIT,
    CLEAR,
    COMBINE,
    COPY,
    COUNTER,
    END,
    ME,
    SIGNAL,
    START,
    STEP,
    WAIT,
)
from runner.native.atomic import (
    add,
    call_0,
    call_2,
    call_nothing_4,
    call_varied_6,
    call_word_3,
    copy,
    inner,
    load,
    pause,
    peek,
    put,
    store,
)
from runner.native.words import LINE

FUNCTIONS = {"run": "int64(int64, int64, int64)"}
"""What Python calls."""
_FUTEX_WAIT, _FUTEX_WAKE, _ALL = 0, 1, 1 << 30
_PAUSES = 64
"""Looks of a rank that spins between two calls that let MPI go on."""


@inner
def _give_way(me: int, counter: int, target: int) -> None:
    """Give the core away for a while."""
    if load(me + ME.active_count) != 0:
        call_nothing_4(
            load(me + ME.testall),
            load(me + ME.active_count),
            load(me + ME.active),
            me + ME.flag,
            load(me + ME.statuses),
        )
    if load(me + ME.sleeps) == 0 or load(me + ME.active_count) != 0:
        call_0(load(me + ME.yield_))
        return
    # Whoever changes the counter after this sees that somebody sleeps.
    add(counter + COUNTER.sleepers, 1)
    seen = peek(counter)
    if seen < target:
        call_varied_6(
            load(me + ME.syscall),
            load(me + ME.futex),
            counter,
            _FUTEX_WAIT,
            seen & 0xFFFFFFFF,
            me + ME.seconds,
            0,
        )
    add(counter + COUNTER.sleepers, -1)


@inner
def _wait(me: int, counter: int, target: int, looks: int) -> bool:
    """Wait until a counter has a value; False after so many looks and turns given away."""
    seen, spins = 0, load(me + ME.spins)
    while peek(counter) < target:
        if looks <= 0:
            return False
        seen += 1
        if 0 <= spins < seen:
            _give_way(me, counter, target)
            looks -= 1
        else:
            pause()
            if spins < 0 and seen % _PAUSES == 0:
                looks -= 1
                if load(me + ME.active_count) != 0:
                    call_nothing_4(
                        load(me + ME.testall),
                        load(me + ME.active_count),
                        load(me + ME.active),
                        me + ME.flag,
                        load(me + ME.statuses),
                    )
    return True


@inner
def _raise(me: int, counter: int, wakes: int) -> int:
    """Add 1 to a counter, and wake who sleeps for multiples of ``wakes``; returns the value."""
    value = add(counter, 1) + 1
    if value % wakes == 0 and peek(counter + COUNTER.sleepers) != 0:
        call_varied_6(load(me + ME.syscall), load(me + ME.futex), counter, _FUTEX_WAKE, _ALL, 0, 0)
    return value


def run(me: int, step: int, looks: int) -> int:
    """Run the steps from this one on; 0 at the end, else the step that still waits."""
    while True:
        kind = load(step + STEP.kind)
        to = load(me + load(step + STEP.to_base)) + load(step + STEP.to)
        count = load(step + STEP.count)
        if kind == COPY:
            copy(to, load(me + load(step + STEP.a_base)) + load(step + STEP.a), count)
        elif kind == COMBINE:
            combine(
                load(step + STEP.code),
                to,
                load(me + load(step + STEP.a_base)) + load(step + STEP.a),
                load(me + load(step + STEP.b_base)) + load(step + STEP.b),
                count,
            )
        elif kind == ARRIVE:
            ranks = load(me + ME.ranks)
            value = _raise(me, to, ranks)
            store(me + ME.target, (value + ranks - 1) // ranks * ranks)
        elif kind == AWAIT:
            target = count
            if target == 0:
                target = load(me + ME.target)
            if not _wait(me, to, target, looks):
                return step
        elif kind == SIGNAL:
            _raise(me, to, 1)
        elif kind == CLEAR:
            for n in range(count):
                put(to + LINE * n, 0)
        elif kind == START:
            store(me + ME.active, to)
            store(me + ME.active_count, count)
            store(me + ME.messages, load(me + ME.messages) + load(step + STEP.a))
            store(me + ME.bytes, load(me + ME.bytes) + load(step + STEP.b))
            call_2(load(me + ME.startall), count, to)
        elif kind == WAIT:
            call_word_3(load(me + ME.waitall), count, to, load(me + ME.statuses))
            store(me + ME.active_count, 0)
        elif kind == END:
            return 0
        step += STEP.size
