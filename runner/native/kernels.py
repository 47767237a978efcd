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
lock and without numba's runtime. A module may also have functions that take and return numbers::

    FUNCTIONS = {"finish": "uint64(uint64, int64)"}

A change in the module, or in a module of its package or of :mod:`runner` that it imports, makes a
new object.

Kernels should index with unsigned integers: for signed ones numba adds the wrap-around of negative
indices, which stopped vectorisation (a factor of four in the Jacobi stencil). Arithmetic is never
reassociated or fused (no fast-math), so equal input gives equal bits. ``/`` raises for a divisor of
zero, so it is refused in kernels unless the compiler can see that the divisor is not zero. Use
``np.divide(a, b)`` (the same bits) or ``np.reciprocal(b)`` instead; they give infinity there.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import hashlib
import importlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from runner import files
from runner.errors import RunnerError
from runner.files import atomic_file, read_private

_PYTHON_RUNTIME = ("Py", "_Py", "numba_", "NRT_")
_IMPORT = re.compile(rb"^\s*(?:from\s+([\w.]+)\s+import|import\s+([\w.]+))", re.MULTILINE)
_C_TYPES: dict[str, Any] = {
    "void": None,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float64": ctypes.c_double,
}


@dataclass(frozen=True)
class MachineCode:
    """Relocatable object code and what a loader needs to know of it."""

    signatures: dict[str, list[str]]
    """Kernel -> element types of its pointer arguments."""
    object_code: bytes
    functions: dict[str, list[str]] = field(default_factory=dict)
    """Function -> type of its result, then types of its arguments."""
    symbols: list[str] = field(default_factory=list)
    """Names outside the object that it calls (``memcpy``, ``exp``)."""
    missing: dict[str, str] = field(default_factory=dict)
    """Function that could not be compiled -> why (its message, as a document of the caller)."""

    def to_bytes(self) -> bytes:
        """The code as one line of JSON, then the object code; the digest reveals a damaged file."""
        head = {
            "signatures": self.signatures,
            "functions": self.functions,
            "symbols": self.symbols,
            "missing": self.missing,
            "sha256": hashlib.sha256(self.object_code).hexdigest(),
        }
        return json.dumps(head).encode() + b"\n" + self.object_code

    @classmethod
    def from_bytes(cls, data: bytes) -> MachineCode | None:
        """The stored code; None if the file is damaged (it is then compiled again)."""
        head, _, code = data.partition(b"\n")
        try:
            header = json.loads(head)
            intact = header["sha256"] == hashlib.sha256(code).hexdigest()
            if not intact:
                return None
            names = ("functions", "symbols", "missing")
            return cls(header["signatures"], code, *(header[name] for name in names))
        except (ValueError, KeyError, TypeError):
            return None


class Kernels:
    """The loaded kernels of one module; :meth:`bind` makes calls of them.

    Raises :class:`RunnerError` if the code calls something that this process does not have: LLVM
    would load it, and the call would jump to address 0.
    """

    def __init__(self, code: MachineCode) -> None:
        _resolve(code.symbols)
        self._signatures, self._functions = code.signatures, code.functions
        self.missing = code.missing
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

    def function(self, name: str) -> Callable[..., Any]:
        """A function of numbers; a call releases the interpreter's lock.

        Raises ``KeyError`` for an unknown function.
        """
        types = [_C_TYPES[t] for t in self._functions[name]]
        return ctypes.CFUNCTYPE(*types)(self._engine.get_function_address(name))

    def address(self, name: str) -> int:
        """The address of a kernel or function, for other compiled code."""
        return int(self._engine.get_function_address(name))


def _resolve(symbols: list[str]) -> None:
    """Give LLVM the addresses of these functions of the C libraries."""
    missing = []
    for name in symbols:
        if llvm.address_of_symbol(name):
            continue
        found = next((f for lib in _c_libraries() if (f := getattr(lib, name, None))), None)
        if found is None:
            missing.append(name)
        else:
            llvm.add_symbol(name, ctypes.cast(found, ctypes.c_void_p).value)
    if missing:
        names = ", ".join(missing)
        raise RunnerError(f"compiled code needs {names}, which this process does not have")


@functools.cache
def _c_libraries() -> list[ctypes.CDLL]:
    """The process, and the library of mathematical functions, which it may not have loaded."""
    libraries = [ctypes.CDLL(None)]
    with contextlib.suppress(OSError):
        libraries.append(ctypes.CDLL("libm.so.6"))
    return libraries


@functools.cache
def load(module: str) -> Kernels:
    """The kernels of a module (its dotted name); they are compiled if no earlier run did it.

    Raises :class:`RunnerError` if a kernel needs Python at run time.
    """
    return stored(module, _sources_key(module), lambda: compile_kernels(module))


