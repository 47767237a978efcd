"""Paths that are not ours: nothing that a path can be raises, in any place that asks."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.files.paths import entries, exists, is_file, is_folder, real_path
from runner.mpi.discover import candidate_launchers
from tests.store.test_store_location import open_directory, unprivileged

__all__ = ["open_directory"]  # A fixture.
ROOT = Path(__file__).parents[2]
ASKS = ("is_file", "is_dir", "exists", "iterdir", "resolve")
OWN = (
    *("runner/files/paths.py", "runner/supervise/_start.py", "runner/trace/substitute/hook/"),
    "runner/lock/lockfile.py",
    *(
        "runner/runtimes/mate/",
        "runner/programs/apps/",
        "runner/programs/nas/",
        "runner/runtimes/tarragon/",
        "runner/runtimes/tpod/",
    ),
    *("runner/programs/micro/", "runner/runtimes/workers/", "autotune/testing/"),
    # Beside files that autotune wrote: each call is within a try.
    *("autotune/publish/install.py", "autotune/publish/undo.py"),
    # Data of the package, which need not be files.
    *("autotune/config/find.py", "autotune/prediction/model_file.py"),
    "autotune/parameters/shipped.py",
    *("runner/c_library.py", "runner/testbed/", "runner/runtimes/core/"),
)
"""Places whose paths are this process's own."""


def odd_paths(folder: Path) -> list[Path]:
    """Paths at which a question about a file fails, each in another way."""
    closed = folder / "closed"
    (closed / "bin").mkdir(parents=True)
    (closed / "bin" / "mpirun").write_text("#!/bin/sh\n", encoding="utf-8")
    closed.chmod(0o700)
    loop = folder / "loop"
    loop.symlink_to(loop)
    plain = folder / "plain"
    plain.touch()
    return [
        *(closed / "bin" / "mpirun", closed / "bin", loop, loop / "x", plain / "x"),
        *(folder / ("x" * 300), Path("x/" * 3000), folder / "missing", Path("a\0b")),
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_no_question_raises(open_directory: Path) -> None:
    places = odd_paths(open_directory)
    with unprivileged():
        for place in places:
            assert not is_file(place)
            assert not is_folder(place)
            assert not exists(place)
            assert entries(place) == []
            if "\0" not in str(place):
                real_path(place)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_a_directory_in_path_that_may_not_be_entered(open_directory: Path) -> None:
    places = odd_paths(open_directory)
    names = [str(place) for place in places if "\0" not in str(place)]
    with unprivileged():
        found = candidate_launchers(os.pathsep.join([*names, "/usr/bin"]))
    assert not [place for place in found if open_directory in place.parents]


def _questions(path: Path) -> Iterator[int]:
    """Lines that ask a path outside of a block that expects OSError."""
    text = path.read_text(encoding="utf-8")
    if not any(f".{word}(" in text for word in ASKS):
        return
    tree = ast.parse(text)
    guarded = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.Try | ast.With) and _expects_oserror(node)
        for part in node.body
        for inner in ast.walk(part)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asks = node.func.attr in ASKS and not node.args and not node.keywords
            of_kernel = "/proc" in ast.unparse(node) or "/sys" in ast.unparse(node)
            if asks and not of_kernel and (node not in guarded or node.func.attr == "resolve"):
                yield node.lineno


def _expects_oserror(node: ast.Try | ast.With) -> bool:
    if isinstance(node, ast.With):
        return any("suppress(OSError" in ast.unparse(item) for item in node.items)
    return any("OSError" in ast.unparse(one.type) for one in node.handlers if one.type)


def test_every_place_asks_without_raising() -> None:
    """``Path.is_file()`` and its relatives raise for a path that may not be looked at."""
    found = []
    for top in ("autotune", "runner"):
        for path in sorted((ROOT / top).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if not name.startswith(OWN):
                found += [f"{name}:{line}" for line in _questions(path)]
    assert not found, found
