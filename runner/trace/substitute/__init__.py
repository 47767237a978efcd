"""The substitute without a compiler: counts the calls of Python programs that use mpi4py.

The ranks find ``hook/sitecustomize.py`` first on their path; it puts counting communicators into
``mpi4py.MPI``. It needs only mpi4py, because the ranks may run another Python. It does not see
calls outside Python, nor communicators made from integer handles. A pickling call (``send``) counts
as one call of the pickled size.
"""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path


def variables() -> dict[str, str]:
    """Environment variables for the ranks that make Python count."""
    hook = str(Path(str(resources.files("runner.trace"))) / "substitute" / "hook")
    folders = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{hook}{os.pathsep}{folders}" if folders else hook}
