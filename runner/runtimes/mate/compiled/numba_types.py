"""The types of compiled code: states, the context, lists of arrays, and their attributes."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.errors import NumbaTypeError
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import models, register_model
from numba.np.numpy_support import from_dtype

from runner.runtimes.mate.compiled.c_call import NumbaFunction
from runner.runtimes.mate.compiled.failure import PREFIX
from runner.runtimes.mate.compiled.state import (
    MEMBERS,
    Array,
    Arrays,
    Attribute,
    Function,
    Number,
    Numbers,
    StateType,
    Tuples,
)
from runner.runtimes.mate.compiled.uses import CLOCKS, MESSAGES, METHODS

WORD = ir.IntType(64)
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
        self.item, self.array = item, item_type(item)
        super().__init__(name=f"list_of_{self.array}")

    @property
    def iterator_type(self) -> Any:
        return NumbaIterator(self)


class NumbaIterator(types.SimpleIteratorType):  # type: ignore[name-defined,misc]
    """An iterator over a list of arrays."""

    def __init__(self, arrays: NumbaArrays) -> None:
        self.arrays = arrays
        super().__init__(f"iterator_of_{arrays}", arrays.array)


def array_type(array: Array) -> Any:
    """numba's type of an array."""
    layout: Any = array.layout
    element = from_dtype(np.dtype(array.element))
    return types.Array(element, array.ndim, layout, readonly=array.readonly)


def item_type(item: Array | Tuples) -> Any:
    """The type of a list's items: arrays, or tuples of columns."""
    if isinstance(item, Array):
        return array_type(item)
    return _types.Tuple([numba_type(column) for column in item.columns])


def numba_type(attribute: Attribute) -> Any:
    """The type of an attribute's value in compiled code."""
    match attribute:
        case Number(kind):
            return getattr(types, kind)
        case Array():
            return array_type(attribute)
        case Numbers():
            return array_type(attribute.array)
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
        super().__init__(manager, kind, WORD)


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
                f"{PREFIX}ctx.{name} cannot be used in compiled code; possible are "
                f"{', '.join((*METHODS, *MEMBERS))}"
            )
        return None


infer_getattr(_StateAttributes)
infer_getattr(_RankAttributes)
