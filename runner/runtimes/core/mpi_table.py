"""MPI's functions and handles as addresses, for compiled code that works with any library."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from runner.errors import RunnerError
from runner.runtimes.core.words import KINDS

_LIBRARY = re.compile(r"lib(p?mpi|mpich|mpi_abi)[\w-]*\.so[.\d]*$")
_NOLOAD = 4
"""RTLD_NOLOAD: only a library that the process has already loaded."""


@dataclass(frozen=True, kw_only=True)
class MessageTable:
    """The needs of compiled code to send and receive; MPI's addresses and handles are 0 without it.

    ``kinds``: MPI datatype and bytes of each of :data:`runner.runtimes.core.words.KINDS`.
    ``direct``: messages within the process bypass MPI.
    """

    process: int
    direct: bool
    serialized: bool
    tag_bits: int
    tag_top: int
    kinds: Sequence[tuple[int, int]]
    isend: int = 0
    irecv: int = 0
    testsome: int = 0
    communicator: int = 0
    handle_size: int = 8
    status_size: int = 0
    undefined: int = 0


def addresses(mpi: Any, comm: Any) -> dict[str, Any]:
    """The fields of :class:`MessageTable` that MPI determines.

    ``mpi`` is the module ``mpi4py.MPI``. Raises :class:`RunnerError` if its library is not found in
    this process.
    """
    kinds = []
    for name in KINDS:
        dtype = np.dtype(name)
        kind = mpi.BYTE if name == "bool" else _datatype(mpi, dtype)
        kinds.append((_handle(mpi, kind), dtype.itemsize))
    return {
        "kinds": kinds,
        "communicator": _handle(mpi, comm),
        "isend": function_address("MPI_Isend"),
        "irecv": function_address("MPI_Irecv"),
        "testsome": function_address("MPI_Testsome"),
        "handle_size": mpi._sizeof(mpi.Request),
        "status_size": mpi._sizeof(mpi.Status),
        "undefined": mpi.UNDEFINED,
    }


def _datatype(mpi: Any, dtype: np.dtype[Any]) -> Any:
    from mpi4py.util import dtlib

    return dtlib.from_numpy_dtype(dtype)


def _handle(mpi: Any, thing: Any) -> int:
    """The value of a handle: a pointer, or an int of 4 bytes."""
    kind = ctypes.c_int64 if mpi._sizeof(thing) == 8 else ctypes.c_int32
    return int(kind.from_address(mpi._addressof(thing)).value)


def function_address(name: str) -> int:
    """The address of a function: a preloaded profiling library's, else MPI's.

    Raises :class:`RunnerError` if this process has none.
    """
    for library in [ctypes.CDLL(None), *map(_loaded, _paths())]:
        function = getattr(library, name, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise RunnerError(
        f"{name} was not found in the MPI library of this process: use --core python",
        code="native.missing",
    )


def _paths() -> list[str]:
    """The MPI libraries that this process has loaded."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    paths = dict.fromkeys(line.split(maxsplit=5)[5] for line in lines if line.count("/") > 0)
    return [path for path in paths if _LIBRARY.search(path)]


def _loaded(path: str) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(path, mode=_NOLOAD | ctypes.RTLD_LOCAL)
    except OSError:
        return None
