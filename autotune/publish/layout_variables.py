"""A rule in words of layouts as the variables that the runtimes read.

:mod:`runner.published_layout` has the variables. They say how programs that are started on
a runtime cut their work; whether a program is started so, and on how many processes, is said where
it is started.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from autotune.anova.classwide_result import ClasswideResult
from autotune.anova.layout_table import EAGER, LONG, SHORT, SHORTEST
from autotune.errors import UsageError
from autotune.publish.content import Content
from autotune.space import DEFAULT, Value
from autotune.space.eager import eager_limit
from runner.published_layout import RUNTIMES, variable

_SILENT = {"model": "tasks", "barrier": "neighbours"}
"""Values that need no variable: a program that runs on a runtime has tasks, and waits for its
neighbours, TPOD aside."""
_TPOD = "tpod"


def layout_content(result: ClasswideResult, family: str, nodes: int) -> Content:
    """The variables of a rule for the runtimes of its class, for an MPI family and a number of
    nodes.

    Raises UsageError for a word that no runtime reads, and for programs on no such runtime.
    """
    runtimes = _runtimes(result)
    if not runtimes:
        raise UsageError(
            f"classwide:{result.id} is a rule for programs that run on none of "
            f"{', '.join(RUNTIMES)}, so nothing reads it; autotune classwide prints each program's "
            "own setting",
            code="publish.layouts",
        )
    unread = _unread(result.setting, runtimes)
    if unread:
        raise UsageError(
            f"classwide:{result.id}: {', '.join(unread)} cannot be published: the runtimes read "
            "factor and chunk from outside; autotune classwide prints each program's own setting",
            code="publish.layouts",
        )
    values: dict[str, str] = {}
    for runtime in runtimes:
        if "factor" in result.setting:
            values[variable(runtime, "factor")] = str(result.setting["factor"])
        if (chunk := result.setting.get("chunk")) not in (None, LONG):
            limit = eager_limit(family, nodes, DEFAULT)
            size = limit // SHORTEST if chunk == SHORT else limit
            values[variable(runtime, "chunk")] = str(size)
    if not values:
        raise UsageError(
            f"classwide:{result.id}: nothing of the rule needs a variable; start the programs on "
            "their runtime",
            code="publish.layouts",
        )
    return Content({"env": values})


def _runtimes(result: ClasswideResult) -> list[str]:
    """The runtimes on which a program of the class runs under the rule."""
    variants = {str(one.setting.get("variant", "")) for one in result.programs or ()}
    return [runtime for runtime in RUNTIMES if runtime in variants]


def _unread(rule: Mapping[str, Value], runtimes: Iterable[str]) -> list[str]:
    """The words of a rule that no variable says."""
    return [
        f"{word}={value}"
        for word, value in rule.items()
        if not (
            word == "factor"
            or (word == "chunk" and value in (EAGER, SHORT))
            or (_SILENT.get(word) == value and not (word == "barrier" and _TPOD in runtimes))
        )
    ]
