"""States that record their reads and writes: what a region gets instead of its own objects.

Arrays become :class:`WatchedArray`. Objects of the program, lists and dictionaries become proxies
whose attributes and items are watched in turn. Numbers, texts, functions and objects of libraries
stay as they are.
"""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence
from typing import Any

import numpy as np

from runner.runtimes.check.array import WatchedArray, plain, read, watched
from runner.runtimes.check.memory import WatchedMemory
from runner.runtimes.core.c_function import CFunction

_LIBRARIES = sys.stdlib_module_names | {"builtins", "numpy", "numba", "llvmlite", "mpi4py", "scipy"}
_OURS = "runner.runtimes."
"""Modules whose objects stay as they are."""
_OWN = {
    "__new__",
    "__init__",
    "__getattr__",
    "__getattribute__",
    "__setattr__",
    "__delattr__",
    "__class__",
    "__dict__",
    "__weakref__",
    "__slots__",
    "__del__",
    "__init_subclass__",
    "__class_getitem__",
    "__subclasshook__",
    "__set_name__",
}


class Watch:
    """Gives watched values; one for each process."""

    def __init__(self, memory: WatchedMemory) -> None:
        self.memory = memory
        self._proxies: dict[int, tuple[Any, Any]] = {}
        self._classes: dict[type, type] = {}

    def value(self, value: Any, name: str) -> Any:
        """The value, watched; ``name`` is how the program calls it."""
        kind = type(value)
        if kind in (int, float, bool, str, complex, types.NoneType) or isinstance(
            value, (np.generic, WatchedArray, enum.Enum, type, types.ModuleType, types.FunctionType)
        ):
            return value
        if isinstance(value, np.ndarray):
            self.memory.name(value, name)
            return watched(value, self.memory)
        known = self._proxies.get(id(value))
        if known is not None:
            return known[1]
        proxy = self._proxy(value, kind, name)
        if proxy is not value:
            self._proxies[id(value)] = value, proxy
        return proxy

    def state(self, state: Any) -> Any:
        """The state of a graph, watched, whatever its class."""
        known = self._proxies.get(id(state))
        if known is None:
            proxy = self._class(type(state))(state, "", self)
            known = self._proxies[id(state)] = state, proxy
        return known[1]

    def _proxy(self, value: Any, kind: type, name: str) -> Any:
        if kind is list:
            return WatchedList(value, name, self)
        if kind is dict:
            return WatchedDict(value, name, self)
        if isinstance(value, tuple):
            items = [self.value(item, f"{name}[{n}]") for n, item in enumerate(value)]
            if all(a is b for a, b in zip(items, value, strict=True)):
                return value
            return kind._make(items) if hasattr(kind, "_make") else tuple(items)
        if kind is CFunction:
            return WatchedFunction(value)
        module = kind.__module__
        if module.split(".")[0] in _LIBRARIES or module.startswith(_OURS):
            return value
        if callable(value) and not hasattr(value, "__dict__"):
            return value
        return self._class(kind)(value, name, self)

    def _class(self, kind: type) -> type:
        """A proxy class with the operators of a class."""
        if kind not in self._classes:
            names = {
                name
                for base in kind.__mro__[:-1]
                for name, item in vars(base).items()
                if name.startswith("__") and callable(item) and name not in _OWN
            }
            members: dict[str, Any] = {name: _operator(name) for name in names}
            members["__slots__"] = ()
            self._classes[kind] = type(kind.__name__, (WatchedObject,), members)
        return self._classes[kind]


class WatchedObject:
    """An object of the program; its attributes are named places of memory."""

    __slots__ = ("_watch_name", "_watch_target", "_watcher")

    def __init__(self, target: Any, name: str, watch: Watch) -> None:
        set_ = object.__setattr__
        set_(self, "_watch_target", target)
        set_(self, "_watch_name", name)
        set_(self, "_watcher", watch)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._watch_target)

    def __getattr__(self, name: str) -> Any:
        target, watch = self._watch_target, self._watcher
        member = getattr(type(target), name, None)
        if isinstance(member, property) and member.fget is not None:
            return member.fget(self)
        if isinstance(member, types.FunctionType) and name not in getattr(target, "__dict__", ()):
            static = isinstance(_static(type(target), name), staticmethod)
            return member if static else types.MethodType(member, self)
        value = getattr(target, name)
        if isinstance(value, types.MethodType) or name.startswith("__"):
            return value
        text = f"{self._watch_name}.{name}" if self._watch_name else name
        watch.memory.touch_place(target, "attribute", text, False)
        return watch.value(value, text)

    def __setattr__(self, name: str, value: Any) -> None:
        target = self._watch_target
        member = getattr(type(target), name, None)
        if isinstance(member, property) and member.fset is not None:
            member.fset(self, value)
            return
        text = f"{self._watch_name}.{name}" if self._watch_name else name
        setattr(target, name, unwatched(value))
        self._watcher.memory.touch_place(target, "attribute", text, True)


