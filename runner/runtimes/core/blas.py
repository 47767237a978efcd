"""The product of matrices by numpy's BLAS library, for compiled code and Python.

The function's name in the library depends on the builder of numpy. A numpy without such a library
gets a slower loop of this project instead.
"""

from __future__ import annotations

import ctypes
import functools
import importlib

from runner.runtimes.core import kernels
from runner.runtimes.core.c_function import CFunction

NAMES = {
    "scipy_cblas_dgemm64_": "int64",
    "cblas_dgemm64_": "int64",
    "scipy_cblas_dgemm": "int32",
    "cblas_dgemm": "int32",
}
"""Name of the function -> type of its integers; the first is that of numpy's wheels."""


@functools.cache
def dgemm() -> CFunction:
    """C = alpha A B + beta C as CBLAS defines it: ``dgemm(order, ...)`` with 14 arguments.

    :func:`runner.runtimes.core.library.add_product` calls it. The library's environment sets its
    threads (``OPENBLAS_NUM_THREADS``); with several workers, use one thread each. Raises
    :class:`runner.errors.RunnerError` if there is no library and no compiler.
    """
    if (found := _of_numpy()) is not None:
        return found
    address = kernels.load("runner.runtimes.core.blas_kernel").address("dgemm")
    return CFunction(address, _signature("int64"))


def library_path() -> str | None:
    """The file of numpy's BLAS library; None if there is none."""
    found = _of_numpy()
    return None if found is None else _file_of(found.address)


def symbol() -> str | None:
    """The function's name in numpy's BLAS library; None if there is none."""
    library = _numpy_library()
    return next((name for name in NAMES if hasattr(library, name)), None)


@functools.cache
def _of_numpy() -> CFunction | None:
    name = symbol()
    if name is None:
        return None
    return CFunction(getattr(_numpy_library(), name), _signature(NAMES[name]))


@functools.cache
def _numpy_library() -> ctypes.CDLL:
    """numpy's own library; name lookups in it include the libraries that it needs."""
    return ctypes.CDLL(importlib.import_module("numpy._core._multiarray_umath").__file__)


def _signature(whole: str) -> str:
    flags, extents = ", ".join(["int32"] * 3), ", ".join([whole] * 3)
    return (
        f"void({flags}, {extents}, float64, const float64*, {whole}, const float64*, {whole}, "
        f"float64, float64*, {whole})"
    )


class _Place(ctypes.Structure):
    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    ]


def _file_of(address: int) -> str | None:
    place = _Place()
    look = ctypes.CDLL(None).dladdr
    look.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    if not look(address, ctypes.byref(place)) or not place.file:
        return None
    return bytes(place.file).decode()
