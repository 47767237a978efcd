"""Parameters: levels, target in the launch, condition; and the words of a program's command line.

Levels are read as written in a TOML file (lists, ranges, sizes, booleans). An :class:`Argument` has
words for the program with placeholders for values. A parameter's collective operation is found by
its name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from autotune.errors import UsageError
from autotune.space.expression import Expr
from autotune.space.setting import Value, normalise_value, read_value
from runner.mpi.library import enumerated_values
from runner.mpi.srun import PLACEMENT as SRUN_PLACEMENT
from runner.trace.schema import COLLECTIVES

ParameterKind = Literal["mca", "prte", "pmix", "placement", "env", "arg", "file", "resource"]
"""Where a value is put in the launch.

``mca`` / ``prte`` / ``pmix``: run-time parameters of Open MPI, PRRTE, OpenPMIx. ``placement``:
map_by, bind_to, rank_by, or what srun has (:mod:`runner.mpi.srun`). ``env``: an environment
variable. ``arg``: an option of the program. ``file``: a value in an input file of the application.
``resource``: ranks, processes, threads or workers.
"""
LibraryKind = Literal["library"]
"""The choice of the MPI library (:mod:`autotune.space.library_choice`), which no file can have."""

PLACEMENT = ("map_by", "bind_to", "rank_by", *SRUN_PLACEMENT)
RESOURCES = ("ranks", "processes", "threads", "workers")
CORES_EACH = ("threads", "workers")
"""Resources that set the number of cores of each process; 1 if unset."""


def default_kind(name: str) -> ParameterKind:
    """The target of a parameter with this name, unless stated otherwise."""
    if name in PLACEMENT:
        return "placement"
    return "resource" if name in RESOURCES else "mca"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a space.

    ``name`` is the library's own name, or ``map_by`` and the like, or the name of an option.
    ``levels`` is the grid; "unset" is never among them. ``default`` is the value of unset, if known
    and fixed; it need not be on the grid. ``unset``: the parameter may be left out. ``when`` is a
    condition on other parameters; if it is false, a value has no effect. ``implies`` are values of
    other parameters that are launched with any value of this one, ``implies_at`` those launched
    with one of its values. ``option`` is what target ``arg`` appends to the program's command line
    (None: ``--name VALUE``). ``enum`` maps the library's numbers to its names for them; ``words``
    are the only words that the library accepts, if it lists them.
    """

    name: str
    levels: tuple[Value, ...]
    target: ParameterKind | LibraryKind = "mca"
    default: Value | None = None
    unset: bool = True
    when: Expr | None = None
    implies: Mapping[str, Value] = field(default_factory=dict)
    implies_at: Mapping[Value, Mapping[str, Value]] = field(default_factory=dict)
    help: str = ""
    option: str | None = None
    enum: Mapping[int, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()

    @property
    def choices(self) -> tuple[Value | None, ...]:
        """The choices of a search: None (= unset) first, if allowed, then the levels.

        If unset is allowed, a level equal to the default is left out: it is the same choice.
        """
        if not self.unset:
            return self.levels
        return (None, *(level for level in self.levels if level != self.default))

    @property
    def is_text(self) -> bool:
        """True if values are words and not numbers."""
        return any(isinstance(level, str) for level in self.levels)

    def implied_values(self, value: Value) -> dict[str, Value]:
        """Values of other parameters that are launched with this (normalised) value."""
        return {**self.implies, **self.implies_at.get(value, {})}

    @property
    def implied_names(self) -> frozenset[str]:
        """Parameters that any value of this one can imply."""
        return frozenset(self.implies).union(*self.implies_at.values())

    def normalise(self, value: Value) -> Value:
        """The number of an enumerated name (``"ring"`` -> 4); any other value unchanged."""
        if isinstance(value, str) and not self.is_text:
            for number, name in self.enum.items():
                if name == value:
                    return number
        return value

    def problem(self, value: Value, *, grid: bool = True) -> str | None:
        """The fault of this (normalised) value, or None.

        With ``grid`` false any value of the right kind is accepted; an enumerated one must be in
        the enumeration.
        """
        if value in self.levels or (value == self.default and self.default is not None):
            return None
        if grid:
            return f"is not among its levels ({self.describe_levels()})"
        if self.enum and not self.is_text and value not in self.enum:
            return f"is not a value the library knows ({enumerated_values(self.enum)})"
        if self.words and value not in self.words:
            return f"is not a value the library knows ({', '.join(self.words)})"
        if isinstance(value, str) != self.is_text:
            return f"must be {'a word' if self.is_text else 'a number'}"
        return None

    def describe_levels(self) -> str:
        """The levels as text; of many levels, only the first and last few."""
        words = [str(level) for level in self.levels]
        if len(words) > 12:
            words = [*words[:5], "...", *words[-2:]]
        return ", ".join(words)


MOST_LEVELS = 10_000

_NUMBER = r"[+-]?\d+[kKmMgG]?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER})(?::([*+])(\d+[kKmMgG]?))?")
_WAYS = (
    'expected a list such as [0, "4k", "64k"], a range "LO:HI" (step 1), "LO:HI:+STEP" or '
    '"LO:HI:*FACTOR" (K = 1024), "divisors: EXPRESSION", "bool" or "enum"'
)
_DIVISORS = "divisors:"


