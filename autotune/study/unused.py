"""Which parameters of a space are about collectives that the program never calls.

The first run of a search, which only warms up, counts the program's calls; what it calls never is
not tuned.  A program that cannot be counted (linked statically, no compiler here) is tuned whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from autotune.space import Space
from autotune.space.operations import operation_of
from autotune.study.ledger import WARMUP, Ledger

CALLS = "traced_calls"
"""Key of a warm-up's ``extra``: operation -> calls of all ranks."""


def worth_counting(space: Space) -> bool:
    """Whether a parameter of the space is about one collective alone."""
    return any(operation_of(parameter.name) for parameter in space)


def unused_parameters(space: Space, ledger: Ledger) -> frozenset[str]:
    """Parameters of collectives that no counted warm-up called; none where nothing was counted."""
    counted = [e.record.extra[CALLS] for e in ledger.entries if _is_counted(e.kind, e.record.extra)]
    if not counted:
        return frozenset()
    called = {name for calls in counted for name, count in calls.items() if count}
    return frozenset(_about(space, called)) if called else frozenset()


def _is_counted(kind: str, extra: dict[str, object]) -> bool:
    return kind == WARMUP and isinstance(extra.get(CALLS), dict)


def _about(space: Space, called: set[str]) -> Iterable[str]:
    for parameter in space:
        operation = operation_of(parameter.name)
        if operation and operation not in called:
            yield parameter.name
