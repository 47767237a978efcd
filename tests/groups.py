"""Which tests pytest-xdist runs in one process (``--dist loadgroup``).

pytest-xdist 3.8 keeps no group together under pytest 9.2: it writes the group into a field that
pytest no longer reads (pytest-dev/pytest-xdist issue 1386). So the groups are told here.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

SHARING = ('scope="module"', 'scope="class"', "TOGETHER = {", "\n@cache\n")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """All tests of a file run in one process if they share a fixture or what a function keeps.

    A fixture of the module or a class, for example an MPI job whose output many tests read, or the
    parsed sources that a cached function keeps, are otherwise made in each process.  Every other
    test goes to the process that is free.
    """
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling  # Calls this, so it is there.

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if _shares(Path(config.rootpath, file)) else nodeid

    return Groups(config, log)


@functools.cache
def _shares(file: Path) -> bool:
    text = file.read_text(encoding="utf-8")
    return any(words in text for words in SHARING)
