"""The file that is in a program's way."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from autotune.targets.file_in_way import in_way_lines, refuses_file
from runner.types import RunRecord


def _record(printed: str, state: str = "failed") -> RunRecord:
    return RunRecord(state, 0.1, stdout_tail=printed)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    for name in ("in.nml", "out.nc", "prog"):
        (tmp_path / name).write_text("x")
    (tmp_path / "prog").chmod(0o755)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("printed", "written", "removed"),
    [
        ("cannot make 'out.nc': File exists", (), ["out.nc"]),
        ("step 1\nout.nc already exists", ("b c.nc",), ["out.nc", "b c.nc"]),
        ("NetCDF: File exists && NC_NOCLOBBER", ("out.nc",), ["out.nc"]),
        # A file that is not there, and one that no message names, is not removed.
        ("in.nml was read\nother.nc already exists", (), ["FILE"]),
        ("NetCDF: File exists", (), ["FILE"]),
    ],
)
def test_the_file_is_named(
    printed: str, written: tuple[str, ...], removed: list[str], folder: str
) -> None:
    *_, options = in_way_lines(_record(printed), written, folder)
    words = shlex.split(options)
    assert shlex.split(words[words.index("--before") + 1].rstrip(",")) == ["rm", "-f", *removed]
    assert "--fresh-dir" in words


def test_the_newest_file_is_named_where_nothing_else_is(folder: str) -> None:
    first, *_ = in_way_lines(_record("NetCDF: File exists"), (), folder)
    assert "in.nml" in first or "out.nc" in first
    assert "prog" not in first
    record = _record("NetCDF: File exists")
    record.command = ["mpirun", "prog", "out.nc"]
    first, *_ = in_way_lines(record, (), folder)
    assert "out.nc" in first
    assert "in.nml" not in first
    assert "prog" not in first
    assert in_way_lines(_record("NetCDF: File exists"), (), f"{folder}/nothere")


@pytest.mark.parametrize(("printed", "state"), [("out.nc already exists", "ok"), ("no", "failed")])
def test_nothing_is_in_the_way(printed: str, state: str, folder: str) -> None:
    record = _record(printed, state)
    assert not refuses_file(record)
    assert in_way_lines(record, ("out.nc",), folder) == []
