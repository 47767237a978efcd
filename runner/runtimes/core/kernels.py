"""Kernels that numba compiles once and that later runs load without importing numba.

``numba.njit(cache=True)`` would be slower: measured on a two-core machine, importing numba and
setting up its typing took 2.0 s of CPU time in every rank of every run, even with cached machine
code. Loading the same code takes milliseconds (:mod:`runner.runtimes.core.machine_code`). So numba
is imported only for kernels without stored code.

A kernel module imports numba, and holds plain functions and a table of their pointer arguments::

    KERNELS = {"scale": ("float64", "uint64")}

    def scale(field, geometry):
        u = carray(field, ...)

A kernel returns nothing and must not raise or allocate, because it runs without the interpreter's
lock and without numba's runtime. A module may also have functions that take and return numbers::

    FUNCTIONS = {"finish": "uint64(uint64, int64)"}

A change in the module, or in an imported module of its package or of :mod:`runner`, creates a new
object.

Kernels should index with unsigned integers: for signed ones numba adds the wrap-around of negative
indices, which prevents vectorisation (a factor of four in the Jacobi stencil). Arithmetic is never
reassociated or fused (no fast-math), so equal input gives equal bits. ``/`` raises for a zero
divisor, so kernels may use it only if the compiler can prove that the divisor is not zero. Use
``np.divide(a, b)`` (the same bits) or ``np.reciprocal(b)`` instead; they give infinity there.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runner import files
from runner.errors import RunnerError
from runner.files.private_files import (
    drop_foreign,
    open_private,
    private_folder,
    read_private,
    write_private,
)
from runner.runtimes.core import processor
from runner.runtimes.core.machine_code import MachineCode, loaded
from runner.runtimes.core.sources import sha256, source, sources_key
from runner.types import COMPILING

_C_TYPES: dict[str, Any] = {
    "void": None,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float64": ctypes.c_double,
}


class Kernels:
    """The loaded kernels of one module; :meth:`bind` creates calls of them.

    Raises :class:`RunnerError` if the code calls something that this process lacks.
    """

    def __init__(self, code: MachineCode) -> None:
        self._signatures, self._functions = code.signatures, code.functions
        self.missing = code.missing
        self._machine_code = code.object_code
        self._code = loaded(code)

    def bind(self, name: str, *arrays: NDArray[Any]) -> Callable[[], None]:
        """A call of kernel ``name`` on these arrays; the call keeps the arrays alive.

        With the arrays bound once, a call costs about 0.5 us. It releases the interpreter's lock.
        Raises ``KeyError`` for an unknown kernel, and ``ValueError`` for arrays whose number or
        element type differs from the declaration, or that are not contiguous and writable.
        """
        types = self._signatures[name]
        got = [str(array.dtype) for array in arrays]
        if got != types:
            raise ValueError(f"kernel {name} takes arrays of {types}, not {got}")
        if not all(a.flags.c_contiguous and a.flags.writeable for a in arrays):
            raise ValueError(f"kernel {name} takes contiguous writable arrays")
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(types))
        function = prototype(self._code.address(name))
        return functools.partial(
            function, *[(ctypes.c_char * a.nbytes).from_buffer(a.reshape(-1).data) for a in arrays]
        )

    def raw(self, name: str) -> Callable[..., None]:
        """Kernel ``name`` as a function of the addresses of its arrays; nothing is checked.

        For arrays that change with every call: :meth:`bind` takes some microseconds. The caller
        keeps the arrays alive. Raises ``KeyError`` for an unknown kernel.
        """
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(self._signatures[name]))
        return prototype(self._code.address(name))

    def function(self, name: str, brief: bool = False) -> Callable[..., Any]:
        """A function of numbers; a call releases the interpreter's lock unless it is ``brief``.

        A brief call must not wait for anything that needs the interpreter. Raises ``KeyError`` for
        an unknown function.
        """
        types = [_C_TYPES[t] for t in self._functions[name]]
        prototype = ctypes.PYFUNCTYPE if brief else ctypes.CFUNCTYPE
        return prototype(*types)(self._code.address(name))

    @functools.cached_property
    def digest(self) -> str:
        """A hash of the machine code: equal code behaves equally in another process."""
        return str(sha256(self._machine_code).hexdigest())

    def address(self, name: str) -> int:
        """The address of a kernel or function, for other compiled code.

        Raises ``KeyError`` for an unknown one.
        """
        return self._code.address(name)


def machine_words(call: Callable[[], None]) -> list[int]:
    """A call of :meth:`Kernels.bind` for other compiled code: addresses of kernel and arrays.

    The caller keeps the call alive.
    """
    assert isinstance(call, functools.partial), "a call of Kernels.bind"
    function: Any = call.func
    kernel = ctypes.cast(function, ctypes.c_void_p).value or 0
    return [kernel, *map(ctypes.addressof, call.args)]


@functools.cache
def load(module: str) -> Kernels:
    """The kernels of a module (its dotted name); they are compiled if no earlier run did it.

    Raises :class:`RunnerError` if a kernel needs Python at run time.
    """
    if not source(module):
        raise RunnerError(f"there is no kernel module {module}", code="native.kernel")
    return stored(module, sources_key(module), lambda: _compile(module))


def _compile(module: str) -> MachineCode:
    from runner.runtimes.core.compile import compile_kernels

    return compile_kernels(module)


def stored(name: str, key: bytes, compile_: Callable[[], MachineCode]) -> Kernels:
    """Code ``name`` from the cache; ``compile_`` creates it if no earlier run did.

    ``key`` covers everything that the code depends on, except the compilers and the processor. Many
    processes may call this at once on an empty cache: one compiles, the others wait for it. If the
    cache is not writable, every process compiles for itself and says so on standard error. Raises
    the exceptions of ``compile_``.
    """
    try:
        folder = private_folder(cache_dir())
    except (OSError, RunnerError) as error:
        return Kernels(_not_kept(compile_, error))
    path = folder / f"{name}-{_key(key)}.bin"
    if code := _read(path):
        return Kernels(code)
    try:
        with _locked(path.with_suffix(".lock")):
            code = _read(path)
            if code is None:
                print(f"{COMPILING}{name}; the code is kept for later runs", file=sys.stderr)
                code = compile_()
                write_private(path, code.to_bytes())
    except OSError as error:
        code = _not_kept(compile_, error)
    return Kernels(code)


def _not_kept(compile_: Callable[[], MachineCode], error: OSError | RunnerError) -> MachineCode:
    why = error.strerror if isinstance(error, OSError) else error
    print(f"note [cache.unusable]: kernels are not kept, {cache_dir()}: {why}", file=sys.stderr)
    return compile_()


def cache_dir() -> Path:
    """``autotune-UID`` in ``$NUMBA_CACHE_DIR``, or ``autotune/kernels`` in the user's cache.

    Users may share ``$NUMBA_CACHE_DIR``, so each has a separate folder there.
    """
    if numba_dir := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(numba_dir).absolute() / f"autotune-{os.geteuid()}"
    return files.cache("kernels")


def _key(code: bytes) -> str:
    """A hash of the code, the modules that generate it, the compilers and the processor."""
    digest = sha256(_compilers())
    digest.update(code)
    return str(digest.hexdigest())[:24]


@functools.cache
def _compilers() -> bytes:
    words = [_version("numba"), _version("llvmlite"), processor.description()]
    for name in ("compile.py", "machine_code.py", "numba_library.py"):
        words.append(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    return "\0".join(words).encode()


def _version(package: str) -> str:
    """The version of an installed package, without importing it.

    It is read from the package: ``importlib.metadata`` would take more than 10 ms.
    """
    if init := source(package):
        with contextlib.suppress(OSError):
            return init.with_name("_version.py").read_text(encoding="utf-8")
    import importlib.metadata

    return importlib.metadata.version(package)


def _read(path: Path) -> MachineCode | None:
    try:
        return MachineCode.from_bytes(read_private(path))
    except OSError:
        return None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file; the system releases it if the holder dies."""
    drop_foreign(path)
    with open_private(path) as file:
        # Some network file systems have no locks. Then several processes compile the same code; the
        # atomic write keeps that safe.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def scalars(values: list[int]) -> NDArray[np.uint64]:
    """Geometry in the form that kernels expect: unsigned integers in one array."""
    return np.array(values, dtype=np.uint64)
