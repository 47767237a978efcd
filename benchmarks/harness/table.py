"""A claim: tables of command lines, as ``benchmarks/claims/NAME.toml`` has them.

A claim has ``title``, ``blocks``, ``values`` and ``[[table]]``; a table has ``name`` and
``[[table.line]]``. Keys of a line may stand in its table or in the claim, for all lines there. The
first line of a table is what the others are compared with.

``each`` of a table or a line ranges over lists (or names of values that are lists), and every
combination is a table or a line of its own. ``let`` computes further values, each by an expression
or by a table ``{ of = NAME, VALUE = text, else = text }``. ``where`` leaves combinations out.
Values stand in texts as ``{name}``, and ``processes`` and ``workers`` may be expressions. The first
value is ``cores``, those of this process unless the command line has another number.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import operator
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.errors import UsageError

CLAIMS = Path(__file__).parents[1] / "claims"
Values = Mapping[str, Any]
OPERATORS: dict[type[ast.AST], Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A command line; exactly one of ``app``, ``module`` and ``source`` is given.

    ``app`` is an application of autotune with its ``input``, ``module`` one of Python's, ``source``
    a C file in ``benchmarks/references`` (with ``blas``: linked with numpy's BLAS library).
    ``words`` follow; ``{{scratch}}`` in a claim is a folder that is removed at the end. ``setting``
    are parameters in the space ``space``.
    """

    name: str
    app: str = ""
    input: str = ""
    module: str = ""
    source: str = ""
    blas: bool = False
    words: str = ""
    setting: str = ""
    space: str = ""
    processes: int = 2
    workers: int = 1
    """Cores of each process."""
    bind: str = ""
    """How processes are bound; "": each to its cores."""
    metric: str = ""
    """The figure that counts, in seconds: ``json:KEY``; "": the application's own."""
    verify: str = ""
    timeout_s: float = 120.0
    key: str = ""
    """Key of the printed number that all lines of the table must share, such as a checksum."""
    against: str = ""
    """Another line that this one is compared with, too ("of its own" in the table)."""


@dataclass(frozen=True)
class Table:
    """Lines that are compared with the first of them.

    ``within`` is the largest relative difference of the shared number (:attr:`Line.key`). ``show``
    are further printed figures. ``slowest`` bounds the time of each line over that of the first.
    """

    name: str
    lines: tuple[Line, ...]
    within: float = 0.0
    show: tuple[str, ...] = ()
    slowest: float | None = None


@dataclass(frozen=True)
class Claim:
    """What is claimed, its tables, and the number of blocks."""

    name: str
    title: str
    tables: tuple[Table, ...]
    blocks: int = 7


def names() -> list[str]:
    """All claims."""
    return sorted(path.stem for path in CLAIMS.glob("*.toml"))


def read_claim(name: str, values: Values) -> Claim:
    """The claim of that name; raises UsageError for one that is not there, or has a wrong key."""
    if name not in names():
        raise UsageError(
            f"there is no claim {name!r}; expected one of {', '.join(names())}",
            code="benchmark.claim",
        )
    return claim_of(name, tomllib.loads((CLAIMS / f"{name}.toml").read_text()), values)


def claim_of(name: str, data: dict[str, Any], values: Values) -> Claim:
    """The claim that a TOML document has; raises UsageError for a key that it may not have."""
    tables = []
    claim, rest = _divided(data, Claim)
    values = {**rest.pop("values", {}), **values}
    for one in rest.pop("table", []):
        for entry, table_values in _each({**rest, **one}, values):
            entry, lines = _divided(entry, Table)
            listed = [
                _made(Line, name, _line({**lines, **line}, line_values))
                for own in lines.pop("line", [])
                for line, line_values in _each(own, table_values)
            ]
            entry = {**_filled(entry, table_values), "show": tuple(entry.get("show", ()))}
            tables.append(_made(Table, name, {**entry, "lines": tuple(listed)}))
    complete: Claim = _made(Claim, name, {**claim, "name": name, "tables": tuple(tables)})
    return complete


def _divided(entry: Values, kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys that are fields of ``kind``, and the others."""
    own = {field.name for field in dataclasses.fields(kind)}
    return {k: v for k, v in entry.items() if k in own}, {
        k: v for k, v in entry.items() if k not in own
    }


def _made(kind: Any, where: str, entry: dict[str, Any]) -> Any:
    _, unknown = _divided(entry, kind)
    if unknown:
        raise UsageError(
            f"{where}: {', '.join(sorted(unknown))}: a {kind.__name__.lower()} has no such key",
            code="benchmark.claim",
        )
    return kind(**entry)


def _each(entry: Values, values: Values) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The other keys of an entry, and the values of each combination that ``where`` allows."""
    entry = dict(entry)
    ranges = {k: values[v] if isinstance(v, str) else v for k, v in entry.pop("each", {}).items()}
    let, where = entry.pop("let", {}), entry.pop("where", "True")
    for chosen in itertools.product(*ranges.values()):
        combination = {**values, **dict(zip(ranges, chosen, strict=True))}
        if not compute(where, combination):
            continue
        for name, how in let.items():
            if isinstance(how, dict):
                combination[name] = how.get(str(combination[how["of"]]), how.get("else"))
            else:
                combination[name] = compute(how, combination)
        yield dict(entry), combination


def _filled(entry: Values, values: Values) -> dict[str, Any]:
    """The entry with values in its texts."""
    return {k: v.format_map(values) if isinstance(v, str) else v for k, v in entry.items()}


def _line(entry: Values, values: Values) -> dict[str, Any]:
    """The keys of a line; ``processes`` and ``workers`` are computed, and stand in its texts."""
    line_values = dict(values)
    numbers: dict[str, int] = {}
    for key in ("workers", "processes"):
        if (number := entry.get(key, values.get(key))) is not None:
            line_values[key] = numbers[key] = compute(f"{number}", line_values)
    return {**_filled(entry, line_values), **numbers}


def compute(text: str, values: Values) -> Any:
    """The value of an expression of names, numbers, + - * // %, comparisons, and, or.

    Raises UsageError for anything else.
    """

    def value(node: ast.AST) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name() if node.id in values:
                return values[node.id]
            case ast.BinOp() if type(node.op) in OPERATORS:
                return OPERATORS[type(node.op)](value(node.left), value(node.right))
            case ast.Compare(ops=[op], comparators=[right]) if type(op) in OPERATORS:
                return OPERATORS[type(op)](value(node.left), value(right))
            case ast.BoolOp():
                return (all if isinstance(node.op, ast.And) else any)(map(value, node.values))
        raise UsageError(f"{text!r} cannot be computed", code="benchmark.claim")

    return value(ast.parse(text, mode="eval").body)
