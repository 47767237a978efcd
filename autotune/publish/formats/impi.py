"""Files for Intel MPI: a script of variables, and the options file of the user's launcher.

The library says in a run which values it does not use, so every value is read back. Its tuning
files (``.dat``) are binary, and only the library itself and its tools write them.
"""

from __future__ import annotations

import os
from pathlib import Path

from autotune.publish.content import Content
from autotune.publish.formats.base import (
    Canary,
    Format,
    Loading,
    home_copy,
    policy_canaries,
    variables,
    with_rules,
)
from autotune.publish.formats.scripts import Sh
from runner.mpi.intel import FAMILY, IntelMpi
from runner.mpi.library import Library
from runner.mpi.mpiexec_conf import USER


def _own_part(content: Content, library: Library) -> Content:
    """The library's own variables, rules, a binding, and variables of other parts."""
    part = content.only("mca", "placement", "env")
    foreign = {
        ("mca", n) for n in part.groups.get("mca", {}) if not n.startswith(IntelMpi.prefixes)
    }
    placed = part.groups.get("placement", {})
    unsaid = {("placement", n) for n in placed if n not in IntelMpi.placement_names}
    return with_rules(part.without(foreign | unsaid), content, library)


class ImpiEnv(Sh):
    """A script for a shell or a job."""

    name = "impi-env"
    summary = "environment script with I_MPI_ variables of Intel MPI"
    suffix = ".impi.sh"
    family = FAMILY

    def part(self, content: Content, library: Library) -> Content:
        return _own_part(content, library)


class ImpiUser(Format):
    """The user's file of launcher options. It has precedence over the environment, and the command
    line and ``./mpiexec.conf`` have precedence over it."""

    name = "impi-user"
    summary = "options of Intel MPI's launcher for one user ($HOME/.mpiexec.conf)"
    suffix = ".conf"
    family = FAMILY
    merges = True
    usual = 2
    relative = USER

    def part(self, content: Content, library: Library) -> Content:
        return _own_part(content, library)

    def body(self, content: Content, library: Library) -> str:
        found = sorted(variables(content, library).items())
        return "".join(f"-genv {name} {value}\n" for name, value in found)

    def canaries(self, content: Content, library: Library) -> list[Canary]:
        return policy_canaries(content)

    def default_path(self, cluster: str, library: Library) -> Path:
        return Path(os.environ.get("HOME", "/nonexistent")) / self.relative

    def staged(self, text: str, place: Path, library: Library) -> Loading:
        return Loading(home_copy(place, self.relative, text))

    def live(self, path: Path, library: Library) -> Loading:
        return Loading()
