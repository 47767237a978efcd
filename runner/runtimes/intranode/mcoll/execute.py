"""The steps of a program in sequence; compiled. MPI is called from here, too.

A waiting rank looks a number of times, and then gives its core away: it yields, or sleeps until
another rank of the node wakes it. While messages are under way it drives MPI's progress.
"""

from __future__ import annotations

from runner.runtimes.core import atomic
from runner.runtimes.core.atomic import inner, load, pause, peek, put, store
from runner.runtimes.core.words import LINE
from runner.runtimes.intranode.mcoll import program_records
from runner.runtimes.intranode.mcoll.elements import combine
from runner.runtimes.intranode.mcoll.program_records import COUNTER, ME, STEP

FUNCTIONS = {"run": "int64(int64, int64, int64)"}
"""Functions for Python."""
_FUTEX_WAIT, _FUTEX_WAKE, _ALL = 0, 1, 1 << 30
_PAUSES = 64
"""Looks of a rank between two calls that drive MPI's progress."""


@inner
def _let_mpi_go_on(me: int) -> int:
    """Test the messages under way; returns the number of started ones."""
    count = load(me + ME.active_count)
    if count != 0:
        test, statuses = load(me + ME.testall), load(me + ME.statuses)
        atomic.call_nothing_4(test, count, load(me + ME.active), me + ME.flag, statuses)
    return count


@inner
def _futex(me: int, counter: int, operation: int, value: int, time: int) -> None:
    call, number = load(me + ME.syscall), load(me + ME.futex)
    atomic.call_varied_6(call, number, counter, operation, value, time, 0)


@inner
def _give_way(me: int, counter: int, target: int) -> None:
    """Give the core away for a while; nobody sleeps while messages are under way."""
    if _let_mpi_go_on(me) != 0 or load(me + ME.sleeps) == 0:
        atomic.call_0(load(me + ME.yield_))
        return
    # Whoever changes the counter after this sees the sleeper.
    atomic.add(counter + COUNTER.sleepers, 1)
    value = peek(counter)
    if value < target:
        _futex(me, counter, _FUTEX_WAIT, value & 0xFFFFFFFF, me + ME.seconds)
    atomic.add(counter + COUNTER.sleepers, -1)


@inner
def _wait(me: int, counter: int, target: int, looks: int) -> bool:
    """Wait until a counter has a value; False after a number of looks and turns given away."""
    misses, spins = 0, load(me + ME.spins)
    while peek(counter) < target:
        if looks <= 0:
            return False
        misses += 1
        if 0 <= spins < misses:
            _give_way(me, counter, target)
            looks -= 1
        elif misses % _PAUSES == 0:
            _let_mpi_go_on(me)
            looks -= 1
        else:
            pause()
    return True


@inner
def _count(me: int, counter: int, wakes: int) -> int:
    """Add 1 to a counter, and wake sleepers at multiples of ``wakes``; returns the value."""
    value = atomic.add(counter, 1) + 1
    if value % wakes == 0 and peek(counter + COUNTER.sleepers) != 0:
        _futex(me, counter, _FUTEX_WAKE, _ALL, 0)
    return value


def run(me: int, step: int, looks: int) -> int:
    """Run the steps from this one on; 0 at the end, else the step that still waits."""
    while True:
        kind, count = load(step + STEP.kind), load(step + STEP.count)
        to = load(me + load(step + STEP.to_base)) + load(step + STEP.to)
        a = load(me + load(step + STEP.a_base)) + load(step + STEP.a)
        if kind == program_records.COPY:
            atomic.copy(to, a, count)
        elif kind == program_records.COMBINE:
            b = load(me + load(step + STEP.b_base)) + load(step + STEP.b)
            combine(load(step + STEP.code), to, a, b, count)
        elif kind == program_records.ARRIVE:
            ranks = load(me + ME.ranks)
            value = _count(me, to, ranks)
            store(me + ME.target, (value + ranks - 1) // ranks * ranks)
        elif kind == program_records.AWAIT:
            target = count
            if target == 0:
                target = load(me + ME.target)
            if not _wait(me, to, target, looks):
                return step
        elif kind == program_records.SIGNAL:
            _count(me, to, 1)
        elif kind == program_records.CLEAR:
            for n in range(count):
                put(to + LINE * n, 0)
        elif kind == program_records.START:
            store(me + ME.active, to)
            store(me + ME.active_count, count)
            store(me + ME.messages, load(me + ME.messages) + load(step + STEP.a))
            store(me + ME.bytes, load(me + ME.bytes) + load(step + STEP.b))
            atomic.call_2(load(me + ME.startall), count, to)
        elif kind == program_records.WAIT:
            atomic.call_word_3(load(me + ME.waitall), count, to, load(me + ME.statuses))
            store(me + ME.active_count, 0)
        else:
            return 0
        step += STEP.size
