"""Which collective operation a parameter is about, by its name."""

from __future__ import annotations

import re

from runner.trace.schema import COLLECTIVES

_NAMES = "|".join([*sorted(COLLECTIVES, key=len, reverse=True), "barrier"])
_OPERATION = re.compile(rf"^(?:coll_[a-z0-9]+|mpir_cvar)_({_NAMES})", re.IGNORECASE)
"""Open MPI's and MPICH's."""


def operation_of(parameter: str) -> str:
    """The collective that it is about, or ""."""
    found = _OPERATION.match(parameter)
    return found[1].lower() if found else ""
