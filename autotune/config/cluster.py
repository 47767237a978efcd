"""Clusters: where programs run, and the launch options that are not tuned.

Each cluster is one file ``configs/clusters/NAME.toml``. Shipped are ``local`` (this machine) and
``testbed`` (a small cluster on this machine, docs/howto/testbed.md). A testbed that runs under
another name is a cluster of that name, defined by the file of ``testbed``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from autotune.config.find import ConfigFile, find_config, list_configs
from autotune.config.validated import read_toml
from autotune.errors import UsageError
from autotune.names import ConfigName, PlainName
from runner import testbed
from runner.cpus import count_cores, cpu_list, parse_cpus
from runner.machine import describe_machine
from runner.mpi.discover import families, family
from runner.mpi.library import Library
from runner.mpi.srun import NAME as SRUN
from runner.mpi.srun import is_srun

KIND = "clusters"
_MPI = re.compile(r"^(?P<family>[a-z]+)\s*(?:(?P<op>>=|<=|==|<|>)\s*(?P<version>\d+(?:\.\d+)*))?$")


class Launch(BaseModel):
    """Launch options for the libraries that ``mpi`` matches (``openmpi>=5``, ``mpich``).

    ``wheel`` restricts the entry to libraries installed from PyPI (true) or to all others (false).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mpi: str = "openmpi"
    wheel: bool | None = None
    options: tuple[str, ...] = ()
    why: str = ""

    @field_validator("mpi")
    @classmethod
    def _of_a_known_family(cls, text: str) -> str:
        if (match := _MPI.match(text)) is not None:
            _require_family(match["family"])
        return text

    def matches(self, library: Library) -> bool:
        """True if the entry is for this library."""
        match = _MPI.match(self.mpi)
        if match is None:
            raise UsageError(
                f"launch entry mpi = {self.mpi!r} is not understood; expected a family with an "
                "optional bound, such as openmpi, openmpi>=5 or mpich",
                code="cluster.launch_syntax",
            )
        if match["family"] != library.family:
            return False
        if self.wheel is not None and self.wheel != is_wheel(library):
            return False
        if match["op"] is None:
            return True
        bound = tuple(int(p) for p in match["version"].split("."))
        have = library.version_tuple[: len(bound)]
        return {
            ">=": have >= bound,
            "<=": have <= bound,
            "==": have == bound,
            "<": have < bound,
            ">": have > bound,
        }[match["op"]]


class Cluster(BaseModel):
    """A place to run programs on; ``cores_per_node`` is read from the machine if it is left out."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    name: str
    description: str = ""
    nodes: int = Field(default=1, ge=1)
    cores_per_node: int | None = Field(default=None, ge=1)
    interconnect: str = "shared memory"
    scheduler: Literal["local"] = "local"
    own_processes: tuple[str, ...] = ()
    """Names of commands whose CPU time belongs to the cluster itself and is no foreign load."""
    cpus: str = ""
    """CPUs of this node to measure on, as the kernel lists them ("0-1,4"); empty for all CPUs.

    Clusters with disjoint CPUs can be measured at the same time.
    """
    launch: tuple[Launch, ...] = ()
    """Launch options by MPI library."""
    fixed: dict[str, str] = Field(default_factory=dict)
    """Parameters that are not tuned on this cluster, each with the reason."""
    spaces: dict[str, ConfigName] = Field(default_factory=dict)
    """The space that is searched if none is named, by family of MPI libraries."""
    testbed: PlainName | None = None
    """Name of the testbed (``autotune testbed up --name``) that this cluster is.

    The nodes, the cores and the launch options are then read from the testbed.
    """
    cores: int | None = Field(default=None, ge=1)
    """Cores of the whole cluster, if not ``nodes`` times ``cores_per_node``: nodes share cores."""

    @field_validator("spaces")
    @classmethod
    def _spaces_of_known_families(cls, spaces: dict[str, str]) -> dict[str, str]:
        for name in spaces:
            _require_family(name)
        return spaces

    @field_validator("cpus")
    @classmethod
    def _one_spelling(cls, text: str) -> str:
        return cpu_list(parse_cpus(text)) if text.strip() else ""

    @model_validator(mode="before")
    @classmethod
    def _cores_of_cpus(cls, data: Any) -> Any:
        """Without ``cores_per_node``, count the cores of ``cpus``, not those of the machine."""
        if not isinstance(data, dict) or data.get("cores_per_node") is not None:
            return data
        try:
            return data | {"cores_per_node": count_cores(parse_cpus(str(data.get("cpus", ""))))}
        except ValueError:
            # The CPUs are missing or invalid; their own validator reports it.
            return data

    @model_validator(mode="after")
    def _cpus_of_one_node(self) -> Cluster:
        if self.cpus and self.nodes > 1:
            raise ValueError(
                f"cpus = {self.cpus!r} means CPUs of one node, but nodes = {self.nodes}; leave "
                "out one of them"
            )
        return self

    @model_validator(mode="after")
    def _testbed_has_its_cpus(self) -> Cluster:
        if self.cpus and self.testbed:
            raise ValueError(
                f"testbed {self.testbed!r} has its own CPUs; leave out cpus = {self.cpus!r}"
            )
        return self

    @property
    def cpu_set(self) -> frozenset[int] | None:
        """The CPUs to measure on; None for the whole machine."""
        return parse_cpus(self.cpus) if self.cpus else None

    @property
    def total_cores(self) -> int:
        """Number of cores that a launch may use, on all nodes together."""
        return self.cores or (self.cores_per_node or describe_machine().cores) * self.nodes

    @property
    def definition(self) -> str:
        """All parts of the definition that affect times, as JSON."""
        return self.model_dump_json(exclude_defaults=True, exclude={"spaces"})

    def space(self, library: Library) -> str:
        """Name of the usual space: the definition's, else that of the library."""
        usual = self.spaces.get(library.family, library.family)
        return f"{usual}+{SRUN}" if is_srun(library.launcher) else usual

    def options(self, library: Library) -> tuple[str, ...]:
        """The fixed launch options for ``library``: the testbed's, then those of the first match.

        Raises RunnerError if the testbed is not up, UsageError if it cannot start this library.
        """
        entry = next((e.options for e in self.launch if e.matches(library)), ())
        return (*self._testbed_words(library), *entry)

    def _testbed_words(self, library: Library) -> tuple[str, ...]:
        if self.testbed is None:
            return ()
        if not family(library.family).on_testbed:
            raise UsageError(
                f"cluster {self.name} is a testbed, which starts programs of Open MPI only, "
                f"not of {library.family} {library.version}; give --mpi openmpi",
                code="cluster.testbed_mpi",
            )
        return testbed.launch_words(
            testbed.find_testbed(self.testbed), library.version_tuple >= (5,)
        )


