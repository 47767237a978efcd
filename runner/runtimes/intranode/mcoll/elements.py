"""Element-wise sum, minimum and maximum in compiled code, for all kinds of numbers of numpy."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from runner.runtimes.intranode.mcoll.kinds import KINDS, OPERATIONS

_BYTES = 64
"""Bytes combined at once."""
_WORD = ir.IntType(64)
_REALS = {4: ir.FloatType(), 8: ir.DoubleType()}


def _one(builder: Any, kind: str, operation: str, a: Any, b: Any) -> Any:
    """The value of ``a`` op ``b``; a sum of whole numbers wraps around."""
    real = kind[0] == "f"
    if operation == "sum":
        return builder.fadd(a, b) if real else builder.add(a, b)
    sign = "<" if operation == "min" else ">"
    if real:
        first = builder.fcmp_ordered(sign, a, b)
    else:
        compare = builder.icmp_unsigned if kind[0] == "u" else builder.icmp_signed
        first = compare(sign, a, b)
    return builder.select(first, a, b)


def _loop(builder: Any, kind: str, operation: str, operands: Any) -> None:
    """Blocks of 64 bytes, then single elements."""
    to, a, b, count = operands
    item = int(kind[1:])
    element = _REALS[item] if kind[0] == "f" else ir.IntType(8 * item)
    lanes = _BYTES // item
    blocks = builder.udiv(count, _WORD(lanes))
    block_elements = builder.mul(blocks, _WORD(lanes))
    for number, each, unit in ((blocks, ir.VectorType(element, lanes), _BYTES),
                               (builder.sub(count, block_elements), element, item)):  # fmt: skip
        start = _WORD(0) if unit == _BYTES else builder.mul(block_elements, _WORD(item))
        with cgutils.for_range(builder, number) as loop:
            offset = builder.add(start, builder.mul(loop.index, _WORD(unit)))
            places = [
                builder.inttoptr(builder.add(place, offset), each.as_pointer())
                for place in (to, a, b)
            ]
            values = [builder.load(place, align=item) for place in places[1:]]
            builder.store(_one(builder, kind, operation, *values), places[0], align=item)


@intrinsic  # type: ignore[untyped-decorator]
def combine(typing: Any, code: Any, to: Any, a: Any, b: Any, count: Any) -> Any:
    """``to`` = ``a`` op ``b`` for ``count`` elements at addresses; see :func:`.kinds.code_of`.

    ``to`` may be ``a`` or ``b``.
    """

    def generate(context: Any, builder: Any, signature: Any, operands: Any) -> Any:
        end = builder.append_basic_block("combined")
        switch = builder.switch(operands[0], end)
        pairs = [(kind, operation) for kind in KINDS for operation in OPERATIONS]
        for number, (kind, operation) in enumerate(pairs):
            block = builder.append_basic_block(f"{operation}_{kind}")
            switch.add_case(_WORD(number), block)
            builder.position_at_end(block)
            _loop(builder, kind, operation, operands[1:])
            builder.branch(end)
        builder.position_at_end(end)
        return context.get_dummy_value()

    word = types.int64
    return types.void(word, word, word, word, word), generate
