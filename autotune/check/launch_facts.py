"""What is known of one launch: the input of all rules, plain data without access to the machine.

Facts come from a launch that was watched (:mod:`autotune.check.gather`), or from a test as data. An
unknown fact is None, or an empty collection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from autotune.check.finding import Certainty
from autotune.check.launch_line import LaunchLine
from autotune.check.transport_facts import SeenTransport, StartUpFacts
from autotune.parameters.catalogue import Catalogue
from runner.cpus import count_cores
from runner.mpi.library import Library
from runner.mpi.linkage import LinkedLibrary


@dataclass(frozen=True)
class RankFacts:
    """One rank as it was seen; every number is None if it was not seen."""

    rank: int
    host: str = ""
    pid: int | None = None
    cpus: frozenset[int] = frozenset()
    """The CPUs on which its main thread may run; empty: not seen."""
    threads: tuple[frozenset[int], ...] = ()
    """The CPUs of each thread that computes, the main thread included: teams of OpenMP, pools of
    BLAS. Helpers of the MPI library are left out."""
    pools: tuple[str, ...] = ()
    """The run-time libraries of threads that the rank has loaded: ``openblas``, ``mkl``, ``gomp``,
    ``iomp``, ``blis``."""
    world_size: int | None = None
    """The size of its MPI_COMM_WORLD, or the size that its start-up variables say."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Its variables that matter here."""
    namespaces: Mapping[str, int] = field(default_factory=dict)
    """The number of each of its name spaces: ``user``, ``pid``, ``ipc``, ``mnt``."""
    capabilities: int | None = None
    """Its effective capabilities as a bit mask."""
    resident_bytes: int | None = None
    huge_bytes: int | None = None
    """Resident memory, and the part of it on huge pages."""
    mpi_library: str = ""
    """The file of the MPI library that it has loaded; "": not seen."""


@dataclass(frozen=True)
class OtherJob:
    """Another MPI job on this node; ``cpus``: those of each rank, as far as they are readable."""

    pid: int
    command: str
    cpus: tuple[frozenset[int], ...] = ()


@dataclass(frozen=True)
class NodeFacts:
    """The machine on which the line was typed."""

    host: str = ""
    cpus: frozenset[int] = frozenset()
    """CPUs that this process may use: its affinity, within its cpuset."""
    online_cpus: frozenset[int] = frozenset()
    """All CPUs of the machine."""
    quota: float | None = None
    """CPUs that the control groups allow (cpu.max); None: all."""
    container: str = ""
    """Kind of container; "" outside."""
    ptrace_scope: int | None = None
    """yama's setting; None: there is no yama."""
    kernel_copy: bool | None = None
    """Whether two processes of this machine can copy from each other; None: not tried."""
    huge_pages: str = ""
    """The setting of transparent huge pages: always, madvise, never."""
    numa_balancing: bool | None = None
    numa_nodes: int = 1
    jobs: tuple[OtherJob, ...] = ()

    @property
    def cores(self) -> int:
        """Cores that the launch may use."""
        return count_cores(self.cpus)


@dataclass(frozen=True)
class LaunchOutcome:
    """How the launch that was watched ended.

    ``dry``: a probe ran in the program's place. ``exit_code`` is None if it was ended by the time
    limit.
    """

    dry: bool
    exit_code: int | None
    seconds: float
    error_tail: str = ""
    """The end of standard error."""


@dataclass(frozen=True)
class FileInForce:
    """A file of parameters that the library reads, with its values in order of the file."""

    path: str
    values: Mapping[str, str]
    lines: Mapping[str, int] = field(default_factory=dict)
    """The line of each name in the file, as far as known."""


@dataclass(frozen=True)
class LaunchFacts:
    """What is known of one launch."""

    line: LaunchLine
    environment: Mapping[str, str] = field(default_factory=dict)
    """The variables of the launcher: those of the shell and those before it on the line."""
    library: Library | None = None
    """The launcher's library with its parameters; under srun the one of the program."""
    program_library: LinkedLibrary | None = None
    """The library with which the program is linked; None: unknown, or a program without one."""
    program_launcher: str = ""
    """The launcher of the program's library, if it is another one than that of the line."""
    node: NodeFacts = field(default_factory=NodeFacts)
    ranks: tuple[RankFacts, ...] = ()
    """The ranks on this node in their order; empty: none was seen."""
    outcome: LaunchOutcome | None = None
    """None: nothing was started."""
    slurm_version: tuple[int, ...] = ()
    """Version of Slurm; empty if it is not used."""
    mpi_types: tuple[str, ...] = ()
    """What ``srun --mpi=list`` names."""
    slots: int | None = None
    """Slots that hosts on the line, in a file or of the batch system have; None: none are named."""
    hosts_here: bool = True
    """True if all ranks are on this machine."""
    parameter_files: tuple[FileInForce, ...] = ()
    """In the order in which they count, the first one before the others."""
    catalogue: Catalogue | None = None
    """All parameters that the library, and what lies below it, has; None: not listed."""
    transport: SeenTransport = field(default_factory=SeenTransport)
    start_up: StartUpFacts | None = None
    """None: the start was not measured."""

    @property
    def rank_count(self) -> int | None:
        """Ranks of the launch: those of the line, else those that were seen."""
        return self.line.ranks or len(self.ranks) or None

    @property
    def on_one_node(self) -> bool:
        """True if all ranks are on one node, this one or the only one of a batch job."""
        return self.hosts_here or self.environment.get("SLURM_NNODES") == "1"

    @property
    def usable_cores(self) -> int:
        """Cores that the ranks of this node may use together, within the quota."""
        cores, quota = self.node.cores, self.node.quota
        return cores if quota is None else max(1, min(cores, int(quota)))

    @property
    def ranks_here(self) -> int:
        """Ranks on this node, as far as it is known."""
        return len(self.ranks) or (self.rank_count or 1 if self.hosts_here else 0)

    @property
    def thread_counts(self) -> tuple[int, ...]:
        """Threads that compute, of each rank that was seen."""
        return tuple(max(1, len(rank.threads)) for rank in self.ranks)

    @property
    def certainty(self) -> Certainty:
        """How the number of threads is known: counted, or as variables ask for them."""
        dry = self.outcome is None or self.outcome.dry
        return Certainty.LIKELY if dry else Certainty.SEEN

    @property
    def rank_variables(self) -> dict[str, str]:
        """The variables of the ranks, as far as the line and the environment say."""
        return {**self.environment, **self.line.assignments, **self.line.variables}
