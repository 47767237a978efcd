"""What a format of published files is: text, the place it belongs to, and how a launch loads it."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from autotune.publish.content import Content, check_published_groups
from runner.mpi.discover import adapter
from runner.mpi.library import POLICIES, Library

CANARY = "autotune-canary"
"""A value that no policy parameter takes: the job must not start."""


@dataclass(frozen=True)
class Loading:
    """How a launch is made to see a file: variables added to its environment, launcher words."""

    env: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Canary:
    """Content whose effect on a launch cannot be missed; ``names`` are proven by it.

    The launch must die, or, with ``dies`` false, at least bind its ranks otherwise than with the
    real content.  ``operation`` of the probe program and ``ranks`` are what the effect needs.
    """

    content: Content
    names: frozenset[tuple[str, str]]
    operation: str = "allreduce"
    ranks: int = 2
    dies: bool = True


class Format(ABC):
    """One kind of file.  Subclasses are registered in :mod:`autotune.publish.formats`."""

    name: ClassVar[str]
    summary: ClassVar[str]
    suffix: ClassVar[str]
    family: ClassVar[str] = ""
    """The only family whose libraries read it; "" where it holds environment variables."""
    comment: ClassVar[tuple[str, str] | None] = ("# ", "")
    """Signs before and after a comment line; None where the format has none: the header then goes
    into a file of its own beside it."""
    usual: ClassVar[int] = 0
    """Its place among the formats that are written where none is asked for, for libraries of its
    family; 0: not among them."""
    loads_rules: ClassVar[bool] = False
    """Whether a file of rules has no effect without this one, which names it."""
    prologue: ClassVar[str] = ""
    """What must come before everything else, the header too."""
    merges: ClassVar[bool] = False
    """Whether lines of others stay in the file: it is one that a site may already have."""
    cluster_wide: ClassVar[bool] = False
    """Whether it changes the default of everybody: only for what was proven for a class."""

    def unobeyed(self, library: Library) -> str | None:
        """Why this library cannot be seen to obey such a file; None where it can."""
        if self.family and library.family != self.family:
            return f"it is for {self.family}, but this library is {library.family}"
        return None

    def harmful(self, library: Library) -> str | None:
        """Why a file made here would do harm even unproven; None where it would not."""
        return None

    @abstractmethod
    def part(self, content: Content, library: Library) -> Content:
        """What of ``content`` this format can say."""

    @abstractmethod
    def body(self, content: Content, library: Library) -> str:
        """The text that does it, for content that :meth:`part` returned and that was checked."""

    @abstractmethod
    def staged(self, text: str, place: Path, library: Library) -> Loading:
        """Put ``text`` below the empty private directory ``place``, seen by a launch through
        what is returned.  WorkError where the file's own reader refuses it."""

    @abstractmethod
    def live(self, path: Path, library: Library) -> Loading:
        """How a launch sees the file at ``path``.  WorkError as :meth:`staged`."""

    def canaries(self, content: Content, library: Library) -> list[Canary]:
        """Contents that prove what cannot be read back."""
        return []

    def default_path(self, cluster: str, library: Library) -> Path:
        """Where the file belongs."""
        return Path(f"autotune-{cluster}{self.suffix}")

    def render(self, content: Content, library: Library) -> str:
        """:meth:`body` of checked content; UsageError for a name or value that cannot be said."""
        check_published_groups(content.groups)
        return self.body(content, library)


def assignments(values: Mapping[str, str]) -> str:
    """``name = value`` lines of a parameter file."""
    return "".join(f"{name} = {value}\n" for name, value in sorted(values.items()))


def policies(content: Content, library: Library) -> dict[str, str]:
    """Placement as run-time parameters of this library's generation."""
    new = library.version_tuple >= (5,)
    placed = content.groups.get("placement", {})
    return {POLICIES[name][new]: value for name, value in placed.items() if name in POLICIES}


def variables(content: Content, library: Library) -> dict[str, str]:
    """Everything that environment variables can say, for this library's family and generation."""
    groups = content.groups
    said = adapter(library).variables(groups, groups.get("placement", {}))
    return said | dict(groups.get("env", {}))


def value_canaries(content: Content) -> list[Canary]:
    """For each number or choice of a library that checks them, and each placement, a word that
    stops the job.  Most variables that hold text take any, and nothing shows them: they stay
    unseen."""
    return [
        Canary(content.with_value(group, name, CANARY), frozenset({(group, name)}))
        for group in ("mca", "placement")
        for name in content.groups.get(group, {})
    ]


def policy_canaries(content: Content) -> list[Canary]:
    """For a mapping or ranking policy a word that stops the job.  PRRTE passes over a binding that
    it does not know, so that another one is shown to bind otherwise."""
    found = []
    for name, value in content.groups.get("placement", {}).items():
        proven = frozenset({("placement", name)})
        if name == "bind_to":
            others = [word for word in ("none", "core") if word != value]
            found += [_placed(content, name, word, proven, False) for word in others]
        else:
            found.append(_placed(content, name, CANARY, proven, True))
    return found


def _placed(
    content: Content, name: str, word: str, proven: frozenset[tuple[str, str]], dies: bool
) -> Canary:
    return Canary(content.with_value("placement", name, word), proven, dies=dies)


def home_copy(place: Path, relative: str, text: str) -> dict[str, str]:
    """A private HOME with the user's MPI files, one of them replaced by ``text``."""
    home = place / "home"
    real = Path(os.environ.get("HOME", "/nonexistent"))
    for name in (".openmpi", ".prte", ".pmix"):
        if (real / name).is_dir() and name != relative.partition("/")[0]:
            shutil.copytree(real / name, home / name)
    target = home / relative
    target.parent.mkdir(parents=True)
    target.write_text(text, encoding="utf-8", errors="surrogateescape")
    return {"HOME": str(home)}


def system_directory(library: Library) -> Path:
    """Where this library looks for system parameter files."""
    beside = Path(library.bin).resolve().parent / "etc"
    info = library.params.get("mca_base_param_files")
    if info is None or beside.is_dir():
        return beside
    return Path(info.default.split(",")[-1]).parent


def system_copy(place: Path, name: str, text: str, library: Library) -> Path:
    """A private copy of the system configuration with one file replaced by ``text``."""
    real = system_directory(library)
    copy = place / "etc"
    copy.mkdir()
    for file in sorted(real.iterdir()) if real.is_dir() else ():
        if file.is_file() and os.access(file, os.R_OK):
            shutil.copy(file, copy / file.name)
    (copy / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    return copy
