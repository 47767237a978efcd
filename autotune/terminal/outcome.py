"""Terminal output of a study's result: the setting, its evidence, and how to use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.notes import Note
from autotune.space import Setting
from autotune.study.checks import MARK, UNCHECKED, checks_words, shown_lines
from autotune.study.comparison_document import (
    BothLibraries,
    ComparisonFigures,
    LibraryFigures,
)
from autotune.study.library_switch import switch_words
from autotune.study.parts import DecidingStep, Rejections, ResultChecks
from autotune.study.result import Finalist, Result, comparisons_words
from autotune.study.screening_summary import screening_words
from autotune.terminal.command_line import command_line, option_words, this_command
from autotune.terminal.follow_up import FollowUp, print_follow_up
from autotune.terminal.render import console, hanging, note_line, table
from autotune.wording import (
    UNGUARDED,
    WHY_UNGUARDED,
    ParameterNames,
    interval,
    interval_or_range,
    key_parts,
    percent,
    seconds,
    verdict_words,
)

_WIDTH = 79


def print_result(result: Result, next_commands: Sequence[FollowUp] = ()) -> None:
    """Print a result, at most a screenful at 80 columns, with the commands that come next."""
    out = console()
    names = result.names
    out.print()
    out.print(result.headline, style="bold", markup=False)
    default = result.default.get("median_s")
    out.print(
        f"{result.app} on {result.ranks} ranks, {result.library_title}, "
        f"cluster {result.cluster}; default {result.metric.words(_number(default))} "
        f"(median of {result.default.get('n')})",
        markup=False,
    )
    if result.finalists:
        out.print()
        out.print(
            table(
                "",
                ["setting", ">in the proof", ">95 % interval", ">pairs", "verdict"],
                [_row(f, names, result.guard) for f in result.finalists],
            )
        )
        _print_long(names, result)
    out.print()
    out.print(
        f"{result.trials} settings tried in {result.search_runs} search runs, then "
        f"{result.confirmation_runs} confirmation runs; {result.runs_rejected} rejected for "
        f"foreign load.  Search ended: {result.ended_by}.",
        markup=False,
    )
    _print_rejections(result.rejections, names)
    if result.fidelity is not None:
        out.print(screening_words(result.fidelity), markup=False)
    if not result.guard:
        out.print(WHY_UNGUARDED, markup=False)
    for words in result.evidence():
        out.print(names.within(words), markup=False)
    _print_checks(result.checks, result.unchecked)
    _print_contradictions(result.contradictions, names)
    for note in result.warnings:
        out.print(note_line(note.code, names.within(note.words)), markup=False)
    if result.status == "recommended":
        _print_setting(result, bool(next_commands))
    elif result.best is not None and result.status != "interrupted":
        out.print(
            f"best seen (not proven): {names.name(Setting(result.best['setting']).key)}, "
            f"{result.metric.words(result.best['median_s'])}, median of {result.best['n']}",
            markup=False,
        )
        if result.params_file:
            out.print(
                f"parameter file of this setting, not proven: {result.params_file}",
                markup=False,
                soft_wrap=True,
            )
    if result.next_step is not None:
        _print_step(result.next_step, command=False)  # The command is among the next ones.
    if next_commands:
        out.print()
        print_follow_up(next_commands)
    show_command = command_line("show", result.study, *option_words(["--store"]))
    out.print(f"study {result.study}:  {show_command}", markup=False, soft_wrap=True)


def print_comparison(a: str, b: str, figures: ComparisonFigures, command: bool = False) -> None:
    """Print the answer in one sentence, then the figures.

    ``a`` and ``b`` are keys of settings. ``command``: this command is a comparison, which can be
    repeated with other options.
    """
    out = console()
    libraries = figures.mpi if isinstance(figures, LibraryFigures) else None
    names = ParameterNames({a: "A", b: "B"} if libraries is None else _sides(a, b, libraries))
    out.print()
    words = f"B against A: {names.within(figures.words)}" if libraries is None else figures.words
    out.print(words, style="bold", markup=False)
    has_guard = figures.guard
    if figures.outcome != "failed":
        verdict = verdict_words(figures.seen, figures.why, has_guard)
        if libraries is not None and verdict in ("better", "worse"):
            verdict = f"B is {verdict}"
        # "no gain of 2 % (a gain of 2 % is ruled out)" would say the same twice.
        why = "" if verdict.startswith("no gain") else f" ({figures.why})"
        out.print(f"{verdict}{why}", markup=False)
    if not has_guard:
        out.print(WHY_UNGUARDED, markup=False)
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
    out.print(table("", columns, rows))
    gain, first, second = figures.gain, figures.a_median_s, figures.b_median_s
    if gain and first and second and gain * (first - second) < 0:
        out.print(
            "the medians point the other way: the gain is that of the pairs, whose two "
            "runs follow each other directly; the machine's speed changed between the pairs",
            markup=False,
        )
    fresh = figures.fresh
    if fresh is not None:
        ends = f" ({interval(fresh['ci95'])})" if fresh["ci95"] else ""
        out.print(
            f"{fresh['pairs']} fresh pairs after it, each run behind one of its own side: "
            f"{percent(fresh['gain'])}{ends}",
            markup=False,
        )
    out.print(
        f"{figures.runs} runs, {figures.runs_rejected} rejected for foreign load", markup=False
    )
    if figures.round > 1:
        out.print(
            f"comparison number {figures.round} of these "
            f"{'settings' if libraries is None else 'libraries'}: each has an error "
            "probability of 5 % of its own",
            markup=False,
        )
    if figures.comparisons > 1:
        out.print(comparisons_words(figures.comparisons), markup=False)
    if figures.budget_ended_it:
        out.print(
            "the budget was spent first; the same command with a larger --budget continues",
            markup=False,
        )
    if figures.next_step is not None:
        _print_step(figures.next_step, command)
    _print_rejections(figures.rejections, names)
    if figures.outcome != "failed":
        _print_checks(figures.checks, figures.unchecked)
    _print_contradictions(figures.contradictions, names)
    for note in figures.warnings if figures.outcome != "failed" else ():
        out.print(note_line(note.code, names.within(note.words)), markup=False)


def _print_checks(checks: ResultChecks | None, reasons: Sequence[Note]) -> None:
    """Print what was checked of the results, in one line, and why the answer is unchecked."""
    if checks is not None:
        console().print(checks_words(checks), markup=False)
    for note in reasons:
        if checks is None or note.code != UNCHECKED:
            console().print(f"{MARK}: {note.words}", markup=False)


def _print_contradictions(notes: Sequence[Note], names: ParameterNames) -> None:
    """Print objections, with the lines of output that they are about."""
    for note in notes:
        console().print(f"[{note.code}] {names.within(note.words)}", markup=False)
        for line in shown_lines(note):
            console().print(line[:_WIDTH], markup=False)


def print_noise(data: Mapping[str, Any]) -> None:
    """Print the document of a ``NoiseReport``; raises LookupError or TypeError for others."""
    out = console()
    out.print(
        f"neighbouring runs differ by {data['spread'] * 100:.1f} %; one run takes "
        f"{seconds(data['run_wall_s'])} of wall time; {data['runs_rejected']} of "
        f"{data['runs'] + data['runs_rejected']} runs were rejected for foreign load",
        markup=False,
    )
    if not data["guard"]:
        out.print(f"{UNGUARDED}: part of this noise may come from other programs", markup=False)
    if data["resolution_s"]:
        out.print(
            f"the measured figure has a resolution of {seconds(data['resolution_s'])}", markup=False
        )
    rows = [
        [f"{r['gain'] * 100:.1f} %", str(r["blocks"]), str(r["runs"]), seconds(r["seconds"])]
        for r in data["resolvable"]
    ]
    title = "smallest detectable gain of one setting (with 80 % probability)"
    out.print(table(title, [">gain", ">pairs", ">runs", ">time"], rows))
    for note in map(Note.from_json, data["warnings"]):
        out.print(note_line(note.code, note.words), markup=False)


def _titles(libraries: BothLibraries) -> dict[str, str]:
    # Few comparisons have two libraries; the modules of measuring are imported for those only.
    from autotune.study.comparison import library_titles

    return library_titles(libraries)


def _sides(a: str, b: str, libraries: BothLibraries) -> dict[str, str]:
    """The names of both sides by their keys in the run history, where B names its library."""
    from autotune.space.library_choice import MPI
    from autotune.study.libraries import library_name

    second = library_name(libraries["b"]["name"], libraries["b"]["version"])
    return {a: "A", Setting.parse(b).with_values({MPI: second}).key: "B"}


def _print_step(step: DecidingStep, command: bool) -> None:
    """Print what would decide an open question, with a command if this one can be repeated."""
    out = console()
    out.print(f"to decide it: {step['words']}", markup=False)
    if command and step["options"]:
        out.print(f"  {this_command(step['options'])}", markup=False, soft_wrap=True)


MOST_ROWS = 3
"""Number of settings whose rejections are printed; the JSON document has all."""


def _print_rejections(rows: list[Rejections], names: ParameterNames) -> None:
    if not rows:
        return
    rates = [
        f"{r['rejected']} of {r['runs']} of {names.name(r['setting'])}" for r in rows[:MOST_ROWS]
    ]
    more = f"; {len(rows) - MOST_ROWS} more in --json" if len(rows) > MOST_ROWS else ""
    console().print(f"rejected runs: {'; '.join(rates)}{more}", markup=False)


def _print_long(names: ParameterNames, result: Result) -> None:
    """Print the settings that have a number as their name; the recommended one comes later."""
    answer = names.name(result.recommended.key) if result.status == "recommended" else ""
    for name, whole in names.whole.items():
        console().print(f"{name}: {'see Setting below' if name == answer else whole}", markup=False)


def _print_setting(result: Result, has_commands: bool) -> None:
    """Print the recommended setting and its file; and how to start it, unless that is told."""
    out = console()
    out.print()
    out.print("Setting:", style="bold")
    for name, value in result.recommended.to_json().items():
        out.print(f"  {name} = {value}", markup=False)
    if result.switch is not None:
        out.print("Another MPI library:", style="bold")
        for words in switch_words(result.switch):
            out.print(hanging("  ", words))
    if not has_commands:
        out.print("Start it like this:", style="bold")
        # The line is not wrapped, because it is made to be copied.
        out.print(f"  {result.mpirun}", markup=False, soft_wrap=True)
    if result.params_file:
        out.print("Parameter file (a test run has shown that it takes effect):", style="bold")
        out.print(f"  {result.params_file}", markup=False, soft_wrap=True)


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
