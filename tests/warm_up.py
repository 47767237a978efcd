"""Imports of the test files that begin, in each process of pytest-xdist, at another file.

In a fresh place nothing is compiled. Processes that import the same files in the same order compile
them at the same time, each for itself; this way each finds what the others have compiled.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Before the collection, which finds the files imported."""
    worker = getattr(session.config, "workerinput", None)
    if worker is not None:
        files = _test_files(session.config.args)
        first = int(worker["workerid"].removeprefix("gw")) * len(files) // worker["workercount"]
        for file in files[first:] + files[:first]:
            _import(file, session.config.rootpath)
    return (yield)


def _test_files(places: Sequence[str]) -> list[Path]:
    paths = [Path(place.partition("::")[0]).absolute() for place in places]
    return [file for path in paths for file in (sorted(path.rglob("test_*.py")) or [path])]


def _import(file: Path, root: Path) -> None:
    try:
        importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))
    except (Exception, pytest.skip.Exception):
        return  # The collection imports it once more, and says what is wrong.
