"""The two benchmarks of the kernels: their words, what they keep, and the yardsticks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.nas_machine import bandwidth_gb_s, peak_gflops
from benchmarks.nas_speed import speed_row
from benchmarks.nas_table import (
    CLASSES,
    answer,
    chosen_classes,
    kept,
    main,
    markdown,
    parser,
    place,
)
from runner.nas.common_options import NAMES, parse

ROW: dict[str, Any] = {
    "kernel": "cg", "class": "A", "ranks": 4, "seconds": 0.51234, "mpi_share": 0.256,
    "status": "recommended", "gain": 0.081, "ci": [0.04, None], "setting": {"btl_x": "1m"},
}  # fmt: skip


def test_every_kernel_has_a_class_that_exists() -> None:
    assert set(CLASSES) == set(NAMES)
    for kernel, problem_class in CLASSES.items():
        assert parse([kernel, "--class", problem_class]).problem


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "+8.1% (+4.0% to open)"),
        ({"ci": [0.04, 0.1]}, "+8.1% (+4.0% to +10.0%)"),
        ({"status": "keep_default"}, "default stands"),
        ({"status": "inconclusive"}, "default stands (not decided)"),
        ({"status": "too_noisy"}, "open: too_noisy"),
    ],
)
def test_the_answer_in_words(change: dict[str, Any], words: str) -> None:
    assert answer(ROW | change) == words


def test_the_table_in_markdown() -> None:
    head, rule, line, last = markdown(
        [ROW, {**ROW, "status": "failed", "setting": {}}]
    ).splitlines()
    assert head.count("|") == rule.count("|") == line.count("|") == last.count("|")
    assert line == "| CG | A | 4 | 0.512 | 26% | +8.1% (+4.0% to open) | `btl_x=1m` |"
    assert last.endswith("| open: failed | - |")


def test_only_finished_kernels_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "row.json"
    assert kept(path) is None
    path.write_text('{"status": "keep')
    assert kept(path) is None
    path.write_text(json.dumps(ROW | {"status": "too_noisy"}))
    assert kept(path) is None
    path.write_text(json.dumps(ROW))
    assert kept(path) == ROW


def test_a_kept_kernel_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--keep", str(tmp_path), "--kernels", "cg", "--markdown", str(tmp_path / "t.md")]
    place(parser().parse_args(words), "cg", "A").write_text(json.dumps(ROW))
    monkeypatch.setattr("sys.argv", ["nas_table", *words])
    assert main() == 0
    assert "+8.1%" in capsys.readouterr().out
    assert (tmp_path / "t.md").read_text() == markdown([ROW])


def test_other_questions_are_other_files(tmp_path: Path) -> None:
    names = {
        place(parser().parse_args(["--keep", str(tmp_path), *words]), "cg", "A").name
        for words in ([], ["--ranks", "2"], ["--trials", "10"])
    }
    assert len(names) == 3


def test_classes_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert chosen_classes(parser(), ["is=S", "cg=W"]) == {"is": "S", "cg": "W"}
    with pytest.raises(SystemExit):
        chosen_classes(parser(), ["is=Q"])
    assert "expected KERNEL=CLASS, such as is=S" in capsys.readouterr().err


def test_shares_of_what_the_machine_can_do() -> None:
    found = {"seconds": 0.5, "mops": 500.0}
    row = speed_row("cg", "A", found, bandwidth=10.0, peak=5.0)
    assert (row["share"], row["bytes/op"]) == ("10.0%", "20.0")
    assert speed_row("is", "A", found, 10.0, 5.0)["share"] == "-"


@pytest.mark.slow
def test_yardsticks_are_of_this_world() -> None:
    assert 0.1 < bandwidth_gb_s() < 1000
    assert 0.1 < peak_gflops() < 1000
