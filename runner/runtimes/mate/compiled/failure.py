"""Errors of numba, with the user's line numbers."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from runner.errors import RunnerError
from runner.runtimes.mate.compiled.source import RegionSource
from runner.runtimes.mate.compiled.state import StateType
from runner.runtimes.mate.errors import GraphError

PREFIX = "compiled region: "
"""Prefix of this package's own messages within those of numba."""
_PLACE = re.compile(r'\bat (/[^"\n]*?) \((\d+)\)|File "([^"\n]+)", line (\d+)')
_CALL = re.compile(r"No implementation of function .*? found for signature:\s*>>> (\S.*)")
_LIBRARY = re.compile(r"No implementation of function Function\(<function [^_]\w* at ")
_SIMPLER = (
    (re.compile(r"Literal\[(\w+)\]\([^()]*\)"), r"\1"),
    (re.compile(r"array\((\w+), (\d)d, \w\)"), r"array(\1, \2-D)"),
    (re.compile(r"list_of_array"), "list of array"),
    (re.compile(r"^getitem\((.*?(?:\))?), (.*)\)"), r"\1 with index \2"),
    (re.compile(r"^setitem\((.*?(?:\))?), (.*), (.*)\)"), r"\3 into \1 with index \2"),
    *(
        (re.compile(rf"^i?{name}\((.*?(?:\))?), (.*)\)"), rf"\1 {sign} \2")
        for name, sign in {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**"}.items()
    ),
)
"""Types in numba's notation, and their names for users."""
_NOISE = re.compile(
    r"(Failed in|During|- Resolution|There (is|are)|- Of which|Overload|Intrinsic|With argument|"
    r"Rejected as|File |>>>|raised from|\^|This |For more|Type of|def |Enable|No match|Known sig)"
)
_REASONS = (
    (
        re.compile(r"NRT required but not enabled"),
        "this makes a new array, which compiled code cannot: write a loop over the elements",
    ),
    (
        re.compile(r"Only accept returning of array passed into the function"),
        "a function cannot return an array that it makes: make it where it is called",
    ),
    (
        re.compile(r"Cannot (?:modify|assign to) readonly array|Cannot store to .*readonly"),
        "this cannot be changed: it is a read-only array or a list of numbers; use another array",
    ),
    (re.compile(r"Variable '(\w+)' is not defined"), "{0} has no value here"),
    (
        re.compile(r"Cannot unify (\S.*?) and (\S.*?) for '(\w+?)(?:\.\d+)*'"),
        "{2} is {0} in one place and {1} in another: give it one type",
    ),
    (re.compile(r"NumbaTypeError: ((?!Failed).+)"), "{0}"),
    (re.compile(r"Unknown attribute '(\w+)' of type (.*)"), "{1} has no {0} in compiled code"),
)


@contextlib.contextmanager
def user_errors(
    region: RegionSource, functions: Iterable[RegionSource], kind: StateType
) -> Iterator[None]:
    """Turn an error of numba into a :class:`GraphError` that names the user's line."""
    try:
        yield
    except (GraphError, RunnerError):
        raise
    except Exception as error:
        if not type(error).__module__.startswith("numba"):
            raise
        raise _refusal(str(error), region, list(functions), kind) from None


def _refusal(
    text: str, region: RegionSource, functions: list[RegionSource], kind: StateType
) -> GraphError:
    line = region.tree.lineno
    for place in _PLACE.finditer(text):
        file, number = (place[1], int(place[2])) if place[1] else (place[3], int(place[4]))
        inside = [f for f in functions if _is_in(file, number, f)]
        if inside:
            region, line = inside[0], number
            break
    reason = _reason(text)
    if kind.guesses:
        names = ", ".join(sorted(kind.guesses))
        reason += (
            f" (of this state {names} is an empty list: what it would hold was taken from its use; "
            "if that is wrong, put an array of size 0 into it)"
        )
    return region.refusal_at(line, reason)


def _is_in(file: str, line: int, function: RegionSource) -> bool:
    last = function.tree.end_lineno or function.tree.lineno
    if not function.tree.lineno <= line <= last:
        return False
    return Path(file).name == Path(function.file).name and (
        not Path(file).is_absolute() or Path(file).resolve() == Path(function.file).resolve()
    )


def _reason(text: str) -> str:
    """The fault in a message of numba, which repeats each cause once for every attempt."""
    if PREFIX in text:
        return text.partition(PREFIX)[2].partition("\n")[0]
    call = _CALL.search(text)
    library = _LIBRARY.search(text)
    if call and library and library.start() == call.start():
        return _simple(f"{call[1].strip()} cannot be compiled: write a loop")
    for pattern, words in _REASONS:
        if match := pattern.search(text):
            return _simple(words.format(*match.groups()))
    if call:
        return _simple(f"{call[1].strip()} cannot be compiled for these types")
    lines = [line.strip() for line in text.splitlines()]
    causes = [line for line in lines if line and not _NOISE.match(line)]
    return _simple(f"this cannot be compiled; numba says: {causes[0] if causes else text}")


def _simple(text: str) -> str:
    for pattern, words in _SIMPLER:
        text = pattern.sub(words, text)
    return text
