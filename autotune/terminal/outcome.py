"""Terminal output of a study's result: the setting, its evidence, and how to use it."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.comparison.comparison_document import BothLibraries, ComparisonFigures, LibraryFigures
from autotune.measurement.result_checks import (
    MARK,
    UNCHECKED,
    ResultChecks,
    checks_words,
    shown_lines,
)
from autotune.notes import Note
from autotune.space import Setting
from autotune.study.library_sentences import switch_words
from autotune.study.screening_summary import screening_words
from autotune.study.search_result import (
    DecidingStep,
    Finalist,
    Rejections,
    Result,
    comparisons_words,
)
from autotune.terminal.command_line import command_line, option_words, this_command
from autotune.terminal.follow_up import FollowUp, print_follow_up
from autotune.terminal.render import note_line, print_hanging, print_line, print_table
from autotune.wording import (
    WHY_UNGUARDED,
    ParameterNames,
    interval,
    interval_or_range,
    key_parts,
    percent,
    verdict_words,
)

_WIDTH = 79


def print_result(result: Result, next_commands: Sequence[FollowUp] = ()) -> None:
    """Print a result, at most a screenful at 80 columns, with the commands that come next."""
    names = result.names
    print_line()
    print_line(result.headline, bold=True)
    default = result.default.get("median_s")
    print_line(
        f"{result.app} on {result.ranks} ranks, {result.library_title}, "
        f"cluster {result.cluster}; default {result.metric.words(_number(default))} "
        f"(median of {result.default.get('n')})"
    )
    if result.finalists:
        print_line()
        print_table(
            "",
            ["setting", ">in the proof", ">95 % interval", ">pairs", "verdict"],
            [_row(f, names, result.guard) for f in result.finalists],
        )
        _print_long(names, result)
    print_line()
    print_line(
        f"{result.trials} settings tried in {result.search_runs} search runs, then "
        f"{result.confirmation_runs} confirmation runs; {result.runs_rejected} rejected for "
        f"foreign load.  Search ended: {result.ended_by}."
    )
    _print_rejections(result.rejections, names)
    if result.fidelity is not None:
        print_line(screening_words(result.fidelity))
    if not result.guard:
        print_line(WHY_UNGUARDED)
    for words in result.evidence():
        print_line(names.within(words))
    _print_checks(result.checks, result.unchecked)
    _print_contradictions(result.contradictions, names)
    for note in result.warnings:
        print_line(note_line(note.code, names.within(note.words)))
    if result.status == "recommended":
        _print_setting(result, bool(next_commands))
    elif result.best is not None and result.status != "interrupted":
        print_line(
            f"best seen (not proven): {names.name(Setting(result.best['setting']).key)}, "
            f"{result.metric.words(result.best['median_s'])}, median of {result.best['n']}"
        )
        if result.params_file:
            print_line(
                f"parameter file of this setting, not proven: {result.params_file}", whole=True
            )
    if result.next_step is not None:
        _print_step(result.next_step, command=False)  # The command is among the next ones.
    if next_commands:
        print_line()
        print_follow_up(next_commands)
    show_command = command_line("show", result.study, *option_words(["--store"]))
    print_line(f"study {result.study}:  {show_command}", whole=True)


def print_comparison(a: str, b: str, figures: ComparisonFigures, command: bool = False) -> None:
    """Print the answer in one sentence, then the figures.

    ``a`` and ``b`` are keys of settings. ``command``: this command is a comparison, which can be
    repeated with other options.
    """
    libraries = figures.mpi if isinstance(figures, LibraryFigures) else None
    names = ParameterNames({a: "A", b: "B"} if libraries is None else _sides(a, b, libraries))
    print_line()
    words = f"B against A: {names.within(figures.words)}" if libraries is None else figures.words
    print_line(words, bold=True)
    has_guard = figures.guard
    if figures.outcome != "failed":
        verdict = verdict_words(figures.seen, figures.why, has_guard)
        if libraries is not None and verdict in ("better", "worse"):
            verdict = f"B is {verdict}"
        # "no gain of 2 % (a gain of 2 % is ruled out)" would say the same twice.
        why = "" if verdict.startswith("no gain") else f" ({figures.why})"
        print_line(f"{verdict}{why}")
    if not has_guard:
        print_line(WHY_UNGUARDED)
    title = {} if libraries is None else _titles(libraries)
    rows = [
        [
            name,
            *([title[name.lower()]] if title else []),
            " ".join(key_parts(key)),
            figures.metric.words(median),
        ]
        for name, key, median in (("A", a, figures.a_median_s), ("B", b, figures.b_median_s))
    ]
    columns = ["", *(["library"] if title else []), "setting", ">median"]
    print_table("", columns, rows)
    gain, first, second = figures.gain, figures.a_median_s, figures.b_median_s
    if gain and first and second and gain * (first - second) < 0:
        print_line(
            "the medians show the opposite: the machine's speed changed between the pairs; "
            "the gain is that of the pairs, whose two runs follow each other directly"
        )
    fresh = figures.fresh
    if fresh is not None:
        ends = f" ({interval(fresh['ci95'])})" if fresh["ci95"] else ""
        print_line(
            f"{fresh['pairs']} fresh pairs after it, each run after a run of the same side: "
            f"{percent(fresh['gain'])}{ends}"
        )
    print_line(f"{figures.runs} runs, {figures.runs_rejected} rejected for foreign load")
    if figures.round > 1:
        print_line(
            f"comparison number {figures.round} of these "
            f"{'settings' if libraries is None else 'libraries'}: each has its own error "
            "probability of 5 %"
        )
    if figures.comparisons > 1:
        print_line(comparisons_words(figures.comparisons))
    if figures.budget_ended_it:
        print_line("the budget was spent first; the same command with a larger --budget continues")
    if figures.next_step is not None:
        _print_step(figures.next_step, command)
    _print_rejections(figures.rejections, names)
    if figures.outcome != "failed":
        _print_checks(figures.checks, figures.unchecked)
    _print_contradictions(figures.contradictions, names)
    for note in figures.warnings if figures.outcome != "failed" else ():
        print_line(note_line(note.code, names.within(note.words)))


def _print_checks(checks: ResultChecks | None, reasons: Sequence[Note]) -> None:
    """Print what was checked of the results, in one line, and why the answer is unchecked."""
    if checks is not None:
        print_line(checks_words(checks))
    for note in reasons:
        if checks is None or note.code != UNCHECKED:
            print_line(f"{MARK}: {note.words}")


def _print_contradictions(notes: Sequence[Note], names: ParameterNames) -> None:
    """Print objections, with the lines of output that they are about."""
    for note in notes:
        print_line(f"[{note.code}] {names.within(note.words)}")
        for line in shown_lines(note):
            print_line(line[:_WIDTH])


def _titles(libraries: BothLibraries) -> dict[str, str]:
    # Few comparisons have two libraries; the modules of measuring are imported for those only.
    from autotune.comparison.comparison_outcome import library_titles

    return library_titles(libraries)


def _sides(a: str, b: str, libraries: BothLibraries) -> dict[str, str]:
    """The names of both sides by their keys in the run history, where B names its library."""
    from autotune.measurement.other_library import library_name
    from autotune.space.library_choice import MPI

    second = library_name(libraries["b"]["name"], libraries["b"]["version"])
    return {a: "A", Setting.parse(b).with_values({MPI: second}).key: "B"}


def _print_step(step: DecidingStep, command: bool) -> None:
    """Print what would decide an open question, with a command if this one can be repeated."""
    print_line(f"to decide it: {step['words']}")
    if command and step["options"]:
        print_line(f"  {this_command(step['options'])}", whole=True)


MOST_ROWS = 3
"""Number of settings whose rejections are printed; the JSON document has all."""


def _print_rejections(rows: list[Rejections], names: ParameterNames) -> None:
    if not rows:
        return
    rates = [
        f"{r['rejected']} of {r['runs']} of {names.name(r['setting'])}" for r in rows[:MOST_ROWS]
    ]
    more = f"; {len(rows) - MOST_ROWS} more in --json" if len(rows) > MOST_ROWS else ""
    print_line(f"rejected runs: {'; '.join(rates)}{more}")


def _print_long(names: ParameterNames, result: Result) -> None:
    """Print the settings that have a number as their name; the recommended one comes later."""
    answer = names.name(result.recommended.key) if result.status == "recommended" else ""
    for name, whole in names.whole.items():
        print_line(f"{name}: {'see Setting below' if name == answer else whole}")


def _print_setting(result: Result, has_commands: bool) -> None:
    """Print the recommended setting and its file; and how to start it, unless that is told."""
    print_line()
    print_line("Setting:", bold=True)
    for name, value in result.recommended.to_json().items():
        print_line(f"  {name} = {value}")
    if result.switch is not None:
        print_line("Another MPI library:", bold=True)
        for words in switch_words(result.switch):
            print_hanging("  ", words)
    if not has_commands:
        print_line("Start it like this:", bold=True)
        # The line is not wrapped, because it is made to be copied.
        print_line(f"  {result.start_line or result.mpirun}", whole=True)
    if result.input_folder:
        print_line("Input files with the values of this setting:", bold=True)
        print_line(f"  {result.input_folder}", whole=True)
    if result.params_file:
        print_line("Parameter file (a test run has shown that it takes effect):", bold=True)
        print_line(f"  {result.params_file}", whole=True)


def _row(finalist: Finalist, names: ParameterNames, has_guard: bool) -> list[str]:
    return [
        names.name(finalist.setting.key),
        percent(finalist.gain),
        interval_or_range(finalist.gain_ci, finalist.gain_range),
        str(finalist.blocks),
        verdict_words(finalist.verdict, finalist.words, has_guard),
    ]


def _number(value: float | int | None) -> float | None:
    return None if value is None else float(value)
