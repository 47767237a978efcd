"""The table of the kernels: its cells, its words, and what it keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from benchmarks.harness.searches import answer, best_finalist
from benchmarks.nas_table import (
    CLASSES,
    SQUARE,
    line,
    main,
    parser,
    questions,
)
from runner.programs.nas.common.options import NAMES, parse

ROW: dict[str, Any] = {
    "kernel": "cg", "class": "A", "nodes": 2, "ranks": 2, "seconds": 0.51234, "mpi_share": 0.256,
    "strategy": "ga", "runs": 58, "status": "recommended", "gain": 0.081, "ci": [0.04, None],
    "setting": {"btl_x": "1m"}, "finalist": {"gain": 0.02, "ci": [-0.01, 0.05], "pairs": 12},
}  # fmt: skip


def asked(*words: str) -> list[str]:
    return [*questions(parser().parse_args(["--keep", "x", *words]))]


def test_every_kernel_has_a_class_that_exists() -> None:
    assert set(CLASSES) == set(NAMES)
    for kernel, problem_class in CLASSES.items():
        assert parse([kernel, "--class", problem_class]).problem


def test_there_are_24_cells_with_two_searches_each() -> None:
    every = questions(parser().parse_args(["--keep", "x"])).values()
    assert len({one.cell for one in every}) == 24
    assert len({one.name for one in every}) == len(every) == 48
    assert {one.ranks for one in every if one.kernel in SQUARE} == {4}
    assert {(one.nodes, one.ranks) for one in every if one.kernel == "cg"} == {
        (1, 2), (2, 2), (4, 4),
    }  # fmt: skip


def test_other_questions_are_other_files() -> None:
    few = ("--kernels", "cg", "--strategies", "ga")
    near = asked(*few, "--places", "1x2")
    assert near == asked(*few, "--places", "1x2", "--latency-ms", "3")
    names = {*near}
    for words in (["--places", "1x4"], ["--runs", "9"], ["--latency-ms", "3"], ["--class", "S"]):
        names |= {*asked(*few, *words)}
    assert len(names) == 1 + 1 + 3 + 2 + 3  # The latency is none of a node's.


def test_the_answer_in_words(snapshot: SnapshotAssertion) -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"ci": [0.04, 0.1]},
        {"status": "keep_default"},
        {"status": "keep_default", "finalist": None},
        {"status": "inconclusive", "finalist": {"gain": -0.02, "ci": [None, None], "pairs": 6}},
        {"status": "too_noisy", "finalist": None},
    ]
    assert [answer(ROW | change) for change in changes] == snapshot


def test_the_best_finalist_is_that_of_the_proof() -> None:
    proof = [
        {"gain": None, "gain_ci": [None, None], "blocks": 0},
        {"gain": 0.01, "gain_ci": [-0.1, 0.1], "blocks": 8},
        {"gain": 0.03, "gain_ci": [None, None], "blocks": 4},
    ]
    assert best_finalist({"finalists": proof}) == {"gain": 0.03, "ci": [None, None], "pairs": 4}
    assert best_finalist({"finalists": proof[:1]}) is None


def test_the_table_has_the_setting() -> None:
    assert list(line(ROW).values()) == [
        "CG", "A", "2", "2", "0.512", "26%", "ga", "58",
        "+8.1% (+4.0% to open)",  # data
        "btl_x=1m",
    ]  # fmt: skip
    assert line({**ROW, "status": "failed", "setting": {}})["setting"] == "-"


def test_a_kept_search_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--keep", str(tmp_path), "--kernels", "cg", "--places", "1x2", "--strategies", "ga"]
    (name,) = questions(parser().parse_args(words))
    monkeypatch.setattr("sys.argv", ["nas_table", *words, "--list"])
    assert main() == 0
    assert "open" in capsys.readouterr().out
    (tmp_path / f"{name}.json").write_text(json.dumps(ROW))
    monkeypatch.setattr("sys.argv", ["nas_table", *words])
    assert main() == 0
    assert "+8.1%" in capsys.readouterr().out
