"""Processes and workers of a launch: how many are started, and which cores each one gets.

``--ranks`` is the number of cores that every candidate may use (docs/design.md, "Names"): the
default starts one process on each, a setting may start fewer with several workers each.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from autotune.errors import UsageError
from autotune.space import Setting, Space

_BINDING_WORDS = ("--bind-to", "-bind-to", "--map-by", "-map-by", "--cpus-per-proc")


def layout(cores: int, resources: Mapping[str, str]) -> tuple[int, int]:
    """Processes to start and workers of each, from what a setting says about resources.

    Without ``processes`` (or ``ranks``) all cores are used.  Raises :class:`UsageError` where the
    cores do not suffice or cannot be shared out.
    """
    workers = _count("workers", resources.get("workers", "1"))
    given = [resources[name] for name in ("processes", "ranks") if name in resources]
    if not given and cores % workers:
        raise UsageError(
            f"workers={workers} does not divide the {cores} cores of --ranks {cores}; "
            "take a divisor, or another --ranks"
        )
    processes = _count("processes", given[0]) if given else cores // workers
    if processes * workers > cores:
        raise UsageError(
            f"{processes} processes with {workers} workers each need {processes * workers} cores, "
            f"but --ranks {cores} allows {cores}"
        )
    return processes, workers


def require_room(space: Space, cores: int) -> None:
    """Refuse a space that allows a layout which the cores have no room for, before anything runs.

    Raises UsageError naming the levels.
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
                f"space {space.name} allows {setting.key}: {problem}.\nWrite a constraint that "
                'rules it out, or levels = "divisors: ranks".'
            ) from None


def placement(
    chosen: Mapping[str, str],
    workers: int,
    family: str,
    launch_options: Sequence[str] = (),
    oversubscribed: bool = False,
) -> dict[str, str]:
    """``chosen`` with what gives each process as many cores as it has workers.

    Open MPI binds a small number of processes to one core each; a process with several workers
    needs ``PE=`` with ``--bind-to core`` (the only two words that go together in 4.1 and 5.0).
    Wider or no binding that was asked for is left alone, and so is a library that does not bind.
    With more ranks than cores 5.0 cannot share out cores, so that nothing is bound.
    """
    words = dict(chosen)
    said = any(word in _BINDING_WORDS for word in launch_options)
    said = said or "PE=" in words.get("map_by", "").upper()
    if workers == 1 or family != "openmpi" or said or words.get("bind_to", "core") != "core":
        return words
    if oversubscribed:
        return words | {"bind_to": "none"}
    return words | {"map_by": f"{words.get('map_by', 'slot')}:PE={workers}", "bind_to": "core"}


def _count(name: str, text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise UsageError(f"{name}={text} is not a whole number from 1 on")
    return int(text)
