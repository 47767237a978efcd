"""What the runner asks of an MPI library: how to start a program, and what it then found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path

from runner.mpi.library import Library
from runner.types import LaunchSpec, ReadBack


@dataclass(frozen=True)
class Probe:
    """What was read after a run.

    ``initialised`` is None where the library leaves no trace of MPI_Init; ``library_mismatch``
    names the library inside the ranks where it is not the launcher's.
    """

    initialised: bool | None
    world_size: int | None = None
    read_back: dict[str, ReadBack] = field(default_factory=dict)
    inherited: dict[str, str] = field(default_factory=dict)
    library_mismatch: str | None = None


class Adapter(ABC):
    """One MPI library: a setting as command line and environment, and the read-back."""

    def __init__(self, library: Library) -> None:
        self.library = library

    @abstractmethod
    def command(self, spec: LaunchSpec, scratch: Path) -> list[str]:
        """The argument list that starts ``spec``; read-back files go below ``scratch``."""

    def confined(self, spec: LaunchSpec, cpus: frozenset[int]) -> LaunchSpec:
        """``spec`` with what keeps the launcher's own binding within ``cpus``.

        Its processes inherit their affinity; this is for launchers that widen it again.
        """
        return spec

    @abstractmethod
    def environment(self, spec: LaunchSpec, inherited: dict[str, str]) -> dict[str, str]:
        """The complete environment: ``inherited`` (or without MPI settings), plus the spec's."""

    @abstractmethod
    def probe(self, spec: LaunchSpec, scratch: Path) -> Probe:
        """What the program found in force; called once after the run has ended."""

    @abstractmethod
    def inherited_settings(self, environment: dict[str, str]) -> dict[str, str]:
        """MPI settings in force without being asked for: variable or ``file:name`` -> value."""

    def ready_file(self, spec: LaunchSpec, scratch: Path) -> Path | None:
        """What the library itself writes when MPI_Init is about to end; None: nothing."""
        return None

    @abstractmethod
    def placement_words(self, placement: dict[str, str], oversubscribe: bool) -> list[str]:
        """Mapping and binding as words of the command line."""

    rank_variables: tuple[str, ...] = ()
    """Environment variables whose value is a process's rank."""

    hiccups: tuple[str, ...] = ()
    """What the launcher prints where it failed by itself, now and then, before any rank began."""
    refusals: tuple[str, ...] = ()
    """Texts by which the launcher says that it did not start the program."""