def parse_levels(spec: object) -> tuple[Value, ...]:
    """The levels in the given order, each once.

    A string is one range or ``"bool"``; a list has values and ranges. ``"64k"`` is 65536 and
    ``true`` is 1. Raises :class:`UsageError` without file and key; the caller adds them.
    """
    if spec == "bool":
        return (0, 1)
    if isinstance(spec, str):
        levels = _range(spec)
        if levels is None:
            raise UsageError(f"{spec!r} is not a range of levels; {_WAYS}", code="levels.syntax")
        return levels
    if not isinstance(spec, list) or not spec:
        raise UsageError(f"{spec!r} is not a list of levels; {_WAYS}", code="levels.syntax")
    unique_levels: dict[Value, None] = {}
    for item in spec:
        unique_levels.update(dict.fromkeys(_item(item)))
    if len({isinstance(level, str) for level in unique_levels}) > 1:
        raise UsageError(
            f"levels {list(unique_levels)} mix words and numbers; use one kind",
            code="levels.invalid",
        )
    return tuple(unique_levels)


def divisor_expression(spec: object) -> str | None:
    """The expression of levels ``"divisors: EXPRESSION"``; None for any other levels."""
    if isinstance(spec, str) and spec.startswith(_DIVISORS):
        return spec.removeprefix(_DIVISORS).strip()
    return None


def divisors(number: object, most: int = MOST_LEVELS) -> tuple[int, ...]:
    """Every whole number up to ``most`` that divides ``number``.

    The result is (1,) if the number is unknown, or not a positive whole number.
    """
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if not isinstance(number, int) or number < 1:
        return (1,)
    return tuple(n for n in range(1, min(number, most) + 1) if number % n == 0)


def _item(item: object) -> tuple[Value, ...]:
    if not isinstance(item, str):
        return (normalise_value(item),)
    return _range(item) or (read_value(item),)


def _range(text: str) -> tuple[int, ...] | None:
    """The integers of a range, both ends included if the step reaches them; None if not a range."""
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        return None
    low, high = _integer(match[1]), _integer(match[2])
    sign, step = match[3] or "+", _integer(match[4] or "1")
    if low > high:
        raise UsageError(
            f"range {text!r}: {low} is above {high}; write the smaller one first",
            code="levels.range",
        )
    if step < (2 if sign == "*" else 1):
        raise UsageError(f"range {text!r}: a step must be at least +1 or *2", code="levels.invalid")
    if sign == "*" and low < 1:
        raise UsageError(
            f"range {text!r}: a factor needs a start of at least 1, not {low}",
            code="levels.invalid",
        )
    if sign == "+" and (high - low) // step >= MOST_LEVELS:
        raise UsageError(
            f"range {text!r} has more than {MOST_LEVELS} levels; use larger steps",
            code="levels.range",
        )
    if sign == "+":
        return tuple(range(low, high + 1, step))
    levels = [low]
    while levels[-1] * step <= high:
        levels.append(levels[-1] * step)
    return tuple(levels)


