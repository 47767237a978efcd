"""The live view: its lines at any width, how often it is drawn, and where it is none."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading

import pytest
from syrupy.assertion import SnapshotAssertion

from autotune.measurement.events import (
    DefaultMeasured,
    Event,
    PhaseStarted,
    RunStarted,
    TrialEnded,
    Waiting,
)
from autotune.notes import Note
from autotune.space import Setting
from autotune.stats import noise_band
from autotune.terminal.live_view import CPU_SHARE, TICK_S, fit_line, pause_s
from autotune.terminal.progress import Progress
from autotune.wording import HEADLINES
from tests.cli.conftest import Cli

LONG = Setting({"btl_sm_eager_limit": 8192, "coll_tuned_allreduce_algorithm_segmentsize": 4096})
EVENTS: list[Event] = [
    PhaseStarted("search", "searching", 60),
    DefaultMeasured((0.49, 0.50, 0.52), 1.2),
    TrialEnded(11, LONG, "ok", 0.93, 0.93, LONG, False, (0.9, 0.97)),
    RunStarted(LONG, "search"),
]
VARIABLES = {"usual": {}, "dumb": {"TERM": "dumb"}, "unknown": {"TERM": "unknown"}}
"""Of a terminal; the processes of all of them share their start."""
END = "-- the next one --"
ON_A_TERMINAL = """
import json, os, sys, threading, time
from autotune.space import Setting
from autotune.measurement.events import PhaseStarted, RunStarted
from autotune.terminal.live_view import REFRESH_S
from autotune.terminal.progress import Progress

def draw():
    began = time.monotonic()
    with Progress(60, None) as watch:
        active = watch.active
        watch(PhaseStarted("search", "searching", 60))
        for _ in range(1000):
            watch(RunStarted(Setting({"a": 1}), "search"))
        while active and watch.draw_count < 3 and time.monotonic() < began + 30:
            time.sleep(0.05)
    most = (time.monotonic() - began) / REFRESH_S + 1
    print(active, watch.draw_count, watch.draw_count <= most, threading.active_count())

for variables in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        os.environ.update(variables)
        draw()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(sys.argv[2], file=sys.stderr)
"""
Seen = tuple[list[str], str]


@pytest.fixture(scope="module")
def seen() -> dict[str, Seen]:
    """What each process prints on standard output, and what its terminal gets on standard error."""
    ours, theirs = pty.openpty()
    said: list[bytes] = []

    def read() -> None:
        try:
            while more := os.read(ours, 4096):
                said.append(more)
        except OSError:  # The other end is closed.
            return

    reader = threading.Thread(target=read)
    reader.start()
    done = subprocess.run(
        [sys.executable, "-c", ON_A_TERMINAL, json.dumps(list(VARIABLES.values())), END],
        env={**os.environ, "TERM": "xterm", "COLUMNS": "60"},
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        check=True,
    )
    os.close(theirs)
    reader.join()
    os.close(ours)
    words = [line.split() for line in done.stdout.splitlines()]
    *screens, _ = b"".join(said).decode().split(f"{END}\r\n")
    return dict(zip(VARIABLES, zip(words, screens, strict=True), strict=True))


def test_a_view_is_drawn_at_most_twice_a_second_and_its_thread_ends(seen: dict[str, Seen]) -> None:
    (active, drawn, bounded, threads), said = seen["usual"]
    assert active == "True"
    assert int(drawn) >= 2, "the elapsed time of a run is not seen"
    assert bounded == "True", drawn
    assert threads == "1"
    assert "run 1, " in said


@pytest.mark.parametrize("terminal", ["dumb", "unknown"])
def test_a_dumb_terminal_gets_plain_lines(terminal: str, seen: dict[str, Seen]) -> None:
    (active, drawn, *_), said = seen[terminal]
    assert (active, drawn) == ("False", "0")
    assert said.splitlines() == ["searching ..."]


def test_the_pauses_follow_from_the_cost_of_a_drawing() -> None:
    for cost in (0.0, 0.001, 0.01, 1.0):
        pause = pause_s(cost)
        assert pause >= TICK_S
        assert cost <= CPU_SHARE * pause * 1.0001


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_lines_fit_and_begin_with_what_matters(width: int, snapshot: SnapshotAssertion) -> None:
    watch = Progress(60, None)
    for event in EVENTS:
        watch(event)
    lines = watch._view(width)
    assert all(len(line) <= width for line in lines)
    assert [line.split()[0] for line in lines] == ["phase", "best", "default", "now"]
    assert lines[1:3] == snapshot
    if width >= 60:
        assert "trial 12/60" in lines[0]
    assert fit_line("a", ["x" * 90], 20).endswith("\N{HORIZONTAL ELLIPSIS}")


def test_plain_lines_are_rate_limited(
    capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    now = 0.0
    with Progress(60, None, clock=lambda: now) as watch:
        watch(EVENTS[1])
        for number in range(20):
            watch(TrialEnded(number, LONG, "ok", 0.9, 1 - number / 100, LONG, False))
            watch(Waiting("busy"))
        now = 30.0
        watch(Waiting("busy"))
    said = capfd.readouterr().err.splitlines()
    assert said == snapshot


def test_the_noise_band_narrows_with_runs() -> None:
    one, four = noise_band(0.9, 0.01, 5, 1, 6), noise_band(0.9, 0.01, 5, 4, 6)
    assert one is not None
    assert four is not None
    assert one[0] < four[0] < 0.9 < four[1] < one[1]
    assert noise_band(0.9, 0.0, 0, 1, 1) is None


@pytest.mark.mpi
@pytest.mark.usefixtures("steady")
def test_quiet_prints_the_result_only(cli: Cli, library: object) -> None:
    target = ("--app", "steady", "--input", "tiny", "--no-guard", "--store", "r.db", "--quiet")
    run = cli("run", *target)
    assert run.code == 0, run.err
    assert run.err == ""
    found = cli("search", *target, "--strategy", "random", "--trials", "1")
    assert found.code == 0, found.err
    assert found.err == ""
    assert HEADLINES["unguarded"] in found.out


def test_a_wait_for_the_lock_is_told_once_and_shown_as_long_as_it_lasts(
    capfd: pytest.CaptureFixture[str],
) -> None:
    now = 0.0
    with Progress(60, None, clock=lambda: now) as watch:
        watch(Note("lock.waiting", "pid 5 has it", {}))
        now = 70.0
        [*_, line] = watch._view(80)
        assert "70 s" in line
        watch(EVENTS[0])
        [*_, line] = watch._view(80)
        assert "70 s" not in line
    assert capfd.readouterr().err.splitlines().count("pid 5 has it") == 1
