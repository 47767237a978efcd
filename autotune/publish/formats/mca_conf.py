"""Parameter files of Open MPI: ``mca-params.conf``, ``prte-mca-params.conf``, and ``--tune`` files.

``mca-params.conf`` belongs to one user or to the whole installation.  ``prte-mca-params.conf`` is
the only file in which Open MPI 5.x reads mapping and binding.  A ``--tune`` file has ``--mca name
value`` lines, the only form that both 4.1 and 5.0 read.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from autotune.publish.content import Content
from autotune.publish.formats.base import (
    Format,
    HomeFile,
    Loading,
    assignments,
    of_srun,
    policies,
    system_copy,
)
from runner.mpi.discover import adapter
from runner.mpi.library import Library
from runner.mpi.openmpi.parameters import SYSTEM_VARIABLE, system_folder

SYSTEM_FILE = "openmpi-mca-params.conf"


class UserConf(HomeFile):
    """The user's file.  It has precedence over ``--tune`` in 5.0, but not in 4.1."""

    name = "openmpi-user"
    summary = "Open MPI parameters of one user ($HOME/.openmpi/mca-params.conf)"
    family = "openmpi"
    loads_rules = True
    relative = ".openmpi/mca-params.conf"

    def part(self, content: Content, library: Library) -> Content:
        # 4.1 has one namespace for the library and its launcher; 5.x reads only mca here.
        old = library.version_tuple < (5,)
        forwarding = adapter(library).forwarding(content.groups.get("env", {}))
        more = ("prte", "pmix", "placement") if old else ("env",) if forwarding else ()
        return content.only("mca", *more).without(of_srun(content))

    def body(self, content: Content, library: Library) -> str:
        values = {
            n: v for g in ("mca", "prte", "pmix") for n, v in content.groups.get(g, {}).items()
        }
        values |= adapter(library).forwarding(content.groups.get("env", {}))
        return assignments(values | policies(content, library))


class InstallationFile(HomeFile):
    """A file of the installation in place of the user's."""

    usual = 0
    cluster_wide = True
    file: ClassVar[str]
    """Its name in the directory of the library's system files."""
    variable: ClassVar[str]
    """The variable with which a launch reads that directory elsewhere."""

    command: ClassVar[str]
    """The command of the installation that says where that directory is."""

    def folder(self, library: Library) -> Path:
        """The directory of the system files that this library reads."""
        return system_folder(library, self.command)

    def default_path(self, cluster: str, library: Library) -> Path:
        return self.folder(library) / self.file

    def stage(self, text: str, place: Path, library: Library) -> Loading:
        return Loading(
            {self.variable: str(system_copy(place, self.file, text, self.folder(library)))}
        )


class SystemConf(InstallationFile, UserConf):
    """The installation's file.  It has the lowest precedence of all places."""

    name = "openmpi-system"
    summary = "Open MPI parameters of the installation (SYSCONFDIR/openmpi-mca-params.conf)"
    file = SYSTEM_FILE
    variable = SYSTEM_VARIABLE
    command = "ompi_info"


class PrteUserConf(UserConf):
    """The user's file (``.prte``, with one r)."""

    name = "prte-user"
    summary = "mapping and binding of Open MPI 5 for one user ($HOME/.prte/mca-params.conf)"
    relative = ".prte/mca-params.conf"
    usual = 3
    loads_rules = False

    def obstacle(self, library: Library) -> str | None:
        if library.family == self.family and library.version_tuple < (5,):
            return f"it is for Open MPI 5.0 and later; this library is {library.version}"
        return super().obstacle(library)

    def part(self, content: Content, library: Library) -> Content:
        return content.only("prte", "placement").without(of_srun(content))

    def body(self, content: Content, library: Library) -> str:
        return assignments(dict(content.groups.get("prte", {})) | policies(content, library))


class PrteSystemConf(InstallationFile, PrteUserConf):
    """The installation's file."""

    name = "prte-system"
    summary = "mapping and binding of Open MPI 5 for all (SYSCONFDIR/prte-mca-params.conf)"
    file = "prte-mca-params.conf"
    variable = "PRTE_SYSCONFDIR"
    command = "prte_info"


class Tune(Format):
    """A file for one program or one class of jobs; the user's file overrules it in 5.0."""

    name = "tune"
    summary = "a file for mpirun --tune FILE"
    suffix = ".tune"
    family = "openmpi"

    def part(self, content: Content, library: Library) -> Content:
        return content.only("mca")

    def body(self, content: Content, library: Library) -> str:
        values = content.groups.get("mca", {})
        return "".join(f"--mca {name} {value}\n" for name, value in sorted(values.items()))

    def live(self, path: Path, library: Library) -> Loading:
        return Loading(options=("--tune", str(path.absolute())))
