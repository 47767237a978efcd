"""What the runner asks of an MPI library: how to start a program, and what it then found."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from runner.errors import RunnerUsageError
from runner.mpi.library import Library
from runner.types import LIBRARY, LaunchSpec, ReadBack


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
    """One MPI library: a setting as command line and environment, and the read-back.

    One class a family, registered in :mod:`runner.mpi.discover`.  What the others ask of a family
    they ask here, never by its name; what is not overridden is what a library without that ability
    says.  :class:`autotune.testing.MpiLibraryContract` is what a class must keep.
    """

    family: ClassVar[str]
    """Its name in ``--mpi``, in definitions and in the results database: lower-case letters."""
    title: ClassVar[str]
    """Its name for people."""
    kinds: ClassVar[tuple[str, ...]] = (LIBRARY,)
    """Kinds of native parameters that it takes (:attr:`runner.types.LaunchSpec.parameters`)."""
    parameter_names: ClassVar[str] = "those that it lists"
    """What its own parameters are called, for messages."""
    placement_names: ClassVar[frozenset[str]] = frozenset({"map_by", "bind_to"})
    """What of the placement it has words for."""
    reads_back: ClassVar[bool] = False
    """Whether :meth:`probe` tells the values in force; without, they are ``not observable``."""
    checks_values: ClassVar[bool] = False
    """Whether a number or choice that it does not understand stops the launch."""
    tune_option: ClassVar[str] = ""
    """Option of the launcher that loads a file of ``--mca NAME VALUE`` lines; empty: none."""
    on_testbed: ClassVar[bool] = False
    """Whether its launcher starts ranks on the nodes of :mod:`runner.testbed`."""
    identify_environment: ClassVar[Mapping[str, str]] = {}
    """Variables without which its launcher does not even print its version."""
    rank_variables: ClassVar[tuple[str, ...]] = ()
    """Environment variables whose value is a process's rank."""
    forwards_input: bool = False
    """Whether a file behind the launcher's line (``< FILE``) reaches rank 0 whole, with its end."""
    hiccups: ClassVar[tuple[str, ...]] = ()
    """What the launcher prints where it failed by itself, now and then, before any rank began."""
    refusals: ClassVar[tuple[str, ...]] = ()
    """Texts by which the launcher says that it did not start the program."""

    def __init__(self, library: Library) -> None:
        self.library = library

    @classmethod
    @abstractmethod
    def version_in(cls, text: str) -> str | None:
        """The version that ``text``, printed by ``LAUNCHER --version``, tells of this family; None
        where it is another's."""

    @classmethod
    def complete(cls, library: Library) -> Library:
        """``library`` with the parameters that it lists.  Raises RunnerError where they cannot be
        had though the family has a command for it."""
        return library

    def refuse_unknown_kinds(self, spec: LaunchSpec) -> None:
        """Raise RunnerUsageError for parameters of a kind that this library does not have."""
        for kind, values in spec.parameters.items():
            if values and kind not in self.kinds:
                raise RunnerUsageError(
                    f"{self.title} {self.library.version} has no parameters of the kind {kind!r} "
                    f"({', '.join(values)}); it has {', '.join(self.kinds)}"
                )

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

    @abstractmethod
    def rank_environment(self, variables: Mapping[str, str]) -> list[str]:
        """Words of the command line that set ``variables`` for the ranks, not for the launcher."""

    @abstractmethod
    def variables(
        self, parameters: Mapping[str, Mapping[str, str]], placement: Mapping[str, str]
    ) -> dict[str, str]:
        """Parameters by kind and placement as environment variables of the launcher, as far as it
        has such."""

    def kind_of(self, name: str) -> str | None:
        """The kind of a parameter that the library does not list, by its name; None: it can be
        none of its parameters."""
        return None

    def share_cores(
        self,
        placement: Mapping[str, str],
        workers: int,
        launch_options: Sequence[str] = (),
        oversubscribed: bool = False,
    ) -> dict[str, str]:
        """``placement`` with what gives each rank as many cores as it has workers; unchanged where
        the launcher does not bind by itself."""
        return dict(placement)

    def python_variables(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Variables with which mpi4py, in a process with the variables ``inherited``, loads the
        library of this launcher and no other; empty where that is not known."""
        return {}

    def values_in_force(self, environment: dict[str, str]) -> dict[str, str]:
        """Library parameters in force in a process with ``environment``, where a command of the
        library tells: name -> value; "" for one that is known but not shown."""
        return {}
