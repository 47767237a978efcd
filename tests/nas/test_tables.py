"""The table of the kernels: its words, and what it keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from benchmarks.nas_table import CLASSES, answer, cells, kept, main, parser, place
from runner.programs.nas.common.options import NAMES, parse

ROW: dict[str, Any] = {
    "kernel": "cg", "class": "A", "ranks": 4, "seconds": 0.51234, "mpi_share": 0.256,
    "status": "recommended", "gain": 0.081, "ci": [0.04, None], "setting": {"btl_x": "1m"},
}  # fmt: skip


def test_every_kernel_has_a_class_that_exists() -> None:
    assert set(CLASSES) == set(NAMES)
    for kernel, problem_class in CLASSES.items():
        assert parse([kernel, "--class", problem_class]).problem


def test_the_answer_in_words(snapshot: SnapshotAssertion) -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"ci": [0.04, 0.1]},
        {"status": "keep_default"},
        {"status": "inconclusive"},
        {"status": "too_noisy"},
    ]
    assert [answer(ROW | change) for change in changes] == snapshot


def test_the_table_has_the_setting() -> None:
    assert list(cells(ROW).values()) == [
        "CG", "A", "4", "0.512", "26%", "+8.1% (+4.0% to open)", "btl_x=1m",  # data
    ]  # fmt: skip
    assert cells({**ROW, "status": "failed", "setting": {}})["setting"] == "-"


def test_only_finished_kernels_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "row.json"
    assert kept(path) is None
    path.write_text(json.dumps(ROW | {"status": "too_noisy"}))
    assert kept(path) is None
    path.write_text(json.dumps(ROW))
    assert kept(path) == ROW


def test_a_kept_kernel_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--keep", str(tmp_path), "--kernels", "cg"]
    place(parser().parse_args(words), "cg", "A").write_text(json.dumps(ROW))
    monkeypatch.setattr("sys.argv", ["nas_table", *words])
    assert main() == 0
    assert "+8.1%" in capsys.readouterr().out


def test_other_questions_are_other_files(tmp_path: Path) -> None:
    names = {
        place(parser().parse_args(["--keep", str(tmp_path), *words]), "cg", "A").name
        for words in ([], ["--ranks", "2"], ["--trials", "10"])
    }
    assert len(names) == 3
