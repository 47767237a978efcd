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
        numbers: dict[str, int]
        """The place of each test in the list that all processes have collected."""

        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if _shares(file, config.rootpath) else nodeid

        def schedule(self) -> None:
            if self.collection is None:
                collection = next(iter(self.registered_collections.values()))
                self.numbers = {nodeid: number for number, nodeid in enumerate(collection)}
            super().schedule()

        # As in the class above, which sends single tests and looks through all tests for each.
        def _assign_work_unit(self, node: Any) -> None:
            several = 1 + len(self.workqueue) // 1000  # Few at the end, so that none waits.
            indexes: list[int] = []
            while self.workqueue and len(indexes) < several:
                scope, unit = self.workqueue.popitem(last=False)
                self.assigned_work.setdefault(node, {})[scope] = unit
                indexes += [self.numbers[nodeid] for nodeid in unit if not unit[nodeid]]
            node.send_runtest_some(indexes)

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            nodeid = self.registered_collections[node][item_index]
            scope = self._split_scope(nodeid)
            units = self.assigned_work[node]
            units[scope][nodeid] = True
            if all(units[scope].values()):
                del units[scope]
            self._reschedule(node)

    return Groups(config, log)


@functools.cache
def _shares(file: str, root: Path) -> bool:
    text = (root / file).read_text(encoding="utf-8")
    return any(words in text for words in SHARING)
