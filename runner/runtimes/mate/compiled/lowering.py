"""Reading the words of states and lists in compiled code, and compiling a region.

Importing this module imports numba, as importing :mod:`runner.runtimes.mate.compiled.numba_types`
does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.imputils import (
    RefType,
    iternext_impl,
    lower_builtin,
    lower_getattr_generic,
)
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, overload
from numba.np.arrayobj import populate_array

from runner.runtimes.core import distinct
from runner.runtimes.mate.compiled.numba_types import (
    WORD,
    NumbaArrays,
    NumbaIterator,
    NumbaRank,
    NumbaState,
    array_type,
    numba_type,
)
from runner.runtimes.mate.compiled.source import RegionSource
from runner.runtimes.mate.compiled.state import MEMBERS, OWN, Array, Function, Number, StateType

_types: Any = types  # for names that numba's annotations leave out


def load_word(builder: Any, address: Any, at: int) -> Any:
    """Load a word. Words do not change while compiled code runs, so loops need not load again."""
    place = builder.add(address, WORD(8 * at)) if at else address
    word = builder.load(builder.inttoptr(place, WORD.as_pointer()))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


def _array(context: Any, builder: Any, kind: Any, address: Any) -> Any:
    """The array that the words at ``address`` describe."""
    array = context.make_array(kind)(context, builder)
    element = context.get_data_type(kind.dtype)
    size = context.get_abi_sizeof(element)
    shape = [load_word(builder, address, 1 + d) for d in range(kind.ndim)]
    strides = [load_word(builder, address, 1 + kind.ndim + d) for d in range(kind.ndim)]
    if kind.ndim and kind.layout == "C":
        strides[-1] = WORD(size)
    if kind.ndim and kind.layout == "F":
        strides[0] = WORD(size)
    data = builder.inttoptr(load_word(builder, address, 0), element.as_pointer())
    populate_array(array, data, shape, strides, size, None)
    return array._getvalue()


def _lower_state(context: Any, builder: Any, kind: NumbaState, state: Any, name: str) -> Any:
    attribute, at = kind.attributes[name], kind.kind.offsets[name]
    target_type = numba_type(attribute)
    if isinstance(target_type, types.Array):
        return _array(context, builder, target_type, builder.add(state, WORD(8 * at)))
    if not isinstance(attribute, (Number, Function)):
        return builder.add(state, WORD(8 * at))
    if isinstance(attribute, Function):
        return load_word(builder, state, at)
    return _number(builder, attribute, load_word(builder, state, at))


def _number(builder: Any, kind: Number, word: Any) -> Any:
    """The number in a word."""
    if kind.kind == "int64":
        return word
    double = builder.bitcast(word, ir.DoubleType())
    return builder.fptrunc(double, ir.FloatType()) if kind.kind == "float32" else double


def _lower_rank(_context: Any, builder: Any, _kind: NumbaRank, rank: Any, name: str) -> Any:
    return load_word(builder, rank, OWN + MEMBERS.index(name))


lower_getattr_generic(NumbaState)(_lower_state)
lower_getattr_generic(NumbaRank)(_lower_rank)


def _index(_typing: Any, index: Any) -> Any:
    """An index as unsigned number; anything but an integer is unchanged."""
    whole = isinstance(index, types.Integer)

    def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return context.cast(builder, values[0], index, types.int64) if whole else values[0]

    return (types.uint64(index) if whole else index(index)), generate


def _type_length(_typing: Any, arrays: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return load_word(builder, values[0], 0)

    return types.int64(arrays), generate


index: Any = intrinsic(_index)
_length: Any = intrinsic(_type_length)


def _overload_length(arrays: Any) -> Any:
    def length(arrays: Any) -> Any:
        return _length(arrays)

    return length if isinstance(arrays, NumbaArrays) else None


overload(len)(_overload_length)


class _Item(AbstractTemplate):  # type: ignore[misc]
    """``arrays[n]``: no overload, because without numba's runtime these may not return arrays."""

    def generic(self, arguments: Any, _keywords: Any) -> Any:
        arrays, index = arguments
        if isinstance(arrays, NumbaArrays) and isinstance(index, types.Integer):
            return signature(arrays.array, arrays, _types.unliteral(index))
        return None


