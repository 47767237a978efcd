"""The base class of formats: the text of a published file, its place, and how a launch loads it."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from autotune.dialects import dialect
from autotune.publish.content import Content, check_published_groups
from autotune.publish.formats.samples import sample_contents
from runner.files.paths import entries, is_file, is_folder
from runner.mpi.discover import adapter
from runner.mpi.library import POLICIES, Library
from runner.mpi.srun import PLACEMENT as SRUN_PLACEMENT
from runner.mpi.srun import placement_variables
from runner.types import LIBRARY

CANARY = "autotune-canary"
"""A value that no policy parameter accepts: the launch must fail."""


@dataclass(frozen=True)
class Loading:
    """How a launch loads a file: variables added to its environment, and launcher options."""

    env: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Canary:
    """Content whose effect on a launch is certain to be seen; it proves that the library reads
    ``names``.

    The launch must fail.  With ``dies`` false it must at least bind its ranks differently than with
    the real content.  The effect needs ``operation`` of the probe program, ``ranks``, and perhaps
    further ``options`` of the program.
    """

    content: Content
    names: frozenset[tuple[str, str]]
    operation: str = "allreduce"
    ranks: int = 2
    dies: bool = True
    options: tuple[str, ...] = ()


class Format(ABC):
    """One kind of file.  Subclasses are registered in :mod:`autotune.publish.formats`."""

    name: ClassVar[str]
    summary: ClassVar[str]
    suffix: ClassVar[str]
    family: ClassVar[str] = ""
    """The only family whose libraries read the format; "" for files of environment variables."""
    comment: ClassVar[tuple[str, str] | None] = ("# ", "")
    """Characters before and after a comment line.  None if the format has no comments: the header
    is then written to a file beside it."""
    usual: ClassVar[int] = 0
    """Its position among the default formats of its family's libraries; 0: not among them."""
    loads_rules: ClassVar[bool] = False
    """Whether a rules file has no effect without this file, which names it."""
    prologue: ClassVar[str] = ""
    """Text that must come before everything else, the header included."""
    guards: ClassVar[bool] = False
    """Whether files of the format check the library's version when they are loaded."""
    merges: ClassVar[bool] = False
    """Whether lines of others stay in the file, because a site may already have it."""
    cluster_wide: ClassVar[bool] = False
    """Whether it changes the default of all users; only for settings proven for a class."""

    def obstacle(self, library: Library) -> str | None:
        """Why the library cannot be shown to obey such a file; None if it can."""
        if self.family and library.family != self.family:
            return f"it is for {self.family}, but this library is {library.family}"
        return None

    def harmful(self, library: Library) -> str | None:
        """Why a file made here would do harm, proven or not; None if it would not."""
        return None

    @abstractmethod
    def part(self, content: Content, library: Library) -> Content:
        """The part of ``content`` that this format can express."""

    @abstractmethod
    def body(self, content: Content, library: Library) -> str:
        """The text for content that :meth:`part` returned and that was checked."""

    def with_version_check(self, body: str, library: Library) -> str:
        """``body``, which sets nothing where the launcher is of another version of the family."""
        return body

    def stage(self, text: str, place: Path, library: Library) -> Loading:
        """Write ``text`` below the empty private directory ``place``; returns how a launch loads
        it.

        Raises WorkError if the file's own reader refuses it.
        """
        path = place / f"file{self.suffix}"
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        return self.live(path, library)

    @abstractmethod
    def live(self, path: Path, library: Library) -> Loading:
        """How a launch loads the file at ``path``.  Raises WorkError as :meth:`stage`."""

    def canaries(self, content: Content, library: Library) -> list[Canary]:
        """Canaries for values that cannot be read back."""
        return []

    def sample(self, library: Library) -> Content:
        """Content with which a launch shows whether it loads a file of the format.

        Without values if there is none for the family of this library.
        """
        parts = (self.part(content, library) for content in sample_contents(library))
        return next((part for part in parts if part.names), Content())

    def expected_parameters(self, content: Content, library: Library) -> dict[str, str]:
        """Library parameters that a launch with the file must read back."""
        return dict(content.groups.get(LIBRARY, {})) | dict(
            rule_variables(content, library).values()
        )

    def companions(self, content: Content, library: Library) -> tuple[str, ...]:
        """Names of formats without whose files this file does nothing for the content."""
        return ()

    def naming(self, path: str) -> dict[str, str]:
        """Library parameters with which a launch loads the file at ``path``; empty if there are
        none."""
        return {}

    def default_path(self, cluster: str, library: Library) -> Path:
        """The usual path of the file."""
        return Path(f"autotune-{cluster}{self.suffix}")

    def render(self, content: Content, library: Library) -> str:
        """:meth:`body` of checked content; raises UsageError for a wrong name or value."""
        check_published_groups(content.groups)
        return self.body(content, library)


