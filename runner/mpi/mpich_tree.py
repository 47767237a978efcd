"""A selection tree of MPICH: which algorithm a collective uses, by ranks and message size.

MPICH has no command that prints the tree. A file that replaces the tree must be complete: if a
collective is missing, every program that calls it aborts. The tree is a constant text in the shared
library and is read there.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from runner.mpi.hydra import shared_library
from runner.mpi.library import Library

Tree = dict[str, Any]
_TREE = re.compile(rb'\{"collective=[^\0]{2,1000000}\0')
_ALGORITHM = re.compile(r'"algorithm=(MPI[A-Z]+)_')


def builtin_tree(library: Library) -> Tree | None:
    """The tree by which this MPICH selects algorithms by default; None if it is not found."""
    path = shared_library(library)
    return None if path is None else _read_tree(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read_tree(path: Path, changed: int) -> Tree | None:
    """The tree of the library that names only algorithms of the general layer.

    The other trees choose between layers (compositions) or are for shared memory (MPIDI_POSIX).
    """
    for found in _TREE.finditer(path.read_bytes()):
        text = found[0][:-1].decode(errors="replace")
        if set(_ALGORITHM.findall(text)) != {"MPIR"} or '"composition=' in text:
            continue
        try:
            tree = json.loads(text)
        except ValueError:
            continue
        if isinstance(tree, dict):
            return tree
    return None
