"""A C function for compiled regions and Python code."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMBERS: dict[str, Any] = {
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}
"""Types of arguments and results; an array of one of them is ``"float64*"``."""


class CFunction:
    """A C function with the types of its result and its arguments.

    The state of a graph may hold one. Compiled regions then call it as ``part.NAME(...)`` at the
    speed of C, and Python code calls the same function. An argument of type ``"float64*"`` is an
    array: the function gets the address of its first element, and its accesses are not checked. The
    function must not call Python, and must not keep the address. ``"const float64*"`` says that it
    only reads the array; the check of graphs believes it.
    """

    def __init__(self, function: Any, signature: str) -> None:
        """``function``: one of :mod:`ctypes`, or its address.

        ``signature``: ``"void(int64, float64*)"`` with the types of :data:`NUMBERS`; the result may
        be ``void``, but not an array. Raises ``ValueError`` for an invalid signature, or the
        address 0.
        """
        self._function = function  # its library must stay loaded
        self.result, self.arguments, self.constants = _types(signature)
        known = isinstance(function, int)
        self.address: int = function if known else ctypes.cast(function, ctypes.c_void_p).value or 0
        if not self.address:
            raise ValueError("a C function at address 0: the library does not have it")
        c_types = [ctypes.c_void_p if _is_array(t) else NUMBERS[t] for t in self.arguments]
        self._call = ctypes.CFUNCTYPE(NUMBERS.get(self.result), *c_types)(self.address)
        self._arrays = [(n, t[:-1]) for n, t in enumerate(self.arguments) if _is_array(t)]

    @property
    def signature(self) -> str:
        """Result and arguments: ``void(int64, float64*)``."""
        return f"{self.result}({', '.join(self.arguments)})"

    def __call__(self, *arguments: Any) -> Any:
        """Call it without the interpreter's lock.

        Raises ``TypeError`` for a wrong number of arguments, and for an argument that should be an
        array of a type but is not.
        """
        if len(arguments) != len(self.arguments):
            raise TypeError(f"{self.signature} is called with {len(arguments)} arguments")
        words = list(arguments)
        for n, element in self._arrays:
            words[n] = _address(arguments[n], element, n)
        return self._call(*words)


def _is_array(kind: str) -> bool:
    return kind.endswith("*")


def _types(signature: str) -> tuple[str, tuple[str, ...], frozenset[int]]:
    """Result, arguments, and the places of the arrays that are only read."""
    found = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", signature)
    texts = found[2].split(",") if found and found[2].strip() else []
    constants = {n for n, text in enumerate(texts) if re.match(r"\s*const\s+\w+\s*\*", text)}
    arguments = tuple(
        re.sub(r"^\s*const\s" if n in constants else "^", "", text).replace(" ", "")
        for n, text in enumerate(texts)
    )
    wrong = [t for t in arguments if t.removesuffix("*") not in NUMBERS]
    if found is None or wrong or found[1] not in ("void", *NUMBERS):
        raise ValueError(
            f"signature {signature!r}: expected a result and arguments as in "
            f"'void(int64, float64*)', of {', '.join(NUMBERS)}"
        )
    return found[1], arguments, frozenset(constants)


def _address(array: NDArray[Any], element: str, place: int) -> int:
    if not isinstance(array, np.ndarray) or array.dtype.name != element:
        found = f"a {type(array).__name__}"
        if isinstance(array, np.ndarray):
            found = f"an array of {array.dtype}"
        raise TypeError(f"argument {place + 1} is no array of {element} but {found}")
    return int(array.__array_interface__["data"][0])
