"""Foreign load: the arithmetic on given counters, and the counters of this very machine."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner import guard
from runner.guard import CpuTimes, Culprit, ProcessTime
from runner.process import start_of, stat_fields
from tests.case_table import case_table
from tests.runner.supervising import FAST

ZERO = CpuTimes(0, 0, 0, 0)


def test_limit_of_the_design() -> None:
    assert guard.limit_s(0) == pytest.approx(0.03)
    assert guard.limit_s(10) == pytest.approx(0.43)


def test_counters_of_many_cpus_are_coarser_than_that_of_the_machine() -> None:
    after = CpuTimes(2.15, 0, 0, 0, counters=16)
    assert guard.judge_foreign_load(ZERO, after, 2.0, wall_s=1.0).limit_s == pytest.approx(0.16)
    assert not guard.judge_foreign_load(ZERO, after, 2.0, wall_s=1.0).exceeded
    assert guard.judge_foreign_load(ZERO, after, 1.98, wall_s=1.0).exceeded
    assert not guard.ran_outside(ZERO, after, 2.30, wall_s=1.0)
    assert guard.ran_outside(ZERO, after, 2.32, wall_s=1.0)
    online = os.cpu_count() or 1
    assert guard.cpu_times(range(online)).counters == 1
    if online > 2:
        assert guard.cpu_times(range(2)).counters == 2


@case_table(
    ("after", "own", "foreign", "exceeded"),
    [
        (CpuTimes(2.0, 0, 0, 0), 2.0, 0.0, False),
        (CpuTimes(2.06, 0, 0, 0), 2.0, 0.06, False),
        (CpuTimes(2.08, 0, 0, 0), 2.0, 0.08, True),
        # Own time above the machine's is rounding, not a credit.
        (CpuTimes(1.9, 0.08, 0, 0), 2.0, 0.08, True),
        # Interrupts are reported only.
        (CpuTimes(2.0, 0, 0.5, 0), 2.0, 0.0, False),
    ],
)
def test_judgement(after: CpuTimes, own: float, foreign: float, exceeded: bool) -> None:
    found = guard.judge_foreign_load(ZERO, after, own, wall_s=1.0)
    assert found.cpu_s == pytest.approx(foreign)
    assert found.irq_s == after.irq_s
    assert found.limit_s == pytest.approx(0.07)
    assert found.exceeded is exceeded


@case_table(
    ("after", "own", "outside"),
    [
        (CpuTimes(2.0, 0, 0, 0), 2.0, False),
        (CpuTimes(2.0, 0, 0, 0), 2.06, False),  # within the limit for 1 s, 0.07 s
        (CpuTimes(2.0, 0, 0, 0), 2.08, True),
        # Stolen time and interrupts may be in a process's own time.
        (CpuTimes(1.0, 0.6, 0.4, 5.0), 2.06, False),
        (CpuTimes(1.0, 0.6, 0.4, 5.0), 2.08, True),
    ],
)
def test_time_that_the_cpus_did_not_spend(after: CpuTimes, own: float, outside: bool) -> None:
    assert guard.ran_outside(ZERO, after, own, wall_s=1.0) is outside


@settings(max_examples=50)
@given(*(st.floats(0, 1e6) for _ in range(4)), st.floats(0, 100))
def test_more_foreign_time_never_helps(
    busy: float, steal: float, own: float, wall: float, more: float
) -> None:
    less = guard.judge_foreign_load(ZERO, CpuTimes(busy, steal, 0, 0), own, wall)
    worse = guard.judge_foreign_load(ZERO, CpuTimes(busy + more, steal, 0, 0), own, wall)
    assert 0 <= less.cpu_s <= worse.cpu_s
    assert less.exceeded <= worse.exceeded


def test_machine_counters_run_on() -> None:
    first = guard.cpu_times()
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    second = guard.cpu_times()
    assert second.busy_s - first.busy_s > 0.2
    assert second.idle_s >= first.idle_s
    total = sum(os.times()[:2])
    mine = guard.process_time(os.getpid())
    assert mine is not None
    assert mine.cpu_s == pytest.approx(total, abs=0.1)


def test_single_cpus_add_up_to_the_machine() -> None:
    online = os.cpu_count() or 1
    first = guard.cpu_times()
    parts = [guard.cpu_times([cpu]) for cpu in range(online)]
    last = guard.cpu_times()
    # Each of the three counters of each CPU is cut to whole ticks.
    rounding = 3 * (online + 1) * guard.TICK_S
    total = sum(part.busy_s for part in parts)
    assert first.busy_s - rounding <= total <= last.busy_s + rounding
    assert guard.cpu_times(range(online)).busy_s == pytest.approx(total, abs=rounding)


def test_load_counts_where_it_runs() -> None:
    """A process on one CPU, seen from there and from another one."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU only")
    here, there = cpus[0], cpus[1]
    burn = f"import os, time\nos.sched_setaffinity(0, [{there}])\n"
    burn += "while time.process_time() < 0.4: pass\nprint(flush=True); input()"
    before = [guard.cpu_times([cpu]) for cpu in (here, there)]
    table = guard.process_times()
    child = subprocess.Popen([*FAST, burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    after = [guard.cpu_times([cpu]) for cpu in (here, there)]
    later = guard.process_times()
    seen = [
        {culprit.pid for culprit in guard.culprits(table, later, most=100, cpus=[cpu])}
        for cpu in (here, there)
    ]
    child.communicate(b"\n")
    assert after[1].busy_s - before[1].busy_s > 0.3
    # What others did here meanwhile is their own; the child is not among the suspects.
    assert child.pid not in seen[0]
    assert child.pid in seen[1]


def test_strange_process_names_are_read() -> None:
    text = "open('/proc/self/comm', 'w').write('a) R (b'); print(flush=True); input()"
    child = subprocess.Popen([*FAST, text], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    found = stat_fields(child.pid)
    child.communicate(b"\n")
    assert found is not None
    assert found[0] == "a) R (b"
    assert int(found[1][1]) == os.getpid()
    assert stat_fields(child.pid) is None
    assert guard.process_times([child.pid]) == {}


def test_a_process_has_a_start_until_it_is_a_zombie() -> None:
    child = subprocess.Popen([*FAST, "input()"], stdin=subprocess.PIPE)
    found = guard.process_time(child.pid)
    assert found is not None
    assert start_of(child.pid) == found.started_ticks
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert stat_fields(child.pid) is not None
    assert start_of(child.pid) is None
    child.communicate()
    assert start_of(child.pid) is None


def test_culprits_are_those_that_used_most() -> None:
    before = {
        8000001: ProcessTime("init", 5.0, 1),
        8000002: ProcessTime("old", 9.0, 7),
        8000004: ProcessTime("idle", 1.0, 3),
    }
    after = {
        8000001: ProcessTime("init", 5.5, 1),
        8000002: ProcessTime("new", 0.25, 8),  # the same id, another process
        8000003: ProcessTime("late", 0.75, 9),
        8000004: ProcessTime("idle", 1.0, 3),
    }
    expected = (
        Culprit(8000003, "late", 0.75),
        Culprit(8000001, "init", 0.5),
        Culprit(8000002, "new", 0.25),
    )
    assert guard.culprits(before, after) == expected
    assert guard.culprits(before, after, own=[8000003], most=1) == expected[1:2]


def test_command_says_more_than_the_name() -> None:
    # The shell has said that it runs: its command line is its own by now.
    words = ["sh", "-c", "echo; read end", "name"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        found = guard.command_of(process.pid)
        process.kill()
    assert found == "sh -c echo; read end name"  # data
    assert guard.command_of(8000001) == ""


def test_a_command_is_without_its_passwords() -> None:
    """It may be stored as the cause of foreign load, by another user."""
    url = "postgresql://me:s3cret@db.host/d" + "x" * 200
    words = ["sh", "-c", "echo; read end", "autotune", "--store", url]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        found = guard.command_of(process.pid)
        process.kill()
    assert "s3cret" not in found
    assert "me:***@db.host" in found
    assert len(found) == 80


class Machine:
    """A machine whose counters follow a script: foreign CPUs in each sample of 0.25 s."""

    def __init__(self, loads: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
        self.loads = loads
        self.now = 0.0
        self.busy = 0.0
        self.cpu = 0.0
        monkeypatch.setattr(guard.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(guard.time, "sleep", self.sleep)
        monkeypatch.setattr(guard.time, "process_time", lambda: self.cpu)
        monkeypatch.setattr(guard, "cpu_times", lambda _: CpuTimes(self.busy, 0, 0, 0))

    def sleep(self, seconds: float) -> None:
        load = self.loads.pop(0) if self.loads else 0.0
        self.now += seconds
        self.cpu += 0.5 * seconds  # the caller's own: must not count
        self.busy += (load + 0.5) * seconds


def test_wait_goes_on_until_it_was_quiet_long_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine([1.0, 0.0, 0.0, 1.0], monkeypatch)
    told: list[float] = []
    found = guard.wait_quiet(60, on_wait=told.append)
    assert found.quiet
    assert found.waited_s == pytest.approx(2.0)
    # The second burst is spread over the window that it ends.
    assert told == pytest.approx([1.0, 1 / 3])


def test_wait_ends_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine([1.0] * 100, monkeypatch)
    found = guard.wait_quiet(3.0)
    assert not found.quiet
    assert found.waited_s == pytest.approx(3.0)
    assert found.load == pytest.approx(1.0)


def test_wait_on_the_real_machine_is_bounded() -> None:
    found = guard.wait_quiet(0.3, quiet_s=0.1, sample_s=0.1, own_pids=[os.getppid()])
    assert found.quiet or found.load > 0