def _integer(text: str) -> int:
    value = read_value(text)
    if not isinstance(value, int):
        raise UsageError(f"{text!r} is too large a number", code="levels.range")
    return value


_PLACE = re.compile(r"\{([A-Za-z_][\w.\-]*)\}", re.ASCII)


@dataclass(frozen=True)
class Argument:
    """Words of the program's command line, such as ``--local-grid {x}x{y}x{z}``.

    A placeholder has the name of a parameter, a derived value or a fact. The words are used if
    ``when`` is known to be true. If ``when`` is None, they are used if a parameter is set that
    occurs in a placeholder, directly or through a derived value.
    """

    template: str
    when: Expr | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """The names in the placeholders, in order."""
        return tuple(_PLACE.findall(self.template))

    def with_names(self, names: Mapping[str, str], when: Expr | None = None) -> Argument:
        """The same words with other names in the placeholders, and this condition."""
        template = _PLACE.sub(lambda m: f"{{{names.get(m[1], m[1])}}}", self.template)
        return Argument(template, when)

    def text(self, value: Callable[[str], Value | None]) -> str:
        """The words with values for the placeholders, quoted for a shell.

        Raises :class:`UsageError` if a value is unknown.
        """

        def fill(match: re.Match[str]) -> str:
            filling = value(match[1])
            if filling is None:
                raise UsageError(
                    f"the program's argument {self.template!r} needs {match[1]}, which has no "
                    "value here; give it a value or a default",
                    code="parameter.no_value",
                )
            return str(filling)

        # The text is split before the values are inserted, so a value with a blank stays one word.
        return shlex.join(_PLACE.sub(fill, word) for word in shlex.split(self.template))


def read_template(text: str) -> Argument:
    """Read the words of a space file.

    Raises :class:`UsageError` without file and key for malformed words; the caller adds them.
    """
    try:
        words = shlex.split(text)
    except ValueError as problem:
        raise UsageError(
            f"{text!r} cannot be split into words: {problem}", code="space.template"
        ) from None
    if not words:
        raise UsageError(
            "the text is empty; expected something like '--block {block}'", code="space.template"
        )
    if re.search(r"[{}]", _PLACE.sub("", text)):
        raise UsageError(
            f"{text!r} has a brace that is not part of a placeholder; a placeholder is "
            "written {name}",
            code="space.template",
        )
    return Argument(text)


def usual_option(name: str) -> str:
    """The usual option of a program for a parameter of this name: ``--block-size {block_size}``."""
    return f"--{name.replace('_', '-')} {{{name}}}"


_NAMES = "|".join([*sorted(COLLECTIVES, key=len, reverse=True), "barrier"])
_OPERATION = re.compile(rf"^(?:coll_[a-z0-9]+|mpir_cvar|i_mpi_adjust)_({_NAMES})", re.IGNORECASE)
"""The collective operations of the parameters of Open MPI, MPICH and Intel MPI."""


_RMA_NAME = re.compile(r"osc(_\w+)?")


def needed_call(parameter: str) -> str:
    """The operation whose calls a parameter needs to have an effect, or "".

    It is a collective, or ``rma``, the one-sided calls.
    """
    return "rma" if _RMA_NAME.fullmatch(parameter) else operation_of(parameter)


def operation_of(parameter: str) -> str:
    """The collective operation that a parameter is about, or ""."""
    match = _OPERATION.match(parameter)
    return match[1].lower() if match else ""
