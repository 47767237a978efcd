"""Memory words, atomics and machine instructions for compiled code; nothing here runs in Python.

Addresses are int64. ``load`` and ``store`` are for words with one writer at a time; ``peek`` and
``put`` are for words that other threads change. All operations on these are sequentially
consistent, except that ``put`` only releases: a thread that writes one word and then reads another
must write with ``exchange``.
"""

from __future__ import annotations

import dis
import functools
import platform
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic

from runner.runtimes.core import distinct

_WORD, _REAL, _INT, _VOID = ir.IntType(64), ir.DoubleType(), ir.IntType(32), ir.VoidType()
_X86 = platform.machine() in ("x86_64", "AMD64")


def _pointer(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


def _made(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., int]]:
    """An intrinsic with this signature from a function (context, builder, arguments)."""

    def make(write: Callable[..., Any]) -> Callable[..., int]:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            value = write(context, builder, given)
            return context.get_dummy_value() if value is None else value

        signature = result(*arguments)

        made = signature, generate
        # The number of parameters must be explicit: numba allows no ``*arguments`` here.
        typed: list[Callable[..., Any]] = [
            lambda typing: made,
            lambda typing, a: made,
            lambda typing, a, b: made,
            lambda typing, a, b, c: made,
            lambda typing, a, b, c, d: made,
            lambda typing, a, b, c, d, e: made,
            lambda typing, a, b, c, d, e, f: made,
            lambda typing, a, b, c, d, e, f, g: made,
            lambda typing, a, b, c, d, e, f, g, h: made,
        ]
        chosen = typed[len(arguments)]
        chosen.__name__ = write.__name__
        made_it: Callable[..., int] = intrinsic(chosen)
        return made_it

    return make


Function = TypeVar("Function", bound=Callable[..., Any])


class _Inner(CPUDispatcher):  # type: ignore[misc]
    """A function compiled once for all constants, which Python cannot call.

    numba would recompile it for each constant argument; LLVM knows constants anyway.
    """

    def get_call_template(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        return super().get_call_template(tuple(types.unliteral(kind) for kind in args), kws)


def inner(function: Function) -> Function:
    """Decorator of a function that compiled code calls; Python cannot call it.

    Plain functions that it calls by their bare names are compiled, too.
    """
    options = distinct.options(function)
    made = numba.njit(
        error_model="numpy",
        _nrt=False,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        **options,
    )(_with_helpers(function))
    made.__class__ = _Inner
    return cast(Function, made)


@functools.cache
def _helper(function: Callable[..., Any]) -> Callable[..., Any]:
    return inner(function)


def _with_helpers(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the plain functions that it calls replaced by compiled ones."""
    space = function.__globals__
    names = {i.argval for i in dis.get_instructions(function) if i.opname == "LOAD_GLOBAL"}
    helpers = {name: _helper(f) for name in names if _is_plain(f := space.get(name))}
    if not helpers:
        return function
    return FunctionType(function.__code__, space | helpers, function.__name__)


def _is_plain(value: Any) -> bool:
    """True if this is a Python function unknown to numba."""
    package = (getattr(value, "__module__", None) or "").partition(".")[0]
    return isinstance(value, FunctionType) and package not in ("numba", "numpy")


_I, _F, _N = types.int64, types.float64, types.void


@_made(_I, _I)
def load(context: Any, builder: Any, given: Any) -> Any:
    return builder.load(_pointer(builder, given[0], _WORD))


@_made(_N, _I, _I)
def store(context: Any, builder: Any, given: Any) -> None:
    builder.store(given[1], _pointer(builder, given[0], _WORD))


@_made(_F, _I)
def load_real(context: Any, builder: Any, given: Any) -> Any:
    return builder.load(_pointer(builder, given[0], _REAL))


@_made(_N, _I, _F)
def store_real(context: Any, builder: Any, given: Any) -> None:
    builder.store(given[1], _pointer(builder, given[0], _REAL))


@_made(_I, _I)
def load_int(context: Any, builder: Any, given: Any) -> Any:
    return builder.sext(builder.load(_pointer(builder, given[0], _INT)), _WORD)


@_made(_N, _I, _I)
def store_int(context: Any, builder: Any, given: Any) -> None:
    builder.store(builder.trunc(given[1], _INT), _pointer(builder, given[0], _INT))


@_made(_I, _I)
def peek(context: Any, builder: Any, given: Any) -> Any:
    return builder.load_atomic(_pointer(builder, given[0], _WORD), ordering="seq_cst", align=8)


@_made(_N, _I, _I)
def put(context: Any, builder: Any, given: Any) -> None:
    place = _pointer(builder, given[0], _WORD)
    builder.store_atomic(given[1], place, ordering="release", align=8)


@_made(_F, _I)
def peek_real(context: Any, builder: Any, given: Any) -> Any:
    bits = builder.load_atomic(_pointer(builder, given[0], _WORD), ordering="seq_cst", align=8)
    return builder.bitcast(bits, _REAL)


@_made(_N, _I, _F)
def put_real(context: Any, builder: Any, given: Any) -> None:
    place, bits = _pointer(builder, given[0], _WORD), builder.bitcast(given[1], _WORD)
    builder.store_atomic(bits, place, ordering="release", align=8)


def _changing(operation: str) -> Callable[..., Any]:
    def change(context: Any, builder: Any, given: Any) -> Any:
        place = _pointer(builder, given[0], _WORD)
        return builder.atomic_rmw(operation, place, given[1], "seq_cst")

    change.__name__ = f"atomic_{operation}"
    return change


add = _made(_I, _I, _I)(_changing("add"))
"""Add to a word; returns the previous value."""
exchange = _made(_I, _I, _I)(_changing("xchg"))
set_bits = _made(_I, _I, _I)(_changing("or"))
keep_bits = _made(_I, _I, _I)(_changing("and"))


@_made(_I, _I, _I, _I)
def swap_if(context: Any, builder: Any, given: Any) -> Any:
    """Write the third value if the word is the second; returns 1 if it was, else 0."""
    place = _pointer(builder, given[0], _WORD)
    pair = builder.cmpxchg(place, given[1], given[2], "seq_cst", "seq_cst")
    return builder.zext(builder.extract_value(pair, 1), _WORD)


@_made(_N)
def fence(context: Any, builder: Any, given: Any) -> None:
    builder.fence("seq_cst")


@_made(_N)
def pause(context: Any, builder: Any, given: Any) -> None:
    """Tell an x86 core that this thread spins; does nothing on others."""
    if _X86:
        kind = ir.FunctionType(_VOID, [])
        name = "llvm.x86.sse2.pause"
        builder.call(cgutils.get_or_insert_function(builder.module, kind, name), ())


@_made(_I)
def ticks(context: Any, builder: Any, given: Any) -> Any:
    """The counter of an x86 processor; 0 on others, which read the system's clock."""
    if not _X86:
        return _WORD(0)
    kind = ir.FunctionType(_WORD, [])
    name = "llvm.readcyclecounter"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), ())


