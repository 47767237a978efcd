"""Terminal output of one parameter: one screen at 80 columns."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from autotune.terminal.render import print_hanging, print_line

if TYPE_CHECKING:
    from autotune.parameters.explanation import ParameterExplanation
    from autotune.parameters.measured_effect import MeasuredEffect, StudyEffect

_HELP, _SIBLINGS = 320, 6
"""Most characters of the library's own description, and most names of the family."""


def print_parameter(shown: ParameterExplanation) -> None:
    """Print what is known of a parameter."""
    print_line(shown.name, bold=True)
    _row("of", _owner(shown))
    _row("meaning", shown.meaning or "not described")
    if shown.library_help and not shown.library_help.startswith(shown.meaning):
        _row("", _short(shown.library_help))
    kind = shown.type or "unknown"
    _row("type", f"{kind}: {shown.values}" if shown.values else kind)
    if shown.default is not None:
        _row("default", shown.default or "empty")
    for number, one in enumerate(shown.set_by):
        words = f"{one.value}: {one.origin}{'' if one.counts else ' (does not count)'}"
        _row("" if number else "set by", words)
    if not shown.set_by:
        _row("set by", "nobody")
    _row("acts", _acts(shown))
    _row("measured", _measured(shown.measured))
    _row("set with", shown.set_with)
    if shown.siblings:
        _row("family", _family(shown))
    if shown.synonym_of:
        _row("today", f"called {shown.synonym_of}")
    for number, (library, name) in enumerate(shown.elsewhere.items()):
        _row("" if number else "elsewhere", f"{library}: {name}")


def _owner(shown: ParameterExplanation) -> str:
    part = f", {shown.component}" if shown.component not in ("", shown.owner) else ""
    installed = "" if shown.is_installed else "; not installed here: only its names are known"
    if shown.owner in shown.mpi:
        return f"{shown.mpi}{part}{installed}"
    return f"{shown.owner}{part}, below {shown.mpi}{installed}"


def _family(shown: ParameterExplanation) -> str:
    names = [name.removeprefix(shown.family) for name in shown.siblings[:_SIBLINGS]]
    more = len(shown.siblings) - _SIBLINGS
    rest = f", and {more} more" if more > 0 else ""
    if more > 0 and shown.owner in shown.mpi and shown.is_installed:
        rest += f" (autotune space discover {shlex.quote(shown.family)})"
    return f"{shown.family}: {', '.join(names)}{rest}"


def _row(head: str, words: str) -> None:
    print_hanging(f"  {head:<9} ", words)


def _short(text: str) -> str:
    return text if len(text) <= _HELP else f"{text[: _HELP - 4].rpartition(' ')[0]} ..."


def _acts(shown: ParameterExplanation) -> str:
    if shown.can_act is None:
        return "as far as is known, yes"
    if shown.can_act:
        return f"yes: {shown.reason}"
    return f"no: {shown.reason}"


def _measured(measured: MeasuredEffect) -> str:
    best, worst = measured.best, measured.worst
    if measured.problem:
        return f"unknown: the results database cannot be read [{measured.problem}]"
    if not measured.studies:
        return "by no study of this results database"
    words = f"in {measured.studies} {'study' if measured.studies == 1 else 'studies'}"
    if measured.recommended:
        words += f", recommended by {measured.recommended}"
    if best is None or worst is None:
        return f"{words}; none measured the default beside it"
    first = _level(best.best.value, best.best.ratio, best)
    return f"{words}; time / default: best {first}, worst " + _level(
        worst.worst.value, worst.worst.ratio, worst
    )


def _level(value: str, ratio: float, effect: StudyEffect) -> str:
    return f"{value} {ratio:.2f} ({effect.app}, study {effect.study})"