def known_family(name: str) -> str:
    """The same ``name``; raises UsageError for an unknown family of MPI libraries."""
    try:
        return _require_family(name)
    except ValueError as problem:
        raise UsageError(str(problem), code="mpi.unknown") from None


def _require_family(name: str) -> str:
    if name not in families():
        raise ValueError(
            f"the MPI family {name!r} is not known; expected one of {', '.join(families())}"
        )
    return name


def is_wheel(library: Library) -> bool:
    """True if the library was installed from PyPI: its package is in the same prefix."""
    prefix = Path(library.bin).parent
    return any(prefix.glob("lib/python*/site-packages/openmpi-*.dist-info"))


def cluster_names() -> list[str]:
    """Names of all definitions and of the testbeds that exist."""
    return sorted({file.name for file in list_configs(KIND)} | set(testbed.names()))


def cluster_file(name: str) -> ConfigFile:
    """The file that defines the cluster ``name``, or has this path; UsageError if none does."""
    if _is_other_testbed(name):
        return find_config(KIND, testbed.DEFAULT_NAME)
    try:
        return find_config(KIND, name)
    except UsageError as problem:
        if not testbed.is_name(name):
            raise
        testbeds = [one for one in testbed.names() if one != testbed.DEFAULT_NAME]
        up = (
            f"testbeds that are up: {', '.join(testbeds)}"
            if testbeds
            else "no testbed has that name"
        )
        raise UsageError(
            f"{problem}; {up} (autotune testbed up --name {name} makes a cluster of that name)",
            code=problem.code,
        ) from None


def _is_other_testbed(name: str) -> bool:
    """True if this is a testbed without a definition of its name."""
    definitions = {file.name for file in list_configs(KIND)}
    return name not in definitions and name in testbed.names()


def check_testbed_name(name: str) -> None:
    """Raise UsageError if ``--cluster name`` is not the testbed ``name`` but another cluster."""
    if name not in {file.name for file in list_configs(KIND)}:
        return
    if read_cluster(name).testbed != name:
        raise UsageError(
            f"--name {name}: {cluster_file(name).path} defines a cluster of that name, so that "
            f"--cluster {name} would not be the testbed; take another name",
            code="cluster.name_taken",
        )


def read_cluster(name: str) -> Cluster:
    """The definition ``name``, or the one in the file of that path, or of the testbed of that name.

    Raises UsageError with the file, the key and what was expected.
    """
    file = cluster_file(name)
    cluster = read_toml(file.text, file.path, Cluster)
    if not _is_other_testbed(name):
        return cluster
    return cluster.model_copy(update={"name": name, "testbed": name})


def load_cluster(name: str) -> Cluster:
    """The cluster ``name`` with the present values of its testbed, if it has one.

    Raises UsageError as :func:`read_cluster`, RunnerError for a testbed that is not up.
    """
    cluster = read_cluster(name)
    return cluster if cluster.testbed is None else _with_testbed(cluster, cluster.testbed)


def link_of(cluster: Cluster) -> tuple[float, float] | None:
    """Latency in seconds each way and rate in bits per second (0: unlimited) of a testbed's links;
    None for another cluster."""
    if cluster.testbed is None:
        return None
    found = testbed.find_testbed(cluster.testbed)
    return found.latency_s, found.rate_bps


def _with_testbed(cluster: Cluster, name: str) -> Cluster:
    """The cluster with all values of the testbed on which times depend.

    Another latency is therefore another study.
    """
    named_testbed = testbed.find_testbed(name)
    rate = f"{named_testbed.rate_bps / 1e6:g} Mbit/s" if named_testbed.rate_bps else "unlimited"
    delay = f"{named_testbed.latency_s * 1e3:g} ms each way"
    link = f"TCP, {delay}, {rate} ({named_testbed.shaper}), MTU {named_testbed.mtu}"
    return cluster.model_copy(
        update={
            "nodes": len(named_testbed.nodes),
            "cores_per_node": len(named_testbed.nodes[0].cpus),
            "cores": len(named_testbed.cpus),
            "interconnect": link,
            "own_processes": (*cluster.own_processes, named_testbed.own_process),
        }
    )
