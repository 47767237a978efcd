"""What makes a program another one."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.targets import program_identity
from autotune.targets.program_identity import program_hash

SOURCES = program_identity.RUNNER
SCRIPT = '''"""A program."""
import helper  # beside it


def main():
    """Runs."""
    return helper.answer()
'''


def _copy(place: Path) -> None:
    """Copy the runner's sources, or those that differ; times are kept, by which they are known."""
    for source in (SOURCES / "runner").rglob("*"):
        target = place / source.relative_to(SOURCES)
        if source.is_dir() or "__pycache__" in source.parts:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        there, here = source.stat(), target.stat() if target.exists() else None
        if here is None or (here.st_mtime_ns, here.st_size) != (there.st_mtime_ns, there.st_size):
            shutil.copy2(source, target)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("copy")


@pytest.fixture
def copied(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the runner's sources, which programs are then made of; the test may edit them.

    It lies at one place for all tests, so that each source is parsed once.
    """
    _copy(copy)
    monkeypatch.setattr(program_identity, "RUNNER", copy)
    monkeypatch.chdir(tmp_path)
    return copy


@pytest.fixture
def script(work: Path) -> tuple[str, ...]:
    (work / "main.py").write_text(SCRIPT)
    (work / "helper.py").write_text("def answer():\n    return 42\n")
    (work / "other.py").write_text("def answer():\n    return 43\n")
    return sys.executable, "main.py"


def module(name: str, *words: str) -> tuple[str, ...]:
    return sys.executable, "-m", name, *words


def edit(path: Path, change: Callable[[str], str]) -> None:
    before = path.read_text()
    after = change(before)
    assert after != before
    path.write_text(after)


def more_code(text: str) -> str:
    return text + "\nANOTHER_CONSTANT = 17\n"


def more_words(text: str) -> str:
    quotes = '"""'
    assert text.startswith(quotes)
    return text.replace(quotes, quotes + "Said otherwise.  ", 1) + "\n# A comment.\n"


def test_a_compiled_program_has_the_hash_that_it_always_had(work: Path) -> None:
    (work / "prog").write_bytes(b"\x7fELF a program")
    (work / "prog").chmod(0o755)
    (work / "input.txt").write_text("size 64\n")
    known = "7a05bafb679336699fcc2c6c315e7c47556d989b439a1c1fa4c08e12065dd3b0"
    assert program_hash(("./prog", "input.txt", "-n", "4")) == known


def test_words_in_a_source_make_no_other_program(script: tuple[str, ...], work: Path) -> None:
    before = program_hash(script)
    edit(work / "main.py", lambda text: text.replace("A program", "The program"))
    edit(work / "main.py", lambda text: text.replace("# beside it", "# next to it"))
    edit(work / "helper.py", lambda text: "# Why.\n\n" + text)
    assert program_hash(script) == before
    edit(work / "other.py", more_code)
    assert program_hash(script) == before


def test_a_module_beside_a_script_counts_where_it_is_imported(
    script: tuple[str, ...], work: Path
) -> None:
    before = program_hash(script)
    edit(work / "helper.py", lambda text: text.replace("42", "44"))
    other = program_hash(script)
    assert other != before
    assert program_hash((sys.executable, "-u", "main.py")) == other
    assert program_hash((sys.executable, "-m", "main")) == other
    assert program_hash((sys.executable, "main.py"), cwd=work.parent) != other


def test_relative_imports_and_packages_are_followed(work: Path) -> None:
    package = work / "solver"
    (package / "parts").mkdir(parents=True)
    (package / "__init__.py").write_text("from .setup import ready\n")
    (package / "setup.py").write_text("ready = 1\n")
    (package / "parts" / "__init__.py").write_text("")
    (package / "parts" / "cell.py").write_text("from ..setup import ready\nfrom . import face\n")
    (package / "parts" / "face.py").write_text("area = 1\n")
    (work / "go.py").write_text("import solver.parts.cell as c\n")
    argv = (sys.executable, "go.py")
    [entry] = program_identity.entries(argv, work)
    assert set(program_identity.sources(entry)) == {
        "go.py",
        *("solver/__init__.py", "solver/setup.py", "solver/parts/__init__.py"),
        *("solver/parts/cell.py", "solver/parts/face.py"),
    }
    before = program_hash(argv)
    edit(package / "parts" / "face.py", lambda text: "area = 2\n")
    assert program_hash(argv) != before


def test_what_is_no_python_counts_as_it_lies_there(work: Path) -> None:
    (work / "old.py").write_text("print 1  # Python 2\n")
    argv = (sys.executable, "old.py")
    before = program_hash(argv)
    edit(work / "old.py", lambda text: text.replace("Python 2", "Python 2.7"))
    assert program_hash(argv) != before


def test_a_faster_runtime_is_another_program_where_it_is_used(copied: Path) -> None:
    mated = module("runner.programs.apps.jacobi3d", "--input", "tiny")
    flat = module("runner.programs.micro", "pingpong")
    before = program_hash(mated), program_hash(flat)
    edit(copied / "runner" / "runtimes" / "mate" / "scheduler.py", more_words)
    assert (program_hash(mated), program_hash(flat)) == before
    edit(copied / "runner" / "runtimes" / "mate" / "scheduler.py", more_code)
    assert program_hash(mated) != before[0]
    assert program_hash(flat) == before[1]


def test_a_runtime_counts_for_an_own_script(copied: Path, script: tuple[str, ...]) -> None:
    edit(
        Path("main.py"),
        lambda text: text.replace("import helper", "import helper, runner.runtimes.mate"),
    )
    before = program_hash(script)
    edit(copied / "runner" / "runtimes" / "mate" / "worker.py", more_code)
    assert program_hash(script) != before


@pytest.mark.parametrize(
    ("source", "argv", "counts"),
    [
        ("runtimes/core/kernels.py", module("runner.programs.nas", "ep"), True),
        ("programs/apps/common/layout.py", module("runner.programs.nas", "ep"), False),
        ("programs/apps/jacobi3d/kernels.py", module("runner.programs.apps.jacobi3d"), True),
        ("programs/apps/jacobi3d/residuals.py", module("runner.programs.apps.jacobi3d"), False),
        ("programs/nas/ep_kernels.py", module("runner.programs.nas", "ep"), True),
        ("programs/apps/jacobi3d/block.py", module("runner.programs.apps.cannon"), False),
        ("mpi/openmpi/adapter.py", module("runner.programs.apps.jacobi3d"), False),
    ],
)
def test_what_a_shipped_program_runs_counts(
    copied: Path, source: str, argv: tuple[str, ...], counts: bool
) -> None:
    path = copied / "runner" / source
    before = program_hash(argv)
    edit(path, more_words)
    assert program_hash(argv) == before
    edit(path, more_code)
    assert (program_hash(argv) != before) is counts


def test_a_program_in_a_word_is_no_file() -> None:
    """``python -c`` with more than a file name may have."""
    text = "import os\n" + "x = 1\n" * 100
    argv = (sys.executable, "-c", text)
    assert program_hash(argv) == program_hash((sys.executable, "-c", "x"))
