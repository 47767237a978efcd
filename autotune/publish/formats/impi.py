"""Files for Intel MPI: a script of variables, and the options file of the user's launcher.

The library says in a run which values it does not use, so every value is read back. Its tuning
files (``.dat``) are binary, and only the library itself and its tools write them.
"""

from __future__ import annotations

from autotune.publish.content import Content
from autotune.publish.formats.base import HomeFile, variables, with_rules, without_foreign
from autotune.publish.formats.scripts import Sh
from runner.mpi.intel import FAMILY, IntelMpi
from runner.mpi.library import Library
from runner.mpi.mpiexec_conf import USER


def _own_part(content: Content, library: Library) -> Content:
    """The library's own variables, rules, a binding, and variables of other parts."""
    part = without_foreign(content.only("mca", "placement", "env"), IntelMpi.prefixes)
    placement = part.groups.get("placement", {})
    unsaid = {("placement", n) for n in placement if n not in IntelMpi.placement_names}
    return with_rules(part.without(unsaid), content, library)


class ImpiEnv(Sh):
    """A script for a shell or a job."""

    name = "impi-env"
    summary = "environment script with I_MPI_ variables of Intel MPI"
    suffix = ".impi.sh"
    family = FAMILY

    def part(self, content: Content, library: Library) -> Content:
        return _own_part(content, library)


class ImpiUser(HomeFile):
    """The user's file of launcher options. It has precedence over the environment, and the command
    line and ``./mpiexec.conf`` have precedence over it."""

    name = "impi-user"
    summary = "options of Intel MPI's launcher for one user ($HOME/.mpiexec.conf)"
    family = FAMILY
    relative = USER

    def part(self, content: Content, library: Library) -> Content:
        return _own_part(content, library)

    def body(self, content: Content, library: Library) -> str:
        assignments = sorted(variables(content, library).items())
        return "".join(f"-genv {name} {value}\n" for name, value in assignments)
