"""Tables on a terminal of 80 columns."""

from __future__ import annotations

import dataclasses
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from autotune.cli import main
from autotune.measurement.events import PhaseStarted, RunEnded
from autotune.measurement.run_history import HistoryEntry
from autotune.space import Setting
from autotune.store import Store
from autotune.terminal.progress import Progress, ProgressState
from autotune.terminal.render import WIDTH, console, error_console, hanging, table
from autotune.wording import verdict_words
from tests.contract.store_samples import key, ok


@pytest.mark.parametrize(("width", "gap"), [(25, 2), (26, 1)])
def test_words_are_whole_as_long_as_one_space_leaves_them_room(width: int, gap: int) -> None:
    """Three columns: 76 and two gaps of two fill the line, 78 have room for gaps of one."""
    words = ["a" * width, "b" * width, "c" * 26]
    out = StringIO()
    Console(file=out, width=WIDTH).print(table("", ["one", "two", "three"], [words]))
    assert out.getvalue().splitlines()[1].rstrip() == (" " * gap).join(words)


def test_figures_are_not_broken_where_words_can_be() -> None:
    row = ["a=1, btl_sm_eager_limit=65536", "+332948.0 %", "+142600.0 % .. +729466.7 %", "12"]
    out = StringIO()
    columns = ["setting", ">gain", ">95 % interval", ">pairs", "verdict"]
    Console(file=out, width=WIDTH).print(table("", columns, [[*row, "looks better"]]))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert any(row[2] in line and row[1] in line for line in lines)


def test_what_is_too_wide_even_below_its_first_cell_is_folded() -> None:
    rows = [["r" * 60, "2.29", "one=1, " + "two=2, " * 12 + "last=3", "+253.9 %"]]
    out = StringIO()
    columns = ["nearest program", ">distance", "its best setting", ">gain"]
    Console(file=out, width=WIDTH).print(table("", columns, rows))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert max(map(len, lines)) <= WIDTH
    (second,) = [line for line in lines if "2.29" in line]
    assert second.endswith("+253.9 %")
    assert "one=1," in second


EVIL = "a\x1b]0;owned\x07b\x9b2Jc\u202ed\ne"


def test_a_terminal_acts_on_nothing_that_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """Names in a database and output of programs are words of somebody else."""
    console().print(EVIL, markup=False)
    console().print(table("", ["x"], [[EVIL.replace("\n", " ")]]))
    error_console().print(EVIL, markup=False)
    said = "".join(capfd.readouterr())
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(said)
    assert said.count(r"\x1b]0;owned\x07b\x9b2Jc\u202ed") == 3


def test_a_study_of_somebody_else_is_listed(work: Path, capfd: pytest.CaptureFixture[str]) -> None:
    other = key()
    app = dataclasses.replace(other.app, name="\x1b[2Jowned")
    with Store.open("r.db") as store:
        store.study(dataclasses.replace(other, app=app))
    assert main(["studies", "--store", "r.db"]) == 0
    said = capfd.readouterr().out
    assert "\x1b" not in said
    assert r"\x1b[2Jowned" in said


@pytest.mark.parametrize("quiet", [False, True])
def test_many_steps_of_one_kind_are_one_line(
    quiet: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    with ProgressState(quiet) as say:
        for kind in ("knn", "ann"):
            for number in range(20):
                say(f"{kind}: options {number} of 20")
    assert capfd.readouterr().err == ("" if quiet else "knn ...\nann ...\n")


def test_verdicts_are_words_for_people(snapshot: SnapshotAssertion) -> None:
    verdicts = [
        ("futile", "a gain of 2 % is ruled out"),
        ("futile", "proof unlikely"),
        ("futile", "another finalist won"),
        ("continue", "not decided yet"),
        ("better", "the interval lies above 0"),
    ]
    assert [verdict_words(*verdict) for verdict in verdicts] == snapshot


def test_a_long_phase_says_how_long_it_may_take(
    capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    """Once, after its first run; a short one says nothing of it."""
    record = ok(5.0, wall_s=5.0)
    ended = RunEnded(HistoryEntry(0, "default", "confirm", record, None, 0, 0), Setting(), 1.0)
    with Progress(None, None) as watch:
        for planned in (24, 3):
            watch(PhaseStarted("confirm", "proving", planned))
            watch(ended)
            watch(ended)
    assert capfd.readouterr().err.splitlines() == snapshot


@pytest.mark.parametrize("columns", [20, 80])
def test_hanging_words_fit_and_no_line_ends_in_blanks(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    words = "one file " + "/long/path" * 9 + " (comes with autotune) [red]\x1b"
    console().print(hanging("  where  ", words))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("  where  one")  # data
    assert all(line == line.rstrip() and len(line) <= columns for line in lines)
    assert all(line.startswith(" " * 9) for line in lines[1:])
    assert "".join("".join(line[9:].split()) for line in lines) == "".join(
        words.replace("\x1b", "\\x1b").split()
    )
