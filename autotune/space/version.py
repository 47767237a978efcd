"""Which libraries a piece of a definition is for: ``openmpi``, ``openmpi>=4.1,<5``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from autotune.config.cluster import known_family
from autotune.errors import UsageError
from runner.mpi.library import Library

_COMPARE: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,9})*"
_SPEC = re.compile(rf"\s*([a-z]+)\s*((?:(?:^|,|\s)*(?:<=|>=|==|!=|<|>)\s*{_NUMBER}\s*)*)")
_BOUND = re.compile(r"(<=|>=|==|!=|<|>)\s*([0-9.]+)")


def matches(spec: str, library: Library) -> bool:
    """Whether the library is of the family and inside every bound.

    A bound counts to its own precision: 4.1.8 satisfies ``==4.1`` and ``<=4.1``.
    Raises :class:`UsageError` if ``spec`` cannot be read.
    """
    family, bounds = parse(spec)
    if library.family != family:
        return False
    version = library.version_tuple
    return all(
        _COMPARE[sign]((version + (0,) * len(bound))[: len(bound)], bound) for sign, bound in bounds
    )


def parse(spec: str) -> tuple[str, list[tuple[str, tuple[int, ...]]]]:
    """Family and bounds.

    Raises :class:`UsageError` if ``spec`` cannot be read or names a family that nobody knows.
    """
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise UsageError(
            f"{spec!r} does not name an MPI library; expected for example openmpi, "
            "openmpi<5 or openmpi>=4.1,<5"
        )
    bounds = [
        (sign, tuple(int(part) for part in number.split(".")))
        for sign, number in _BOUND.findall(match[2])
    ]
    return known_family(match[1]), bounds
