"""``autotune mate translate`` as a user meets it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autotune.cli import main
from tests.lines import no_room
from tests.mate.translate.test_translate import RING

WRONG = "from mpi4py import MPI\n\ndef main():\n    MPI.COMM_WORLD.Split(0)\n"


def test_a_program_beside_the_ordinary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ring.py").write_text(RING)
    assert main(["mate", "translate", "ring.py"]) == 0
    printed = capfd.readouterr().out.split()
    start = printed.index("mpirun")
    assert "ring_mate.py;" in printed[:start]
    line = printed[start : printed.index("4", start) + 1]
    assert line[:3] == ["mpirun", "-n", "1"]
    assert line[line.index("python") + 1] == "ring_mate.py"
    assert not no_room(line)
    made = Path("ring_mate.py").read_text()
    assert "mate.start(" in made
    for words, code, named in (
        (["ring.py"], "file.exists", ("ring_mate.py", "--force")),
        (["ring.py", "--out", "ring.py", "--force"], "file.same", ("ring.py", "--out")),
        (["nothing.py"], "program.unreadable", ("nothing.py",)),
    ):
        assert main(["mate", "translate", *words]) == 2
        said = capfd.readouterr().err
        assert said.startswith(f"autotune [{code}]: ")
        assert [name for name in named if name not in said] == []
    assert main(["mate", "translate", "ring.py", "--force"]) == 0
    assert Path("ring.py").read_text() == RING
    assert Path("ring_mate.py").read_text() == made


def test_a_program_that_starts_at_top_level_is_told_where_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    block = 'if __name__ == "__main__":'
    before, after = RING.split(block)
    (call,) = after.strip().splitlines()
    Path("top.py").write_text(before + call.strip() + "\n")
    assert main(["mate", "translate", "top.py"]) == 2
    said = capfd.readouterr().err
    assert said.startswith("autotune [mate.translation]: top.py:")
    assert block in said


def test_a_wrong_program_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text(WRONG)
    assert main(["mate", "translate", "app.py"]) == 2
    captured = capfd.readouterr()
    assert captured.err.startswith("autotune [mate.translation]: app.py:4: ")
    assert "Split" in captured.err
    assert captured.out == ""
    assert [place.name for place in tmp_path.iterdir()] == ["app.py"]
    for call, advice in (
        ("Sendrecv", {"Irecv", "Send", "Wait"}),
        ("alltoall", {"Isend", "Irecv"}),
    ):
        Path("app.py").write_text(WRONG.replace("Split", call))
        assert main(["mate", "translate", "app.py"]) == 2
        assert advice <= set(re.findall(r"\w+", capfd.readouterr().err))
