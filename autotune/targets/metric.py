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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from autotune.errors import WorkError
from autotune.wording import OBJECTIVE
from runner.failure_message import telling_lines
from runner.number import CutNumber, WholeNumber, number_at
from runner.supervise import PatternMatch
from runner.types import RunRecord
from runner.unit import CLOCK, LABEL, Unit, unit_beside, unit_in_header, unit_of_key

MOST = 3
_DIGIT = re.compile(r"(?<![\w.])[+-]?\.?\d|(?<=[A-Za-z][=:])\.?\d")
_TIME = re.compile(
    r"\b(time|timing|elapsed|wall|wtime|walltime|runtime|duration|took|seconds?|secs?|sec|total)\b"
    r"|time\b|_time|\b(zeit|dauer|laufzeit)\b",
    re.IGNORECASE,
)
_LABEL, _ROW = 48, 160
_DATE = re.compile(r"\b\d\d:\d\d:\d\d (?:\w+ )?\d{4}\b|\b\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:")
_TABLE_LINES = 200
"""Only in so many lines at the end the header of a table is looked for."""


@dataclass(frozen=True)
class Figure:
    """A line of the output, without blanks at its ends, and the pattern that reads it.

    ``rate``: the figure is a rate, of which a larger one is better.
    """

    line: str
    metric: str
    rate: bool = False

    @property
    def words(self) -> str:
        """The option that reads the figure, quoted for a shell: ``--metric PATTERN``."""
        return f"--metric{'-rate' if self.rate else ''} {shlex.quote(self.metric)}"


def figures(stdout: str, last_json: Mapping[str, Any] | None = None) -> list[Figure]:
    """At most three figures, the most likely first: times and, if there is none, rates.

    ``last_json`` is the program's last line that is a JSON object. Every pattern reads a positive
    number in its line.
    """
    found: dict[str, tuple[int, int, Figure]] = {}
    for name, value in (last_json or {}).items():
        positive = isinstance(value, float | int) and not isinstance(value, bool) and value > 0
        kind = unit_of_key(name).kind if positive else ""
        if kind:
            figure = Figure(f"{name}: {value}", f"json:{name}", kind == "rate")
            found[figure.metric] = (5, len(found), figure)
    lines = stdout.splitlines()
    for at, line in enumerate(lines):
        if line.lstrip().startswith("{") or _DATE.search(line):
            continue
        for number in _numbers(line[:1000]):
            rows = lines if at >= len(lines) - _TABLE_LINES else []
            unit, score = _score(line, number, rows, at)
            pattern = _pattern(line, number) if score else None
            if pattern is not None:
                # If one pattern reads several lines, the last line is shown.
                shown = Figure(line.strip()[:200], pattern, unit.kind == "rate")
                found[pattern] = (score, at, shown)
    times = [item for item in found.values() if not item[2].rate]
    ranked = sorted(times or found.values(), key=lambda item: (-item[0], -item[1]))
    return [figure for _, _, figure in ranked[:MOST]]


def _numbers(line: str) -> Iterator[WholeNumber]:
    """The positive numbers of a line that are certain."""
    at = 0
    while match := _DIGIT.search(line, at):
        at = match.end()
        try:
            number = number_at(line, match.start(), match.end())
        except CutNumber:
            at = next((m.start() for m in re.finditer(r"\s", line[at:])), len(line)) + at
            continue
        if number is not None:
            at = max(number.end, at)
            if number.value > 0:
                yield number


def _score(line: str, number: WholeNumber, rows: list[str], row: int) -> tuple[Unit, int]:
    """What is known of a number, and its score as a figure; 0 if it is certainly none."""
    before, behind = line[: number.start], line[number.end :]
    unit = CLOCK if number.clock else unit_beside(before[-LABEL:], behind[:LABEL])
    if rows and not unit.kind and not unit.stated:
        head = unit_in_header(rows, row, number.start)
        if head.kind:
            return head, 2
    exact = any(c in line[number.start : number.end] for c in ".eEdD:")
    if unit.kind == "rate":
        return unit, 1 + exact
    if unit.stated and unit.kind != "time":
        return unit, 0
    if not (unit.stated or exact) and re.match(r"[ \t]+[A-Za-z]", behind):
        return unit, 0  # A count of something.
    words = 2 * bool(_TIME.search(before[-_LABEL:])) + 2 * unit.stated
    return unit, words and words + exact - ("/" in unit.text)


def _pattern(line: str, number: WholeNumber) -> str | None:
    """A regular expression for this number, made of the words around it.

    None if the expression would read another number.
    """
    before, behind = line[: number.start], line[number.end :]
    table = len(before.split()) > 1 and not re.search(r"[:=]", before)
    label = before
    if len(before) > (_ROW if table else _LABEL):
        label = before[-_LABEL:].partition(" ")[2]
    label = label.lstrip()
    if not re.search(r"[^\W\d]", label) and label.strip():
        # A row of numbers is found by the first of them.
        pattern = f"^ *{_escaped(label.strip())} +{GROUP}" if len(before.split()) == 1 else ""
    elif label.strip():
        pattern = _words(label) + GROUP
    else:
        unit = re.match(r"\s*\w+", behind)
        if unit is None:
            return None
        pattern = GROUP + _words(unit[0])
    found = re.search(pattern, line) if pattern else None
    if found is None:
        return None
    seen = PatternMatch.of(found)
    return pattern if seen.last is not None and found.start(1) == number.start else None


GROUP = r"(\S+)"
"""The group that reads a whole number, whatever its form: it ends at a blank."""


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
    record.metric_unit = OBJECTIVE
    record.metric_rate = False


LINES = 8
_FILE_EXISTS = re.compile(r"\bfile exists\b|\balready exists?\b|\bEEXIST\b", re.IGNORECASE)


def refuses_file(record: RunRecord) -> bool:
    """Whether a failed run says that a file exists, which an earlier run may have written."""
    printed = f"{record.stdout_tail}\n{record.stderr_tail}"
    return record.state == "failed" and _FILE_EXISTS.search(printed) is not None


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
    if refuses_file(record):
        lines += [
            "a file that an earlier run wrote may be in the way; to start every run without it:",
            "  --before 'rm -f FILE', or --fresh-dir DIR (a copy of DIR for each run)",
        ]
    return lines


SPELLED = ("metric.rate", "metric.time")
"""Codes of reasons that name the right option themselves."""


def _figure_lines(record: RunRecord) -> list[str]:
    seen = [] if record.code in SPELLED else figures(record.stdout_tail, record.extra)
    if seen:
        what = "rates" if seen[0].rate else "times"
        lines = [f"these numbers of the output look like {what}; to use one:"]
        for figure in seen:
            lines += [f"  | {figure.line}", f"      {figure.words}"]
        return lines
    if record.code in SPELLED:
        return []
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


def default_failure(words: str, record: RunRecord) -> WorkError:
    """The error for a failed run of the default, with what the program printed."""
    message = f"{words}{failure_words(record)}"
    if record.code:
        return WorkError(message, code=record.code)
    if refuses_file(record):
        return WorkError(message, code="work.file_exists")
    return WorkError(message, code="default.fails")
