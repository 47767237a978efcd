"""Ctrl-C and SIGTERM while the database works: nothing stays locked, and no signal is lost."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from autotune.store import Store
from autotune.store.database import Database
from autotune.store.location import locate
from runner.supervise import DeferredInterrupts
from tests.contract.store_samples import key

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def raised_in(function: str, number: signal.Signals) -> Iterator[list[str]]:
    """Send this process a signal when a function of SQLAlchemy with that name is called."""
    seen: list[str] = []

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        called = frame.f_code
        if not seen and called.co_name == function and "sqlalchemy" in called.co_filename:
            seen.append(called.co_filename)
            sys.settrace(None)
            os.kill(os.getpid(), number)

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield seen
    finally:
        sys.settrace(before)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """These signals raise KeyboardInterrupt, as while a command works."""
    before = [signal.signal(number, signal.default_int_handler) for number in SIGNALS]
    yield
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("function", ["_setup_result_proxy", "_init_metadata", "_do_commit"])
def test_a_transaction_ends_before_the_interrupt(
    tmp_path: Path, function: str, number: signal.Signals
) -> None:
    place = tmp_path / "r.db"
    with Store.open(place) as store:
        with pytest.raises(KeyboardInterrupt) as caught, raised_in(function, number) as seen:
            store.study(key())
        assert seen, f"{function} was not called"
        # The traceback, which names the connection, is still alive.
        with Store.open(place, busy_timeout_s=0.5) as other:
            assert len(other.studies()) == 1
            other.set_result(1, "measured", None)
        assert caught.value is not None


def test_a_mistake_does_not_hide_the_interrupt(tmp_path: Path) -> None:
    with Store.open(tmp_path / "r.db") as store:

        def mistaken() -> None:
            with store._database.read():
                os.kill(os.getpid(), signal.SIGINT)
                raise ValueError

        with pytest.raises(KeyboardInterrupt):
            mistaken()
        assert store.studies() == []


def test_who_holds_interrupts_gets_them(tmp_path: Path) -> None:
    with Store.open(tmp_path / "r.db") as store:
        with DeferredInterrupts() as held, raised_in("_do_commit", signal.SIGINT):
            store.study(key())
        assert held.count == 1
        assert len(store.studies()) == 1


def test_a_second_interrupt_ends_the_wait(tmp_path: Path) -> None:
    """A server may never answer."""
    database = Database(locate(str(tmp_path / "r.db")))
    steps = []

    def wait() -> None:
        with database.write():
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("first")
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("second")

    with pytest.raises(KeyboardInterrupt):
        wait()
    assert steps == ["first"]
    database.close()
