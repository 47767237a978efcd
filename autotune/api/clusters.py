"""Applications and clusters as documents."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ConfigDict, Field

from autotune.config.app import App
from autotune.config.cluster import Cluster, cluster_file, load_cluster, read_cluster
from autotune.document import Document
from autotune.json_types import LibraryName
from autotune.targets.jobs import Share
from runner.cpus import cpu_list
from runner.errors import RunnerError
from runner.mpi.library import Library


class ShownApp(App):
    """An application, as its file has it."""

    literal: bool = Field(default=False, exclude=True)


AppList = list[ShownApp]


class ClusterRow(Cluster):
    """A cluster definition and its file."""

    file: str
    """The definition."""


ClusterList = list[ClusterRow]


class ShownCluster(ClusterRow):
    """A cluster definition with one MPI library."""

    model_config = ConfigDict(serialize_by_alias=True)

    launch_options: tuple[str, ...] = Field(alias="options")
    """Launch options for this MPI library."""
    missing: str | None
    """Why the cluster cannot be used."""


class JobShare(Document):
    """The share of one MPI job."""

    cpus: str
    cores: int
    command: str


class DividedCores(Document):
    """The cores of this node divided among MPI jobs."""

    mpi: LibraryName
    """MPI library: family and version."""
    jobs: list[JobShare]
    left: str
    """CPUs that no job has."""


def app_list(apps: list[App]) -> AppList:
    """The applications as documents."""
    return [ShownApp.model_construct(**vars(app)) for app in apps]


def cluster_list(clusters: dict[str, Cluster]) -> ClusterList:
    """The clusters, by name, as documents."""
    return [
        ClusterRow.model_construct(**vars(cluster), file=cluster_file(name).path)
        for name, cluster in clusters.items()
    ]


def divided_cores(shares: list[Share], library: Library, left: frozenset[int]) -> DividedCores:
    """The shares of MPI jobs, and the CPUs that are left, as a document."""
    rows = [JobShare(cpus=cpu_list(s.cpus), cores=s.cores, command=s.line) for s in shares]
    name = LibraryName(name=library.family, version=library.version)
    return DividedCores(mpi=name, jobs=rows, left=cpu_list(left))


@dataclass(frozen=True)
class ClusterState:
    """A cluster with an MPI library; ``missing``: why it cannot be used, else ""."""

    name: str
    cluster: Cluster
    library: Library
    missing: str

    @classmethod
    def of(cls, name: str, library: Library) -> ClusterState:
        """The state of a cluster; a testbed that is not up is missing."""
        try:
            return cls(name, load_cluster(name), library, "")
        except RunnerError as problem:
            return cls(name, read_cluster(name), library, str(problem))

    @property
    def options(self) -> tuple[str, ...]:
        """Launch options for this MPI library."""
        return () if self.missing else tuple(self.cluster.options(self.library))

    @property
    def document(self) -> ShownCluster:
        """The state as a document."""
        return ShownCluster.model_construct(
            **vars(self.cluster),
            file=cluster_file(self.name).path,
            launch_options=self.options,
            missing=self.missing or None,
        )
