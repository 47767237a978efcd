"""What numba must know to compile regions: the types of states, and how their words are read.

Importing this module imports numba. Nothing else of the package does.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.errors import NumbaTypeError
from numba.core.imputils import (
    RefType,
    iternext_impl,
    lower_builtin,
    lower_getattr_generic,
)
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import intrinsic, models, overload, overload_method, register_model
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype

from runner.mate.compiled.c_call import NumbaFunction
from runner.mate.compiled.failure import SAID
from runner.mate.compiled.source import RegionSource
from runner.mate.compiled.state import (
    MEMBERS,
    OWN,
    Array,
    Arrays,
    Attribute,
    Function,
    Number,
    Numbers,
    StateType,
    Tuples,
)
from runner.mate.compiled.uses import CLOCKS, MESSAGES, METHODS
from runner.native import distinct
from runner.native.words import KINDS

_WORD = ir.IntType(64)
_types: Any = types  # for names that numba's annotations leave out


class NumbaState(types.Type):
    """A state: the address of its words."""

    def __init__(self, kind: StateType) -> None:
        self.kind = kind
        self.attributes = dict(kind.attributes)
        digest = hashlib.sha256(str(kind).encode()).hexdigest()[:16]
        super().__init__(name=f"state_{digest}")


class NumbaRank(types.Type):
    """The context: the address of its words."""

    def __init__(self) -> None:
        super().__init__(name="context")


class NumbaArrays(types.IterableType):
    """A list of arrays, or of tuples: the address of its two words."""

    def __init__(self, item: Array | Tuples) -> None:
        self.item, self.array = item, _item_type(item)
        super().__init__(name=f"list_of_{self.array}")

    @property
    def iterator_type(self) -> Any:
        return NumbaIterator(self)


class NumbaIterator(types.SimpleIteratorType):  # type: ignore[name-defined,misc]
    """An iterator over a list of arrays."""

    def __init__(self, arrays: NumbaArrays) -> None:
        self.arrays = arrays
        super().__init__(f"iterator_of_{arrays}", arrays.array)


def _array_type(array: Array) -> Any:
    layout: Any = array.layout
    element = from_dtype(np.dtype(array.element))
    return types.Array(element, array.ndim, layout, readonly=array.readonly)


def _item_type(item: Array | Tuples) -> Any:
    if isinstance(item, Array):
        return _array_type(item)
    return _types.Tuple([numba_type(column) for column in item.columns])


def numba_type(attribute: Attribute) -> Any:
    """The type of an attribute's value in compiled code."""
    match attribute:
        case Number(kind):
            return getattr(types, kind)
        case Array():
            return _array_type(attribute)
        case Numbers():
            return _array_type(attribute.array)
        case Arrays(item):
            return NumbaArrays(item)
        case Function():
            return NumbaFunction(attribute)
        case Tuples():
            return NumbaArrays(attribute)
        case _:
            return NumbaRank()


class _AddressModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _WORD)


