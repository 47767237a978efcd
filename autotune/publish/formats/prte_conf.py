"""``prte-mca-params.conf``: the only file in which Open MPI 5.x reads mapping and binding."""

from __future__ import annotations

from pathlib import Path

from autotune.publish.content import Content
from autotune.publish.formats.base import Loading, assignments, policies, system_copy
from autotune.publish.formats.mca_conf import SystemConf, UserConf
from runner.mpi.library import Library


class PrteUserConf(UserConf):
    """The user's file (``.prte``, with one r)."""

    name = "prte-user"
    summary = "mapping and binding of Open MPI 5 for one user ($HOME/.prte/mca-params.conf)"
    relative = ".prte/mca-params.conf"
    usual = 3
    loads_rules = False

    def unobeyed(self, library: Library) -> str | None:
        if library.family == self.family and library.version_tuple < (5,):
            return f"it is for Open MPI 5.0 and later; this library is {library.version}"
        return super().unobeyed(library)

    def part(self, content: Content, library: Library) -> Content:
        return content.only("prte", "placement")

    def body(self, content: Content, library: Library) -> str:
        return assignments(dict(content.groups.get("prte", {})) | policies(content, library))


class PrteSystemConf(PrteUserConf):
    """The installation's file."""

    name = "prte-system"
    summary = "mapping and binding of Open MPI 5 for all (PREFIX/etc/prte-mca-params.conf)"
    usual = 0
    cluster_wide = True
    file = "prte-mca-params.conf"

    def default_path(self, cluster: str, library: Library) -> Path:
        return SystemConf().default_path(cluster, library).with_name(self.file)

    def staged(self, text: str, place: Path, library: Library) -> Loading:
        return Loading({"PRTE_SYSCONFDIR": str(system_copy(place, self.file, text, library))})
