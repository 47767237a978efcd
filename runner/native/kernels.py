"""Kernels that numba compiles once and that later runs load without importing numba.

``numba.njit(cache=True)`` would be slower: on the two-core machine where it was measured, importing
numba and setting up its typing took 2.0 s of CPU time in every rank of every run, although the
machine code came from the cache. Loading the same machine code through llvmlite takes 0.1 s. So
numba is imported only if a kernel has no stored code yet.

A kernel module imports numba, and holds plain functions and a table of their pointer arguments::

    KERNELS = {"scale": ("float64", "uint64")}

    def scale(field, geometry):
        u = carray(field, ...)

A kernel returns nothing and must not raise or allocate, because it runs without the interpreter's
lock and without numba's runtime. Kernels should index with unsigned integers: for signed ones numba
adds the wrap-around of negative indices, which stopped vectorisation (a factor of four in the
Jacobi stencil). Arithmetic is never reassociated or fused (no fast-math), so equal input gives
equal bits. ``/`` raises for a divisor of zero, so it is refused unless the compiler can see that
the divisor is not zero. Use ``np.divide(a, b)`` (the same bits) or ``np.reciprocal(b)`` instead;
they give infinity there.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from runner import files
from runner.errors import RunnerError
from runner.files import atomic_file, read_private

_PYTHON_RUNTIME = ("Py", "_Py", "numba_", "NRT_")


@dataclass(frozen=True)
class MachineCode:
    """Relocatable object code and the element types of each kernel's pointer arguments."""

    signatures: dict[str, list[str]]
    object_code: bytes

    def to_bytes(self) -> bytes:
        """The code as one line of JSON, then the object code; the digest reveals a damaged file."""
        digest = hashlib.sha256(self.object_code).hexdigest()
        header = json.dumps({"signatures": self.signatures, "sha256": digest})
        return header.encode() + b"\n" + self.object_code

    @classmethod
    def from_bytes(cls, data: bytes) -> MachineCode | None:
        """The stored code; None if the file is damaged (it is then compiled again)."""
        head, _, code = data.partition(b"\n")
        try:
            header = json.loads(head)
            intact = header["sha256"] == hashlib.sha256(code).hexdigest()
            return cls(header["signatures"], code) if intact else None
        except (ValueError, KeyError, TypeError):
            return None


class Kernels:
    """The loaded kernels of one module; :meth:`bind` makes calls of them."""

    def __init__(self, code: MachineCode) -> None:
        self._signatures = code.signatures
        # The engine owns the memory of the machine code. This object keeps the engine alive, and
        # :func:`load` keeps this object for the life of the process.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code.object_code))
        self._engine.finalize_object()

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
        function = prototype(self._engine.get_function_address(name))
        return functools.partial(
            function, *[(ctypes.c_char * a.nbytes).from_buffer(a.reshape(-1).data) for a in arrays]
        )


@functools.cache
def load(module: str) -> Kernels:
    """The kernels of a module (its dotted name); they are compiled if no earlier run did it.

    Many processes may call this at once on an empty cache: one compiles, the others wait for it. If
    the cache cannot be written, every process compiles for itself and says so on standard error.
    Raises :class:`RunnerError` if a kernel needs Python at run time.
    """
    path = cache_dir() / f"{module}-{_key(module)}.bin"
    if code := _read(path):
        return Kernels(code)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.with_suffix(".lock")):
            code = _read(path)
            if code is None:
                code = compile_kernels(module)
                with atomic_file(path) as part:
                    part.write_bytes(code.to_bytes())
    except OSError as error:
        print(f"note: kernels are not kept, {path.parent}: {error.strerror}", file=sys.stderr)
        code = compile_kernels(module)
    return Kernels(code)


def cache_dir() -> Path:
    """``$NUMBA_CACHE_DIR/autotune``, or ``autotune/kernels`` in the user's cache directory."""
    if numba_dir := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(numba_dir) / "autotune"
    return files.cache("kernels")


def compile_kernels(module: str) -> MachineCode:
    """Compile every kernel of ``module`` with numba into one self-contained object.

    Raises :class:`RunnerError` for a kernel that needs Python at run time.
    """
    with _default_numba():
        return _compile(importlib.import_module(module), module)


@contextlib.contextmanager
def _default_numba() -> Iterator[None]:
    """Hide the user's ``NUMBA_*`` settings: they would change the code that all later runs load."""
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("NUMBA_")}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _compile(source: Any, module: str) -> MachineCode:
    import numba

    whole = llvm.parse_assembly("")
    signatures: dict[str, list[str]] = {}
    machine = _target_machine()
    for name, types in source.KERNELS.items():
        pointers = [numba.types.CPointer(getattr(numba.types, t)) for t in types]
        compiled = numba.cfunc(numba.types.void(*pointers))(getattr(source, name))
        whole.link_in(_self_contained(compiled, name, module, machine))
        signatures[name] = list(types)
    return MachineCode(signatures, machine.emit_object(whole))


def _self_contained(compiled: Any, name: str, module: str, machine: Any) -> Any:
    """The LLVM module of one kernel without numba's error handling; its entry is called ``name``.

    numba's C entry reports an exception through the interpreter. Once the function behind it is
    private, LLVM sees that it never fails, and removes that path with all its symbols.
    """
    part = llvm.parse_assembly(compiled.inspect_llvm())
    for function in part.functions:
        if function.name == compiled.native_name:
            function.name = name
        elif not function.is_declaration:
            function.linkage = "internal"
    for variable in part.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    tuning = llvm.create_pipeline_tuning_options(3)
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(part, builder)
    needed = [f.name for f in part.functions if f.is_declaration]
    if python := [f for f in needed if f.startswith(_PYTHON_RUNTIME)]:
        raise RunnerError(
            f"kernel {name} of {module} needs Python at run time ({', '.join(python)}): "
            "a kernel must not raise or allocate; look for range() with a variable step, "
            "division (write np.divide or np.reciprocal) and new arrays"
        )
    return part


def _target_machine() -> Any:
    """Code generation for the processor of this machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True
    )


def _key(module: str) -> str:
    """A hash of the kernels, this file, the compilers and the processor."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise RunnerError(f"there is no kernel module {module}")
    words = [
        importlib.metadata.version("numba"),
        importlib.metadata.version("llvmlite"),
        llvm.get_default_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    ]
    digest = hashlib.sha256("\0".join(words).encode())
    for path in (spec.origin, __file__):
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()[:24]


def _read(path: Path) -> MachineCode | None:
    try:
        return MachineCode.from_bytes(read_private(path))
    except OSError:
        return None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file; the system releases it if the holder dies."""
    with path.open("w") as file:
        # Some network file systems have no locks. Then several processes compile the same code, and
        # the atomic write keeps that safe.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def scalars(values: list[int]) -> NDArray[np.uint64]:
    """Geometry in the form that kernels take: unsigned integers in one array."""
    return np.array(values, dtype=np.uint64)
