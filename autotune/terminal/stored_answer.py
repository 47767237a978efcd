"""Terminal output of the answer of a stored study: of a search, a comparison or the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from autotune.comparison.comparison_document import stored_figures
from autotune.notes import Note
from autotune.store import StudyRecord
from autotune.store.keys import COMPARE, NOISE
from autotune.study.search_result import Result, damaged_result
from autotune.terminal.noise import print_noise
from autotune.terminal.outcome import print_comparison, print_result
from autotune.terminal.render import print_line


def print_answer(study: StudyRecord, result: dict[str, Any], unchecked: Sequence[Note]) -> None:
    """Print what the stored ``result`` of a study says.

    ``unchecked``: why the results behind it were not checked. Raises WorkError for a damaged one.
    """
    if study.key.strategy == COMPARE:
        _print_comparison(study, result)
    elif study.key.strategy == NOISE:
        _print_noise(result)
    else:
        print_result(replace(Result.from_json(result), unchecked=list(unchecked)))


def _print_comparison(study: StudyRecord, result: dict[str, Any]) -> None:
    try:
        options = study.key.strategy_options
        print_comparison(options["a"], options["b"], stored_figures(result))
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        raise damaged_result(problem) from None


def _print_noise(result: dict[str, Any]) -> None:
    try:
        print_line()
        print_noise(result)
    except (LookupError, TypeError, ValueError, AttributeError) as problem:
        raise damaged_result(problem) from None
