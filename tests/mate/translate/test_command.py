"""``autotune mate translate`` as a user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.cli import main
from tests.mate.translate.test_translate import RING

WRONG = "from mpi4py import MPI\n\ndef main():\n    MPI.COMM_WORLD.Split(0)\n"


def test_a_program_beside_the_ordinary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ring.py").write_text(RING)
    assert main(["mate", "translate", "ring.py"]) == 0
    assert "wrote ring_mate.py; to run it:\n  mpirun " in capfd.readouterr().out
    made = Path("ring_mate.py").read_text()
    assert "mate.start(" in made
    for words, problem in (
        (["ring.py"], "ring_mate.py exists already; --force replaces it"),
        (["ring.py", "--out", "ring.py", "--force"], "is the program itself"),
        (["nothing.py"], "cannot read nothing.py: No such file"),
    ):
        assert main(["mate", "translate", *words]) == 2
        assert problem in capfd.readouterr().err
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
    assert f"start the program under {block}, or move this into a function" in said


def test_a_wrong_program_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text(WRONG)
    assert main(["mate", "translate", "app.py"]) == 2
    captured = capfd.readouterr()
    said = "autotune [mate.translation]: app.py:4: Split is not supported"
    assert captured.err.startswith(said)
    assert captured.out == ""
    assert [place.name for place in tmp_path.iterdir()] == ["app.py"]
    for call, advice in (
        ("Sendrecv", "use Irecv, Send and Wait"),
        ("alltoall", "use Isend, Irecv"),
    ):
        Path("app.py").write_text(WRONG.replace("Split", call))
        assert main(["mate", "translate", "app.py"]) == 2
        assert advice in capfd.readouterr().err
