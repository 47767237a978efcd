"""Counting without a compiler: Python programs that use mpi4py, counted in Python.

The ranks find ``hook/sitecustomize.py`` first on their path; it puts counting communicators into
``mpi4py.MPI``.  It needs nothing but mpi4py, because the ranks may run another Python than ours.
What it cannot see: calls outside Python, and communicators made from integer handles.  A pickling
call (``send``) counts as one call of the pickled size.
"""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path


def variables() -> dict[str, str]:
    """Environment of the ranks that makes Python count."""
    hook = str(Path(str(resources.files("runner.trace"))) / "substitute" / "hook")
    inherited = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{hook}{os.pathsep}{inherited}" if inherited else hook}
