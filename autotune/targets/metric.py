"""Figures of a run: a user's own objective in place of its time, and the output of failed runs."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Sequence

from autotune.errors import WorkError
from autotune.targets.figures import figures
from autotune.targets.file_in_way import in_way_lines, refuses_file
from autotune.wording import OBJECTIVE
from runner.outcome.failure_message import telling_lines
from runner.types import RunRecord

Objective = Callable[[RunRecord], float]
"""A function of a valid run that returns the figure to minimise: a positive, finite number."""


def objective_name(objective: Objective) -> str:
    """The objective in a study's key: its name and a digest of its source.

    So another function makes another study.
    """
    name = getattr(objective, "__qualname__", type(objective).__qualname__)
    try:
        source = inspect.getsource(objective)
    except (OSError, TypeError):
        source = f"{getattr(objective, '__module__', '')}.{name}"
    return f"python:{name}:{hashlib.sha256(source.encode()).hexdigest()[:16]}"


def judge_objective(objective: Objective, record: RunRecord) -> WorkError | None:
    """Replace the run's own figure by the objective's; returns why there is none.

    The objective may have failed, or have returned no positive, finite number. The run is then of
    the state ``no_metric``: nothing can be compared, and it is stored like any other.
    """
    if record.state != "ok":
        return None
    name = getattr(objective, "__qualname__", repr(objective))
    refusal = None
    value = math.nan
    try:
        value = float(objective(record))
    except Exception as problem:
        refusal = WorkError(
            f"the objective {name} failed on a valid run: {problem!r}", code="objective.fails"
        )
        refusal.__cause__ = problem
    else:
        if not (math.isfinite(value) and value > 0):
            refusal = WorkError(
                f"the objective {name} returned {value!r}; expected a positive, finite number "
                "(smaller is better)",
                code="objective.value",
            )
    if refusal is not None:
        record.state, record.reason, record.code = "no_metric", str(refusal), refusal.code
        return refusal
    record.metric_s = value
    record.metric_count = None
    record.metric_unit = OBJECTIVE
    record.metric_rate = False
    return None


LINES = 8


def failure_lines(record: RunRecord, earlier_files: Sequence[str] = ()) -> list[str]:
    """The program's last lines; if its figure was not found, the lines that look like a figure.

    ``earlier_files`` as for :func:`autotune.targets.file_in_way.in_way_lines`.
    """
    if record.valid:
        return []
    if record.state in ("no_metric", "unverified"):
        # The program ran to its end, so its standard output explains more than its error output.
        output = record.stdout_tail if record.stdout_tail.strip() else record.stderr_tail
        last_lines = [line for line in output.splitlines() if line.strip()][-LINES:]
    else:
        last_lines = telling_lines(record.stderr_tail, record.stdout_tail, LINES)
    lines = (
        ["last lines of the program's output:", *(f"  | {line}" for line in last_lines)]
        if last_lines
        else []
    )
    if record.state == "no_metric":
        lines += figure_lines(record)
    lines += in_way_lines(record, earlier_files)
    return lines


SELF_EXPLAINING_CODES = ("metric.rate", "metric.time")
"""Codes of reasons that name the right option themselves."""


def figure_lines(record: RunRecord) -> list[str]:
    """The lines of an output that look like a figure, each with the option that reads it."""
    candidates = (
        [] if record.code in SELF_EXPLAINING_CODES else figures(record.stdout_tail, record.extra)
    )
    if candidates:
        what = "rates" if candidates[0].rate else "times"
        lines = [f"these numbers of the output look like {what}; to use one:"]
        for figure in candidates:
            lines += [f"  | {figure.line}", f"      {figure.words}"]
        return lines
    if record.code in SELF_EXPLAINING_CODES:
        return []
    if figures(record.stderr_tail):
        advice = (
            "the program prints times on standard error, where --metric does not look; to "
            "redirect them:"
        )
        return [advice, "  -- sh -c 'exec \"$@\" 2>&1' sh PROGRAM ARGS"]
    if not record.stdout_tail.strip():
        return [
            "the program printed nothing on standard output; without --metric the wall time counts"
        ]
    return ["no number in the output looks like a time; without --metric the wall time counts"]


def failure_words(record: RunRecord, earlier_files: Sequence[str] = ()) -> str:
    """The lines of :func:`failure_lines` as text to append to a message; may be empty."""
    return "".join(f"\n{line}" for line in failure_lines(record, earlier_files))


def default_failure(words: str, record: RunRecord, earlier_files: Sequence[str] = ()) -> WorkError:
    """The error for a failed run of the default, with what the program printed."""
    message = f"{words}{failure_words(record, earlier_files)}"
    if record.code:
        return WorkError(message, code=record.code)
    if refuses_file(record):
        return WorkError(message, code="work.file_exists")
    return WorkError(message, code="default.fails")
