"""Measurements on some CPUs: beside each other or one after the other, between real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import runner
from runner import lock
from runner.cpus import parse_cpus
from runner.errors import RunnerError
from runner.lock import MachineLock, inherited_mode
from runner.lock import place as lock_place
from runner.lock.cpu_lock import CpuLockFile, cpus_of_holder
from runner.lock.holder import holders
from runner.lock.lockfile import Mode
from tests.case_table import case_table
from tests.refusals import refused
from tests.runner.supervising import eventually

ROOT = Path(str(runner.__file__)).parents[1]
HOLD = """
import sys
from runner.cpus import parse_cpus
from runner.lock import MachineLock
cpus = parse_cpus(sys.argv[2]) if sys.argv[2] else None
say = lambda word: print(word, flush=True)
with MachineLock(sys.argv[1], tell=lambda news: say("waits"), cpus=cpus):
    say('held')
    sys.stdin.read()
"""
# Far above the CPUs of any machine: each is a core of its own there.
FIRST, SECOND, BOTH = "20000-20001", "20002", "20001-20002"


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock file of this test's own, and no lock inherited from the test session."""
    place = tmp_path / "machine.lock"
    monkeypatch.setenv(lock_place.FILE_VARIABLE, str(place))
    monkeypatch.delenv(lock.VARIABLE, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return place


@contextmanager
def begin(mode: str, cpus: str = "") -> Iterator[subprocess.Popen[str]]:
    """A process that takes the lock, says so, and keeps it to the end of the block."""
    words = [sys.executable, "-c", HOLD, mode, cpus]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.communicate("")


@contextmanager
def hold(mode: str, cpus: str = "") -> Iterator[subprocess.Popen[str]]:
    with begin(mode, cpus) as holder:
        assert says(holder) == "held"
        yield holder


def says(process: subprocess.Popen[str]) -> str:
    """Its next word: "waits" or "held"; "" when it has ended."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def want(mode: Mode, cpus: str = "", wait_s: float | None = 0) -> MachineLock:
    return MachineLock(mode, wait_s, cpus=parse_cpus(cpus) if cpus else None)


@case_table(
    ("have", "wanted", "free"),
    [
        (("exclusive", FIRST), ("exclusive", SECOND), True),
        (("exclusive", FIRST), ("exclusive", BOTH), False),
        (("exclusive", FIRST), ("exclusive", FIRST), False),
        (("exclusive", FIRST), ("exclusive", ""), False),
        (("exclusive", FIRST), ("shared", ""), False),
        (("exclusive", ""), ("exclusive", FIRST), False),
        (("shared", ""), ("exclusive", FIRST), False),
    ],
)
def test_who_excludes_whom(have: tuple[str, str], wanted: tuple[Mode, str], free: bool) -> None:
    with hold(*have) as holder:
        if free:
            with want(*wanted):
                assert inherited_mode() is not None
        else:
            with pytest.raises(RunnerError, match=f"pid {holder.pid} ") as told, want(*wanted):
                pass
            assert (f"on CPUs {FIRST}" in str(told.value)) == bool(
                have[1] and (wanted[1] or wanted[0] == "shared")
            )
    with want(*wanted):
        pass
    assert inherited_mode() is None


def test_only_who_is_in_the_way_is_named() -> None:
    with (
        hold("exclusive", FIRST) as first,
        hold("exclusive", SECOND) as second,
        pytest.raises(RunnerError) as told,
        want("exclusive", "20002-20003"),
    ):
        pass
    assert f"pid {second.pid} " in str(told.value)
    assert f"pid {first.pid} " not in str(told.value)
    assert "of CPUs 20002-20003" in str(told.value)


def test_a_process_that_waits_does_not_name_itself() -> None:
    """It holds the file shared, as the tests do, while it waits for its CPUs."""
    news: list[lock.LockNews] = []
    with hold("shared") as tests:
        measurement = MachineLock("exclusive", 0.2, news.append, parse_cpus(FIRST))
        with pytest.raises(lock.BusyError) as problem, measurement:
            raise AssertionError
        assert [holder["pid"] for holder in news[0].data["holders"]] == [tests.pid]
        assert str(problem.value).endswith(f"kill {tests.pid}")


def test_crash_frees_the_cpus() -> None:
    with hold("exclusive", FIRST) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with want("exclusive", BOTH):
            pass
        with want("exclusive"):
            pass


def test_a_refused_set_takes_none_of_its_cpus(path: Path) -> None:
    with hold("exclusive", SECOND), pytest.raises(RunnerError), want("exclusive", BOTH):
        pass
    with hold("exclusive", "20001") as holder:
        file = path.with_name(path.name + ".cpus")
        assert cpus_of_holder(file, holder.pid) == {20001}
        assert cpus_of_holder(file, os.getpid()) == frozenset()


def test_waiting_for_a_measurement_keeps_nobody_else_out() -> None:
    """Who waits for CPU 20001 does not block a third one on free CPUs, and gets its turn."""
    with hold("exclusive", FIRST) as first, begin("exclusive", BOTH) as waiting:
        assert says(waiting) == "waits"
        # It looks again and again; to meet it at that very moment costs one more look here.
        with want("exclusive", "20007", wait_s=20):
            assert first.poll() is None
        first.communicate("")
        assert says(waiting) == "held"


def test_waiting_for_tests_keeps_later_tests_out(path: Path) -> None:
    """A stream of tests must not starve a measurement on some CPUs either."""
    with hold("shared") as tests, begin("exclusive", FIRST) as waiting:
        gate = path.with_name(path.name + ".gate")
        assert says(waiting) == "waits"
        assert eventually(lambda: holders(gate) == [waiting.pid])
        with pytest.raises(RunnerError), want("shared"):
            pass
        tests.communicate("")
        assert says(waiting) == "held"


def test_tests_beside_each_other_and_below_a_measurement() -> None:
    with hold("shared"), want("shared"):
        pass
    with want("exclusive", FIRST), want("exclusive", BOTH) as inner:
        assert inner.waited_s == 0


def test_wrapper_keeps_the_cpus_too() -> None:
    words = [sys.executable, "-m", "runner.lock", "--shared", "--", "cat"]
    running = subprocess.Popen(words, stdin=subprocess.PIPE)
    try:
        path = lock_place.lock_place(os.environ[lock_place.FILE_VARIABLE]).path
        assert eventually(lambda: holders(path) == [running.pid])
        # The wrapper takes the lock, then becomes the program.
        command = Path(f"/proc/{running.pid}/cmdline")
        assert eventually(lambda: command.read_bytes() == b"cat\0")
        with pytest.raises(RunnerError, match="cat"), want("exclusive", FIRST):
            pass
    finally:
        running.communicate(b"")
    with want("exclusive", FIRST):
        pass


def test_unwritable_file_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = path.with_name(path.name + ".cpus")
    file.touch(mode=0o444)
    monkeypatch.setattr("runner.lock.lockfile._open", lambda p: (os.open(p, os.O_RDONLY), False))
    with refused(RunnerError, "lock.unusable"):
        CpuLockFile(file)


def test_whole_cores_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "with_siblings", lambda cpus: frozenset({*cpus, 20005}))
    with hold("exclusive", "20005"), pytest.raises(RunnerError, match="20005"):
        want("exclusive", FIRST).__enter__()
