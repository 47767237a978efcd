"""Ctrl-C where Python drops it, in finalizers and callbacks; and what a command then says."""

from __future__ import annotations

import os
import signal
import time
import weakref
from collections.abc import Callable

import pytest

from autotune.cli import repeat_lost_interrupts
from autotune.comparison import noise
from tests.cli.conftest import Cli


class Finalized:
    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)


class Plain:
    pass


def in_a_finalizer() -> None:
    Finalized()


def in_a_callback() -> None:
    seen = Plain()
    held = weakref.ref(seen, lambda _: os.kill(os.getpid(), signal.SIGINT))
    del seen
    assert held() is None


@pytest.mark.parametrize("dropping", [in_a_finalizer, in_a_callback])
def test_a_dropped_interrupt_comes_again(dropping: Callable[[], None]) -> None:
    dropped = []

    def work() -> None:
        with repeat_lost_interrupts():
            dropping()
            dropped.append(dropping)
            time.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert dropped


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_another_mistake_is_reported_only() -> None:
    class Mistaken:
        def __del__(self) -> None:
            raise ValueError

    with repeat_lost_interrupts():
        Mistaken()
        time.sleep(0.2)


@pytest.mark.mpi
def test_an_interrupted_noise_measurement_says_so(
    cli: Cli, library: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(noise, "measure_noise", interrupted)
    done = cli("noise", "--app", "jacobi3d", "--no-guard", "--store", "r.db")
    assert done.code == 130
    assert "Interrupted" in done.err
