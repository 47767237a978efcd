"""Figures of merit: what the output of a program says of its speed and of its result.

A known program is recognised by a line of its output (:mod:`autotune.config.figures`).  In any
other output the numbers that look like a time or a rate are ranked by the words around them.

The last part has notes on the figure of a run: several of them, an unusual one, or one that nobody
asked for.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import PurePath
from typing import Any

from autotune.config.app import App
from autotune.config.figures import ProgramFigure, ProgramFigures, known_programs, plain_words
from autotune.notes import Note
from autotune.targets.rows import ProposedFigure
from autotune.wording import Metric, seconds
from runner.figure.metric import select_figure
from runner.figure.number import CutNumber, WholeNumber, number_at
from runner.figure.unit import (
    CLOCK,
    LABEL,
    Unit,
    parse_unit,
    unit_around,
    unit_in_header,
    unit_of_key,
)
from runner.supervise import PatternMatch
from runner.types import MetricChoice, RunRecord

MOST = 3
STANDARD_ERROR = "standard error"
_DIGIT = re.compile(r"(?<![\w.])[+-]?\.?\d|(?<=[A-Za-z][=:])\.?\d")
_LABEL, _ROW = 48, 160
_TABLE_LINES = 200
"""Only in so many lines at the end the header of a table is looked for."""
CERTAIN = 3
"""From this score on, the only figure of an output, or that of a total, is proposed."""
_TOTAL = 2
_JSON = 5
_VERDICTS = ("verified", "valid", "correct", "passed", "success", "ok")
"""Keys of a JSON line whose value true says that the result is right."""


@dataclass(frozen=True)
class Figure:
    """A line of the output, without blanks at its ends, and the pattern that reads it.

    ``rate``: the figure is a rate, of which a larger one is better.  ``value``: in seconds, or
    without the prefix of its ``unit``.  ``choice``: which of several counts; None: the default.
    """

    line: str
    metric: str
    rate: bool = False
    choice: MetricChoice | None = None
    value: float = 0.0
    unit: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """The words of the options that read the figure."""
        option = "--metric-rate" if self.rate else "--metric"
        words = (option, self.metric)
        return words if self.choice is None else (*words, "--metric-choice", self.choice)

    @property
    def words(self) -> str:
        """The options, quoted for a shell: ``--metric PATTERN``."""
        return shlex.join(self.options)

    @property
    def value_text(self) -> str:
        """The value with its unit."""
        if self.rate:
            return Metric("rate", self.unit).words(1 / self.value)
        return Metric("time", "s").words(self.value)


@dataclass(frozen=True)
class FigureProposal:
    """The figure of merit of an output, and how the output judges the result.

    ``program`` is the name of a known program, or "".  ``verify`` and ``absent`` are patterns for a
    right result; ``right`` is the verdict of this output, None without one.  ``caution`` is what a
    user should know first.  ``source``: where else than on standard output the figure is printed.
    """

    program: str
    figure: Figure
    verify: str | None = None
    absent: str | None = None
    right: bool | None = None
    caution: str = ""
    source: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """The words of all options."""
        verify = () if self.verify is None else ("--verify", self.verify)
        absent = () if self.absent is None else ("--verify-absent", self.absent)
        return (*self.figure.options, *verify, *absent)

    def to_json(self) -> ProposedFigure:
        """The published form."""
        return {
            "program": self.program,
            "line": self.figure.line,
            "value": self.figure.value,
            "rate": self.figure.rate,
            "unit": self.figure.unit,
            "options": list(self.options),
            "right": self.right,
        }


def proposal_of(record: RunRecord, program: Sequence[str] = ()) -> FigureProposal | None:
    """The figure of merit that a run printed, or None if none is certain.

    By the name of ``program`` the figure is known where standard error has lost its beginning.
    """
    last = record.extra if isinstance(record.extra, Mapping) else None
    early = () if record.printed is None else record.printed.lines
    from_stdout = proposal(record.stdout_tail, last, early)
    if from_stdout is not None:
        return from_stdout
    program_file, lines = file_of_figures(program), record.stderr_tail.splitlines()
    other = None if program_file is None else known_figure(program_file, lines)
    other = other or proposal(record.stderr_tail)
    return None if other is None else replace(other, source=STANDARD_ERROR)


def proposal(
    stdout: str, last_json: Mapping[str, Any] | None = None, early: Sequence[str] = ()
) -> FigureProposal | None:
    """The figure of merit of an output, or None if none is certain.

    ``last_json`` is the program's last line that is a JSON object, and ``early`` are lines from
    before ``stdout``, which may be the end of an output.
    """
    lines = stdout.splitlines()
    for program_file in known_programs():
        if not _has(program_file.output, (*early, *lines)):
            continue
        figure = known_figure(program_file, lines, early)
        if figure is not None or not program_file.general:
            return figure  # None: its figure is elsewhere, or this is not the whole output.
    return _plain_proposal(stdout, last_json)


def known_figure(
    program_file: ProgramFigures, lines: Sequence[str], early: Sequence[str] = ()
) -> FigureProposal | None:
    """The first figure of a known program that its output has; None if it has none."""
    for entry in program_file.figure:
        figure = _read(entry, lines) or _read(entry, early)
        if figure is not None:
            verdict = _verdict(program_file.right, program_file.wrong, (*early, *lines))
            # An output that says nothing may be one in which it never does.
            right = None if verdict is None else program_file.right
            return FigureProposal(
                program_file.program, figure, right, program_file.wrong, verdict, entry.caution
            )
    return None


def file_of_figures(program: Sequence[str]) -> ProgramFigures | None:
    """The known program of a command line that prints its figures to a file or standard error."""
    if not program:
        return None
    name = PurePath(program[0]).name
    for program_file in known_programs():
        if any(fnmatch(name, command) for command in program_file.commands):
            return program_file
    return None


def _has(pattern: str | None, lines: Iterable[str]) -> bool:
    return pattern is not None and any(re.search(pattern, line) for line in lines)


def _verdict(right: str | None, wrong: str | None, lines: Sequence[str]) -> bool | None:
    if _has(wrong, lines):
        return False
    return True if _has(right, lines) else None


def _read(entry: ProgramFigure, lines: Iterable[str]) -> Figure | None:
    """The figure of a known program in these lines; None if it is not there, or not positive."""
    total: PatternMatch | None = None
    for line in lines:
        match = re.search(entry.pattern, line)
        if match is not None:
            one = PatternMatch.of(match)
            total = one if total is None else total.and_then(one)
    if total is None:
        return None
    rate = entry.metric_rate is not None
    value = select_figure(entry.choice or ("min" if rate else "max"), total)
    if value is None or value <= 0:
        return None
    unit = total.unit if total.unit.stated else parse_unit(entry.unit)
    if not total.unit.stated:
        value = unit.base_value(value)
    return Figure(
        total.line.strip()[:200], entry.pattern, rate, entry.choice, value, unit.text or entry.unit
    )


def _plain_proposal(stdout: str, last_json: Mapping[str, Any] | None) -> FigureProposal | None:
    ranking = _rank(stdout, last_json)
    if not ranking:
        return None
    (score, figure), others = ranking[0], ranking[1:]
    alike = [other for other, one in others if one.rate == figure.rate]
    words, lines = plain_words(), stdout.splitlines()
    rivals = [other for other in alike if other >= score]
    if rivals or score < CERTAIN or (others and not words["total"].search(figure.line)):
        return None
    verdicts = [key for key in last_json or {} if key.lower() in _VERDICTS]
    for key in verdicts:
        value = (last_json or {})[key]
        if isinstance(value, bool):
            return FigureProposal("", figure, f"json:{key}", None, value)
    wrong = any(words["wrong"].search(line) for line in lines)
    line = next((line for line in reversed(lines) if words["right"].search(line)), None)
    if wrong or line is None:
        return FigureProposal("", figure, right=False if wrong else None)
    match = words["right"].search(line)
    assert match is not None
    return FigureProposal("", figure, _words(match[0]), None, right=True)


def figures(stdout: str, last_json: Mapping[str, Any] | None = None) -> list[Figure]:
    """At most three figures, the most likely first: times and, if there is none, rates.

    ``last_json`` is the program's last line that is a JSON object.  Every pattern reads a positive
    number in its line.
    """
    certain = proposal(stdout, last_json)
    ranking = [figure for _, figure in _rank(stdout, last_json)]
    ranking = [figure for figure in ranking if figure.rate == ranking[0].rate]
    if certain is not None:
        ranking = [certain.figure, *(f for f in ranking if f.metric != certain.figure.metric)]
    return ranking[:MOST]


def _rank(stdout: str, last_json: Mapping[str, Any] | None) -> list[tuple[int, Figure]]:
    """Every time of an output with its score, then every rate; the best first."""
    scores: dict[str, tuple[int, int, Figure]] = {}
    for name, value in (last_json or {}).items():
        if isinstance(value, bool) or not isinstance(value, float | int) or value <= 0:
            continue
        unit = unit_of_key(name)
        if unit.kind:
            figure = Figure(
                f"{name}: {value}", f"json:{name}", unit.kind == "rate", None,
                unit.base_value(value), unit.text if unit.stated else "",
            )  # fmt: skip
            scores[figure.metric] = (_JSON, len(scores), figure)
    lines, none = stdout.splitlines(), plain_words()["none"]
    for at, line in enumerate(lines):
        if line.lstrip().startswith("{") or none.search(line[:1000]):
            continue
        for number in _numbers(line[:1000]):
            rows = lines if at >= len(lines) - _TABLE_LINES else []
            unit, score = _score(line, number, rows, at)
            pattern = _pattern(line, number) if score > 0 else None
            if pattern is not None:
                value = number.value if number.clock else unit.base_value(number.value)
                # If one pattern reads several lines, the last line is shown.
                figure = Figure(
                    line.strip()[:200], pattern, unit.kind == "rate", None, value,
                    unit.text if unit.stated else "",
                )  # fmt: skip
                scores[pattern] = (score, at, figure)
    ranking = sorted(scores.values(), key=lambda item: (item[2].rate, -item[0], -item[1]))
    return [(score, figure) for score, _, figure in ranking]


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
    unit = CLOCK if number.clock else unit_around(before[-LABEL:], behind[:LABEL])
    if rows and not unit.kind and not unit.stated:
        head = unit_in_header(rows, row, number.start)
        if head.kind:
            return head, 2
    exact = any(c in line[number.start : number.end] for c in ".eEdD:")
    words = plain_words()
    label = before[-_LABEL:]
    weight = _TOTAL * bool(words["total"].search(label)) - bool(words["part"].search(label))
    if unit.kind == "rate":
        return unit, max(1 + exact + weight, 1)
    if unit.stated and unit.kind != "time":
        return unit, 0
    if not (unit.stated or exact) and re.match(r"[ \t]+[A-Za-z]", behind):
        return unit, 0  # A count of something.
    time = words["time"].search(label) is not None
    if not (time or unit.stated or (exact and weight > 0)):
        return unit, 0
    return unit, max(2 * time + 2 * unit.stated + exact + weight - ("/" in unit.text), 1)


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
        pattern = f"^ *{_escape(label.strip())} +{GROUP}" if len(before.split()) == 1 else ""
    elif label.strip():
        pattern = _words(label) + GROUP
    else:
        unit = re.match(r"\s*\w+", behind)
        if unit is None:
            return None
        pattern = GROUP + _words(unit[0])
    match = re.search(pattern, line) if pattern else None
    if match is None:
        return None
    reading = PatternMatch.of(match)
    return pattern if reading.last is not None and match.start(1) == number.start else None


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
    return "[0-9.eEdD+-]+" if text[0].isdigit() else _escape(text)


def _escape(text: str) -> str:
    """Text as ``re.escape``, but only special characters are escaped."""
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)


def figure_notes(record: RunRecord, app: App) -> list[Note]:
    """What a user should know of the figure of a valid run; ``app`` says which one counts."""
    if record.metric_s is None:
        return []
    several = (record.metric_count or 0) > 1 and app.metric_choice is None
    notes = [several_note(record.metric_count or 0, record.metric_rate)] if several else []
    unusual = too_long_note(record, app.metric_choice) or too_short_note(record)
    return notes if unusual is None else [*notes, unusual]


def output_notes(
    record: RunRecord, proposal: FigureProposal | None, program: Sequence[str]
) -> list[Note]:
    """What the output of a valid run says: a figure that does not count yet, a wrong result.

    ``proposal`` is that of the output, and ``program`` the command line.
    """
    note = None if record.metric_s is not None else proposal_note(proposal, record, program)
    notes = [] if note is None else [note]
    if proposal is not None and proposal.right is False:
        notes.append(wrong_note(proposal))
    return notes


def proposal_note(
    proposal: FigureProposal | None, record: RunRecord, program: Sequence[str] = ()
) -> Note | None:
    """The proposal of the figure that a program prints, while the wall time counts; else None."""
    if proposal is None:
        known = file_of_figures(program)
        if known is None or record.stdout_tail.strip():
            return None
        place = known.file or known.stream
        command = (
            f"{shlex.join(program)} && cat {known.file}"
            if known.file
            else (f"{shlex.join(program)} 2>&1")
        )
        return Note(
            "metric.elsewhere",
            f"{known.program} prints its figure to {place}, where --metric does not look; with "
            f"this program it is on standard output:\n  -- sh -c {shlex.quote(command)}",
            {"program": known.program, "place": place},
        )
    who = proposal.program or "the program"
    if proposal.source:
        words = (
            f"{who} prints its own figure on {proposal.source}, where --metric does not look; "
            "--metric auto joins that with standard output, as does this program:\n  -- sh -c "
            f"{shlex.quote(f'{shlex.join(program)} 2>&1')}"
        )
        return Note("metric.elsewhere", words, {"program": who, "place": proposal.source})
    caution = f".\n{proposal.caution}" if proposal.caution else ""
    words = (
        f"the wall time counts. {who[0].upper()}{who[1:]} prints its own figure, "
        f"{proposal.figure.value_text}; --metric auto takes it, as do\n  "
        f"{shlex.join(proposal.options)}{caution}"
    )
    return Note("metric.proposed", words, proposal.to_json())


def wrong_note(proposal: FigureProposal) -> Note:
    """The note that a program says of its own result that it is wrong."""
    absent = (
        ""
        if proposal.absent is None
        else (f"; {shlex.join(('--verify-absent', proposal.absent))} makes such a run invalid")
    )
    who = proposal.program or "the program"
    return Note(
        "output.says_wrong",
        f"{who} says that the result of this run is not right{absent}",
        {"program": proposal.program, "pattern": proposal.absent},
    )


def several_note(count: int, rate: bool) -> Note:
    """The message for a run with several figures (``count`` of them) if nobody chose one."""
    option, choice = ("--metric-rate", "smallest") if rate else ("--metric", "largest")
    return Note(
        "metric.several",
        f"{option} matched {count} times in one run (every rank or every step prints "
        f"it); the {choice} value counts, that of the slowest; --metric-choice last, first, sum, "
        "mean, min or max selects another",
        {"matches": count, "choice": choice},
    )


def too_long_note(record: RunRecord, choice: MetricChoice | None) -> Note | None:
    """The message for a figure longer than its run, which is no time in seconds; None for others.

    A sum may be one over ranks.
    """
    figure, wall = record.metric_s, record.wall_s
    most = 1.5 * wall * ((record.world_size or 1) if choice == "sum" else 1)
    no_time = record.metric_rate or bool(record.metric_unit)
    if figure is None or no_time or figure <= most:
        return None
    return Note(
        "metric.no_seconds",
        f"--metric found {figure:g} in a run of {seconds(wall)}. It is read as "
        "seconds, and smaller is better. If it is in ms or us, gains are right and "
        "times are not; a rate (Gflop/s) needs --metric-rate",
        {"figure": figure, "wall_s": wall},
    )


SHORTEST_S = 1e-3
"""A figure below this time in seconds says more of clocks and wake-ups than of parameters."""


def too_short_note(record: RunRecord) -> Note | None:
    """The message for a figure that is a very short time; None for others."""
    figure = record.metric_s
    if figure is None or record.metric_rate or record.metric_unit or figure >= SHORTEST_S:
        return None
    return Note(
        "metric.very_short",
        f"the figure of this run is {seconds(figure)}: clocks and wake-ups of processes count as "
        "much as parameters in it. Let the program do more (steps, repetitions, a larger input)",
        {"figure_s": figure, "shortest_s": SHORTEST_S},
    )
