"""Figures of a run: times in a program's output, a user's own objective, output of failed runs.

The first part finds lines of a program's output that look like a time, each with a pattern that
reads it. The second part puts a user's own figure in place of the run's time. The third part shows
what a failed run printed.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from autotune.errors import WorkError
from runner.failure_message import telling_lines
from runner.types import RunRecord

MOST = 3
_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[+-]?)(?P<figure>\d+(?:\.\d*)?(?:[eEdD][+-]?\d+)?)(?=s\b|sec|[^\w.]|$)"
)
_TIME = re.compile(
    r"\b(time|timing|elapsed|wall|wtime|walltime|runtime|duration|took|seconds?|secs?|sec|total)\b"
    r"|time\b|_time|\b(zeit|dauer|laufzeit)\b",
    re.IGNORECASE,
)
_SECONDS = re.compile(r"^\s*[\])]?\s*(s|sec|secs|seconds?)\b", re.IGNORECASE)
_OTHER_UNIT = re.compile(
    r"^\s*[\])]?\s*(ms|msec|us|usec|ns|min|h|%|[kMGT]i?B|[kMGT]?flop|mop|[kMG]?Hz|iter|step|cells?)",
    re.IGNORECASE,
)
_LABEL = 48
_PLAIN, _EXPONENT = "([0-9.]+)", "([0-9.eEdD+-]+)"


@dataclass(frozen=True)
class Figure:
    """A line of the output, without blanks at its ends, and the ``--metric`` that reads it."""

    line: str
    metric: str

    @property
    def words(self) -> str:
        """The option that reads the figure, quoted for a shell: ``--metric PATTERN``."""
        return f"--metric {shlex.quote(self.metric)}"


def figures(stdout: str, last_json: Mapping[str, Any] | None = None) -> list[Figure]:
    """At most three figures that look like times, the most likely first.

    ``last_json`` is the program's last line that is a JSON object. Every pattern reads a positive
    number in its line.
    """
    found: dict[str, tuple[int, int, Figure]] = {}
    for name, value in (last_json or {}).items():
        number = isinstance(value, float | int) and not isinstance(value, bool) and value > 0
        if number and _TIME.search(name.replace("_", " ")):
            figure = Figure(f"{name}: {value}", f"json:{name}")
            found[figure.metric] = (5, len(found), figure)
    for at, line in enumerate(stdout.splitlines()):
        if line.lstrip().startswith("{"):
            continue
        for match in _NUMBER.finditer(line[:1000]):
            score = _score(line, match)
            pattern = _pattern(line, match) if score else None
            if pattern is not None:
                # If one pattern reads several lines, the last line is shown.
                found[pattern] = (score, at, Figure(line.strip()[:200], pattern))
    ranked = sorted(found.values(), key=lambda item: (-item[0], -item[1]))
    return [figure for _, _, figure in ranked[:MOST]]


def _score(line: str, match: re.Match[str]) -> int:
    """Score of a number as a time in seconds; 0 if it is certainly none."""
    before, behind = line[: match.start()], line[match.end() :]
    value = float(_plain(match["figure"]))
    if match["sign"] == "-" or _OTHER_UNIT.match(behind) or not 0 < value < math.inf:
        return 0
    words = 2 * bool(_TIME.search(before[-_LABEL:])) + 2 * bool(_SECONDS.match(behind))
    return words + ("." in match["figure"] or "e" in match["figure"].lower()) if words else 0


def _plain(figure: str) -> str:
    return re.sub("[dD]", "E", figure)


def _pattern(line: str, match: re.Match[str]) -> str | None:
    """A regular expression for this number, made of the words around it.

    None if the expression would read another number.
    """
    before, behind = line[: match.start()], line[match.end() :]
    label = before if len(before) <= _LABEL else before[-_LABEL:].partition(" ")[2]
    label = label.lstrip()
    group = _EXPONENT if re.search("[eEdD]", match["figure"]) else _PLAIN
    if label.strip():
        pattern = _words(label) + group
    else:
        unit = re.match(r"\s*\w+", behind)
        if unit is None:
            return None
        pattern = group + _words(unit[0])
    found = re.search(pattern, line)
    return pattern if found is not None and found[1] == match["figure"] else None


def _words(text: str) -> str:
    """Text as a pattern: any blanks for blanks, any digits for digits (ranks, steps).

    A number with an exponent stands for any number.
    """
    parts = re.split(r"(\s+|\d+(?:\.\d*)?[eEdD][+-]?\d+|\d+)", text)
    return "".join(_part(part) for part in parts if part)


def _part(text: str) -> str:
    if text.isspace():
        return " *"
    if text.isdigit():
        return "[0-9]+"
    return "[0-9.eEdD+-]+" if text[0].isdigit() else _escaped(text)


def _escaped(text: str) -> str:
    """Text as ``re.escape``, but only special characters are escaped."""
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)


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


def judge_objective(objective: Objective, record: RunRecord) -> None:
    """Replace the run's own figure by the objective's.

    Raises WorkError if the objective fails or returns no positive, finite number: nothing can be
    compared then.
    """
    if record.state != "ok":
        return
    name = getattr(objective, "__qualname__", repr(objective))
    try:
        value = float(objective(record))
    except Exception as problem:
        raise WorkError(
            f"the objective {name} failed on a valid run: {problem!r}; the run was not stored",
            code="objective.fails",
        ) from problem
    if not (math.isfinite(value) and value > 0):
        raise WorkError(
            f"the objective {name} returned {value!r}; expected a positive, finite number "
            "(smaller is better)",
            code="objective.value",
        )
    record.metric_s = value
    record.metric_count = None


LINES = 8


def failure_lines(record: RunRecord) -> list[str]:
    """The program's last lines; if its figure was not found, the lines that look like a figure."""
    if record.valid:
        return []
    if record.state in ("no_metric", "unverified"):
        # The program ran to its end, so its standard output explains more than its error output.
        printed = record.stdout_tail if record.stdout_tail.strip() else record.stderr_tail
        said = [line for line in printed.splitlines() if line.strip()][-LINES:]
    else:
        said = telling_lines(record.stderr_tail, record.stdout_tail, LINES)
    lines = (
        ["last lines of the program's output:", *(f"  | {line}" for line in said)] if said else []
    )
    if record.state == "no_metric":
        lines += _figure_lines(record)
    return lines


def _figure_lines(record: RunRecord) -> list[str]:
    seen = figures(record.stdout_tail, record.extra)
    if seen:
        lines = ["these numbers of the output look like times; to use one:"]
        for figure in seen:
            lines += [f"  | {figure.line}", f"      {figure.words}"]
        return lines
    if figures(record.stderr_tail):
        moved = (
            "the program prints times on standard error, where --metric does not look; to "
            "redirect them:"
        )
        return [moved, "  -- sh -c 'exec \"$@\" 2>&1' sh PROGRAM ARGS"]
    if not record.stdout_tail.strip():
        return [
            "the program printed nothing on standard output; without --metric the wall time counts"
        ]
    return ["no number in the output looks like a time; without --metric the wall time counts"]


def failure_words(record: RunRecord) -> str:
    """The lines of :func:`failure_lines` as text to append to a message; may be empty."""
    return "".join(f"\n{line}" for line in failure_lines(record))