@_made(_I, _I)
def lowest(context: Any, builder: Any, given: Any) -> Any:
    """Number of the lowest set bit."""
    return builder.cttz(given[0], ir.Constant(ir.IntType(1), 1))


@_made(_N, _I, _I, _I)
def copy(context: Any, builder: Any, given: Any) -> None:
    """Copy bytes: target, source, number."""
    byte = ir.IntType(8)
    cgutils.raw_memcpy(
        builder, _pointer(builder, given[0], byte), _pointer(builder, given[1], byte), given[2], 1
    )


def _calling(count: int, result: Any, varied: bool = False) -> Callable[..., Any]:
    """A call of a C function at an address with ``count`` words."""

    def call(context: Any, builder: Any, given: Any) -> Any:
        kind = ir.FunctionType(result, [_WORD] * (1 if varied else count), var_arg=varied)
        answer = builder.call(_pointer(builder, given[0], kind), given[1:])
        if result is _VOID:
            return None
        return builder.sext(answer, _WORD) if result is _INT else answer

    call.__name__ = f"call_{count}"
    return call


call_0 = _made(_I, _I)(_calling(0, _INT))
"""Call a C function that returns an int; the first argument is its address."""
call_2 = _made(_I, _I, _I, _I)(_calling(2, _INT))
call_5 = _made(_I, *[_I] * 6)(_calling(5, _INT))
call_7 = _made(_I, *[_I] * 8)(_calling(7, _INT))
call_word_2 = _made(_I, _I, _I, _I)(_calling(2, _WORD))
"""The same with a result of 64 bits."""
call_word_3 = _made(_I, *[_I] * 4)(_calling(3, _WORD))
call_nothing_2 = _made(_N, _I, _I, _I)(_calling(2, _VOID))
call_nothing_4 = _made(_N, *[_I] * 5)(_calling(4, _VOID))
call_nothing_6 = _made(_N, *[_I] * 7)(_calling(6, _VOID))
call_varied_6 = _made(_I, *[_I] * 7)(_calling(6, _WORD, varied=True))
"""A C function with a variable number of arguments, such as ``syscall``."""
