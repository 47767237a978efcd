"""The check of results without the user's help: the outputs of two settings are compared.

A line that is the same in all runs of the reference, and in no run of the setting, is a sign that
the setting changes the results. docs/explanation/measuring.md says what is equal, which lines may
differ, and what is not seen.

:func:`result_checks` says what was checked of the results behind an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from autotune.config.app import App
from autotune.measurement.printed_lines import LineIndex, PrintedLine
from autotune.measurement.result_checks import DifferingPair, OutputFigures, ResultChecks
from autotune.measurement.run_history import RunHistory
from autotune.notes import Note
from autotune.space import DEFAULT, Setting
from autotune.wording import count, whole_number
from runner.types import RunRecord

LEAST_RUNS = 3
"""Fewer runs of a side show no lines that are the same in all of its runs."""
MOST_LINES = 5
"""Largest number of lines that are shown."""
_LENGTH = 160
"""Characters of a line that are shown."""
_SMALL = 16
"""Integers below this are frequent in output: the value of a parameter alone explains no line."""
# Where ranks are, what carries their messages, and how fast the clock and the messages are: a
# program that adapts its number of calls to them prints that number.
_OF_LAUNCH = re.compile(
    r"(?<![a-z])(?:bind|binding|bindings|bound|affinity|cpuset|numa|hwthreads?|pid|pids|hostname"
    r"|mca|pml|btl|mtl|ompi|mpich|mvapich|libfabric|ucx"
    r"|wtick|wtime|(?:ping|pong|ping[\s-]?pong)s?)(?![a-z])",
    re.IGNORECASE,
)
_LAYOUT = re.compile(
    r"(?<![a-z])(?:mpi|omp|openmp|ranks?|process(?:es|ors?)?|procs?|npes?|threads?|workers?|cores?"
    r"|cpus?|nodes?|hosts?|sockets?|tasks?|grids?|decompos\w*|domains?|partition\w*|chunks?|tiles?"
    r"|blocks?|layout|variant|model)(?![a-z])",
    re.IGNORECASE,
)
_RESOURCES = ("ranks", "processes", "threads", "workers")
_WORD = re.compile(r"[^\s=:,;()\[\]\"']+")


@dataclass(frozen=True)
class DifferingLine:
    """A line of all runs of the reference, and the most similar one of the setting ("": none)."""

    reference: str
    setting: str

    @property
    def row(self) -> DifferingPair:
        """The part of a document."""
        return DifferingPair(reference=self.reference[:_LENGTH], setting=self.setting[:_LENGTH])


@dataclass(frozen=True)
class OutputComparison:
    """The lines of the reference that are the same in all its runs, against those of a setting.

    ``lines`` counts them. ``differing`` are in no run of the setting, though nothing explains it;
    ``layout_lines`` neither, but a setting with other resources may change them.
    ``is_conclusive``: both sides have enough runs, and their output is known.
    """

    reference_runs: int
    setting_runs: int
    lines: int = 0
    differing: tuple[DifferingLine, ...] = ()
    layout_lines: tuple[DifferingLine, ...] = ()

    @property
    def is_conclusive(self) -> bool:
        return min(self.reference_runs, self.setting_runs) >= LEAST_RUNS

    @property
    def figures(self) -> OutputFigures:
        """The part of a document, with some of the lines."""
        return OutputFigures(
            compared=self.is_conclusive,
            lines=self.lines,
            differing=len(self.differing),
            expected=len(self.layout_lines),
            runs=[self.reference_runs, self.setting_runs],
            shown=[line.row for line in (*self.differing, *self.layout_lines)[:MOST_LINES]],
        )


@dataclass(frozen=True)
class _Launches:
    """What the launches of both sides differ in: values and names, and the layout."""

    names: frozenset[str]
    values: frozenset[str]
    libraries: tuple[str, ...]
    other_layout: bool

    @classmethod
    def of(
        cls, one: RunRecord, other: RunRecord, reference: Setting, setting: Setting
    ) -> _Launches:
        difference = {
            name: (reference.get(name), setting.get(name))
            for name in {*reference, *setting}
            if reference.get(name) != setting.get(name)
        }
        values = {str(v).lower() for pair in difference.values() for v in pair if v is not None}
        resources = any(name in _RESOURCES for name in difference)
        other_layout = resources or one.world_size != other.world_size
        if other_layout:
            values |= {str(side.world_size) for side in (one, other)}
        both = {(side.mpi_name, side.mpi_version) for side in (one, other)}
        libraries = {text.lower() for pair in both for text in pair if text and len(both) > 1}
        return cls(
            frozenset(name.lower() for name in difference),
            frozenset(values),
            tuple(libraries),
            other_layout,
        )

    def explain(self, line: PrintedLine, others: Iterable[PrintedLine]) -> bool:
        """Whether a line shows the launch itself, so that it has to differ."""
        text = line.text.lower()
        if _OF_LAUNCH.search(text) or any(library in text for library in self.libraries):
            return True
        if self.libraries and re.search(r"(?<![a-z])mpi(?![a-z])|librar", text):
            return True
        plain = text.replace("-", "_").replace(" ", "_")
        if any(name in plain for name in self.names if len(name) > 3):
            return True
        if self.other_layout and _LAYOUT.search(text):
            return True
        return any(self._shows_value(line, other) for other in others)

    def _shows_value(self, line: PrintedLine, other: PrintedLine) -> bool:
        """Whether ``other`` is the line with a value of the setting in it."""
        one, two = _WORD.findall(line.text.lower()), _WORD.findall(other.text.lower())
        pairs = [(a, b) for a, b in zip(one, two, strict=False) if a != b]
        if len(one) != len(two) or not pairs or not all(b in self.values for _, b in pairs):
            return False
        small = any(whole_number(b, _SMALL - 1) is not None for _, b in pairs)
        parts = {part for name in self.names for part in name.split("_") if len(part) > 3}
        return not small or bool(_LAYOUT.search(line.text)) or bool(parts & set(one))


def compare_outputs(
    reference_runs: Sequence[RunRecord],
    setting_runs: Sequence[RunRecord],
    setting: Setting = DEFAULT,
    reference: Setting = DEFAULT,
) -> OutputComparison:
    """Compare what valid runs of two settings printed; runs whose output is not known do not count.

    The settings tell which lines may differ, because they show the launch itself.
    """
    reference_outputs = [run for run in reference_runs if run.valid and run.printed is not None]
    setting_outputs = [run for run in setting_runs if run.valid and run.printed is not None]
    comparison = OutputComparison(len(reference_outputs), len(setting_outputs))
    if not comparison.is_conclusive:
        return comparison
    before, after = (
        [LineIndex(run) for run in reference_outputs],
        [LineIndex(run) for run in setting_outputs],
    )
    unsteady = _unsteady(before)
    stable = _stable(before)
    launches = _Launches.of(reference_outputs[0], setting_outputs[0], reference, setting)
    differing: list[DifferingLine] = []
    layout_lines: list[DifferingLine] = []
    new = [line for line in _stable(after) if not any(index.holds(line) for index in before)]
    for line in stable:
        columns = unsteady.get(line.words, frozenset())
        if not _missing(line, before, after, columns):
            continue
        if line.coarse and not any(index.alike(line) for index in after):
            continue
        close = [other for other in new if _alike(line, other)]
        if launches.explain(line, close):
            continue
        differing_line = DifferingLine(line.text, close[0].text if close else "")
        soft = launches.other_layout and bool(line.numbers)
        (layout_lines if soft else differing).append(differing_line)
    differing += _differing_rests(before, after)
    return OutputComparison(
        len(reference_outputs),
        len(setting_outputs),
        len(stable),
        tuple(differing),
        tuple(layout_lines),
    )


def _stable(runs: Sequence[LineIndex]) -> list[PrintedLine]:
    """The lines of the first run that all the others have."""
    lines = runs[0].lines
    for index in runs[1:]:
        lines = [line for line in lines if index.holds(line)]
    return lines


def _unsteady(runs: Sequence[LineIndex]) -> dict[str, frozenset[int]]:
    """The places of numbers that change from run to run, by the words of their lines.

    A table has one figure of time in each row: where it changes in one row, it says nothing of the
    results in the others.
    """
    columns: dict[str, set[int]] = {}
    for one, other in pairwise(runs):
        for words, place in one.changes(other):
            columns.setdefault(words, set()).add(place)
    return {words: frozenset(places) for words, places in columns.items()}


def _missing(
    line: PrintedLine,
    before: Sequence[LineIndex],
    after: Sequence[LineIndex],
    unsteady: frozenset[int],
) -> bool:
    """Whether a line of the reference is certainly in none of the setting's outputs.

    ``unsteady``: places of its numbers that do not count.
    """
    if any(index.holds(line, unsteady) for index in after):
        return False
    if all(index.whole(line) for index in after):
        return True
    # Not all lines of the kind are known, so only one that is there with other numbers counts.
    return all(index.is_unique(line) for index in (*before, *after))


def _alike(line: PrintedLine, other: PrintedLine) -> bool:
    """Whether two lines could be the same one with other results."""
    if line.words == other.words:
        return True
    one, two = _WORD.findall(line.words), _WORD.findall(other.words)
    same = sum(a == b for a, b in zip(one, two, strict=False))
    return len(one) == len(two) and 2 * same >= len(one)


def _differing_rests(
    before: Sequence[LineIndex], after: Sequence[LineIndex]
) -> list[DifferingLine]:
    """Kinds of lines, too many to be kept, whose sum differs: one line stands for each."""
    lines = []
    for name, total in before[0].long.items():
        example = next((line for line in before[0].lines if line.shape == name), None)
        others = [index.long.get(name, "") for index in after]
        same = all(index.long.get(name) == total for index in before)
        if not total or not same or example is None or not example.exact:
            continue
        if all(others) and total not in others:
            words = f"further lines like: {example.text}"
            lines.append(DifferingLine(words, words))
    return lines


def runs_of(history: RunHistory, setting: Setting) -> list[RunRecord]:
    """The valid runs of a setting in a study that count."""
    key = setting.key
    return [e.record for e in history.entries if e.key == key and e.counts and e.record.valid]


def output_comparison(
    history: RunHistory, setting: Setting, reference: Setting = DEFAULT
) -> OutputComparison:
    """The outputs of all runs of two settings of one study, compared."""
    return compare_outputs(
        runs_of(history, reference), runs_of(history, setting), setting, reference
    )


def output_note(
    comparison: OutputComparison, has_verification: bool, default: bool = True
) -> Note | None:
    """What to say of lines that differ; None if there are none.

    ``has_verification``: each run of the setting verified its result. ``default``: the reference
    is the default.
    """
    lines = (*comparison.differing, *comparison.layout_lines)
    if not lines:
        return None
    other = "the default" if default else "the other setting"
    words = (
        f"{count(len(lines), 'line')} of the output, the same in all "
        f"{comparison.reference_runs} runs "
        f"of {other}, {'is' if len(lines) == 1 else 'are'} in none of its "
        f"{comparison.setting_runs} runs"
    )
    first = lines[0].row
    instead = first["setting"] or "no such line"
    words += f": {first['reference'].strip()!r} became {instead.strip()!r}"
    if has_verification:
        words += "; but the results were verified"
    elif not comparison.differing:
        words += "; other ranks or threads may be the reason"
    why = "verified" if has_verification else "" if comparison.differing else "layout"
    return Note(
        "result.output_differs",
        words,
        {**comparison.figures, "explained_by": why},
    )


def output_difference(
    history: RunHistory, setting: Setting, reference: Setting
) -> tuple[Note, bool] | None:
    """What to say of a setting that changes the output, and whether that stops it.

    It does not where each of its runs verified its result, or where other resources explain it.
    Nothing stops the default: whatever it prints is right.
    """
    comparison = output_comparison(history, setting, reference)
    runs = runs_of(history, setting)
    has_verification = bool(runs) and all(run.verified is True for run in runs)
    note = output_note(comparison, has_verification, reference == DEFAULT)
    stops = bool(comparison.differing) and not has_verification and setting != DEFAULT
    return None if note is None else (note, stops)


def verification(app: App) -> Literal["application", "pattern", "json"] | None:
    """Who verifies the results: "application", or the user by a "pattern" or a "json" key."""
    if app.verify is None:
        return None
    if not app.literal:
        return "application"
    return "json" if app.verify.startswith("json:") else "pattern"


def result_checks(
    app: App, history: RunHistory, setting: Setting, reference: Setting = DEFAULT
) -> ResultChecks:
    """What was checked of the runs of a setting and its reference."""
    runs = [r for one in dict.fromkeys((reference, setting)) for r in runs_of(history, one)]
    other = setting != reference
    return ResultChecks(
        verified=verification(app),
        runs=len(runs),
        verified_runs=sum(run.verified is True for run in runs),
        output=output_comparison(history, setting, reference).figures if other else None,
    )