def _static(kind: type, name: str) -> Any:
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def _operator(name: str) -> Callable[..., Any]:
    def operator(self: WatchedObject, *args: Any, **keywords: Any) -> Any:
        target, watch = self._watch_target, self._watcher
        member = getattr(type(target), name)
        if isinstance(member, types.FunctionType):
            return member(self, *args, **keywords)
        # Of a class in C: its items are one place of memory.
        is_write = name in ("__setitem__", "__delitem__") or name.startswith("__i")
        watch.memory.touch_place(target, "items", self._watch_name, is_write and name != "__iter__")
        result = member(target, *map(unwatched, args), **keywords)
        if name == "__iter__":
            return (watch.value(item, f"{self._watch_name}[{n}]") for n, item in enumerate(result))
        return watch.value(result, f"{self._watch_name}[...]")

    return operator


class WatchedList(MutableSequence[Any]):
    """A list; its items are watched, and it is one place of memory."""

    def __init__(self, target: list[Any], name: str, watch: Watch) -> None:
        self._target, self._name, self._watch = target, name, watch

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return list

    def _touch(self, is_write: bool) -> None:
        self._watch.memory.touch_place(self._target, "list", self._name, is_write)

    def __len__(self) -> int:
        self._touch(False)
        return len(self._target)

    def __getitem__(self, place: Any) -> Any:
        self._touch(False)
        place = unwatched(place)
        value = self._target[place]
        if isinstance(place, slice):
            numbers = range(*place.indices(len(self._target)))
            return [self._watch.value(self._target[n], f"{self._name}[{n}]") for n in numbers]
        at = int(place) % len(self._target)
        return self._watch.value(value, f"{self._name}[{at}]")

    def __iter__(self) -> Iterator[Any]:
        return (self[n] for n in range(len(self)))

    def __setitem__(self, place: Any, value: Any) -> None:
        self._target[unwatched(place)] = unwatched(value)
        self._touch(True)

    def __delitem__(self, place: Any) -> None:
        del self._target[unwatched(place)]
        self._touch(True)

    def insert(self, index: int, value: Any) -> None:
        self._touch(False)
        self._target.insert(index, unwatched(value))
        self._touch(True)

    def __add__(self, other: Any) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: Any) -> list[Any]:
        return [*other, *self]

    def __mul__(self, count: int) -> list[Any]:
        return [*self] * count

    def __eq__(self, other: object) -> bool:
        self._touch(False)
        return bool(self._target == unwatched(other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._target)


class WatchedDict(MutableMapping[Any, Any]):
    """A dictionary; its values are watched, and it is one place of memory."""

    def __init__(self, target: dict[Any, Any], name: str, watch: Watch) -> None:
        self._target, self._name, self._watch = target, name, watch

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return dict

    def _touch(self, is_write: bool) -> None:
        self._watch.memory.touch_place(self._target, "dictionary", self._name, is_write)

    def __len__(self) -> int:
        return len(self._target)

    def __iter__(self) -> Iterator[Any]:
        self._touch(False)
        return iter(self._target)

    def __getitem__(self, key: Any) -> Any:
        self._touch(False)
        return self._watch.value(self._target[unwatched(key)], f"{self._name}[{key!r}]")

    def __setitem__(self, key: Any, value: Any) -> None:
        self._target[unwatched(key)] = unwatched(value)
        self._touch(True)

    def __delitem__(self, key: Any) -> None:
        del self._target[key]
        self._touch(True)

    def __repr__(self) -> str:
        return repr(self._target)


class WatchedFunction:
    """A C function: it reads its arrays and writes those that are not ``const``."""

    def __init__(self, function: CFunction) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        read(arguments)
        result = self._function(*plain(arguments))
        for place, argument in enumerate(arguments):
            if isinstance(argument, WatchedArray) and place not in self._function.constants:
                argument.record_access(True)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def unwatched(value: Any) -> Any:
    """The program's own object, also within lists, tuples and dictionaries."""
    kind = type(value)
    if issubclass(kind, WatchedObject):
        return object.__getattribute__(value, "_watch_target")
    if kind in (WatchedList, WatchedDict):
        return value._target
    if kind is WatchedFunction:
        return value._function
    if kind in (list, tuple):
        items = [unwatched(item) for item in value]
        same = all(a is b for a, b in zip(items, value, strict=True))
        return value if same else kind(items)
    if kind is dict:
        values = {key: unwatched(item) for key, item in value.items()}
        return value if all(values[key] is item for key, item in value.items()) else values
    return plain(value)
