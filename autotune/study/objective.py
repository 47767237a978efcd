"""A user's own figure of a run, in place of the time that it took."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable

from autotune.errors import WorkError
from runner.types import RunRecord

Objective = Callable[[RunRecord], float]
"""Takes a run that ended well and gives the figure to be minimised: a positive, finite number."""


def objective_name(objective: Objective) -> str:
    """What stands for the objective in a study's key: its name and a digest of its source, so that
    another function is another study."""
    name = getattr(objective, "__qualname__", type(objective).__qualname__)
    try:
        source = inspect.getsource(objective)
    except (OSError, TypeError):
        source = f"{getattr(objective, '__module__', '')}.{name}"
    return f"python:{name}:{hashlib.sha256(source.encode()).hexdigest()[:16]}"


def judge(objective: Objective, record: RunRecord) -> None:
    """Put the objective's figure in the place of the run's own.

    Raises WorkError where it fails, or gives no positive number: then nothing can be compared.
    """
    if record.state != "ok":
        return
    name = getattr(objective, "__qualname__", repr(objective))
    try:
        value = float(objective(record))
    except Exception as problem:
        raise WorkError(
            f"the objective {name} failed on a valid run: {problem!r}; the run was not stored"
        ) from problem
    if not (math.isfinite(value) and value > 0):
        raise WorkError(
            f"the objective {name} returned {value!r}; expected a positive, finite number "
            "(smaller is better)"
        )
    record.metric_s = value
    record.metric_count = None
