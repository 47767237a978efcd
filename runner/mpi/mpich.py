"""MPICH (Hydra): settings are MPIR_CVAR_* variables; a run leaves no trace of what they became.

MPICH aborts in MPI_Init on a bad number, choice or tuning file, but accepts unknown variables and
most text in silence; so every value is ``not observable`` here, and says so in each run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from runner.mpi.base import Adapter, Probe
from runner.mpi.mpich_library import FAMILY, python_variables, values_in_force
from runner.types import LIBRARY, LaunchSpec, ReadBack

_PREFIXES = ("MPIR_CVAR_", "MPICH_")
_VERSION = re.compile(r"HYDRA build details:.*?Version:\s+(\S+)", re.DOTALL)
_PLACEMENT = {"map_by": "HYDRA_MAPPING", "bind_to": "HYDRA_BINDING"}
"""Placement as variables of Hydra, which has no other order of ranks."""


class Mpich(Adapter):
    family = FAMILY
    title = "MPICH"
    parameter_names = "variables (MPIR_CVAR_...)"
    placement_names = frozenset(_PLACEMENT)
    checks_values = True
    rank_variables = ("PMI_RANK",)
    refusals = ("unrecognized argument", "unable to find", "execvp error", "no executable provided")

    @classmethod
    def version_in(cls, text: str) -> str | None:
        found = _VERSION.search(text)
        return found[1] if found else None

    def command(self, spec: LaunchSpec, scratch: Path) -> list[str]:
        words = [self.library.launcher, "-n", str(spec.ranks), *spec.launch_options]
        words += self.placement_words(spec.placement, spec.oversubscribe)
        words += self.rank_environment(spec.of(LIBRARY))
        return [*words, *self.program(spec)]

    def placement_words(self, placement: dict[str, str], oversubscribe: bool) -> list[str]:
        # Hydra never counts slots on one node: oversubscription needs no word.
        words: list[str] = []
        if "bind_to" in placement:
            words += ["-bind-to", placement["bind_to"]]
        if "map_by" in placement:
            words += ["-map-by", placement["map_by"]]
        return words

    def environment(self, spec: LaunchSpec, inherited: dict[str, str]) -> dict[str, str]:
        env = {
            key: value
            for key, value in inherited.items()
            if not (spec.clean_env and key.startswith(_PREFIXES))
        }
        # mpi4py would load the library beside its Python: under another MPI's launcher every rank
        # is then a world of its own, and nothing here would notice.
        env.update(self.python_variables(env))
        env.update(spec.env)
        return env

    def probe(self, spec: LaunchSpec, scratch: Path) -> Probe:
        read_back = {
            name: ReadBack("not observable", value) for name, value in spec.of(LIBRARY).items()
        }
        return Probe(initialised=None, read_back=read_back)

    def rank_environment(self, variables: Mapping[str, str]) -> list[str]:
        return [word for pair in variables.items() for word in ("-genv", *pair)]

    def variables(
        self, parameters: Mapping[str, Mapping[str, str]], placement: Mapping[str, str]
    ) -> dict[str, str]:
        placed = {_PLACEMENT[n]: v for n, v in placement.items() if n in _PLACEMENT}
        return dict(parameters.get(LIBRARY, {})) | placed

    def kind_of(self, name: str) -> str | None:
        return LIBRARY if name.startswith(_PREFIXES) else None

    def python_variables(self, inherited: Mapping[str, str]) -> dict[str, str]:
        return python_variables(self.library, dict(inherited))

    def values_in_force(self, environment: dict[str, str]) -> dict[str, str]:
        return values_in_force(self.library, environment)

    def inherited_settings(self, environment: dict[str, str]) -> dict[str, str]:
        return {k: v for k, v in environment.items() if k.startswith(_PREFIXES)}
