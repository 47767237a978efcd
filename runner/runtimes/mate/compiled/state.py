"""The types of a state's attributes in compiled code, and the words that hold them.

A state is packed into words of 8 bytes: one word of the runtime, then each attribute in turn. An
array takes its address, its extents and its strides in bytes; a list of arrays takes its length and
the address of the words of its arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.runtimes.core.c_function import CFunction
from runner.runtimes.core.words import KINDS
from runner.runtimes.mate.compiled.source import Refusal, RegionSource
from runner.runtimes.mate.compiled.uses import METHODS, Role, Use
from runner.runtimes.mate.errors import MateError
from runner.runtimes.mate.rank_position import Place

MEMBERS = ("rank", "local_rank", "size", "local_count", "process", "process_count", "workers")
"""Attributes of the context that compiled code can use."""
OWN = 9
"""Words of a context before these: the address of its record, and the places of the addresses in
:attr:`runner.runtimes.core.core.Core.called`."""
HEAD = 1
"""Words before the attributes: 0, or 1 + the region that ended early."""
_POSSIBLE = (
    "possible are int, float, bool, numpy arrays of numbers, lists and tuples of numbers, lists "
    "and tuples of arrays of one type, lists of tuples of these, C functions (mate.CFunction), "
    "and the context"
)


@dataclass(frozen=True)
class Number:
    """``int64``, ``float64`` or ``float32``, in one word (``float32`` as ``float64``)."""

    kind: str
    words = 1

    def __str__(self) -> str:
        return self.kind


@dataclass(frozen=True)
class Array:
    """A numpy array; ``layout`` is ``C``, ``F`` or ``A`` (any strides)."""

    element: str
    ndim: int
    layout: str
    readonly: bool = False

    @property
    def words(self) -> int:
        return 1 + 2 * self.ndim

    def __str__(self) -> str:
        return f"{self.element}[{self.ndim}{self.layout}{'r' * self.readonly}]"


@dataclass(frozen=True)
class Numbers:
    """A list or tuple of numbers, seen as a read-only array."""

    element: str
    words = 3

    @property
    def array(self) -> Array:
        return Array(self.element, 1, "C", readonly=True)

    def __str__(self) -> str:
        return f"list({self.element})"


@dataclass(frozen=True)
class Arrays:
    """A list or tuple of arrays of one type."""

    item: Array
    words = 2

    def __str__(self) -> str:
        return f"list({self.item})"


@dataclass(frozen=True)
class Tuples:
    """A list or tuple of tuples; each has numbers and arrays of these types."""

    columns: tuple[Number | Array, ...]
    words = 2

    @property
    def item_words(self) -> int:
        """Words of one tuple, column after column."""
        return sum(column.words for column in self.columns)

    def __str__(self) -> str:
        return f"list(({', '.join(map(str, self.columns))}))"


@dataclass(frozen=True)
class Rank:
    """The context: :data:`OWN` addresses, then :data:`MEMBERS`."""

    words = OWN + len(MEMBERS)

    def __str__(self) -> str:
        return "context"


@dataclass(frozen=True)
class Function:
    """A C function: its address, in one word."""

    result: str
    arguments: tuple[str, ...]
    words = 1

    def __str__(self) -> str:
        return f"{self.result}({','.join(self.arguments)})"


Attribute = Number | Array | Numbers | Arrays | Tuples | Function | Rank


@dataclass(frozen=True)
class StateType:
    """The attributes of a state in the order of their words.

    ``guesses`` names lists that were empty; only their use shows what they would hold. If the state
    is the context itself, the only attribute is the context, called ``""``.
    """

    attributes: tuple[tuple[str, Attribute], ...]
    guesses: frozenset[str] = frozenset()

    @property
    def of_context(self) -> bool:
        return self.attributes == (("", Rank()),)

    @functools.cached_property
    def offsets(self) -> dict[str, int]:
        """Attribute -> its first word."""
        offsets, at = {}, HEAD
        for name, attribute in self.attributes:
            offsets[name] = at
            at += attribute.words
        return offsets

    @property
    def words(self) -> int:
        return HEAD + sum(attribute.words for _, attribute in self.attributes)

    def __str__(self) -> str:
        return " ".join(f"{name}:{attribute}" for name, attribute in self.attributes)


def state_type(state: Any, uses: dict[str, Use], others: Iterable[StateType] = ()) -> StateType:
    """The types of the attributes that compiled functions use.

    ``others``: the types of other ranks' states. An empty list gets the item type of theirs, else
    the one suggested by its use: integers, or arrays of ``float64`` or of indices. Raises
    :class:`MateError` for an attribute that is missing or cannot be packed, and :class:`GraphError`
    for an unsupported use of the context.
    """
    if isinstance(state, Place):
        for name, use in uses.items():
            _check_member(name, use.source, use.node)
        return StateType((("", Rank()),))
    attributes: dict[str, Attribute] = {}
    guesses = set()
    for name in sorted(uses):
        use = uses[name]
        try:
            value = getattr(state, name)
        except AttributeError:
            what = f"{type(state).__name__} has no attribute {name}: set it before the graph is run"
            raise _error(use.source.refusal(use.node, what)) from None
        if isinstance(value, (list, tuple)) and not value:
            attribute = next(
                (a for t in others for n, a in t.attributes if _says(t, n, name, a)), None
            )
            if attribute is None:
                guesses.add(name)
            attributes[name] = attribute or _guess(use)
        else:
            attributes[name] = _attribute(value, f"{type(state).__name__}.{name}", use)
    return StateType(tuple(attributes.items()), frozenset(guesses))


def _says(other: StateType, name: str, target: str, attribute: Attribute) -> bool:
    is_list = isinstance(attribute, (Numbers, Arrays, Tuples))
    return name == target and is_list and name not in other.guesses


def _guess(use: Use) -> Attribute:
    if use.role is not None and use.role.ndim == 0:
        return Numbers("int64")
    if use.role is not None and use.role.parts:
        return Tuples(tuple(_guessed_column(role) for role in use.role.parts))
    element = "int64" if use.role is not None and use.role.whole else "float64"
    return Arrays(Array(element, use.role.ndim if use.role else 1, "C"))


def _guessed_column(role: Role | None) -> Number | Array:
    if role is None or role.ndim == 0:
        return Number("int64")
    return Array("int64" if role.whole else "float64", role.ndim, "C")


def _attribute(value: Any, name: str, use: Use) -> Attribute:
    if isinstance(value, Place):
        for member, (source, node) in use.members.items():
            _check_member(member, source, node)
        return Rank()
    if kind := number_type(value):
        return kind
    if isinstance(value, np.ndarray):
        return _array(value, name, use)
    if isinstance(value, (list, tuple)):
        return _list(value, name, use)
    if isinstance(value, CFunction):
        return Function(value.result, value.arguments)
    what = f"is a {type(value).__name__}"
    if hasattr(value, "restype"):
        raise use.source.refusal(
            use.node,
            f"{name} is a C function without types: set it to mate.CFunction(function, "
            "'float64(int64, float64*)'), with the types of its result and its arguments",
        )
    if callable(value):
        plain = name.rpartition(".")[2]
        raise use.source.refusal(
            use.node,
            f"{name} {what}: compiled code calls no methods of the state; write a function beside "
            f"the region and call {plain}(part, ...)",
        )
    raise _refusal(use, name, what)


def _refusal(use: Use, name: str, what: str) -> MateError:
    return _error(
        use.source.refusal(use.node, f"{name} {what}, which compiled code cannot use: {_POSSIBLE}")
    )


def _error(refusal: Refusal) -> MateError:
    """A refusal of a state: the graph itself may be right."""
    error = MateError(str(refusal), code="mate.not_compilable")
    error.__cause__ = refusal
    return error


def number_type(value: Any) -> Number | None:
    """The type of a number; None for anything else."""
    if isinstance(value, (bool, int, np.bool_, np.integer)):
        return Number("int64")
    if isinstance(value, np.float32):
        return Number("float32")
    if isinstance(value, (float, np.float16)):
        return Number("float64")
    return None


def array_type(array: NDArray[Any]) -> Array | None:
    """The type of an array; None if compiled code cannot use it."""
    if type(array) not in (np.ndarray, np.memmap):
        return None
    element, flags = _element(array.dtype), array.flags
    if element is None or not flags.aligned:
        return None
    layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    return Array(element, array.ndim, layout, not flags.writeable)


@functools.cache
def _element(kind: np.dtype[Any]) -> str | None:
    """The name of the elements' type; None if compiled code does not support it."""
    # numpy makes the name anew each time.
    return kind.name if kind.name in KINDS and kind.isnative else None


