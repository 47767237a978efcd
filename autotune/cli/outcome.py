"""The end of a study on the terminal: what was found, how sure it is, and what to do with it."""

from __future__ import annotations

from typing import Any

from autotune.cli.given import this_command
from autotune.cli.render import console, table
from autotune.study.compare import ComparisonOutcome, ComparisonRequest
from autotune.study.result import Finalist, Result
from autotune.words import (
    FEW,
    HEADLINES,
    WHY_UNGUARDED,
    interval_or_range,
    percent,
    seconds,
    short_setting,
    verdict,
)


def print_result(result: Result, command: bool = False) -> None:
    """Print at most a screenful at 80 columns.  ``command``: it is that of a search, which can be
    said again."""
    out = console()
    out.print()
    out.print(HEADLINES[result.status], style="bold", markup=False)
    default = result.default.get("median_s")
    out.print(
        f"{result.app} on {result.ranks} ranks, {result.mpi['name']} {result.mpi['version']}, "
        f"cluster {result.cluster}; default {seconds(_number(default))} "
        f"(median of {result.default.get('n')})",
        markup=False,
    )
    if result.finalists:
        out.print()
        out.print(
            table(
                "",
                ["setting", ">gain", ">95 % interval", ">pairs", "verdict"],
                [_row(f, result.guard) for f in result.finalists],
            )
        )
    out.print()
    out.print(
        f"{result.trials} settings tried in {result.search_runs} search runs, then "
        f"{result.confirmation_runs} confirmation runs; {result.runs_rejected} rejected for "
        f"foreign load.  Search ended: {result.ended_by}.",
        markup=False,
    )
    _print_rejections(result.rejections)
    if not result.guard:
        out.print(WHY_UNGUARDED, markup=False)
    for words in result.evidence():
        out.print(words, markup=False)
    for warning in result.warnings:
        out.print(f"note: {warning}", markup=False)
    if result.status == "recommended":
        _print_use(result)
    elif result.best is not None and result.status != "interrupted":
        out.print(
            f"best seen (not proven): {short_setting(result.best['setting'])}, "
            f"{seconds(result.best['median_s'])}, median of {result.best['n']}",
            markup=False,
        )
        if result.params_file:
            out.print(
                f"its parameter file, not proven: {result.params_file}",
                markup=False,
                soft_wrap=True,
            )
    if result.next_step is not None:
        _print_step(result.next_step, command)
    out.print(f"study {result.study}:  autotune show {result.study}", markup=False)


def print_comparison(
    request: ComparisonRequest, outcome: ComparisonOutcome, command: bool = False
) -> None:
    """The answer in one sentence, then the figures."""
    out = console()
    out.print()
    out.print(f"B against A: {outcome.words}", style="bold", markup=False)
    said = outcome.decision
    out.print(f"{verdict(said.outcome, said.why, outcome.guarded)} ({said.why})", markup=False)
    if not outcome.guarded:
        out.print(WHY_UNGUARDED, markup=False)
    data = outcome.to_json()
    rows = [
        ["A", request.first.key.replace(",", " "), seconds(data["a_median_s"])],
        ["B", request.second.key.replace(",", " "), seconds(data["b_median_s"])],
    ]
    out.print(table("", ["", "setting", ">median"], rows))
    out.print(f"{outcome.runs} runs, {outcome.rejected} rejected for foreign load", markup=False)
    if outcome.round > 1:
        out.print(
            f"measured anew for the {outcome.round - 1}. time: each time is a question of its own, "
            "with 5 % of error of its own",
            markup=False,
        )
    if outcome.cut_short:
        out.print("the budget ended it; the same command with a larger one goes on", markup=False)
    if outcome.next_step is not None:
        _print_step(outcome.next_step.to_json(), command)
    _print_rejections(outcome.rejections)
    for warning in outcome.warnings:
        out.print(f"note: {warning}", markup=False)


def _print_step(step: dict[str, Any], command: bool) -> None:
    """What would decide it, and the command for that where this one is its like."""
    out = console()
    out.print(f"to decide it: {step['words']}", markup=False)
    if command and step["options"]:
        out.print(f"  {this_command(step['options'])}", markup=False, soft_wrap=True)


SHOWN = 3
"""Settings whose rejections are spelled out; the JSON has all."""


def _print_rejections(rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    shown = [f"{r['rejected']} of {r['runs']} of {_named(r['setting'])}" for r in rows[:SHOWN]]
    more = f"; {len(rows) - SHOWN} more in --json" if len(rows) > SHOWN else ""
    console().print(f"rejected runs: {'; '.join(shown)}{more}", markup=False)


def _named(key: str) -> str:
    """A setting's key, or how many parameters it has where that is shorter."""
    names = key.count(",") + 1
    return f"a setting of {names} parameters" if names > FEW else key


def _print_use(result: Result) -> None:
    out = console()
    out.print()
    out.print("Setting:", style="bold")
    for name, value in result.recommended.to_json().items():
        out.print(f"  {name} = {value}", markup=False)
    out.print("Start it so:", style="bold")
    # One line whatever its length: it is made to be copied.
    out.print(f"  {result.mpirun}", markup=False, soft_wrap=True)
    if result.params_file:
        out.print("Parameter file, seen to take effect:", style="bold")
        out.print(f"  mpirun --tune {result.params_file} ...", markup=False, soft_wrap=True)


def _row(finalist: Finalist, guarded: bool) -> list[str]:
    return [
        short_setting(finalist.setting.to_json()),
        percent(finalist.gain),
        interval_or_range((finalist.lo, finalist.hi), finalist.seen),
        str(finalist.blocks),
        verdict(finalist.verdict, finalist.words, guarded),
    ]


def _number(value: float | int | None) -> float | None:
    return None if value is None else float(value)
