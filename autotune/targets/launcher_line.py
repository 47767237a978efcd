"""Launcher lines: a program given with its launcher, ``-- mpirun -np 4 --bind-to none ./cg.A.x``.

Options that a target can express are taken over (ranks, fixed launch options). Any other option is
refused with the corrected line, because a silently dropped option measures another program.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autotune.errors import UsageError
from autotune.targets.wrapped_launcher import is_launcher, refuse_wrapped_launcher
from runner.mpi.discover import find_library
from runner.mpi.library import Library
from runner.paths import resolved

_OF_ONE_MPI = {"mpirun.openmpi", "mpiexec.openmpi", "mpirun.mpich", "mpiexec.mpich"}
"""Names of launchers in distributions with several MPI libraries."""
_RANKS = {"-n", "-np", "--n", "--np", "-c", "--ntasks"}
_PLACEMENT = {
    "--map-by": "map_by",
    "-map-by": "map_by",
    "--bind-to": "bind_to",
    "-bind-to": "bind_to",
    "--rank-by": "rank_by",
    "-rank-by": "rank_by",
}
_MCA = {"--mca", "-mca", "--gmca", "--omca"}
_SETS = _MCA | {"-genv"}
"""Options with the name and the value of a parameter."""
_KEPT = {
    "--host": 1,
    "-host": 1,
    "-H": 1,
    "--hostfile": 1,
    "-hostfile": 1,
    "--machinefile": 1,
    "-machinefile": 1,
    "-f": 1,
    "-hosts": 1,
    "-x": 1,
    "-genv": 2,
    "-ppn": 1,
    "--prtemca": 2,
    "--pmixmca": 2,
    "--cpu-set": 1,
    "--cpu-list": 1,
    "--use-hwthread-cpus": 0,
    "--report-bindings": 0,
}
_OVERSUBSCRIBE = "oversubscribe"
_MEANT = {"--oversubscribe", "-oversubscribe", "--allow-run-as-root", "-allow-run-as-root"}
"""Options that are accepted and dropped, because autotune gives them itself where needed."""


def typed(words: Sequence[str], launcher: str) -> list[str]:
    """A command line with ``launcher`` as a user would type it: by its name, if the shell finds it.

    ``launcher`` is its path, one of ``words``.
    """
    name = Path(launcher).name
    found = shutil.which(name)
    same = found is not None and resolved(found) == resolved(launcher)
    return [name if same and word == launcher else word for word in words]


@dataclass(frozen=True)
class LauncherLine:
    """The content of a launcher line: ``ranks`` (None: not given), options, and the program."""

    program: tuple[str, ...]
    ranks: int | None = None
    options: tuple[str, ...] = ()
    placement: dict[str, str] = field(default_factory=dict)
    launcher: str | None = None
    """The launcher as it was typed: a name or a path."""
    oversubscribe: tuple[str, ...] = ()
    """The words that allow more ranks than slots: the option, or the part of the placement that
    has it as a modifier. autotune gives them itself where they are needed on this node."""

    def as_typed(self) -> LauncherLine:
        """The line with the words about oversubscription among its options and its placement."""
        options = [word for word in self.oversubscribe if word.startswith("-")]
        modified = [name for name in self.oversubscribe if not name.startswith("-")]
        placement = dict(self.placement)
        for name in modified:
            placement[name] = f"{placement.get(name, '')}:{_OVERSUBSCRIBE}"
        return replace(self, options=(*self.options, *options), placement=placement)


def parse_launcher_line(
    words: tuple[str, ...], command: str = "search", ranks: int | None = None
) -> LauncherLine:
    """Split a command line into launcher and program; without a launcher all of it is the program.

    ``command`` and ``ranks`` (the option ``--ranks``) are for messages. Raises UsageError for an
    option that is not understood, with the corrected line, for a line without a program, and for a
    launcher behind other words.
    """
    if not words:
        raise UsageError(
            f"no program given; expected autotune {command} --ranks N -- PROGRAM ARGS",
            code="program.missing",
        )
    if not is_launcher(words[0]):
        refuse_wrapped_launcher(words, command, ranks=ranks)
        return LauncherLine(words)
    return _Parser(words, command).parse()


def chosen_mpi(said: str | None, line: LauncherLine) -> str | None:
    """The MPI that a command line names; None if it names none.

    It is ``--mpi``, else the launcher that was typed with its path or by a name that only one MPI
    has. Raises UsageError if both are given and differ.
    """
    typed = line.launcher
    if typed in _OF_ONE_MPI:
        typed = shutil.which(typed) or typed
    if typed is None or os.sep not in typed or Path(typed).name == "srun":
        return said
    if said is not None and not same_library(find_library(said), find_library(typed)):
        raise UsageError(
            f"--mpi {said} and the launcher {line.launcher} belong to different MPI "
            "libraries; give only one of them",
            code="launcher.conflict",
        )
    return said or typed


def same_library(one: Library, other: Library) -> bool:
    """Whether both are the same installation of the same version."""
    return (one.family, one.version) == (other.family, other.version) and (
        resolved(one.bin) == resolved(other.bin)
    )


def fixed_parameters(options: Sequence[str]) -> dict[str, str]:
    """Library parameters that launch options set: name -> value."""
    return {
        options[at + 1]: options[at + 2]
        for at, word in enumerate(options)
        if word in _SETS and at + 2 < len(options)
    }


def without_parameters(options: Sequence[str], names: Collection[str]) -> tuple[str, ...]:
    """Launch options without those that set one of these library parameters.

    Open MPI does not start if a parameter is given twice.
    """
    words, left = list(options), []
    while words:
        word = words.pop(0)
        if word in _SETS and len(words) >= 2:
            name, value = words.pop(0), words.pop(0)
            left += [] if name in names else [word, name, value]
        else:
            left.append(word)
    return tuple(left)


class _Parser:
    def __init__(self, words: tuple[str, ...], command: str) -> None:
        self.words = words
        self.command = command
        self.at = 1
        self.ranks: int | None = None
        self.options: list[str] = []
        self.placement: dict[str, str] = {}
        self.oversubscribe: list[str] = []

    def parse(self) -> LauncherLine:
        while self.at < len(self.words) and self.words[self.at].startswith("-"):
            self._option()
        program = self.words[self.at :]
        if not program:
            raise UsageError(
                f"the line {shlex.join(self.words)!r} has a launcher but no program after it",
                code="program.missing",
            )
        if is_launcher(program[0]):
            inner = shlex.join(["autotune", *filter(None, [self.command]), "--", *program])
            raise UsageError(
                f"the line {shlex.join(self.words)!r} has a launcher inside a launcher; give "
                f"one launcher and the program:\n  {inner}",
                code="launcher.inside",
            )
        refuse_wrapped_launcher(program, self.command, self.words[: self.at])
        if ":" in program:
            raise UsageError(
                "several programs in one launch (':' on the mpirun line) cannot be tuned; give "
                "one program",
                code="launcher.several_programs",
            )
        return LauncherLine(
            program,
            self.ranks,
            tuple(self.options),
            self.placement,
            self.words[0],
            tuple(self.oversubscribe),
        )

    def _option(self) -> None:
        word = self.words[self.at]
        name, equals, value = word.partition("=")
        if name in _RANKS and equals:
            self._set_ranks(value)
            self.at += 1
        elif word in _RANKS:
            self._set_ranks(*self._take(1))
        elif word in _PLACEMENT:
            self._set_placement(_PLACEMENT[word], *self._take(1))
        elif word in _MCA:
            self.options += ["--mca", *self._take(2)]
        elif word in _KEPT:
            self.options += [word, *self._take(_KEPT[word])]
        elif word in _MEANT:
            self.oversubscribe += [] if word.endswith("root") else [word]
            self.at += 1
        else:
            self._refuse(word)

    def _take(self, count: int) -> list[str]:
        values = list(self.words[self.at + 1 : self.at + 1 + count])
        if len(values) < count:
            raise UsageError(
                f"{self.words[self.at]} in {shlex.join(self.words)!r} needs {count} value(s)",
                code="launcher.value_missing",
            )
        self.at += 1 + count
        return values

    def _set_ranks(self, text: str) -> None:
        try:
            self.ranks = int(text)
        except ValueError:
            self.ranks = 0
        if self.ranks < 1:
            raise UsageError(
                f"the number of ranks {text!r} is not a whole number of 1 or more",
                code="ranks.range",
            )

    def _set_placement(self, kind: str, policy: str) -> None:
        # autotune itself gives ":oversubscribe" if there are more ranks than cores.
        parts = [p for p in policy.split(":") if p.lower() != _OVERSUBSCRIBE]
        if len(parts) < len(policy.split(":")):
            self.oversubscribe.append(kind)
        policy = ":".join(parts)
        if policy:
            self.placement[kind] = policy

    def _refuse(self, word: str) -> None:
        rest = [w for i, w in enumerate(self.words) if i != self.at]
        raise UsageError(
            f"the launcher option {word!r} is not understood; without it another program "
            "would be measured.\nIf you do not need it, the line is:\n  autotune "
            f"{self.command} -- {shlex.join(rest)}\nFixed launch options of a cluster "
            "belong into its definition (launch options in configs/clusters/NAME.toml).",
            code="launcher.option_unknown",
        )
