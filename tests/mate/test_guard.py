"""Which calls of mpi4py the guard takes for blocking ones."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from runner.runtimes.mate.mpi4py_guard import _BLOCKING

KINDS = (
    *("Comm", "Intracomm", "Intercomm", "Topocomm", "Cartcomm", "Graphcomm", "Distgraphcomm"),
    *("Request", "Prequest", "Grequest", "Message"),
)
AT_ONCE = re.compile(
    r"I[a-z]\w*|i[a-z]+|\w+_init|(Get|Set|get)_\w+|Test\w*|test\w*|Pready\w*|\w+2\w+|\w+int|"
    r"(\w+_)?(keyval|errhandler|attr)|fromhandle|free|Free|Compare|Revoke|Ack_failed|Attach_buffer|"
    r"Abort|Shift|Start|Startall|Parrived|Complete|complete|Cancel|cancel"
)
"""Methods that only start something, ask, or belong to the process alone."""
LIST = f"""
import json, mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
found = {{}}
for kind in {KINDS}:
    entries = vars(getattr(MPI, kind))
    found[kind] = [n for n in entries if n[0] != "_" and callable(getattr(getattr(MPI, kind), n))]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def methods() -> dict[str, list[str]]:
    """The methods of mpi4py's classes; another process imports it, because this one may use MPI."""
    line = [sys.executable, "-c", LIST]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def test_every_method_that_can_wait_is_guarded(methods: dict[str, list[str]]) -> None:
    missing = {
        f"{kind}.{name}"
        for kind, names in methods.items()
        for name in names
        if name not in _BLOCKING.get(kind, ()) and not AT_ONCE.fullmatch(name)
    }
    assert missing == set()


def test_what_is_guarded_is_there_and_waits(methods: dict[str, list[str]]) -> None:
    for kind, names in _BLOCKING.items():
        assert set(names) <= set(methods[kind]), kind
        assert [name for name in names if AT_ONCE.fullmatch(name)] == [], kind
