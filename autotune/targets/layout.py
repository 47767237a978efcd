"""The layout of a launch: how many processes and workers are started on the cores.

``--ranks`` is the number of cores that every candidate may use (docs/design.md, "Names"). The
default starts one process on each core; a setting may start fewer processes with several workers
each.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from autotune.errors import UsageError
from autotune.space import Setting, Space


def layout(cores: int, resources: Mapping[str, str]) -> tuple[int, int]:
    """Processes to start and workers of each, from the resources of a setting.

    Without ``processes`` (or ``ranks``) all cores are used. Raises :class:`UsageError` if there are
    not enough cores or if they cannot be divided.
    """
    workers = _count("workers", resources.get("workers", "1"))
    given = [resources[name] for name in ("processes", "ranks") if name in resources]
    if not given and cores % workers:
        raise UsageError(
            f"workers={workers} does not divide the {cores} cores of --ranks {cores}; use "
            "a divisor, or another --ranks"
        )
    processes = _count("processes", given[0]) if given else cores // workers
    if processes * workers > cores:
        raise UsageError(
            f"{processes} processes with {workers} workers each need {processes * workers} cores, "
            f"but --ranks {cores} allows {cores}"
        )
    return processes, workers


def require_room(space: Space, cores: int) -> None:
    """Refuse, before anything runs, a space with a layout that does not fit on the cores.

    Raises UsageError with the levels.
    """
    parameters = [p for p in space if p.target == "resource"]
    for combination in itertools.product(*(p.choices for p in parameters)):
        pairs = zip(parameters, combination, strict=True)
        setting = Setting({p.name: value for p, value in pairs if value is not None})
        if not setting or space.broken(setting):
            continue
        try:
            layout(cores, space.launched(setting).get("resource", {}))
        except UsageError as problem:
            raise UsageError(
                f"space {space.name} allows {setting.key}: {problem}.\nAdd a constraint that "
                'excludes it, or write levels = "divisors: ranks".'
            ) from None


def _count(name: str, text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise UsageError(f"{name}={text} is not a whole number of 1 or more")
    return int(text)