def assignments(values: Mapping[str, str]) -> str:
    """``name = value`` lines of a parameter file."""
    return "".join(f"{name} = {value}\n" for name, value in sorted(values.items()))


def policies(content: Content, library: Library) -> dict[str, str]:
    """Placement as run-time parameters of this version of the library."""
    new = library.version_tuple >= (5,)
    placement = content.groups.get("placement", {})
    return {POLICIES[name][new]: value for name, value in placement.items() if name in POLICIES}


def of_srun(content: Content) -> set[tuple[str, str]]:
    """The parts of the placement that only srun has, as (group, name): no file of a library can
    hold them, but variables can."""
    placement = content.groups.get("placement", {})
    return {("placement", name) for name in placement if name in SRUN_PLACEMENT}


def without_foreign(content: Content, prefixes: tuple[str, ...]) -> Content:
    """``content`` without library parameters whose names do not begin as this family's do."""
    names = content.groups.get(LIBRARY, {})
    return content.without({(LIBRARY, n) for n in names if not n.startswith(prefixes)})


class HomeFile(Format):
    """A file at a fixed place below the user's home, which every launch of the user reads."""

    suffix = ".conf"
    merges = True
    usual = 2
    relative: ClassVar[str]

    def canaries(self, content: Content, library: Library) -> list[Canary]:
        return policy_canaries(content)

    def default_path(self, cluster: str, library: Library) -> Path:
        return Path(os.environ.get("HOME", "/nonexistent")) / self.relative

    def stage(self, text: str, place: Path, library: Library) -> Loading:
        return Loading(home_copy(place, self.relative, text))

    def live(self, path: Path, library: Library) -> Loading:
        return Loading()


def rule_variables(content: Content, library: Library) -> dict[str, tuple[str, str]]:
    """Rules that environment variables of this family can express: collective -> name, value."""
    return dialect(library.family).variables(content.rules) if content.rules else {}


def with_rules(part: Content, content: Content, library: Library) -> Content:
    """``part`` with the rules of ``content`` that environment variables can express."""
    expressible = rule_variables(content, library)
    return replace(part, rules=tuple(r for r in content.rules if r.collective in expressible))


def variables(content: Content, library: Library) -> dict[str, str]:
    """Everything that environment variables can express, for this library's family and version."""
    groups, launcher = content.groups, adapter(library)
    placement = groups.get("placement", {})
    # The text of a file must not depend on where it is read.
    env = launcher.variables(groups, placement) | placement_variables(placement)
    env |= dict(rule_variables(content, library).values())
    own = dict(groups.get("env", {}))
    return env | own | launcher.variables({LIBRARY: launcher.forwarding(own)}, {})


def value_canaries(content: Content) -> list[Canary]:
    """Canaries of a library that checks values: for each number or choice, and for each placement,
    a word that stops the job.  Most variables that hold text accept any value and nothing shows
    them, so they have no canary that works."""
    return [
        Canary(content.with_value(group, name, CANARY), frozenset({(group, name)}))
        for group in ("mca", "placement")
        for name in content.groups.get(group, {})
    ]


def policy_canaries(content: Content) -> list[Canary]:
    """For each mapping or ranking policy a word that stops the job.  PRRTE ignores an unknown
    binding, so for a binding the canary is another one, with which the ranks are bound
    differently."""
    canaries = []
    for name, value in content.groups.get("placement", {}).items():
        names = frozenset({("placement", name)})
        if name == "bind_to":
            others = [word for word in ("none", "core") if word != value]
            canaries += [_placement_canary(content, name, word, names, False) for word in others]
        else:
            canaries.append(_placement_canary(content, name, CANARY, names, True))
    return canaries


def _placement_canary(
    content: Content, name: str, word: str, names: frozenset[tuple[str, str]], dies: bool
) -> Canary:
    return Canary(content.with_value("placement", name, word), names, dies=dies)


def home_copy(place: Path, relative: str, text: str) -> dict[str, str]:
    """Variables of a launch with a private HOME: the user's MPI files, one replaced by ``text``."""
    home = place / "home"
    real = Path(os.environ.get("HOME", "/nonexistent"))
    for name in (".openmpi", ".prte", ".pmix"):
        if is_folder(real / name) and name != relative.partition("/")[0]:
            shutil.copytree(real / name, home / name)
    target = home / relative
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", errors="surrogateescape")
    return {"HOME": str(home)}


def system_copy(place: Path, name: str, text: str, real: Path) -> Path:
    """The directory of a private copy of the system configuration in ``real``, one file replaced
    by ``text``."""
    copy = place / "etc"
    copy.mkdir()
    for file in entries(real):
        if is_file(file) and os.access(file, os.R_OK):
            shutil.copy(file, copy / file.name)
    (copy / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    return copy