def _item(context: Any, builder: Any, kind: NumbaArrays, arrays: Any, number: Any) -> Any:
    if isinstance(kind.item, Array):
        offset = builder.mul(number, WORD(8 * kind.item.words))
        return _array(
            context, builder, kind.array, builder.add(load_word(builder, arrays, 1), offset)
        )
    offset = builder.mul(number, WORD(8 * kind.item.item_words))
    place, values = builder.add(load_word(builder, arrays, 1), offset), []
    for column in kind.item.columns:
        if isinstance(column, Array):
            values.append(_array(context, builder, array_type(column), place))
        else:
            values.append(_number(builder, column, load_word(builder, place, 0)))
        place = builder.add(place, WORD(8 * column.words))
    return context.make_tuple(builder, kind.array, values)


def _lower_item(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kind, index = signature.args
    arrays, number = values[0], context.cast(builder, values[1], index, types.int64)
    if index.signed:
        last = builder.add(number, load_word(builder, arrays, 0))
        number = builder.select(builder.icmp_signed("<", number, WORD(0)), last, number)
    if context.enable_boundscheck:
        cgutils.do_boundscheck(context, builder, number, load_word(builder, arrays, 0))
    return _item(context, builder, kind, arrays, number)


def _lower_iterator(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    iterator = context.make_helper(builder, signature.return_type)
    iterator.next = cgutils.alloca_once_value(builder, WORD(0))
    iterator.arrays = values[0]
    return iterator._getvalue()


def _lower_next(context: Any, builder: Any, signature: Any, values: Any, result: Any) -> None:
    kind = signature.args[0]
    iterator = context.make_helper(builder, kind, value=values[0])
    number = builder.load(iterator.next)
    valid = builder.icmp_signed("<", number, load_word(builder, iterator.arrays, 0))
    result.set_valid(valid)
    with builder.if_then(valid):
        result.yield_(_item(context, builder, kind.arrays, iterator.arrays, number))
        builder.store(builder.add(number, WORD(1)), iterator.next)


infer_global(operator.getitem)(_Item)
lower_builtin(operator.getitem, NumbaArrays, types.Integer)(_lower_item)
lower_builtin("getiter", NumbaArrays)(_lower_iterator)
lower_builtin("iternext", NumbaIterator)(iternext_impl(RefType.BORROWED)(_lower_next))


def compile_region(function: Any, kind: StateType, region: int) -> Callable[[int, int], None]:
    """Compile a region (made by :func:`dispatcher`) and return its entry, to be compiled in turn.

    The entry takes the address of the state's words and the iteration. If the region ends early
    because an operation of numpy raises an error, 1 + ``region`` is written into the first word.
    Raises numba's errors.
    """
    state = NumbaRank() if kind.of_context else NumbaState(kind)
    arguments = (state, types.int64)
    function.compile(arguments)
    overload = function.overloads[arguments]
    offset = WORD(8 * kind.offsets[""] if kind.of_context else 0)

    def call(_typing: Any, _words: Any, _iteration: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            context.add_linking_libs([overload.library])
            words, iteration = values
            status, _ = context.call_internal_no_propagate(
                builder,
                overload.fndesc,
                overload.signature,
                [builder.add(words, offset), iteration],
            )
            with builder.if_then(status.is_error):
                builder.store(WORD(1 + region), builder.inttoptr(words, WORD.as_pointer()))
            return context.get_dummy_value()

        return types.void(types.uint64, types.int64), generate

    call_region = intrinsic(call)

    def entry(words: int, iteration: int) -> None:
        call_region(words, iteration)

    return entry


def dispatcher(function: Any, source: RegionSource) -> Any:
    """The function as numba compiles it: without allocation, and by default without checks.

    If ``source`` keeps Python's rules, indices are checked. If the user has decorated it, the
    user's options apply. It may be marked as having distinct arrays.
    """
    options: dict[str, Any] = {"error_model": "numpy", "boundscheck": source.python}
    if source.jit is not None:
        options = {"boundscheck": False, **source.jit}
    options |= distinct.options(source.function)
    return numba.njit(_nrt=False, **options)(function)
