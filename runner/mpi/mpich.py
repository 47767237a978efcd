"""MPICH (Hydra): settings are MPIR_CVAR_* variables; a run leaves no trace of what they became.

MPICH aborts in MPI_Init on a bad number, choice or tuning file, but accepts unknown variables and
most text in silence; so every value is ``not observable`` here, and says so in each run.
"""

from __future__ import annotations

from pathlib import Path

from runner.mpi.base import Adapter, Probe
from runner.mpi.mpich_library import python_variables
from runner.types import LaunchSpec, ReadBack

_PREFIXES = ("MPIR_CVAR_", "MPICH_")


class Mpich(Adapter):
    rank_variables = ("PMI_RANK",)
    refusals = ("unrecognized argument", "unable to find", "execvp error", "no executable provided")

    def command(self, spec: LaunchSpec, scratch: Path) -> list[str]:
        words = [self.library.launcher, "-n", str(spec.ranks), *spec.launch_options]
        words += self.placement_words(spec.placement, spec.oversubscribe)
        for name, value in spec.mca.items():
            words += ["-genv", name, value]
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
        env.update(python_variables(self.library, env))
        env.update(spec.env)
        return env

    def probe(self, spec: LaunchSpec, scratch: Path) -> Probe:
        read_back = {name: ReadBack("not observable", value) for name, value in spec.mca.items()}
        return Probe(initialised=None, read_back=read_back)

    def inherited_settings(self, environment: dict[str, str]) -> dict[str, str]:
        return {k: v for k, v in environment.items() if k.startswith(_PREFIXES)}
