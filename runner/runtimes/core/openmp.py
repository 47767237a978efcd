"""Parallel regions of compiled kernels on the threads of gcc's OpenMP run-time (libgomp).

The run-time is the one that programs of gcc and gfortran use. So ``OMP_NUM_THREADS``,
``OMP_PROC_BIND``, ``OMP_PLACES``, ``OMP_WAIT_POLICY`` and ``OMP_DISPLAY_AFFINITY`` affect these
threads as in any hybrid program.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner.errors import RunnerError
from runner.runtimes.core.kernels import Kernels, load

LIBRARY = "libgomp.so.1"
Task = tuple[str, Sequence[NDArray[Any]]]
"""The name of a kernel with four or six arrays, and the arrays."""
_COUNTS, _MOST = (4, 6), 6
"""Numbers of arrays that :mod:`runner.runtimes.core.openmp_kernel` passes on."""


def max_threads() -> int:
    """The number of threads of the next parallel region. Raises :class:`RunnerError`."""
    return int(library().omp_get_max_threads())


class ParallelRegion:
    """Tasks shared by the threads of a team; a call forks the team and returns when all are done.

    A task must not write data that another one reads or writes. With fewer threads than tasks, each
    thread does several. Raises :class:`RunnerError` without an OpenMP run-time, and ``ValueError``
    if a task does not have four or six arrays.
    """

    def __init__(self, kernels: Kernels, tasks: Sequence[Task]) -> None:
        runtime = library()
        words = [_address(runtime.omp_get_thread_num), _address(runtime.omp_get_num_threads)]
        words.append(len(tasks))
        for name, arrays in tasks:
            kernels.bind(name, *arrays)  # It checks number and types of the arrays.
            count = len(arrays)
            if count not in _COUNTS:
                raise ValueError(f"kernel {name} has {count} arrays; expected 4 or 6")
            words += [kernels.address(name), count, *(a.ctypes.data for a in arrays)]
            words += [0] * (_MOST - count)
        self._kept = [arrays for _, arrays in tasks]
        self._words = np.array(words, dtype=np.int64)
        self._place = ctypes.c_void_p(self._words.ctypes.data)
        self._share = ctypes.c_void_p(load("runner.runtimes.core.openmp_kernel").address("share"))
        self._parallel = runtime.GOMP_parallel

    def __call__(self) -> None:
        """Do all tasks. It releases the interpreter's lock."""
        self._parallel(self._share, self._place, 0, 0)


@functools.cache
def library() -> ctypes.CDLL:
    """The run-time: the system's, else the one bundled with scikit-learn.

    Raises :class:`RunnerError` if there is neither.
    """
    for name in (LIBRARY, *map(str, _brought())):
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        found.GOMP_parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_uint] * 2]
        found.GOMP_parallel.restype = None
        return found
    raise RunnerError(
        f"{LIBRARY}, the OpenMP run-time of gcc, was not found; install it (Debian: libgomp1)",
        code="native.missing",
    )


def _brought() -> Iterator[Path]:
    """The run-time in the wheel of scikit-learn, which is not imported."""
    spec = importlib.util.find_spec("sklearn")
    if spec is not None and spec.origin is not None:
        place = Path(spec.origin).parents[1] / "scikit_learn.libs"
        yield from sorted(place.glob("libgomp*.so*"))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
