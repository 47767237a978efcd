"""MPICH: settings are MPIR_CVAR_* variables.

MPICH aborts in MPI_Init on a bad number, choice or tuning file, but accepts unknown variables and
most text silently. Read-back shows both (:mod:`runner.mpi.hydra`).
"""

from __future__ import annotations

import dataclasses
import re
import sys
from functools import lru_cache
from pathlib import Path

from runner.mpi.hydra import Hydra, shared_library
from runner.mpi.library import Library
from runner.mpi.mpi_t import environment_without, list_variables, read_parameters
from runner.mpi.output import output_of
from runner.mpi.rank_layout import LayoutQuery, RankLayout, Topology, hydra_layout
from runner.types import LaunchSpec

FAMILY = "mpich"
_PREFIXES = ("MPIR_CVAR_", "MPICH_")
_VERSION = re.compile(r"HYDRA build details:.*?Version:\s+(\S+)", re.DOTALL)
_ALGORITHM = re.compile(r"MPIR_CVAR_([A-Z_]+?)_(?:POSIX_|OFI_)?(?:INTRA_ALGORITHM|COMPOSITION)")


class Mpich(Hydra):
    family = FAMILY
    title = "MPICH"
    parameter_names = "variables (MPIR_CVAR_...)"
    checks_values = True
    version_marker = "HYDRA build details: Version: "
    prefixes = _PREFIXES
    launcher_words = _VERSION
    algorithm_names = _ALGORITHM
    own_words = re.compile(r"MPICH Version:\s*(\d\S*)")

    @classmethod
    def complete(cls, library: Library) -> Library:
        own = shared_library(library)
        if own is None:
            return library
        params = read_parameters(own, environment_without(_PREFIXES))
        return dataclasses.replace(library, params=params)

    def placement_words(self, placement: dict[str, str], oversubscribe: bool) -> list[str]:
        # Hydra never counts slots on one node, so oversubscription needs no option.
        words: list[str] = []
        if "bind_to" in placement:
            words += ["-bind-to", placement["bind_to"]]
        if "map_by" in placement:
            words += ["-map-by", placement["map_by"]]
        return words

    def layout_query(self, spec: LaunchSpec) -> LayoutQuery | None:
        # Hydra says so only of processes that it starts, here those of the command true.
        if not self.one_node(spec):
            return None
        bare = dataclasses.replace(spec, program=("true",), stdin=None, read_back=False)
        return LayoutQuery(self.command(bare, Path()), {"HYDRA_TOPO_DEBUG": "1"})

    def layout_in(self, output: str, spec: LaunchSpec, topology: Topology) -> RankLayout | None:
        binding = spec.placement.get("bind_to", "none")
        return hydra_layout(output, spec.ranks, topology, is_bound=binding != "none")

    def values_in_force(self, environment: dict[str, str]) -> dict[str, str]:
        """Values that MPI_T shows in a process with ``environment``.

        Choices appear as their numbers. A text variable's value is "", because MPI_T always shows
        its default. The result is empty if MPI_T does not start: MPICH refuses invalid values.
        """
        own = shared_library(self.library)
        lists = list_variables(own, [{}], environment) if own is not None else []
        values = (lists[0] if lists else None) or {}
        return {n: "" if v.kind == "MPI_CHAR" else v.value for n, v in values.items()}


_ASK = r"""import ctypes, sys
text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
ctypes.CDLL(sys.argv[1]).MPI_Get_library_version(text, ctypes.byref(length))
print(text.value.decode(errors="replace"))"""
"""The library's description of itself, which MPI allows before MPI_Init."""
_DEVICE = re.compile(r"^MPICH Device:\s*(\S+)", re.MULTILINE)


@lru_cache(maxsize=4)
def device_of(own: Path) -> str:
    """What the library at ``own`` sends messages with, such as ``ch4:ucx``; "" if unknown."""
    match = _DEVICE.search(output_of((sys.executable, "-I", "-c", _ASK, str(own))))
    return match[1] if match else ""
