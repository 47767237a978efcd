"""A directory with modules of the names that are imported here: none of them is imported.

``python -m`` looks into the current directory first. So all that autotune starts is told not to,
and the command ``autotune`` itself does not.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.config.find import list_configs
from runner.own_python import OWN_PYTHON
from tests.own_modules import lay_out

ROOT = Path(__file__).parents[2]
COMMAND = Path(sys.executable).with_name("autotune")
Started = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def hostile(work: Path) -> Path:
    """A current directory with such modules, which leave a mark; where the marks are."""
    return lay_out(work)


@pytest.fixture
def started(work: Path, hostile: Path) -> Started:
    """Run the command as a user does; none of the modules is imported by it or what it starts."""

    def run(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(COMMAND), *words], cwd=work, capture_output=True, text=True, timeout=400
        )
        logs = "".join(log.read_text() for log in work.glob("*.log"))
        assert not list(hostile.iterdir()), (done.stdout, done.stderr, logs)
        assert done.returncode == code, (done.stdout, done.stderr, logs)
        return done

    return run


def test_the_marks_are_left_if_one_asks_for_the_current_directory(
    work: Path, hostile: Path
) -> None:
    """Else the other tests would show nothing."""
    for words in (["-c", "import numpy"], ["-m", "runner.programs.apps.ring", "--help"]):
        done = subprocess.run([sys.executable, *words], cwd=work, capture_output=True)
        assert done.returncode != 0
    assert {mark.name for mark in hostile.iterdir()} >= {"numpy", "runner"}


@pytest.mark.mpi
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("doctor",), marks=pytest.mark.slow),
        ("run", "-n", "1", "--app", "jacobi3d", "--input", "tiny", "--no-guard"),
        pytest.param(
            ("run", "-n", "1", "--app", "nas-is", "--input", "S", "--no-guard"),
            marks=pytest.mark.slow,  # Another program, started in the same way.
        ),
        # Start what run and doctor start.
        pytest.param(
            ("features", "--app", "ring", "-n", "2", "--no-guard"), marks=pytest.mark.slow
        ),
        pytest.param(("cluster", "init", "here"), marks=pytest.mark.slow),
    ],
    ids=lambda words: " ".join(words[:4]),
)
def test_a_command_imports_nothing_from_the_current_directory(
    started: Started, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The wheel's btl/ofi would idle for a second at every start.
    monkeypatch.setenv("OMPI_MCA_btl", "^ofi")
    started(*words)


@pytest.mark.slow
@pytest.mark.mpi
def test_workers_import_nothing_from_the_current_directory(
    started: Started, mpi_shell: str
) -> None:
    started(
        *("search", "--scheduler", "local", "--no-guard", "--store", "r.db", "--ranks", "1"),
        *("--strategy", "random", "--trials", "1", "--runs", "32", "--min-gain", "40"),
        *("--metric", "seconds (.*)", "--", mpi_shell, "echo seconds 0.5"),
    )


SOURCES = [*(ROOT / "autotune").rglob("*.py"), *(ROOT / "runner").rglob("*.py")]
SAFE = ("-I", "-P")
NOT_STARTED = {
    # The interpreter is only named: to look beside it, or as a word of the user's command.
    "autotune/config/app.py": 1,
    "autotune/config/shipped_programs.py": 1,
    "autotune/api/doctor_needs.py": 2,
    "autotune/terminal/command_line.py": 1,
    "runner/mpi/discover.py": 3,
    "runner/mpi/linkage.py": 1,
    "runner/testbed/launch.py": 1,
}
"""Uses of ``sys.executable`` that start nothing of ours, by file."""


def uses(path: Path) -> tuple[int, int]:
    """How often a source names this Python, and how often with an option that leaves out "."."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = safe = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "executable":
            named += ast.unparse(node) == "sys.executable"
        if isinstance(node, ast.List | ast.Tuple) and len(node.elts) > 1:
            first, second = node.elts[:2]
            if isinstance(second, ast.Constant) and second.value in SAFE:
                safe += ast.unparse(first) == "sys.executable"
    return named, safe


def test_every_start_of_this_python_shuts_the_current_directory_out() -> None:
    found = {}
    for path in SOURCES:
        if "sys.executable" not in path.read_text(encoding="utf-8"):
            continue
        named, safe = uses(path)
        if named - safe:
            found[path.relative_to(ROOT).as_posix()] = named - safe
    assert found == NOT_STARTED
    assert (sys.executable, "-P") == OWN_PYTHON


def test_every_shipped_application_shuts_the_current_directory_out() -> None:
    seen = 0
    for file in list_configs("apps"):
        words = tomllib.loads(file.text)["command"]
        for word, following in zip(words, [*words[1:], ""], strict=True):
            if word == "{python}":
                assert following == "-P", file.path
                seen += 1
    assert seen > 20


def test_no_document_starts_one_without() -> None:
    """Commands that autotune prints to be copied, too."""
    printed = re.compile(r"[\"' ]python3? -m (runner|autotune)")
    usage = re.compile(r"OptionParser|prog=|^\s*\"?python -m|\"\"\"|mpirun -n|``python -m", re.M)
    lines = [line for path in SOURCES for line in path.read_text("utf-8").splitlines()]
    assert not [line for line in lines if printed.search(line) and not usage.search(line)]
