"""Runs at the start of every rank's Python: counts as soon as mpi4py.MPI is imported."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

HOOK_FOLDER = str(Path(__file__).resolve().parent)


class CountedMPI(MetaPathFinder, Loader):
    """Finds mpi4py.MPI in the usual way, and adds the counting once it is loaded."""

    def __init__(self) -> None:
        self._loader: Any = None

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != "mpi4py.MPI":
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                self._loader, spec.loader = spec.loader, self
                return spec
        return None

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        importlib.import_module("autotune_counting").install(module, DIRECTORY)


def run_original() -> None:
    """Run the environment's own sitecustomize, which this file hides."""
    others = [place for place in sys.path if place != HOOK_FOLDER]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


# Programs that a rank starts must not count again.
DIRECTORY = os.environ.pop("AUTOTUNE_TRACE_DIR", "")
if DIRECTORY:
    sys.meta_path.insert(0, CountedMPI())
run_original()