def _array(array: NDArray[Any], name: str, use: Use) -> Array:
    if kind := array_type(array):
        return kind
    what = f"is a {type(array).__name__} of {array.dtype}"
    if not array.flags.aligned:
        what += " whose elements are not aligned"
    raise _error(
        use.source.refusal(
            use.node,
            f"{name} {what}, which compiled code cannot use: expected an array of one of "
            f"{', '.join(KINDS)}, in the machine's byte order",
        )
    )


def _list(values: list[Any] | tuple[Any, ...], name: str, use: Use) -> Numbers | Arrays | Tuples:
    if (rows := tuples_type(values)) is not None:
        return rows
    numbers = {number_type(v) for v in values}
    if None not in numbers:
        kinds = {n.kind for n in numbers if n}
        return Numbers("int64" if kinds == {"int64"} else "float64")
    if not all(isinstance(v, np.ndarray) for v in values):
        kinds = {type(v).__name__ for v in values}
        raise _refusal(use, name, f"is a {type(values).__name__} of {', '.join(sorted(kinds))}")
    if (item := common_type(values)) is not None:
        return Arrays(item)
    items = [_array(v, f"{name}[{n}]", use) for n, v in enumerate(values)]
    types = ", ".join(dict.fromkeys(f"{a.element} with {a.ndim} dimensions" for a in items))
    raise _refusal(use, name, f"holds arrays of several types ({types})")


