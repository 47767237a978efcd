"""Messages for Python programs: keywords in place of the options of the command line."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from autotune.errors import AutotuneError
from runner.errors import RunnerError

P = ParamSpec("P")
R = TypeVar("R")

KEYWORDS = {
    **{
        name.replace("_", "-"): name
        for name in (
            *("app", "input", "ranks", "cluster", "mpi", "metric", "metric_rate", "metric_choice"),
            *("verify", "verify_absent", "exit_codes", "stdin", "before", "fresh_dir", "timeout"),
            *("space", "strategy", "preset", "trials", "budget", "runs", "pairs", "min_gain"),
            *("seed", "features", "params_file", "store"),
        )
    },
    "start": "starts",
    "option": "options",
    "program-b": "second_program",
}
"""The keyword of an option that takes a value, by its long name without dashes."""
SWITCHES = {
    "guard": "guard=True",
    "no-guard": "guard=False",
    "remeasure": "remeasure=True",
    "fidelity": "fidelity=True",
    "clean-env": "clean_env=True",
    "commutative-only": "commutative_only=True",
}
_PART = re.compile(
    r"(?P<line>\b(?:autotune|mpirun|mpiexec|srun)(?: [^\s);,]+)+)"
    r"|(?<![\w-])--(?P<name>[a-z][a-z-]*[a-z])"
    r"(?:[ =](?P<value>[A-Z][A-Z|]*\b(?![\w|])|\d[\w.]*|[\w.]+[+:/][\w.+:/-]*\w))?"
)
_BARE = re.compile(r"[A-Z|]+|[\d.]+")


def with_keywords(text: str) -> str:
    """The text with keywords of Python for the options in its sentences.

    Command lines to copy stay as they are, and so do options without a keyword.
    """

    def keyword(part: re.Match[str]) -> str:
        name, value = part["name"], part["value"]
        if part["line"] or (name not in KEYWORDS and name not in SWITCHES):
            return part[0]
        if name in SWITCHES:
            return SWITCHES[name] + (f" {value}" if value else "")
        if value is None:
            return f"{KEYWORDS[name]}="
        return f"{KEYWORDS[name]}={value if _BARE.fullmatch(value) else repr(value)}"

    return _PART.sub(keyword, text)


def speaks_python(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose errors name keywords in place of options of the command line."""

    @functools.wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        try:
            return function(*arguments, **keywords)
        except (AutotuneError, RunnerError) as error:
            if error.args and isinstance(error.args[0], str):
                error.args = (with_keywords(error.args[0]), *error.args[1:])
            raise

    return call
