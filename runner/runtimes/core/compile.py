"""Compiling functions with numba into one self-contained object."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import llvmlite.binding as llvm  # type: ignore[import-untyped]

from runner.errors import RunnerError
from runner.runtimes.core.machine_code import MachineCode
from runner.runtimes.core.processor import target_machine

_PYTHON_RUNTIME = ("Py", "_Py", "numba_", "NRT_")
_ROUNDS = 2
"""Rounds of optimisation until no Python code is left.

Only the first round shows that the references of arrays belong to no object.
"""


def compile_kernels(module: str) -> MachineCode:
    """Compile every kernel of ``module`` with numba into one self-contained object.

    Raises :class:`RunnerError` for a kernel that needs Python at run time.
    """
    with default_numba():
        return _compile(importlib.import_module(module), module)


@contextlib.contextmanager
def default_numba() -> Iterator[None]:
    """Hide the user's ``NUMBA_*`` settings: they would change the code that all later runs load.

    Meanwhile numba generates only LLVM code, and garbage collection is off (compiling creates
    millions of lasting objects). The program's output is not affected (:func:`_plain_output`).
    """
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("NUMBA_")}
    collects = gc.isenabled()
    gc.disable()
    try:
        from runner.runtimes.core.numba_library import llvm_only

        with llvm_only(), _plain_output():
            yield
    finally:
        if collects:
            gc.enable()
        os.environ.update(hidden)


@contextlib.contextmanager
def _plain_output() -> Iterator[None]:
    """Keep an installed colorama from writing to the program's output at its end.

    numba starts it for coloured messages, and it would end the output with an escape sequence,
    which does not belong to the program's output.
    """
    before = sys.modules.get("colorama.initialise")
    begun = before is not None and before.atexit_done
    try:
        yield
    finally:
        colours: Any = sys.modules.get("colorama.initialise")
        if colours is not None and colours.atexit_done and not begun:
            atexit.unregister(colours.reset_all)
            colours.atexit_done = False


def _compile(source: Any, module: str) -> MachineCode:
    import numba

    signatures = {name: list(types) for name, types in getattr(source, "KERNELS", {}).items()}
    compiled = {}
    for name, types in signatures.items():
        pointers = [numba.types.CPointer(getattr(numba.types, t)) for t in types]
        signature = numba.types.void(*pointers)
        compiled[name] = _entry(getattr(source, name), signature, {})
    functions: dict[str, str] = getattr(source, "FUNCTIONS", {})
    for name, signature in functions.items():
        compiled[name] = _entry(getattr(source, name), signature, {"error_model": "numpy"})
    return _linked(compiled, module, signatures, functions)


def _entry(function: Callable[..., Any], signature: Any, options: dict[str, Any]) -> Any:
    """numba's C function for a signature, as LLVM code only: this process never calls it."""
    from numba.core.ccallback import CFunc
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.sigutils import normalize_signature

    made: Any = CFunc(function, normalize_signature(signature), locals={}, options=options)
    with global_compiler_lock:
        return made._compile_uncached()


def compile_functions(
    functions: Mapping[str, tuple[Callable[..., Any], str]], where: str
) -> MachineCode:
    """One object of functions of numbers: name -> (function, ``"uint64(uint64, int64)"``).

    ``where`` names their source in messages. Division follows numpy: by zero it gives infinity, or
    0 for integers. Raises :class:`RunnerError` for a function that needs Python at run time, and
    numba's errors.
    """
    with default_numba():
        compiled = {
            name: _entry(function, signature, {"error_model": "numpy"})
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
    machine = target_machine()
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
    part = compiled.library.whole()
    for function in part.functions:
        if function.name == compiled.fndesc.llvm_cfunc_wrapper_name:
            function.name = name
        elif not function.is_declaration:
            function.linkage = "internal"
    for variable in part.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    tuning = llvm.create_pipeline_tuning_options(3)
    builder = llvm.create_pass_builder(machine, tuning)
    for _ in range(_ROUNDS):
        passes = builder.getModulePassManager()
        passes.add_refprune_pass()
        passes.run(part, builder)
        needed = [f.name for f in part.functions if f.is_declaration]
        python = [f for f in needed if f.startswith(_PYTHON_RUNTIME)]
        if not python:
            return part
    raise RunnerError(
        f"kernel {name} of {module} needs Python at run time ({', '.join(python)}): "
        "a kernel must not raise or allocate; look for range() with a variable step, "
        "division (write np.divide or np.reciprocal) and new arrays",
        code="native.kernel",
    )
