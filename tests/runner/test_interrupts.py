"""Ctrl-C, SIGTERM and SIGHUP that come beside a run: none is lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from runner.launch import Runner
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.supervise import (
    DeferredInterrupts,
    ExecRequest,
    ExecResult,
    RunInterrupt,
    Supervisor,
)
from runner.types import LaunchSpec

SPEC = LaunchSpec(program=("true",), ranks=1, read_back=False)


@pytest.fixture(params=[signal.SIGTERM, signal.SIGHUP])
def ending(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal that raises KeyboardInterrupt, as while a command works."""
    number: signal.Signals = request.param
    before = signal.signal(number, signal.default_int_handler)
    yield number
    signal.signal(number, before)


@pytest.mark.mpi
def test_an_interrupt_at_the_end_of_a_run_is_not_lost(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Supervisor.run

    def too_late(self: Supervisor, request: ExecRequest) -> ExecResult:
        raise RunInterrupt(run(self, request))

    monkeypatch.setattr(Supervisor, "run", too_late)
    with Runner(adapter(library), guard=False) as runner:
        with pytest.raises(KeyboardInterrupt):
            runner.run(SPEC)
        with DeferredInterrupts():  # Its caller is told, and has the run.
            assert runner.run(SPEC).exit_code == 0


def test_a_termination_that_interrupts_is_counted(ending: signal.Signals) -> None:
    counted: list[int] = []
    with DeferredInterrupts() as outer:
        with DeferredInterrupts(counted.append) as inner:
            os.kill(os.getpid(), ending)
            os.kill(os.getpid(), signal.SIGINT)
        assert inner.count == 2
        os.kill(os.getpid(), ending)
    assert outer.count == 3
    assert counted == [1, 2]
    assert not DeferredInterrupts.is_entered()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), ending)


def test_a_termination_of_another_meaning_stays_so() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        with DeferredInterrupts() as held:
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (held.count, seen) == (0, [signal.SIGTERM])
