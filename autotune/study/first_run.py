"""First runs: signs that later runs of a program continue from files of the first one.

A program that finds its own checkpoint does less work, or none. Then all runs after the first one
are short, and a comparison of settings compares nothing. Two signs show it: the first run of a
setting used a multiple of the CPU time of its later ones, and the first run of all wrote a file.
Either alone is usual: caches fill, and programs write results. Both together stop a proof.
"""

from __future__ import annotations

import itertools
import shlex
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from autotune.errors import WorkError
from autotune.notes import Note
from autotune.wording import count, seconds
from runner.types import RunRecord

MULTIPLE = 2.0
"""The first run is longer if it used this multiple of the CPU time of later ones, ..."""
LEAST_S = 0.3
"""... and so many CPU seconds more (the start of a launch differs by less), ..."""
CHANGE = 1.5
"""... and the program's own figure, if it prints one, differs by this factor."""
LATER = 2
"""Number of later runs from which the first one is judged."""
DOCUMENT = "first-run:"
"""Begins the names of a study's documents about first runs."""
_LISTED = 3
_KEPT = 100
"""Number of paths that are stored."""


@dataclass(frozen=True)
class FirstRun:
    """The first run of one process in a study.

    ``order`` is its place among the runs. ``created`` and ``changed`` are the files that it wrote;
    ``cut``: not all folders were looked at; ``seconds``: what the looks took. ``prepared``: the
    user has files removed or copied before each run.
    """

    order: int
    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    cut: bool = False
    seconds: float = 0.0
    prepared: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it wrote."""
        return (*self.created, *self.changed)

    def to_json(self) -> dict[str, Any]:
        kept = {"created": list(self.created[:_KEPT]), "changed": list(self.changed[:_KEPT])}
        return {**asdict(self), **kept}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FirstRun:
        """Inverse of :meth:`to_json`; raises LookupError, TypeError or ValueError for damage."""
        lists = [tuple(str(path) for path in data[name]) for name in ("created", "changed")]
        cut, prepared = bool(data["cut"]), bool(data["prepared"])
        return cls(int(data["order"]), lists[0], lists[1], cut, float(data["seconds"]), prepared)


@dataclass(frozen=True)
class LongerFirst:
    """A first run that used a multiple of the CPU time of later ones, in seconds."""

    first_s: float
    later_s: float

    @property
    def data(self) -> dict[str, Any]:
        """The figures of a note."""
        return {"first_cpu_s": self.first_s, "later_cpu_s": self.later_s}

    @property
    def words(self) -> str:
        """The figures as the second part of a sentence."""
        return (
            f"used {seconds(self.first_s)} of CPU time, and later ones use {seconds(self.later_s)}"
        )


def longer_first(first: RunRecord, later: Iterable[RunRecord]) -> LongerFirst | None:
    """Whether a first run did more work than later ones of the same setting.

    Runs that did not end by themselves are left out. None also if there are too few.
    """
    others = [record for record in later if record.exit_code == 0]
    if first.exit_code != 0 or len(others) < LATER:
        return None
    usual_s = statistics.median(record.cpu_s for record in others)
    if first.cpu_s < MULTIPLE * usual_s or first.cpu_s - usual_s < LEAST_S:
        return None
    figures = [record.metric_s for record in others if record.metric_s is not None]
    if first.metric_s is not None and len(figures) == len(others):
        figure = statistics.median(figures)
        # A figure that stays the same is not that of the work that the first run did alone.
        if min(figure, first.metric_s) > 0 and (1 / CHANGE < figure / first.metric_s < CHANGE):
            return None
    return LongerFirst(first.cpu_s, usual_s)


def resumed_note(longer: LongerFirst, firsts: Sequence[FirstRun], who: str) -> Note:
    """Both signs: the objection to ``who``, which names a setting."""
    files = _files(firsts)
    words = (
        f"the first run of {who} {longer.words}; the program wrote {_listed(files)}, from which "
        "later runs may continue, so they may not do the whole work. Let every run begin with "
        f"the same files: {remedy(firsts)}"
    )
    return Note("work.resumed", words, {**longer.data, "files": files, "of": who})


def longer_note(longer: LongerFirst, who: str) -> Note:
    """The first sign alone."""
    words = f"the first run of {who} {longer.words}"
    return Note("work.first_run_longer", words, {**longer.data, "of": who})


def files_note(firsts: Sequence[FirstRun]) -> Note | None:
    """The second sign alone; None without it, and where the user prepares the files."""
    files = _files(firsts)
    if not files or any(first.prepared for first in firsts):
        return None
    words = (
        f"the first run wrote {_listed(files)}; if the program continues from such files, later "
        f"runs do less work: {remedy(firsts)}"
    )
    return Note("work.files_written", words, {"files": files, "cut": any(f.cut for f in firsts)})


def resumed_error(longer: LongerFirst, firsts: Sequence[FirstRun], default: str) -> WorkError:
    """Both signs for what everything is compared with: nothing can be measured."""
    return WorkError(
        f"the program does not do the same work in each run: its first run with {default} "
        f"{longer.words}, and it wrote {_listed(_files(firsts))}, from which later runs may "
        f"continue.\nLet every run begin with the same files: {remedy(firsts)}.\nIf the first run "
        "only filled a cache that all later runs use, leave the cache in place and begin another "
        "study (--seed N)",
        code="work.resumed",
    )


def remedy(firsts: Sequence[FirstRun]) -> str:
    """The options that let every run begin with the same files."""
    created = list(dict.fromkeys(path for first in firsts for path in first.created))
    removes = shlex.join(["rm", "-f", *created[:_LISTED]]) if created else "COMMAND"
    shown = shlex.quote(removes) if created else removes
    return f"--before {shown} (before each run), or --fresh-dir DIR (a copy of DIR for each run)"


def _files(firsts: Sequence[FirstRun]) -> list[str]:
    return list(dict.fromkeys(itertools.chain.from_iterable(first.files for first in firsts)))


def _listed(files: Sequence[str]) -> str:
    more = len(files) - _LISTED
    listed = ", ".join(files[:_LISTED])
    return f"{listed} and {count(more, 'more file')}" if more > 0 else listed


def documents(stored: Iterable[Mapping[str, Any]]) -> Iterator[FirstRun]:
    """The first runs that a study's documents describe; damaged ones are left out."""
    for data in stored:
        try:
            yield FirstRun.from_json(data)
        except (LookupError, TypeError, ValueError):
            continue