class _IteratorModel(models.StructModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        members = [("next", _types.EphemeralPointer(types.int64)), ("arrays", kind.arrays)]
        super().__init__(manager, kind, members)


for _kind in (NumbaState, NumbaRank, NumbaArrays, NumbaFunction):
    register_model(_kind)(_AddressModel)
register_model(NumbaIterator)(_IteratorModel)


class _StateAttributes(AttributeTemplate):  # type: ignore[misc]
    key = NumbaState

    def generic_resolve(self, state: NumbaState, name: str) -> Any:
        return numba_type(state.attributes[name]) if name in state.attributes else None


class _RankAttributes(AttributeTemplate):  # type: ignore[misc]
    key = NumbaRank

    def generic_resolve(self, _rank: NumbaRank, name: str) -> Any:
        if name in MEMBERS:
            return types.int64
        if name not in (*MESSAGES, *CLOCKS):
            raise NumbaTypeError(
                f"{SAID}ctx.{name} cannot be used in compiled code; possible are "
                f"{', '.join((*METHODS, *MEMBERS))}"
            )
        return None


infer_getattr(_StateAttributes)
infer_getattr(_RankAttributes)


def _word(builder: Any, address: Any, at: int) -> Any:
    """Load a word. Words do not change while compiled code runs, so loops need not load again."""
    place = builder.add(address, _WORD(8 * at)) if at else address
    word = builder.load(builder.inttoptr(place, _WORD.as_pointer()))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


def _called(builder: Any, rank: Any, at: int) -> Any:
    """The address of a function of the runtime: each process has its own at the same place."""
    return _word(builder, _word(builder, rank, at), 0)


def _array(context: Any, builder: Any, kind: Any, address: Any) -> Any:
    """The array that the words at ``address`` describe."""
    made = context.make_array(kind)(context, builder)
    element = context.get_data_type(kind.dtype)
    size = context.get_abi_sizeof(element)
    shape = [_word(builder, address, 1 + d) for d in range(kind.ndim)]
    strides = [_word(builder, address, 1 + kind.ndim + d) for d in range(kind.ndim)]
    if kind.ndim and kind.layout == "C":
        strides[-1] = _WORD(size)
    if kind.ndim and kind.layout == "F":
        strides[0] = _WORD(size)
    data = builder.inttoptr(_word(builder, address, 0), element.as_pointer())
    populate_array(made, data, shape, strides, size, None)
    return made._getvalue()


def _lower_state(context: Any, builder: Any, kind: NumbaState, state: Any, name: str) -> Any:
    attribute, at = kind.attributes[name], kind.kind.offsets[name]
    wanted = numba_type(attribute)
    if isinstance(wanted, types.Array):
        return _array(context, builder, wanted, builder.add(state, _WORD(8 * at)))
    if not isinstance(attribute, (Number, Function)):
        return builder.add(state, _WORD(8 * at))
    if isinstance(attribute, Function):
        return _word(builder, state, at)
    return _number(builder, attribute, _word(builder, state, at))


def _number(builder: Any, kind: Number, word: Any) -> Any:
    """The number in a word."""
    if kind.kind == "int64":
        return word
    double = builder.bitcast(word, ir.DoubleType())
    return builder.fptrunc(double, ir.FloatType()) if kind.kind == "float32" else double


def _lower_rank(_context: Any, builder: Any, _kind: NumbaRank, rank: Any, name: str) -> Any:
    return _word(builder, rank, OWN + MEMBERS.index(name))


lower_getattr_generic(NumbaState)(_lower_state)
lower_getattr_generic(NumbaRank)(_lower_rank)


def _index(_typing: Any, index: Any) -> Any:
    """An index as unsigned number; anything that is no whole number as it is."""
    whole = isinstance(index, types.Integer)

    def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return context.cast(builder, values[0], index, types.int64) if whole else values[0]

    return (types.uint64(index) if whole else index(index)), generate


def _type_length(_typing: Any, arrays: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return _word(builder, values[0], 0)

    return types.int64(arrays), generate


def _starting(at: int) -> Any:
    """Call a function that starts a message; word ``at`` of the context says where it is."""

    def typed(
        _typing: Any, rank: Any, incoming: Any, array: Any, kind: Any, peer: Any, tag: Any
    ) -> Any:
        def generate(context: Any, builder: Any, called: Any, values: Any) -> Any:
            found = context.make_array(array)(context, builder, values[2])
            whole = [
                context.cast(builder, values[n], called.args[n], types.int64) for n in (1, 3, 4, 5)
            ]
            incoming, kind, peer, tag = whole
            address = builder.ptrtoint(found.data, _WORD)
            function = ir.FunctionType(ir.VoidType(), [_WORD] * 7).as_pointer()
            builder.call(
                builder.inttoptr(_called(builder, values[0], at), function),
                [_word(builder, values[0], 0), incoming, address, found.nitems, kind, peer, tag],
            )
            return context.get_dummy_value()

        return types.void(rank, incoming, array, kind, peer, tag), generate

    return intrinsic(typed)


def _type_count_as(_typing: Any, rank: Any, kind: Any) -> Any:
    """Call the function that counts time; gives the kind before."""
    if not isinstance(rank, NumbaRank):
        raise NumbaTypeError(f"{SAID}buffering is a method of the context, not of {rank}")

    def generate(context: Any, builder: Any, called: Any, values: Any) -> Any:
        wanted = context.cast(builder, values[1], called.args[1], types.int64)
        function = ir.FunctionType(_WORD, [_WORD] * 2).as_pointer()
        return builder.call(
            builder.inttoptr(_called(builder, values[0], 2), function),
            [_word(builder, values[0], 0), wanted],
        )

    return types.int64(rank, kind), generate


def _clock(at: int) -> Any:
    """Call the function that reads a clock; word ``at`` of the context says where it is."""

    def typed(_typing: Any, rank: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            function = ir.FunctionType(ir.DoubleType(), [_WORD]).as_pointer()
            address = builder.inttoptr(_called(builder, values[0], at), function)
            return builder.call(address, [_word(builder, values[0], 0)])

        return types.float64(rank), generate

    return intrinsic(typed)


def _waiting(at: int) -> Any:
    """Call a function that waits for messages; word ``at`` of the context says where it is."""

    def typed(_typing: Any, rank: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            function = ir.FunctionType(ir.VoidType(), [_WORD]).as_pointer()
            address = builder.inttoptr(_called(builder, values[0], at), function)
            builder.call(address, [_word(builder, values[0], 0)])
            return context.get_dummy_value()

        return types.void(rank), generate

    return intrinsic(typed)


index: Any = intrinsic(_index)
count_as: Any = intrinsic(_type_count_as)
_length: Any = intrinsic(_type_length)
_start, _transfer, _post = _starting(1), _starting(6), _starting(7)
_wait, _take = _waiting(5), _waiting(8)
_seconds, _cpu_seconds = _clock(3), _clock(4)


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
        offset = builder.mul(number, _WORD(8 * kind.item.words))
        return _array(context, builder, kind.array, builder.add(_word(builder, arrays, 1), offset))
    offset = builder.mul(number, _WORD(8 * kind.item.item_words))
    place, values = builder.add(_word(builder, arrays, 1), offset), []
    for column in kind.item.columns:
        if isinstance(column, Array):
            values.append(_array(context, builder, _array_type(column), place))
        else:
            values.append(_number(builder, column, _word(builder, place, 0)))
        place = builder.add(place, _WORD(8 * column.words))
    return context.make_tuple(builder, kind.array, values)


def _lower_item(context: Any, builder: Any, called: Any, values: Any) -> Any:
    kind, index = called.args
    arrays, number = values[0], context.cast(builder, values[1], index, types.int64)
    if index.signed:
        last = builder.add(number, _word(builder, arrays, 0))
        number = builder.select(builder.icmp_signed("<", number, _WORD(0)), last, number)
    if context.enable_boundscheck:
        cgutils.do_boundscheck(context, builder, number, _word(builder, arrays, 0))
    return _item(context, builder, kind, arrays, number)


def _lower_iterator(context: Any, builder: Any, called: Any, values: Any) -> Any:
    made = context.make_helper(builder, called.return_type)
    made.next = cgutils.alloca_once_value(builder, _WORD(0))
    made.arrays = values[0]
    return made._getvalue()


def _lower_next(context: Any, builder: Any, called: Any, values: Any, result: Any) -> None:
    kind = called.args[0]
    iterator = context.make_helper(builder, kind, value=values[0])
    number = builder.load(iterator.next)
    valid = builder.icmp_signed("<", number, _word(builder, iterator.arrays, 0))
    result.set_valid(valid)
    with builder.if_then(valid):
        result.yield_(_item(context, builder, kind.arrays, iterator.arrays, number))
        builder.store(builder.add(number, _WORD(1)), iterator.next)


infer_global(operator.getitem)(_Item)
lower_builtin(operator.getitem, NumbaArrays, types.Integer)(_lower_item)
lower_builtin("getiter", NumbaArrays)(_lower_iterator)
lower_builtin("iternext", NumbaIterator)(iternext_impl(RefType.BORROWED)(_lower_next))


def _check_message(name: str, buffer: Any, peer: Any, tag: Any) -> int:
    """The kind of the elements; refuses what cannot be sent or received."""
    if not isinstance(buffer, types.Array):
        raise NumbaTypeError(f"{SAID}{name} takes an array, not {buffer}")
    if not buffer.is_contig:
        raise NumbaTypeError(
            f"{SAID}{name} takes an array without gaps: copy it into one of the state "
            "first (of a plane, write field[k], not field[k, :, :])"
        )
    if name in ("irecv", "recv", "post") and not buffer.mutable:
        raise NumbaTypeError(f"{SAID}{name} takes an array that can be written")
    for what, number in (("a rank", peer), ("a tag", tag)):
        whole = _types.unliteral(getattr(number, "value", number))
        if not isinstance(whole, (types.Integer, int)):
            raise NumbaTypeError(f"{SAID}{name} takes {what} as a whole number, not {number}")
    return KINDS.index(str(buffer.dtype))


def _sending(name: str, call: Any) -> Callable[..., Any]:
    """A method that gives a message to another rank: ``call`` is what starts it."""

    def typed(ctx: Any, buffer: Any, dest: Any, tag: Any = 0) -> Any:
        kind = _check_message(name, buffer, dest, tag)

        def sent(ctx: Any, buffer: Any, dest: Any, tag: Any = 0) -> None:
            call(ctx, 0, buffer, kind, dest, tag)

        return sent

    return typed


def _receiving(name: str, call: Any) -> Callable[..., Any]:
    """A method that gets a message of another rank."""

    def typed(ctx: Any, buffer: Any, source: Any, tag: Any = 0) -> Any:
        kind = _check_message(name, buffer, source, tag)

        def received(ctx: Any, buffer: Any, source: Any, tag: Any = 0) -> None:
            call(ctx, 1, buffer, kind, source, tag)

        return received

    return typed


def _plain(call: Any) -> Callable[..., Any]:
    """A method without arguments."""

    def typed(ctx: Any) -> Any:
        def called(ctx: Any) -> Any:
            return call(ctx)

        return called

    return typed


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


def compile_region(function: Any, kind: StateType, region: int) -> Callable[[int, int], None]:
    """Compile a region (made by :func:`dispatcher`) and return its entry, to be compiled in turn.

    The entry takes the address of the state's words and the iteration. If the region ends early
    because an operation of numpy raises an error, 1 + ``region`` is written into the first word.
    Raises numba's errors.
    """
    state = NumbaRank() if kind.of_context else NumbaState(kind)
    arguments = (state, types.int64)
    function.compile(arguments)
    compiled = function.overloads[arguments]
    skipped = _WORD(8 * kind.offsets[""] if kind.of_context else 0)

    def call(_typing: Any, _words: Any, _iteration: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            context.add_linking_libs([compiled.library])
            words, iteration = values
            status, _ = context.call_internal_no_propagate(
                builder,
                compiled.fndesc,
                compiled.signature,
                [builder.add(words, skipped), iteration],
            )
            with builder.if_then(status.is_error):
                builder.store(_WORD(1 + region), builder.inttoptr(words, _WORD.as_pointer()))
            return context.get_dummy_value()

        return types.void(types.uint64, types.int64), generate

    called = intrinsic(call)

    def entry(words: int, iteration: int) -> None:
        called(words, iteration)

    return entry


def dispatcher(function: Any, source: RegionSource) -> Any:
    """The function as numba compiles it: without allocation, and by default without checks.

    Where ``source`` keeps Python's rules, indices are checked. Where the user has decorated it, the
    user's options are in force. It may be marked as one of distinct arrays.
    """
    options: dict[str, Any] = {"error_model": "numpy", "boundscheck": source.python}
    if source.jit is not None:
        options = {"boundscheck": False, **source.jit}
    options |= distinct.options(source.function)
    return numba.njit(_nrt=False, **options)(function)
