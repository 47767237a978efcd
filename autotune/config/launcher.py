"""Options of launchers, ``configs/launchers/NAME.toml``: the treatment of each.

An option is written with its values, as in ``"--mca NAME VALUE"``, in the table of its treatment. A
user's own file of a kind adds a launcher (see docs/howto/extending.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import PurePath
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from autotune.config.find import list_configs
from autotune.config.validated import read_toml
from runner.mpi.library import Library
from runner.mpi.srun import is_srun

Treatment = Literal[
    "ranks", "cores", "parameter", "variable", "variables", "parameter_file", "placement",
    "places", "kept", "own", "dropped", "refused",
]  # fmt: skip
"""The treatment of an option.

``ranks``, ``cores``: the number of ranks, the cores of each. ``parameter``: a library parameter.
``variable``: an environment variable of the ranks; ``variables``: a list of them, as srun's
``--export``. ``parameter_file``: a file of such options. ``placement``: mapping, binding or
ranking. ``places``: kept; places ranks in its own way. ``kept``: passed to the launcher. ``own``:
set by autotune itself if needed. ``dropped``: it changes output or batch requests, not the run.
``refused``: it would measure another job.
"""
_PLAIN: tuple[Treatment, ...] = (
    "ranks", "cores", "parameter", "variable", "variables", "parameter_file", "places", "kept",
    "own", "dropped",
)  # fmt: skip
Usage = Annotated[str, Field(pattern=r"^-\S+( \S+)*$")]
"""An option and the names of its values; one in brackets is optional."""
Placement = dict[
    Literal[
        "map_by", "bind_to", "rank_by",
        "cpu_bind", "distribution", "hint", "mpi_type", "exact", "overlap",
    ],
    str,
]  # fmt: skip
"""Part of the placement (the last ones are srun's) -> policy."""


@dataclass(frozen=True)
class LauncherOption:
    """One option of a launcher; ``values`` are the names of the words after it.

    ``optional`` is the name of an optional value, given in the same word. ``placement`` maps parts
    of the placement to templates with ``{}`` for the value. ``choices`` maps the accepted values to
    their placement; empty: all are accepted. ``reason`` explains a refusal.
    """

    name: str
    treatment: Treatment
    values: tuple[str, ...] = ()
    optional: str = ""
    placement: Placement = field(default_factory=dict)
    choices: Mapping[str, Placement] = field(default_factory=dict)
    reason: str = ""


class LauncherFile(BaseModel):
    """The content of a file; see :data:`Treatment` for its tables."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: str | None = None
    """The family of MPI libraries whose launcher it is."""
    since: int = 0
    """The first major version that has these options."""
    before: int | None = None
    """The first major version with different options."""
    launchers: tuple[str, ...] = ()
    """Names of a launcher that belongs to no library."""
    dashes: Literal["any", "typed"] = "typed"
    """If ``any``, ``-name`` and ``--name`` are the same option."""
    attached: bool = False
    """True if a short option may hold its value: ``-n2``."""
    ranks: tuple[Usage, ...] = ()
    cores: tuple[Usage, ...] = ()
    parameter: tuple[Usage, ...] = ()
    variable: tuple[Usage, ...] = ()
    variables: tuple[Usage, ...] = ()
    parameter_file: tuple[Usage, ...] = ()
    places: tuple[Usage, ...] = ()
    kept: tuple[Usage, ...] = ()
    own: tuple[Usage, ...] = ()
    dropped: tuple[Usage, ...] = ()
    placement: dict[Usage, Placement] = {}
    values: dict[Usage, dict[str, Placement]] = {}
    refused: dict[Usage, str] = {}
    starts: LauncherFile | None = None
    """The treatment of options where the launcher itself starts the ranks; those that are left out
    are treated as otherwise."""

    def options(self) -> Iterator[LauncherOption]:
        """Every option."""
        for treatment in _PLAIN:
            for usage in getattr(self, treatment):
                yield _option(usage, treatment)
        for usage, placement in self.placement.items():
            yield replace(_option(usage, "placement"), placement=placement)
        for usage, choices in self.values.items():
            yield replace(_option(usage, "placement"), choices=choices)
        for usage, reason in self.refused.items():
            yield replace(_option(usage, "refused"), reason=reason)


def _option(usage: str, treatment: Treatment) -> LauncherOption:
    name, *values = usage.split()
    optional = values.pop() if values and values[-1].startswith("[") else ""
    return LauncherOption(name, treatment, (*values,), optional)


@dataclass(frozen=True)
class Match:
    """An option on a command line: its values, and the number (``count``) of words of both."""

    option: LauncherOption
    values: tuple[str, ...]
    count: int

    @property
    def complete(self) -> bool:
        """True if all values are present."""
        return len(self.values) == len(self.option.values)

    @property
    def placement(self) -> dict[str, str]:
        """The policies of the parts of the placement that it sets; unknown choices set none."""
        value = "".join(self.values)
        choices = self.option.choices
        policies = [self.option.placement]
        if choices:
            policies = [choices[one] for one in value.split(",") if one in choices]
        return {
            part: template.replace("{}", value)
            for policy in policies
            for part, template in policy.items()
        }


class LauncherOptions:
    """The options of one launcher, for reading a command line.

    ``starts``: the launcher itself starts the ranks, although it belongs to no library.
    """

    def __init__(self, name: str, file: LauncherFile, starts: bool = False) -> None:
        self.name = name
        self.file = file
        self._own = file.starts if starts else None

    @cached_property
    def _options(self) -> dict[str, LauncherOption]:
        """By the word as typed; most launchers of a command are never asked for theirs."""
        options = {self._key(one.name): one for one in self.file.options()}
        own = () if self._own is None else self._own.options()
        return options | {self._key(one.name): one for one in own}

    def match(self, words: Sequence[str]) -> Match | None:
        """The option at the beginning of ``words``; None if the launcher lacks it.

        ``NAME=VALUE`` is one word with its value, and so is ``-n2`` if values may be attached. A
        variable ``NAME=VALUE`` is one value in any form of the option.
        """
        first, *behind = words
        if option := self._options.get(self._key(first)):
            count = len(option.values)
            if option.treatment == "variable" and count == 2 and "=" in "".join(behind[:1]):
                count = 1
                option = LauncherOption(option.name, option.treatment, option.values[:1])
            values = tuple(behind[:count])
            return Match(option, values, 1 + len(values))
        name, equals, value = first.partition("=")
        option = self._options.get(self._key(name))
        if equals and option and (value_option := _holding(option)):
            return Match(value_option, (value,), 1)
        option = self._options.get(first[:2])
        if not self.file.attached or first.startswith("--") or option is None:
            return None
        if value_option := _holding(option):
            return Match(value_option, (first[2:].removeprefix("="),), 1)
        return Match(option, (), 1) if set(first[1:]) == {first[1]} else None  # -vv

    def _key(self, name: str) -> str:
        bare = name.lstrip("-")
        if self.file.dashes == "any" and len(bare) > 1 and name.startswith("-"):
            return f"--{bare}"
        return name


def _holding(option: LauncherOption) -> LauncherOption | None:
    """The option with one value in its own word; None if it has no value, or several."""
    if option.optional:
        return replace(option, values=(option.optional,))
    return option if len(option.values) == 1 else None


@cache
def launcher_options() -> tuple[LauncherOptions, ...]:
    """The options of every launcher with a file; raises UsageError for an invalid file."""
    files = sorted(list_configs("launchers"), key=lambda file: file.name)
    return tuple(
        LauncherOptions(file.name, read_toml(file.text, file.path, LauncherFile)) for file in files
    )


def options_for(launcher: str, library: Library | None) -> list[LauncherOptions]:
    """The options of a launcher as typed; ``library`` is the one in use.

    Without a library or a file for the launcher, those of all libraries: the first library with an
    option counts.
    """
    every = launcher_options()
    if library is not None and is_srun(library.launcher):
        named = [one for one in every if PurePath(library.launcher).name in one.file.launchers]
        return [LauncherOptions(one.name, one.file, starts=True) for one in named]
    by_name = [one for one in every if PurePath(launcher).name in one.file.launchers]
    if by_name:
        return by_name
    of_libraries = [one for one in reversed(every) if one.file.family]
    if library is None:
        return of_libraries
    major = library.version_tuple[0]
    own = [
        one
        for one in of_libraries
        if one.file.family == library.family
        and one.file.since <= major
        and (one.file.before is None or major < one.file.before)
    ]
    return own or of_libraries
