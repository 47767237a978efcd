"""The selection trees of MPICH: which algorithm a collective uses, by ranks and message size.

Two of them matter here. One chooses the layer (a composition of the CH4 device): within a node,
shared memory serves some collectives of single-threaded programs. The other one chooses the
algorithm of the general layer.

MPICH has no command that prints the trees. A file that replaces a tree must be complete: if a
collective is missing, every program that calls it aborts. The trees are constant texts in the
shared library and are read there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from runner.files.json_text import parse_json
from runner.mpi.hydra import shared_library
from runner.mpi.library import Library

Tree = dict[str, Any]
_TREE = re.compile(rb'\{"collective=[^\0]{2,1000000}\0')
_ALGORITHM = re.compile(r'"algorithm=(MPI[A-Z]+)_')
_NAME = re.compile(rb"\0algorithm=(MPIR_[A-Za-z0-9_]{1,100})(?=\0)")


@dataclass(frozen=True)
class _Selection:
    """The content of the shared library: both trees, and the algorithms that a file may name."""

    algorithms: Tree | None = None
    layers: Tree | None = None
    names: frozenset[str] = frozenset()


def builtin_tree(library: Library) -> Tree | None:
    """The tree by which this MPICH selects algorithms by default; None if there is none."""
    return _selection(library).algorithms


def builtin_layers(library: Library) -> Tree | None:
    """The tree by which this MPICH selects layers by default; None if there is none."""
    return _selection(library).layers


def algorithm_names(library: Library) -> frozenset[str]:
    """The algorithms of the general layer that this MPICH accepts in a file."""
    return _selection(library).names


def _selection(library: Library) -> _Selection:
    path = shared_library(library)
    return _Selection() if path is None else _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read(path: Path, mtime_ns: int) -> _Selection:
    """The two trees of the library; the tree for shared memory (MPIDI_POSIX) is left out."""
    content = path.read_bytes()
    algorithms, layers = None, None
    for match in _TREE.finditer(content):
        text = match[0][:-1].decode(errors="replace")
        try:
            tree = parse_json(text)
        except ValueError:
            continue
        if not isinstance(tree, dict):
            continue
        if '"composition=' in text:
            layers = layers or tree
        elif set(_ALGORITHM.findall(text)) == {"MPIR"}:
            algorithms = algorithms or tree
    names = frozenset(name.decode() for name in _NAME.findall(content))
    return _Selection(algorithms, layers, names)
