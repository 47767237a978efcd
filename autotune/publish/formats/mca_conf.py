"""``mca-params.conf`` of Open MPI, of a user or of the whole installation (field.md G1)."""

from __future__ import annotations

import os
from pathlib import Path

from autotune.publish.content import Content
from autotune.publish.formats.base import (
    Canary,
    Format,
    Loading,
    assignments,
    home_copy,
    policies,
    policy_canaries,
    system_copy,
    system_directory,
)
from runner.mpi.library import Library

SYSTEM_FILE = "openmpi-mca-params.conf"
SYSTEM_VARIABLE = "OPAL_SYSCONFDIR"
"""Where the library looks for its system files instead of where it was installed."""


class UserConf(Format):
    """The user's file; beats ``--tune`` in 5.0, is beaten by it in 4.1."""

    name = "openmpi-user"
    summary = "Open MPI parameters of one user ($HOME/.openmpi/mca-params.conf)"
    suffix = ".conf"
    family = "openmpi"
    merges = True
    usual = 2
    loads_rules = True
    relative = ".openmpi/mca-params.conf"

    def part(self, content: Content, library: Library) -> Content:
        # 4.1 has one namespace for the library and what starts it; 5.x reads only mca here.
        old = library.version_tuple < (5,)
        return content.only("mca", *(("prte", "pmix", "placement") if old else ()))

    def body(self, content: Content, library: Library) -> str:
        values = {
            n: v for g in ("mca", "prte", "pmix") for n, v in content.groups.get(g, {}).items()
        }
        return assignments(values | policies(content, library))

    def canaries(self, content: Content, library: Library) -> list[Canary]:
        return policy_canaries(content)

    def default_path(self, cluster: str, library: Library) -> Path:
        return Path(os.environ.get("HOME", "/nonexistent")) / self.relative

    def staged(self, text: str, place: Path, library: Library) -> Loading:
        return Loading(home_copy(place, self.relative, text))

    def live(self, path: Path, library: Library) -> Loading:
        return Loading()


class SystemConf(UserConf):
    """The installation's file: the weakest of all places, so that everything else overrules it."""

    name = "openmpi-system"
    summary = "Open MPI parameters of the installation (PREFIX/etc/openmpi-mca-params.conf)"
    usual = 0
    cluster_wide = True
    file = SYSTEM_FILE

    def default_path(self, cluster: str, library: Library) -> Path:
        return system_directory(library) / self.file

    def staged(self, text: str, place: Path, library: Library) -> Loading:
        return Loading({SYSTEM_VARIABLE: str(system_copy(place, self.file, text, library))})
