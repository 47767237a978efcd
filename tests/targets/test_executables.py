"""Files that ranks ran, and whether they are still the same: by content, not by time."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import WorkError
from autotune.targets.executables import (
    KINDS,
    PLACES,
    ExecutableChange,
    ExecutableFile,
    changes_of,
    executables_of,
    is_wrapped,
)
from runner.types import Executable, RunRecord
from tests.case_table import case_table


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def ran(path: Path, *argv: str, cwd: str | Path = "/") -> ExecutableFile:
    """The file as it is noted after a run that was started by ``argv`` in ``cwd``."""
    one = Executable(str(path), sha256(path.read_bytes()), argv=argv, cwd=str(cwd))
    record = RunRecord("ok", executables=[one])
    (file,) = (f for f in executables_of(record, ("sh", "run.sh")) if f.kind == "program")
    return file


@pytest.fixture
def program(tmp_path: Path) -> Path:
    place = tmp_path / "bin" / "solver"
    place.parent.mkdir()
    place.write_bytes(b"\x7fELF one")
    return place


def test_the_same_bytes_are_the_same_program(program: Path) -> None:
    file = ran(program)
    content = program.read_bytes()
    program.unlink()
    program.write_bytes(content)
    os.utime(program, (1, 1))
    assert file.change() is None


def test_other_bytes_of_the_same_size_and_time_are_another_program(program: Path) -> None:
    file, before = ran(program), program.stat()
    program.write_bytes(b"\x7fELF two")
    os.utime(program, ns=(before.st_atime_ns, before.st_mtime_ns))
    change = file.change()
    assert change is not None
    assert change.to_json() == {
        "path": str(program),
        "sha256": sha256(b"\x7fELF one"),
        "now_path": str(program),
        "now_sha256": sha256(b"\x7fELF two"),
    }
    assert ExecutableChange.from_json(change.to_json()) == change


@pytest.mark.parametrize("what", ["missing", "folder", "fifo"])
def test_no_readable_file_is_a_change(program: Path, what: str) -> None:
    file = ran(program)
    program.unlink()
    if what == "folder":
        program.mkdir()
    elif what == "fifo":
        os.mkfifo(program)
    (change,) = changes_of([file])
    assert (change.path, change.now_sha256) == (str(program), "")


def test_a_link_that_leads_to_another_program(program: Path, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to(program)
    file = ran(program, "./current", cwd=tmp_path)
    assert file.change() is None
    other = program.with_name("other")
    other.write_bytes(b"\x7fELF new")
    link.unlink()
    link.symlink_to(other)
    (change,) = changes_of([file])
    assert (change.path, change.now_path) == (str(program), str(other))


def test_another_program_of_this_name_on_path(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tmp_path / "first"
    first.mkdir()
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{first}{os.pathsep}{program.parent}")
    file = ran(program, "solver", cwd=tmp_path)
    assert file.change() is None
    other = first / "solver"
    other.write_bytes(b"\x7fELF of another module")
    other.chmod(0o755)
    (change,) = changes_of([file])
    assert change.now_path == str(other)


def test_a_word_that_does_not_lead_to_the_program_says_nothing(
    program: Path, tmp_path: Path
) -> None:
    """A wrapper may set PATH or choose any ``argv[0]``."""
    assert ran(program, "unheard-of", cwd=tmp_path).words == ()
    assert ran(program, "./bin/other", cwd=tmp_path).words == ()


@pytest.mark.parametrize("place", ["removed", "elsewhere"])
def test_a_file_that_is_not_here_cannot_be_compared(program: Path, place: str) -> None:
    file = ExecutableFile(str(program), "ab" * 32, place=place)
    assert file.change() is None


def script(place: Path, *argv: str) -> ExecutableFile:
    python = os.path.realpath(sys.executable)
    one = Executable(python, "ab" * 32, argv=("python3", *argv), cwd=str(place))
    found = executables_of(RunRecord("ok", executables=[one]), ("sh", "run.sh"))
    (file,) = (f for f in found if f.kind == "source")
    return file


@pytest.mark.parametrize("words", [("solve.py", "8"), ("-u", "solve.py"), ("-m", "solve")])
def test_python_behind_a_wrapper_counts_with_what_it_imports(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "solve.py").write_text("import step\nstep.go()\n")
    (tmp_path / "step.py").write_text("def go():\n    return 1\n")
    file = script(tmp_path, *words)
    assert file.path == str(tmp_path / "solve.py")
    (tmp_path / "step.py").write_text('"""Goes."""\n\ndef go():\n    return 1  # one\n')
    assert file.change() is None
    (tmp_path / "step.py").write_text("def go():\n    return 2\n")
    assert file.change() is not None
    (tmp_path / "solve.py").unlink()
    assert file.change() is not None


def test_python_on_the_command_line_is_left_to_the_key(tmp_path: Path) -> None:
    (tmp_path / "solve.py").write_text("pass\n")
    words = ("python3", "solve.py")
    one = Executable("/usr/bin/python3", "ab" * 32, argv=words, cwd=str(tmp_path))
    found = executables_of(RunRecord("ok", executables=[one]), ("python3", "solve.py"))
    assert [file.kind for file in found] == ["program"]


_text = st.text(st.characters(exclude_characters="\0"), max_size=20)


@given(
    st.builds(
        ExecutableFile,
        path=_text,
        sha256=_text,
        kind=st.sampled_from(KINDS),
        place=st.sampled_from(PLACES),
        words=st.lists(_text, max_size=3).map(tuple),
        cwd=_text,
    )
)
def test_the_stored_form_comes_back(file: ExecutableFile) -> None:
    assert ExecutableFile.from_json(json.loads(json.dumps(file.to_json()))) == file


@case_table(
    "change",
    [
        {"path": 7},
        {"path": "/a\0b"},
        {"sha256": None},
        {"kind": "other"},
        {"place": "there"},
        {"more": 1},
        {"words": [1]},
        {"cwd": []},
    ],
)
def test_what_others_wrote_is_not_believed(change: dict[str, Any]) -> None:
    good = ExecutableFile("/bin/sh", "ab" * 32).to_json()
    with pytest.raises(WorkError) as problem:
        ExecutableFile.from_json(good | change)
    assert problem.value.code == "study.damaged"


def test_a_wrapper_is_known_by_its_name_or_first_line(tmp_path: Path) -> None:
    for name, text in {"w": "#!/bin/sh\n", "p": "#!/usr/bin/env python3\n", "b": "\x7fELF"}.items():
        (tmp_path / name).write_text(text)
    found = [is_wrapped((word,), str(tmp_path)) for word in ("./w", "./p", "./b", "./none", "sh")]
    assert found == [True, False, False, False, True]