def tuples_type(values: list[Any] | tuple[Any, ...]) -> Tuples | None:
    """The type of a list of tuples; None if it is not one, or if compiled code cannot use it."""
    if not all(isinstance(v, tuple) for v in values) or len({len(v) for v in values}) != 1:
        return None
    columns: list[Number | Array] = []
    for column in zip(*values, strict=True):
        if all(isinstance(v, np.ndarray) for v in column):
            array = common_type(column)
            if array is None:
                return None
            columns.append(array)
        else:
            numbers = {number_type(v) for v in column}
            number = numbers.pop()
            if number is None or numbers:
                return None
            columns.append(number)
    return Tuples(tuple(columns)) if columns else None


def common_type(values: Iterable[NDArray[Any]]) -> Array | None:
    """The type of all these arrays; None if they have several or compiled code cannot use one."""
    items = {array_type(v) for v in values}
    if len(items) == 1:
        return items.pop()
    types = [item for item in items if item is not None]
    if len(types) < len(items) or len({(a.element, a.ndim) for a in types}) > 1:
        return None
    layouts = {a.layout for a in types}
    layout = layouts.pop() if len(layouts) == 1 else "A"
    return Array(types[0].element, types[0].ndim, layout, any(a.readonly for a in types))


def _check_member(name: str, source: RegionSource, node: Any) -> None:
    if name in MEMBERS or name in METHODS:
        return
    raise source.refusal(
        node,
        f"ctx.{name} cannot be used in compiled code; possible are "
        f"{', '.join((*METHODS, *MEMBERS))}: use a Python region for the rest",
    )
