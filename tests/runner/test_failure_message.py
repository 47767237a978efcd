"""Why a program failed, from what real programs printed under real launchers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.failure_message import LONGEST, failure_message, joined_exit_code, telling_lines

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "complaints.json").read_text()
)
"""What make_complaints.py recorded, each with the words that are expected."""


@pytest.mark.parametrize("row", ROWS, ids=[f"{r['library']} {r['case']}" for r in ROWS])
def test_recorded(row: dict[str, Any]) -> None:
    words = failure_message(row["stderr"], row["stdout"]).words
    assert words == row["expected"]
    assert words.isprintable()
    assert "Exit code:" not in words
    assert "End of error message" not in words


@pytest.mark.parametrize(
    ("stderr", "words", "asked"),
    [
        (
            "forrtl: severe (24): end-of-file during read, unit 5, file /dev/null\nImage   PC\n",
            "forrtl: severe (24): end-of-file during read, unit 5, file /dev/null",
            True,
        ),
        (
            "forrtl: severe (24): end-of-file during read, unit 17, file /home/user/mesh.dat\n",
            "forrtl: severe (24): end-of-file during read, unit 17, file /home/user/mesh.dat",
            False,
        ),
        (
            "the mesh has no cells\nsrun: error: n1: task 1: Exited with exit code 3\n",
            "the mesh has no cells",
            False,
        ),
        (
            "residual error: 1.5e-3\nWarning: could not pin memory\nlast step 7\n"
            + "-" * 74
            + "\nmpirun detected that one or more processes exited with non-zero status\n",
            "last step 7",
            False,
        ),
    ],
)
def test_others(stderr: str, words: str, asked: bool) -> None:
    found = failure_message(stderr)
    assert (found.words, found.asked) == (words, asked)


def test_who_asks_for_standard_input() -> None:
    asked = {(r["library"], r["case"]): failure_message(r["stderr"]).asked for r in ROWS}
    assert {case for (_, case), told in asked.items() if told} == {
        "fortran end of input",
        "python end of input",
    }


@pytest.mark.parametrize(
    ("code", "joined", "words"),
    [
        (6, 15, "Aborted (signal 6)"),
        (9, 15, "Aborted (signal 6)"),
        (7, 15, "Bus error (signal 7)"),
        (4, 13, "Illegal instruction (signal 4)"),
        # An exit code of 1, and the others were killed.
        (1, 9, ""),
        (15, 15, ""),
        (9, 9, "Killed (signal 9)"),
    ],
)
def test_states_that_mpich_joins(code: int, joined: int, words: str) -> None:
    """Its launcher kills the other ranks, and says the states of all, joined by "or"."""
    names = {9: "Killed", 13: "Broken pipe", 15: "Terminated"}
    printed = (
        f"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   EXIT CODE: {code}\n"
        f"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: {names[joined]} (signal {joined})\n"
    )
    found = failure_message("", printed).words
    assert found.startswith(words)
    assert words or "signal" not in found
    assert joined_exit_code(printed) == (1 if (code, joined) == (1, 9) else None)


def test_a_long_complaint_is_cut() -> None:
    assert len(failure_message("error: " + "x" * 10_000).words) == LONGEST


def test_lines_for_people_are_without_traces_and_conclusions() -> None:
    for row in ROWS:
        lines = telling_lines(row["stderr"], row["stdout"])
        assert len(lines) <= 8
        assert not any("\0" in line for line in lines)
        if row["case"] == "exit with words":
            assert lines == ["solver: the matrix is singular at row 7"]
        if row["case"] == "no such component":
            assert lines[0].startswith(("No components were", "PML ucx"))
