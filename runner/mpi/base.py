"""What the runner asks of an MPI library: how to start a program, and what it then found."""

from __future__ import annotations

import shlex
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

    def program(self, spec: LaunchSpec) -> tuple[str, ...]:
        """The program's words; with an input, rank 0 opens it itself, and the others read nothing.

        No launcher is trusted with it: PRRTE 3 (Open MPI 5) never tells the end of the input, and
        hands large ones over damaged (openpmix/prrte 2373, 2579); Hydra 4.0 ended by SIGPIPE on 4
        MB.  The file must be there on rank 0's node.
        """
        if spec.stdin is None:
            return spec.program
        first, *others = (f"${{{name}-" for name in self.rank_variables)
        rank = first + "".join(others) + "}" * len(self.rank_variables)
        script = (
            f'if [ "{rank}" = 0 ]; then exec "$@" < {shlex.quote(spec.stdin)}; fi; '
            'exec "$@" < /dev/null'
        )
        return ("/bin/sh", "-c", script, "sh", *spec.program)

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

    forwards_input: bool = False
    """Whether a file behind the launcher's line (``< FILE``) reaches rank 0 whole, with its end."""

    hiccups: tuple[str, ...] = ()
    """What the launcher prints where it failed by itself, now and then, before any rank began."""
    refusals: tuple[str, ...] = ()
    """Texts by which the launcher says that it did not start the program."""
