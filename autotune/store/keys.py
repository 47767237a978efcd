"""The study key: the properties that make two studies the same, and two runs comparable.

The *hash* of a :class:`StudyKey` identifies the study. Its *context* leaves out the search (space,
strategy, options, seed), so that any study of the same program on the same machine finds the runs.
Descriptive fields (names, paths, host names) are stored but are in neither, so that several nodes
of one kind can work on one study.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from autotune.errors import UsageError
from autotune.store.text import canonical, load_object

_SEED_LIMIT = 2**63
_GIB = 2**30
COMPARE, NOISE, SCREENING = "compare", "noise", "screening"
"""Strategies of studies that are not searches; SCREENING holds the cheap runs of another study."""
OTHERS = "others"
"""The strategy option with the further MPI libraries of a search under several."""
LAUNCHER = "launcher"
"""The condition that names a launcher which is not the library's own."""
BEFORE, FRESH_DIR = "before", "fresh_dir"
"""Conditions of a study: the command before each run, and the directory that is copied for each
run. They are shown, but never executed from a study.
"""
CLEAN_ENV = "clean_env"
"""The condition whether inherited MPI settings were removed before each run."""
GUARD = "guard"
"""The condition that is False if runs were measured without the guard."""

OPERATIONS = "operations"
"""Key of the known facts about a program's operations, in a study's options and in a warm-up."""
EXECUTABLES = "executables"
"""The condition of a study that began because the executables of an earlier one had changed.

It is a digest of the changes. It is not in the context: the executables stored with a study show if
its runs are of the present ones.
"""


def digest(value: Any) -> str:
    """SHA-256, in hexadecimal, of JSON types."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


@dataclass(frozen=True)
class MachineInfo:
    """One kind of machine; ``kernel`` is the kernel's release, and ``hostname`` only describes."""

    cores: int
    cpu_model: str
    memory_bytes: int
    kernel: str
    hostname: str = ""

    @property
    def hash(self) -> str:
        """Hash of the machine, hexadecimal; memory in whole GiB, as it differs a little by boot."""
        gib = round(self.memory_bytes / _GIB)
        return digest([self.cores, self.cpu_model, gib, self.kernel])


@dataclass(frozen=True)
class MpiInfo:
    """An MPI library; ``library_hash`` is over its content, and ``path`` only describes."""

    family: str
    version: str
    path: str = ""
    library_hash: str = ""

    @property
    def hash(self) -> str:
        """Hash of the library, in hexadecimal."""
        return digest([self.family, self.version, self.library_hash])


@dataclass(frozen=True)
class AppInfo:
    """A program and how it is run.

    ``name`` and ``program`` are only descriptive; ``argv`` does not contain them. ``program_hash``
    is over the program's content, ``input`` names its input, and ``metric`` and ``verify`` are the
    patterns of :class:`runner.types.LaunchSpec`.
    """

    name: str
    program: str
    program_hash: str
    argv: tuple[str, ...] = ()
    input: str | None = None
    metric: str | None = None
    verify: str | None = None

    @property
    def hash(self) -> str:
        """Hash of the program and how it is run, in hexadecimal."""
        return digest([self.program_hash, list(self.argv), self.input, self.metric, self.verify])