def stored(name: str, key: bytes, compile_: Callable[[], MachineCode]) -> Kernels:
    """Code ``name`` from the cache; ``compile_`` makes it if no earlier run did it.

    ``key`` stands for all that the code depends on, except the compilers and the processor. Many
    processes may call this at once on an empty cache: one compiles, the others wait for it. If the
    cache cannot be written, every process compiles for itself and says so on standard error. Raises
    what ``compile_`` raises.
    """
    path = cache_dir() / f"{name}-{_key(key)}.bin"
    if code := _read(path):
        return Kernels(code)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.with_suffix(".lock")):
            code = _read(path)
            if code is None:
                code = compile_()
                with atomic_file(path) as part:
                    part.write_bytes(code.to_bytes())
    except OSError as error:
        print(f"note: kernels are not kept, {path.parent}: {error.strerror}", file=sys.stderr)
        code = compile_()
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
    with default_numba():
        return _compile(importlib.import_module(module), module)


@contextlib.contextmanager
def default_numba() -> Iterator[None]:
    """Hide the user's ``NUMBA_*`` settings: they would change the code that all later runs load."""
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("NUMBA_")}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _compile(source: Any, module: str) -> MachineCode:
    import numba

    signatures = {name: list(types) for name, types in getattr(source, "KERNELS", {}).items()}
    compiled = {}
    for name, types in signatures.items():
        pointers = [numba.types.CPointer(getattr(numba.types, t)) for t in types]
        compiled[name] = numba.cfunc(numba.types.void(*pointers))(getattr(source, name))
    functions: dict[str, str] = getattr(source, "FUNCTIONS", {})
    for name, signature in functions.items():
        compiled[name] = numba.cfunc(signature, error_model="numpy")(getattr(source, name))
    return _linked(compiled, module, signatures, functions)


def compile_functions(
    functions: Mapping[str, tuple[Callable[..., Any], str]], where: str
) -> MachineCode:
    """One object of functions of numbers: name -> (function, ``"uint64(uint64, int64)"``).

    ``where`` names their source in messages. Division follows numpy: by zero it gives infinity, and
    0 for whole numbers. Raises :class:`RunnerError` for a function that needs Python at run time,
    and numba's errors.
    """
    import numba

    with default_numba():
        compiled = {
            name: numba.cfunc(signature, error_model="numpy")(function)
            for name, (function, signature) in functions.items()
        }
        return _linked(compiled, where, {}, {n: text for n, (_, text) in functions.items()})


def _linked(
    compiled: Mapping[str, Any],
    where: str,
    signatures: dict[str, list[str]],
    functions: Mapping[str, str],
) -> MachineCode:
    """The compiled functions as one object."""
    whole = llvm.parse_assembly("")
    machine = _target_machine()
    for name, entry in compiled.items():
        whole.link_in(_self_contained(entry, name, where, machine))
    symbols = sorted(
        f.name for f in whole.functions if f.is_declaration and not f.name.startswith("llvm.")
    )
    types = {name: re.findall(r"\w+", text) for name, text in functions.items()}
    return MachineCode(signatures, machine.emit_object(whole), types, symbols)


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


def _key(code: bytes) -> str:
    """A hash of the code, this file, the compilers and the processor."""
    digest = hashlib.sha256(_compilers())
    digest.update(Path(__file__).read_bytes())
    digest.update(code)
    return digest.hexdigest()[:24]


@functools.cache
def _compilers() -> bytes:
    words = [
        _version("numba"),
        _version("llvmlite"),
        llvm.get_default_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    ]
    return "\0".join(words).encode()


def _version(package: str) -> str:
    """The version of an installed package, which is not imported.

    It is read from the package: ``importlib.metadata`` would take more than 10 ms.
    """
    if init := _source(package):
        with contextlib.suppress(OSError):
            return init.with_name("_version.py").read_text(encoding="utf-8")
    import importlib.metadata

    return importlib.metadata.version(package)


def _sources_key(module: str) -> bytes:
    if not _source(module):
        raise RunnerError(f"there is no kernel module {module}")
    return sources_key(module)


def sources_key(*modules: str) -> bytes:
    """A hash of the sources of these modules and of all that they import.

    Imports are followed within :mod:`runner` and within each module's own top-level package.
    """
    packages = {"runner", *(module.partition(".")[0] for module in modules)}
    waiting, seen = list(modules), dict[str, bytes]()
    while waiting:
        module = waiting.pop()
        if module in seen or module.partition(".")[0] not in packages:
            continue
        path = _source(module)
        seen[module] = path.read_bytes() if path else b""
        waiting += [(a or b).decode() for a, b in _IMPORT.findall(seen[module])]
        waiting += [f"{a.decode()}.{n}" for a, n in _members(seen[module])]
    digest = hashlib.sha256()
    for module, text in sorted(seen.items()):
        digest.update(module.encode() + b"\0" + text)
    return digest.digest()


def _members(text: bytes) -> list[tuple[bytes, str]]:
    """(package, name) of ``from package import name``: the name may be a module of the package."""
    found = re.findall(rb"^\s*from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n(]+)", text, re.MULTILINE)
    return [(a, n) for a, names in found for n in re.findall(r"\w+", names.decode())]


@functools.cache
def _source(module: str) -> Path | None:
    """The file of a module, found without importing the packages it is in."""
    top, *rest = module.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None or not spec.has_location:
        return None
    if not rest:
        return Path(spec.origin)
    for root in spec.submodule_search_locations or ():
        path = Path(root, *rest)
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return file
    return None


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
