"""Clusters: where programs run, with the launch options that are not tuned.

One file ``configs/clusters/NAME.toml`` each; ``local`` (this machine) is shipped.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from autotune.config.find import find
from autotune.config.validated import read_toml
from autotune.errors import UsageError
from runner.mpi.library import Library

_MPI = re.compile(r"^(?P<family>[a-z]+)\s*(?:(?P<op>>=|<=|==|<|>)\s*(?P<version>\d+(?:\.\d+)*))?$")


class Launch(BaseModel):
    """Launch options for the libraries that ``mpi`` matches (``openmpi>=5``, ``mpich``).

    ``wheel`` restricts the entry to libraries installed from PyPI (true) or otherwise (false).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mpi: str = "openmpi"
    wheel: bool | None = None
    options: tuple[str, ...] = ()
    why: str = ""

    def matches(self, library: Library) -> bool:
        match = _MPI.match(self.mpi)
        if match is None:
            raise UsageError(
                f"launch entry mpi = {self.mpi!r} is not understood; expected a family with an "
                "optional bound, such as openmpi, openmpi>=5 or mpich"
            )
        if match["family"] != library.family:
            return False
        if self.wheel is not None and self.wheel != is_wheel(library):
            return False
        if match["op"] is None:
            return True
        wanted = tuple(int(p) for p in match["version"].split("."))
        have = library.version_tuple[: len(wanted)]
        return {
            ">=": have >= wanted,
            "<=": have <= wanted,
            "==": have == wanted,
            "<": have < wanted,
            ">": have > wanted,
        }[match["op"]]


class Cluster(BaseModel):
    """A place to run on.  ``cores`` and ``nodes`` are taken from the machine where left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    description: str = ""
    nodes: int = Field(default=1, ge=1)
    cores_per_node: int | None = Field(default=None, ge=1)
    interconnect: str = "shared memory"
    scheduler: Literal["local"] = "local"
    own_processes: tuple[str, ...] = ()
    """Command names whose CPU time belongs to the cluster itself, not to foreign load."""
    launch: tuple[Launch, ...] = ()

    def options(self, library: Library) -> tuple[str, ...]:
        """The fixed launch options for ``library``: those of the first entry that matches."""
        for entry in self.launch:
            if entry.matches(library):
                return entry.options
        return ()


def is_wheel(library: Library) -> bool:
    """Whether the library was installed from PyPI: its package lies in the same prefix."""
    prefix = Path(library.bin).parent
    return any(prefix.glob("lib/python*/site-packages/openmpi-*.dist-info"))


def load_cluster(name: str) -> Cluster:
    """The cluster ``name`` (or the file of that path); UsageError says what is wrong where."""
    found = find("clusters", name)
    return read_toml(found.text, found.path, Cluster)
