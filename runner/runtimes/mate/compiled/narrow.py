"""Arithmetic of elements with fewer than 64 bits, where compiled code differs from numpy.

numpy keeps the type of an element (``float32 * 0.5`` is a ``float32``, ``int32 + int32`` an
``int32``), compiled code widens it. Regions that keep Python's rules must give numpy's bits, so
they are refused if the operands' types make a difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba.core import ir, types

from runner.runtimes.mate.compiled.source import RegionSource

_types: Any = types  # for names that numba's annotations leave out
_COMPARISONS = frozenset({"eq", "ge", "gt", "is_", "is_not", "le", "lt", "ne", "not_"})
_OPERATIONS = ("binop", "inplace_binop", "unary")


def check(source: RegionSource, function: Any) -> None:
    """Raise :class:`GraphError` if a compiled function widens an element; see the module.

    ``function`` is numba's dispatcher with its compiled versions.
    """
    for overload in function.overloads.values():
        annotation = overload.type_annotation
        for block in annotation.blocks.values():
            for line, name, operands in _operations(
                block, annotation.typemap, annotation.calltypes
            ):
                operands = [_types.unliteral(kind) for kind in operands]
                if wide := _wider_type(operands):
                    raise source.refusal_at(
                        line,
                        f"{name} of {' and '.join(dict.fromkeys(map(str, operands)))} widens "
                        f"{wide} in compiled code, but not in numpy: convert both to one type of "
                        "64 bits",
                    )


def _operations(
    block: Any, kinds: dict[str, Any], calls: dict[Any, Any]
) -> Iterator[tuple[int, str, list[Any]]]:
    """Line, name and types of the operands of each operation with numbers."""
    for assignment in block.find_insts(ir.Assign):
        value = assignment.value
        if not isinstance(value, ir.Expr):
            continue
        line = assignment.loc.line
        if value.op in _OPERATIONS:
            name = getattr(value.fn, "__name__", str(value.fn))
            if name not in _COMPARISONS:
                yield line, name, [kinds[v.name] for v in value.list_vars()]
        elif value.op == "call" and isinstance(kinds[value.func.name], types.Function):
            function = kinds[value.func.name].key[0]
            for kind in (kinds[v.name] for v in value.args):
                # One by one: a function's arguments need not meet.
                yield line, getattr(function, "__name__", str(function)), [kind]


def _wider_type(operands: list[Any]) -> str:
    """The type that would be widened; "" if none would."""
    if not all(isinstance(kind, types.Number | types.Boolean) for kind in operands):
        return ""
    same = len(set(operands)) == 1
    for kind in operands:
        whole = isinstance(kind, types.Integer)
        if whole and (kind.bitwidth < 64 or (not kind.signed and not same)):
            return str(kind)
        if kind in (types.float32, types.complex64) and not (same and len(operands) > 1):
            return str(kind)
    return ""
