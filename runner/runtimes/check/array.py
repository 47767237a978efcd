"""Arrays that record their reads and writes: views of a program's arrays for its regions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runner.runtimes.check.memory import WatchedMemory

_VIEWS = {
    np.reshape,
    np.ravel,
    np.transpose,
    np.moveaxis,
    np.swapaxes,
    np.squeeze,
    np.expand_dims,
    np.broadcast_to,
    np.split,
    np.array_split,
    np.hsplit,
    np.vsplit,
    np.dsplit,
    np.flip,
    np.fliplr,
    np.flipud,
    np.rot90,
    np.atleast_1d,
    np.atleast_2d,
    np.atleast_3d,
    np.real,
    np.imag,
}
"""Functions that give views: nothing is read yet."""
_SHAPES = {
    np.shape,
    np.ndim,
    np.size,
    np.zeros_like,
    np.empty_like,
    np.ones_like,
    np.shares_memory,
    np.may_share_memory,
    np.result_type,
    np.iscomplexobj,
    np.isrealobj,
}
"""Functions that do not look at elements."""
_FIRST_WRITTEN = {np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis}
_READERS = (
    *("all", "any", "argmax", "argmin", "argsort", "argpartition", "astype", "choose", "clip"),
    *("compress", "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal", "dot", "dump"),
    *("dumps", "flatten", "item", "max", "mean", "min", "nonzero", "prod", "repeat", "round"),
    *("searchsorted", "std", "sum", "take", "tobytes", "tofile", "tolist", "trace", "var"),
    *("__bool__", "__complex__", "__copy__", "__deepcopy__", "__float__", "__index__", "__int__"),
    *("__reduce__", "__reduce_ex__"),
)
"""Methods that read the whole array and give a new value."""
_WRITERS = ["fill", "put", "setfield", "sort", "partition", "byteswap"]


class WatchedArray(np.ndarray):
    """A view of an array; what is done with its elements is recorded in ``memory``.

    Results of operations are plain arrays. A C extension that takes the memory by the buffer
    interface, and ``numpy.asarray``, are not seen.
    """

    memory: WatchedMemory | None

    def __array_finalize__(self, source: Any) -> None:
        self.memory = getattr(source, "memory", None)

    def record_access(self, is_write: bool, key: Any = ...) -> None:
        """Record an access of ``self[key]``."""
        if self.memory is not None:
            self.memory.record_access(plain(self), plain(key), is_write)

    def __getitem__(self, key: Any) -> Any:
        own = plain(self)
        result = own[plain(key)]
        is_view = isinstance(result, np.ndarray) and result.base is not None
        if is_view and (np.may_share_memory(result, own) or not result.size):
            return watched(result, self.memory)
        read(key)
        self.record_access(False, key)
        return result

    def __setitem__(self, key: Any, value: Any) -> None:
        own, source = plain(self), plain(value)
        if isinstance(value, WatchedArray):
            target = own[plain(key)]
            if isinstance(target, np.ndarray) and _same_memory(target, source):
                # The end of ``a[key] += b``, which has been recorded.
                return
        read((key, value))
        own[plain(key)] = source
        self.record_access(True, key)

    def __iter__(self) -> Any:
        return (self[n] for n in range(len(self)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        is_at = method == "at" and isinstance(inputs[0], WatchedArray)
        read(inputs[is_at:])
        read(keywords.get("where"))
        if is_at:
            inputs[0].record_access(False, inputs[1])
        outputs = keywords.get("out", ())
        if outputs:
            keywords["out"] = plain(outputs)
        result = getattr(ufunc, method)(*plain(inputs), **keywords)
        if is_at:
            inputs[0].record_access(True, inputs[1])
        for output in outputs:
            if isinstance(output, WatchedArray):
                output.record_access(True)
        if outputs:
            return outputs[0] if len(outputs) == 1 else outputs
        return result

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        if function in _VIEWS:
            return super().__array_function__(function, types, args, keywords)
        if function not in _SHAPES:
            first = 1 if function in _FIRST_WRITTEN else 0
            output = keywords.get("out")
            read(args[first:])
            read([value for name, value in keywords.items() if name != "out"])
            for target in (*args[:first], *(output if isinstance(output, tuple) else (output,))):
                if isinstance(target, WatchedArray):
                    target.record_access(True)
        result = function(*plain(args), **{name: plain(v) for name, v in keywords.items()})
        output = keywords.get("out")
        return result if output is None else output

    @property
    def flat(self) -> Any:
        self.record_access(False)
        return plain(self).flat

    @flat.setter
    def flat(self, value: Any) -> None:
        read(value)
        plain(self).flat = plain(value)
        self.record_access(True)

    @property
    def ctypes(self) -> Any:
        # C code gets the address: what it does is unknown.
        self.record_access(False)
        self.record_access(True)
        return plain(self).ctypes


def _same_memory(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(a.__array_interface__ == b.__array_interface__)


def _reader(name: str) -> Callable[..., Any]:
    def method(self: WatchedArray, *args: Any, **keywords: Any) -> Any:
        self.record_access(False)
        read(args)
        output = keywords.get("out")
        result = getattr(plain(self), name)(
            *plain(args), **{key: plain(value) for key, value in keywords.items()}
        )
        if isinstance(output, WatchedArray):
            output.record_access(True)
            return output
        return result

    return method


def _writer(name: str) -> Callable[..., Any]:
    def method(self: WatchedArray, *args: Any, **keywords: Any) -> Any:
        read(args)
        if name in ("sort", "partition", "byteswap"):
            self.record_access(False)
        result = getattr(plain(self), name)(
            *plain(args), **{key: plain(value) for key, value in keywords.items()}
        )
        self.record_access(True)
        return result

    return method


for _name in _READERS:
    setattr(WatchedArray, _name, _reader(_name))
for _name in _WRITERS:
    setattr(WatchedArray, _name, _writer(_name))


def watched(array: np.ndarray, memory: WatchedMemory | None) -> WatchedArray:
    """The same memory as an array that records."""
    view = np.ndarray.view(array, WatchedArray)
    view.memory = memory
    return view


def plain(value: Any) -> Any:
    """The value with plain arrays instead of watched ones, also in lists, tuples and slices."""
    if isinstance(value, WatchedArray):
        return np.ndarray.view(value, np.ndarray)
    if type(value) is tuple:
        return tuple(plain(item) for item in value)
    if type(value) is list:
        return [plain(item) for item in value]
    return value


def read(value: Any) -> None:
    """Record a read of every watched array in a value."""
    if isinstance(value, WatchedArray):
        value.record_access(False)
    elif isinstance(value, (list, tuple)):
        for item in value:
            read(item)