@dataclass(frozen=True)
class StudyKey:
    """All fields that distinguish studies (docs/explanation/design.md, "Names").

    ``ranks`` is the number of ranks or, if the space contains ranks, the number of cores.
    ``cluster_hash`` is over the cluster definition, whose launch options are part of the default.
    ``inherited`` are MCA values set from outside. ``conditions`` holds everything else that changes
    the meaning of a run (such as a flat default, a cleaned environment, or no guard), in JSON
    types. Raises UsageError for a seed outside 64 bits.
    """

    app: AppInfo
    machine: MachineInfo
    mpi: MpiInfo
    ranks: int
    cluster: str
    space_name: str
    space_hash: str
    strategy: str
    seed: int = 0
    cluster_hash: str = ""
    strategy_options: Mapping[str, Any] = field(default_factory=dict)
    inherited: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)
    stdin: str = ""
    """Path of rank 0's standard input; only descriptive, since its content is among the
    conditions."""

    def __post_init__(self) -> None:
        if not -_SEED_LIMIT <= self.seed < _SEED_LIMIT:
            raise UsageError(
                f"seed {self.seed} does not fit into 64 bits; use one from 0 to {_SEED_LIMIT - 1}",
                code="seed.range",
            )

    def __hash__(self) -> int:
        return hash(self.hash)

    @property
    def has_guard(self) -> bool:
        """True if runs are rejected for foreign load; without the guard, runs prove nothing."""
        return self.conditions.get(GUARD) is not False

    @property
    def others(self) -> tuple[str, ...]:
        """Names of the further MPI libraries of a search under several."""
        libraries = self.strategy_options.get(OTHERS, ())
        return tuple(str(other.get("name")) for other in libraries if isinstance(other, dict))

    @property
    def mpi_title(self) -> str:
        """The MPI library; if several, the default's and the names of the others."""
        title = f"{self.mpi.family} {self.mpi.version}"
        return f"{title} (default) and {', '.join(self.others)}" if self.others else title

    @property
    def traced_as(self) -> str:
        """Hash of what a trace depends on: the program, its ranks and its place, not its metric."""
        app = [self.app.program_hash, list(self.app.argv), self.app.input]
        place = [self.machine.hash, self.mpi.hash, self.ranks, self.cluster]
        return digest([app, place, self.conditions.get("stdin")])

    @property
    def context(self) -> str:
        """Hash of the conditions of a run; equal contexts make runs of one setting comparable."""
        return digest(self._context_parts())

    @property
    def hash(self) -> str:
        """Hash of the whole key, in hexadecimal."""
        how = [self.space_hash, self.strategy, dict(self.strategy_options), self.seed]
        state = self.conditions.get(EXECUTABLES)
        return digest([self._context_parts(), how if state is None else [*how, state]])

    def _context_parts(self) -> list[Any]:
        return [
            self.app.hash,
            self.machine.hash,
            self.mpi.hash,
            self.ranks,
            self.cluster,
            self.cluster_hash,
            dict(self.inherited),
            {name: value for name, value in self.conditions.items() if name != EXECUTABLES},
        ]

    def to_json(self) -> str:
        """The key as JSON text, descriptions included."""
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name in ("app", "machine", "mpi"):
            plain[name] = dataclasses.asdict(plain[name])
        for name in ("strategy_options", "inherited", "conditions"):
            plain[name] = dict(plain[name])
        return canonical(plain)

    @classmethod
    def from_json(cls, text: str) -> StudyKey:
        """Inverse of :meth:`to_json`; raises LookupError, TypeError or ValueError for other
        text."""
        plain = load_object(text)
        app = plain.pop("app")
        app["argv"] = tuple(app["argv"])
        if not all(isinstance(word, str) for word in app["argv"]):
            raise TypeError("an argument of its program is no text")
        parts = {
            "app": _from_values(AppInfo, app),
            "machine": _from_values(MachineInfo, plain.pop("machine")),
            "mpi": _from_values(MpiInfo, plain.pop("mpi")),
        }
        return _from_values(cls, plain | parts)


_TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "str": str,
    "str | None": (str, type(None)),
    "Mapping[str, Any]": dict,
    "Mapping[str, str]": dict,
}
T = TypeVar("T")


def _from_values(kind: type[T], values: Mapping[str, Any]) -> T:
    """An instance of a dataclass; raises TypeError for a value of the wrong type."""
    for one in dataclasses.fields(kind):  # type: ignore[arg-type]
        expected_type = _TYPES.get(str(one.type))
        value = values.get(one.name)
        if (
            one.name in values
            and expected_type is not None
            and not isinstance(value, expected_type)
        ):
            raise TypeError(f"{one.name} of its key is {value!r:.40}")
    return kind(**values)
