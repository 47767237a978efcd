"""The layout of a launch: ranks, and the threads or workers of each, on the cores.

``--ranks`` is the number of cores that every candidate may use (docs/explanation/design.md,
"Names"). The
default starts one rank with one thread on each core. A setting may start fewer ranks with several
OpenMP threads (``threads``) or workers of MATE (``workers``) each, and may leave cores idle.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass

from autotune.errors import UsageError
from autotune.notes import Note
from autotune.space import Setting, Space
from autotune.wording import MOST_RANKS, whole_number

NUM_THREADS = "OMP_NUM_THREADS"
"""The variable by which every OpenMP run-time takes its number of threads."""


@dataclass(frozen=True)
class Layout:
    """How many ranks a launch has, and how many threads and workers each of them."""

    ranks: int
    threads: int = 1
    workers: int = 1

    @property
    def cores_each(self) -> int:
        """The number of cores of a rank."""
        return self.threads * self.workers

    @property
    def cores(self) -> int:
        """The number of cores that all ranks use together."""
        return self.ranks * self.cores_each

    @classmethod
    def of(cls, cores: int, resources: Mapping[str, str]) -> Layout:
        """The layout that the resources of a setting ask for on ``cores`` cores.

        Without ``processes`` (or ``ranks``) all cores are used. Raises :class:`UsageError` if there
        are not enough cores or if they cannot be divided.
        """
        each = {name: _count(name, resources.get(name, "1")) for name in ("threads", "workers")}
        width = each["threads"] * each["workers"]
        words = " x ".join(f"{name}={n}" for name, n in each.items() if n > 1)
        counts = [resources[name] for name in ("processes", "ranks") if name in resources]
        if not counts and cores % width:
            raise UsageError(
                f"{words} does not divide the {cores} cores of --ranks {cores}; use a divisor, or "
                "another --ranks",
                code="layout.cores",
            )
        ranks = _count("processes", counts[0]) if counts else cores // width
        if ranks * width > cores:
            raise UsageError(
                f"{ranks} processes with {words or 'one core'} each need {ranks * width} cores, "
                f"but --ranks {cores} allows {cores}",
                code="layout.cores",
            )
        return cls(ranks, **each)


def has_threads(space: Space | None) -> bool:
    """Whether the settings of a space say how many OpenMP threads a rank has."""
    return space is not None and "threads" in space.resources


def thread_variables(space: Space | None, layout: Layout) -> dict[str, str]:
    """The variables that give the ranks their number of threads; empty if the space has none.

    They are set for the default too, whatever the environment says: without a number every rank of
    a flat launch would start a thread for each core of the machine, and any layout would look fast
    beside it.
    """
    return {NUM_THREADS: str(layout.threads)} if has_threads(space) else {}


def replaced_note(space: Space | None, environment: Mapping[str, str] = os.environ) -> Note | None:
    """The sentence that tells of the environment's own number of threads; None if there is none."""
    own = environment.get(NUM_THREADS)
    if own is None or not has_threads(space):
        return None
    return Note(
        "threads.replaced",
        f"{NUM_THREADS}={own} of your environment is not used: the space sets the number of "
        "threads of every run, 1 in the default",
        {"variable": NUM_THREADS, "value": own},
    )


def require_room(space: Space, cores: int) -> None:
    """Refuse, before anything runs, a space with a layout that does not fit on the cores.

    Raises UsageError with the levels.
    """
    parameters = [p for p in space if p.target == "resource"]
    for combination in itertools.product(*(p.choices for p in parameters)):
        pairs = zip(parameters, combination, strict=True)
        setting = Setting({p.name: value for p, value in pairs if value is not None})
        if not setting or space.broken_rules(setting):
            continue
        try:
            Layout.of(cores, space.launched(setting).get("resource", {}))
        except UsageError as problem:
            raise UsageError(
                f"space {space.name} allows {setting.key}: {problem}.\nAdd a constraint that "
                'excludes it, or write levels = "divisors: ranks".',
                code="layout.cores",
            ) from None


def _count(name: str, text: str) -> int:
    number = whole_number(text)
    if not number:
        raise UsageError(
            f"{name}={text[:40]} is not a whole number from 1 to {MOST_RANKS}", code="layout.range"
        )
    return number
