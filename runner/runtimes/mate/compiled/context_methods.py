"""Methods of the context in compiled code: messages, waiting, and clocks.

Each calls a function of the runtime, whose address is a word of the context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.errors import NumbaTypeError
from numba.extending import intrinsic, overload_method

from runner.runtimes.core.words import KINDS
from runner.runtimes.mate.compiled.failure import PREFIX
from runner.runtimes.mate.compiled.lowering import load_word
from runner.runtimes.mate.compiled.numba_types import WORD, NumbaRank

_types: Any = types  # for names that numba's annotations leave out


def _function_address(builder: Any, rank: Any, at: int) -> Any:
    """The address of a function of the runtime; its place is the same in each process."""
    return load_word(builder, load_word(builder, rank, at), 0)


def _starting(at: int) -> Any:
    """Call a function that starts a message; word ``at`` of the context has its place."""

    def signature(
        _typing: Any, rank: Any, incoming: Any, array: Any, kind: Any, peer: Any, tag: Any
    ) -> Any:
        def generate(context: Any, builder: Any, call: Any, values: Any) -> Any:
            buffer = context.make_array(array)(context, builder, values[2])
            whole = [
                context.cast(builder, values[n], call.args[n], types.int64) for n in (1, 3, 4, 5)
            ]
            incoming, kind, peer, tag = whole
            address = builder.ptrtoint(buffer.data, WORD)
            function = ir.FunctionType(ir.VoidType(), [WORD] * 7).as_pointer()
            builder.call(
                builder.inttoptr(_function_address(builder, values[0], at), function),
                [
                    load_word(builder, values[0], 0),
                    incoming,
                    address,
                    buffer.nitems,
                    kind,
                    peer,
                    tag,
                ],
            )
            return context.get_dummy_value()

        return types.void(rank, incoming, array, kind, peer, tag), generate

    return intrinsic(signature)


def _type_count_as(_typing: Any, rank: Any, kind: Any) -> Any:
    """Call the function that counts time; returns the previous kind."""
    if not isinstance(rank, NumbaRank):
        raise NumbaTypeError(f"{PREFIX}buffering is a method of the context, not of {rank}")

    def generate(context: Any, builder: Any, call: Any, values: Any) -> Any:
        kind = context.cast(builder, values[1], call.args[1], types.int64)
        function = ir.FunctionType(WORD, [WORD] * 2).as_pointer()
        return builder.call(
            builder.inttoptr(_function_address(builder, values[0], 2), function),
            [load_word(builder, values[0], 0), kind],
        )

    return types.int64(rank, kind), generate


def _clock(at: int) -> Any:
    """Call the function that reads a clock; word ``at`` of the context has its place."""

    def signature(_typing: Any, rank: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            function = ir.FunctionType(ir.DoubleType(), [WORD]).as_pointer()
            address = builder.inttoptr(_function_address(builder, values[0], at), function)
            return builder.call(address, [load_word(builder, values[0], 0)])

        return types.float64(rank), generate

    return intrinsic(signature)


def _waiting(at: int) -> Any:
    """Call a function that waits for messages; word ``at`` of the context has its place."""

    def signature(_typing: Any, rank: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            function = ir.FunctionType(ir.VoidType(), [WORD]).as_pointer()
            address = builder.inttoptr(_function_address(builder, values[0], at), function)
            builder.call(address, [load_word(builder, values[0], 0)])
            return context.get_dummy_value()

        return types.void(rank), generate

    return intrinsic(signature)


count_as: Any = intrinsic(_type_count_as)
_start, _transfer, _post = _starting(1), _starting(6), _starting(7)
_wait, _take = _waiting(5), _waiting(8)
_seconds, _cpu_seconds = _clock(3), _clock(4)


def _check_message(name: str, buffer: Any, peer: Any, tag: Any) -> int:
    """The kind of the elements; refuses elements that cannot be sent or received."""
    if not isinstance(buffer, types.Array):
        raise NumbaTypeError(f"{PREFIX}{name} takes an array, not {buffer}")
    if not buffer.is_contig:
        raise NumbaTypeError(
            f"{PREFIX}{name} takes an array without gaps: copy it into one of the state "
            "first (of a plane, write field[k], not field[k, :, :])"
        )
    if name in ("irecv", "recv", "post") and not buffer.mutable:
        raise NumbaTypeError(f"{PREFIX}{name} takes an array that can be written")
    for what, number in (("a rank", peer), ("a tag", tag)):
        whole = _types.unliteral(getattr(number, "value", number))
        if not isinstance(whole, (types.Integer, int)):
            raise NumbaTypeError(f"{PREFIX}{name} takes {what} as a whole number, not {number}")
    return KINDS.index(str(buffer.dtype))


def _sending(name: str, call: Any) -> Callable[..., Any]:
    """A method that sends a message to another rank by ``call``."""

    def specialise(ctx: Any, buffer: Any, dest: Any, tag: Any = 0) -> Any:
        kind = _check_message(name, buffer, dest, tag)

        def send(ctx: Any, buffer: Any, dest: Any, tag: Any = 0) -> None:
            call(ctx, 0, buffer, kind, dest, tag)

        return send

    return specialise


def _receiving(name: str, call: Any) -> Callable[..., Any]:
    """A method that receives a message from another rank."""

    def specialise(ctx: Any, buffer: Any, source: Any, tag: Any = 0) -> Any:
        kind = _check_message(name, buffer, source, tag)

        def receive(ctx: Any, buffer: Any, source: Any, tag: Any = 0) -> None:
            call(ctx, 1, buffer, kind, source, tag)

        return receive

    return specialise


def _plain(call: Any) -> Callable[..., Any]:
    """A method without arguments."""

    def specialise(ctx: Any) -> Any:
        def method(ctx: Any) -> Any:
            return call(ctx)

        return method

    return specialise


for _name, _method in {
    "seconds": _plain(_seconds),
    "cpu_seconds": _plain(_cpu_seconds),
    "wait": _plain(_wait),
    "take": _plain(_take),
    "isend": _sending("isend", _start),
    "send": _sending("send", _transfer),
    "irecv": _receiving("irecv", _start),
    "recv": _receiving("recv", _transfer),
    "post": _receiving("post", _post),
}.items():
    overload_method(NumbaRank, _name)(_method)
