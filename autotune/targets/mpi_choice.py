"""Which MPI library starts a program, and why: the one place that decides.

What the user names decides first, ``--mpi`` before the launcher of the line. Then comes the library
that the program loads by itself, since another one would be measured in its place, then PATH, and
last the library of autotune's own environment (docs/explanation/design.md, "Which MPI").
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from autotune.notes import Note
from autotune.targets.build import title
from autotune.targets.launcher_line import chosen_mpi, is_replaced
from autotune.targets.mpi_need import MpiNeed, need_of
from autotune.targets.rows import ChoiceReason, MpiChoiceRow
from autotune.targets.wrapped_launcher import is_launcher
from runner.files.paths import real_path
from runner.mpi.discover import find_library, is_own
from runner.mpi.library import Library
from runner.mpi.linkage import compatible, installation_of
from runner.mpi.srun import is_srun, starts_here, under_srun


@dataclass(frozen=True)
class MpiChoice:
    """The library of a launch and why it was taken; ``detail`` says it in words."""

    library: Library
    reason: ChoiceReason
    detail: str

    @property
    def row(self) -> MpiChoiceRow:
        """The published form."""
        return MpiChoiceRow(
            family=self.library.family,
            version=self.library.version,
            launcher=self.library.launcher,
            reason=self.reason,
            words=f"MPI library: {title(self.library)}: {self.detail}",
        )

    def as_traced(self) -> MpiChoice:
        """The choice of the library with which a program was traced, which no option named."""
        return replace(self, reason="traced", detail="the program was traced with it")

    @property
    def note(self) -> Note:
        """The choice in one line."""
        row = self.row
        return Note("mpi.chosen", row["words"], {**row})


def choose(option: str | None, words: Sequence[str], program: Sequence[str]) -> MpiChoice:
    """The library for ``program``; ``words`` are the line with its launcher, if it has one.

    ``option`` is ``--mpi``. Raises UsageError if option and launcher contradict each other, and
    RunnerError if there is no library, or none of that name.
    """
    choice = _choose(option, words, program)
    if not words or not is_srun(words[0]) or not starts_here():
        return choice
    return replace(choice, library=under_srun(choice.library))


def _choose(option: str | None, words: Sequence[str], program: Sequence[str]) -> MpiChoice:
    """The library with its own launcher."""
    named = chosen_mpi(option, words)
    if named is not None:
        of_option = option is not None
        detail = "--mpi names it" if of_option else f"{words[0]} of your line"
        return MpiChoice(find_library(named), "option" if of_option else "launcher", detail)
    need = need_of(program) if program else None
    choice = None if need is None else _of_need(need)
    if choice is None:
        choice = _first(program, need)
    return _beside_typed(choice, words)


def _of_need(need: MpiNeed) -> MpiChoice | None:
    """The library that a program loads by itself, or the first that can stand in for it."""
    name = PurePath(need.program).name
    library = installation_of(need.library)
    if library is not None:
        details = {
            "linked": f"{need.title} is linked with it",
            "mpi4py": f"{need.title} loads it",
            "script": f"{need.script or 'the script'} starts {name}, which loads it",
        }
        return MpiChoice(find_library(library.launcher), need.how, details[need.how])
    library = compatible(need.library)
    if library is None or need.library.abi is None:
        return None
    lost = need.library.place or f"{need.library.name}, which the loader does not find"
    detail = (
        f"the first with the interface of {need.library.abi.title}; {name} is linked with {lost}"
        + (", whose launcher is not found" if need.library.place else "")
    )
    return MpiChoice(find_library(library.launcher), "interface", detail)


def _first(program: Sequence[str], need: MpiNeed | None) -> MpiChoice:
    """The first library of the machine, or that of autotune's own environment."""
    library = find_library()
    name = PurePath(program[0]).name if program else ""
    unknown = f"; {name} does not say which it needs" if program and need is None else ""
    if is_own(library):
        return MpiChoice(library, "own", f"in autotune's environment, none on PATH{unknown}")
    return MpiChoice(library, "path", f"the first on PATH{unknown}")


def _beside_typed(choice: MpiChoice, words: Sequence[str]) -> MpiChoice:
    """The choice, which says so if a launcher was typed by a name that leads to another library."""
    if not words or not is_launcher(words[0]) or is_replaced(words[0]):
        return choice
    path = shutil.which(words[0])
    if path is None or real_path(Path(path).parent) == real_path(choice.library.bin):
        return choice
    return MpiChoice(choice.library, choice.reason, f"{choice.detail}, not {path}")
