"""The words of one state: the data that compiled regions read from it while a graph runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.core.arena import Arena
from runner.runtimes.core.c_function import CFunction
from runner.runtimes.mate.compiled.state import (
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
    array_type,
    common_type,
    number_type,
    tuples_type,
)
from runner.runtimes.mate.errors import MateError
from runner.runtimes.mate.rank_position import Place

Words = NDArray[np.int64]
Zeros = Callable[[int, Any], NDArray[Any]]
"""Creates an array of this length and type."""
Regions = tuple[int, ...]
"""Numbers of regions, in ascending order."""
Messages = Callable[[Place], tuple[int, ...]]
"""Returns the address of a context's record, and the places of the addresses of eight functions.

The first is ``void start(record, incoming, address, count, kind, peer, tag)``, all of 64 bits: a
message of ``count`` elements at ``address`` to (``incoming``: from) the rank ``peer``. ``kind`` is
the place of the elements' type in :data:`runner.runtimes.core.words.KINDS`. The second is ``int64
count_as(record, kind)``: it counts the time from now on as this kind, and returns the kind before.
Then ``double seconds(record)``, by the clock and by the thread's CPU time; ``void wait(record)``
for all messages; two like the first, which wait for the message or leave it to a later execution;
and ``void take(record)``, which waits for the latter.
"""


class Block:
    """The packed state of one rank for one graph.

    It holds references to the arrays of the state. Keep it until every region has run and every
    message that the regions started is complete.
    """

    def __init__(
        self,
        state: Callable[[], Any],
        kind: StateType,
        messages: Messages,
        entries: tuple[int | None, ...],
        names: tuple[str, ...],
        regions: Regions = (),
        arena: Arena | None = None,
    ) -> None:
        """``entries``, ``names``: address (see :meth:`entry`) and name of each region.

        ``regions``: those that can see this state. With an arena all words lie there. ``state``
        returns the state; the block keeps only its arrays alive. Raises :class:`MateError` for a
        number that does not fit into 64 bits.
        """
        self.state, self.kind = state, kind
        self._entries, self._names, self.regions = entries, names, regions
        self.arena = arena
        zeros = _plain if arena is None else arena.zeros
        self._words: Words = zeros(kind.words, np.int64)
        self.load_count = 0
        """Number of times that a changed attribute was reloaded."""
        self._old_objects: list[Any] = []
        self._slots: list[tuple[str, _Slot]] = []
        for name, attribute in kind.attributes:
            words = self._words[kind.offsets[name] :][: attribute.words]
            slot = _slot(attribute, words, f"{type(state()).__name__}.{name}", messages, zeros)
            self._slots.append((name, slot))
        if not self.refresh(messages):
            raise MateError(
                f"the state {type(state()).__name__} changes while a graph is entered",
                code="mate.compiled_run",
            )

    @property
    def address(self) -> int:
        """Address of the first word: the first argument of every entry."""
        return self._words.ctypes.data

    def entry(self, region: int) -> int:
        """Address of ``void entry(uint64 address, int64 iteration)`` of a compiled region.

        0 for an optional region that runs in Python. Raises ``KeyError`` for a region that is not
        compiled.
        """
        address = self._entries[region]
        if address is None:
            raise KeyError(self._names[region])
        return address

    def refresh(self, messages: Messages) -> bool:
        """Reload the state at the entry of the graph; False if a type has changed.

        ``messages`` is that of the present job, which may have changed. After False the block is
        unusable. Objects that the state no longer holds stay alive until the next call, because
        messages of a lazy graph may still use them.
        """
        old_objects: list[Any] = []
        state = self.state()
        self._words[0] = 0
        for name, slot in self._slots:
            if isinstance(slot, _RankSlot):
                slot.messages = messages
            value = getattr(state, name, None) if name else state
            if not slot.same(value):
                old_objects.append(slot.objects())
                self.load_count += 1
                if not slot.load(value):
                    return False
        self._old_objects = old_objects
        return True

    def outside(self, names: Collection[str], arena: Arena) -> str:
        """The first array of these attributes outside of the arena; "" if there is none."""
        for name, slot in self._slots:
            for place, array in slot.arrays() if name in names else ():
                if not arena.holds(array):
                    return f"{type(self.state()).__name__}.{name}{place}"
        return ""

    def check(self) -> None:
        """At the exit of the graph: raise :class:`MateError` if compiled regions were misled.

        This happens if a Python region has rebound an attribute that compiled regions use, or if a
        compiled region ended early because numpy would have raised an error.
        """
        state = self.state()
        for name, slot in self._slots:
            if name and not slot.same(getattr(state, name, None)):
                raise MateError(
                    f"{type(state).__name__}.{name} has changed while the graph ran: compiled "
                    "regions have used the value that it had when the graph was entered; change "
                    "the elements of an array instead, or run one graph for each value",
                    code="mate.compiled_run",
                )
        if self._words[0]:
            raise MateError(
                f"region {self._names[int(self._words[0]) - 1]} ended early: numpy raises an error "
                "in one of its operations; run it with --core python to see which",
                code="mate.compiled_run",
            )


class _Slot:
    """Words of one attribute and their source."""

    def same(self, value: Any) -> bool:
        """True if the words already hold this value."""
        raise NotImplementedError

    def load(self, value: Any) -> bool:
        """Write the words; False if the value has another type."""
        raise NotImplementedError

    def objects(self) -> Any:
        """The objects whose addresses the words hold."""
        return None

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """The arrays whose addresses the words hold, and their places in the attribute."""
        yield from ()


class _NumberSlot(_Slot):
    def __init__(self, kind: Number, words: Words, name: str) -> None:
        self._kind, self._name = kind, name
        self._words = words if kind.kind == "int64" else words.view(np.float64)
        self._value: Any = None

    def same(self, value: Any) -> bool:
        previous = self._value
        if value is previous:
            return True
        if type(value) is not type(previous):
            return False
        return bool(value == previous or (value != value and previous != previous))

    def load(self, value: Any) -> bool:
        if number_type(value) != self._kind:
            return False
        try:
            self._words[0] = value
        except OverflowError:
            raise MateError(
                f"{self._name} is {value}, but whole numbers of compiled code go from -2**63 to "
                "2**63 - 1: use a float",
                code="mate.compiled_run",
            ) from None
        self._value = value
        return True


class _ArraySlot(_Slot):
    def __init__(self, kind: Array, words: Words) -> None:
        self._kind, self._words = kind, words
        self._array: NDArray[Any] | None = None
        self._shape: tuple[int, ...] = ()

    def same(self, value: Any) -> bool:
        return value is self._array and value is not None and value.shape == self._shape

    def load(self, value: Any) -> bool:
        if not isinstance(value, np.ndarray) or not _fits(self._kind, array_type(value)):
            return False
        _describe(value, self._words)
        self._array, self._shape = value, value.shape
        return True

    def objects(self) -> Any:
        return self._array

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        if self._array is not None:
            yield "", self._array


class _ArraysSlot(_Slot):
    def __init__(self, kind: Arrays, words: Words, zeros: Zeros) -> None:
        self._item, self._words, self._zeros = kind.item, words, zeros
        self._arrays: list[NDArray[Any]] | None = None
        self._shapes: list[tuple[int, ...]] = []
        self._items: Words = np.zeros(0, dtype=np.int64)

    def same(self, value: Any) -> bool:
        arrays = self._arrays
        if arrays is None or not isinstance(value, (list, tuple)) or len(value) != len(arrays):
            return False
        return all(
            a is b and a.shape == s for a, b, s in zip(value, arrays, self._shapes, strict=True)
        )

    def load(self, value: Any) -> bool:
        if not isinstance(value, (list, tuple)):
            return False
        if not all(isinstance(v, np.ndarray) for v in value):
            return False
        if value and not _fits(self._item, common_type(value)):
            return False
        self._items = self._zeros(len(value) * self._item.words, np.int64)
        for n, array in enumerate(value):
            _describe(array, self._items[n * self._item.words :])
        self._words[:] = len(value), self._items.ctypes.data
        self._arrays, self._shapes = list(value), [a.shape for a in value]
        return True

    def objects(self) -> Any:
        return self._arrays, self._items

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        for n, array in enumerate(self._arrays or ()):
            yield f"[{n}]", array


class _TuplesSlot(_Slot):
    def __init__(self, kind: Tuples, words: Words, name: str, zeros: Zeros) -> None:
        self._kind, self._words, self._name, self._zeros = kind, words, name, zeros
        self._rows: list[tuple[Any, ...]] | None = None
        self._shapes: list[list[Any]] = []
        self._items: Words = np.zeros(0, dtype=np.int64)

    def same(self, value: Any) -> bool:
        if self._rows is None or not isinstance(value, (list, tuple)):
            return False
        if len(value) != len(self._rows) or not all(isinstance(row, tuple) for row in value):
            return False
        return all(
            len(row) == len(previous) and all(map(_same, row, previous, shapes))
            for row, previous, shapes in zip(value, self._rows, self._shapes, strict=True)
        )

    def load(self, value: Any) -> bool:
        if not isinstance(value, (list, tuple)):
            return False
        kind = tuples_type(value) if value else self._kind
        if kind is None or len(kind.columns) != len(self._kind.columns):
            return False
        if not all(map(_column_fits, self._kind.columns, kind.columns)):
            return False
        self._items = self._zeros(len(value) * self._kind.item_words, np.int64)
        at = 0
        for row in value:
            for item, column in zip(row, self._kind.columns, strict=True):
                words = self._items[at : at + column.words]
                if isinstance(column, Array):
                    _describe(item, words)
                elif not _NumberSlot(column, words, self._name).load(item):
                    return False
                at += column.words
        self._words[:] = len(value), self._items.ctypes.data
        self._rows = list(value)
        self._shapes = [[getattr(item, "shape", None) for item in row] for row in value]
        return True

    def objects(self) -> Any:
        return self._rows, self._items

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        for n, row in enumerate(self._rows or ()):
            for column, item in enumerate(row):
                if isinstance(item, np.ndarray):
                    yield f"[{n}][{column}]", item


def _same(value: Any, previous: Any, shape: Any) -> bool:
    """True if an item of a row is unchanged: the same array, or an equal number."""
    if isinstance(previous, np.ndarray):
        return value is previous and value.shape == shape
    return type(value) is type(previous) and bool(value == previous or value != value)


def _column_fits(code_type: Number | Array, value_type: Number | Array) -> bool:
    if isinstance(code_type, Array):
        return isinstance(value_type, Array) and _fits(code_type, value_type)
    return code_type == value_type


class _NumbersSlot(_Slot):
    def __init__(self, kind: Numbers, words: Words, name: str, zeros: Zeros) -> None:
        self._kind, self._words, self._name, self._zeros = kind, words, name, zeros
        self._values: tuple[Any, ...] | None = None
        self._types: set[type] = set()
        self._copy: NDArray[Any] = np.zeros(0)

    def same(self, value: Any) -> bool:
        if self._values is None or not isinstance(value, (list, tuple)):
            return False
        return set(map(type, value)) == self._types and tuple(value) == self._values

    def load(self, value: Any) -> bool:
        if not isinstance(value, (list, tuple)):
            return False
        kinds = {number_type(v) for v in value}
        if None in kinds:
            return False
        whole = all(k is not None and k.kind == "int64" for k in kinds)
        if value and whole != (self._kind.element == "int64"):
            return False
        try:
            numbers = np.array(value, dtype=self._kind.element)
        except OverflowError:
            raise MateError(
                f"{self._name} holds a number beyond 64 bits, which compiled code cannot use: use "
                "floats",
                code="mate.compiled_run",
            ) from None
        self._copy = self._zeros(len(numbers), numbers.dtype)
        self._copy[:] = numbers
        _describe(self._copy, self._words)
        self._values, self._types = tuple(value), set(map(type, value))
        return True

    def objects(self) -> Any:
        return self._copy


class _FunctionSlot(_Slot):
    def __init__(self, kind: Function, words: Words) -> None:
        self._kind, self._words = kind, words
        self._function: CFunction | None = None

    def same(self, value: Any) -> bool:
        return value is self._function and value is not None

    def load(self, value: Any) -> bool:
        if not isinstance(value, CFunction):
            return False
        if (value.result, value.arguments) != (self._kind.result, self._kind.arguments):
            return False
        self._words[0] = value.address
        self._function = value
        return True

    def objects(self) -> Any:
        return self._function


class _RankSlot(_Slot):
    def __init__(self, words: Words, messages: Messages) -> None:
        self._words, self.messages = words, messages
        self._context: Place | None = None
        self._addresses: tuple[int, ...] = ()

    def same(self, value: Any) -> bool:
        is_same = value is self._context and value is not None
        return is_same and self.messages(value) == self._addresses

    def load(self, value: Any) -> bool:
        if not isinstance(value, Place):
            return False
        self._addresses = self.messages(value)
        self._words[:OWN] = self._addresses
        self._words[OWN:] = [getattr(value, name) for name in MEMBERS]
        self._context = value
        return True


def _slot(attribute: Attribute, words: Words, name: str, messages: Messages, zeros: Zeros) -> _Slot:
    match attribute:
        case Number():
            return _NumberSlot(attribute, words, name)
        case Array():
            return _ArraySlot(attribute, words)
        case Arrays():
            return _ArraysSlot(attribute, words, zeros)
        case Numbers():
            return _NumbersSlot(attribute, words, name, zeros)
        case Function():
            return _FunctionSlot(attribute, words)
        case Tuples():
            return _TuplesSlot(attribute, words, name, zeros)
        case _:
            return _RankSlot(words, messages)


def _plain(count: int, kind: Any) -> NDArray[Any]:
    return np.zeros(count, kind)


def _fits(code_type: Array, value_type: Array | None) -> bool:
    """True if code for one type of array may run on another."""
    if value_type is None:
        return False
    if (value_type.element, value_type.ndim) != (code_type.element, code_type.ndim):
        return False
    return (
        code_type.layout in ("A", value_type.layout) and code_type.readonly >= value_type.readonly
    )


def _describe(array: NDArray[Any], words: Words) -> None:
    """Write an array's address, extents and strides (bytes)."""
    address = array.__array_interface__["data"][0]
    words[: 1 + 2 * array.ndim] = (address, *array.shape, *array.strides)
