"""Relocatable object code in stored form, and its loading into memory."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
from typing import Any, Protocol

from runner.errors import RunnerError
from runner.runtimes.core import elf
from runner.runtimes.core.processor import target_machine
from runner.runtimes.core.sources import sha256


class MachineCode:
    """Relocatable object code with the data that a loader needs."""

    def __init__(
        self,
        signatures: dict[str, list[str]],
        object_code: bytes,
        functions: dict[str, list[str]],
        symbols: list[str],
        missing: dict[str, str] | None = None,
    ) -> None:
        self.signatures = signatures
        """Kernel -> element types of its pointer arguments."""
        self.object_code = object_code
        self.functions = functions
        """Function -> type of its result, then types of its arguments."""
        self.symbols = symbols
        """Names outside the object that it calls (``memcpy``, ``exp``)."""
        self.missing = missing or {}
        """Function that could not be compiled -> the reason (its message, as a document of the
        caller)."""

    def to_bytes(self) -> bytes:
        """The code as one line of JSON, then the object code; a digest reveals damage."""
        head = {
            "signatures": self.signatures,
            "functions": self.functions,
            "symbols": self.symbols,
            "missing": self.missing,
            "sha256": sha256(self.object_code).hexdigest(),
        }
        return json.dumps(head).encode() + b"\n" + self.object_code

    @classmethod
    def from_bytes(cls, data: bytes) -> MachineCode | None:
        """The stored code; None if the file is damaged (then it is compiled again)."""
        head, _, code = data.partition(b"\n")
        try:
            header = json.loads(head)
            intact = header["sha256"] == sha256(code).hexdigest()
            if not intact:
                return None
            names = ("functions", "symbols", "missing")
            return cls(header["signatures"], code, *(header[name] for name in names))
        except (ValueError, KeyError, TypeError):
            return None


class Loaded(Protocol):
    """Machine code in memory, where it stays for the life of the process."""

    def address(self, name: str) -> int:
        """The address of a function. Raises ``KeyError`` for an unknown one."""
        ...


def loaded(code: MachineCode) -> Loaded:
    """Load machine code with :mod:`runner.runtimes.core.elf`, or with LLVM if it is unsupported
    there.

    Raises :class:`RunnerError` if the code calls something that this process lacks.
    """
    try:
        return elf.Image(code.object_code, address_of)
    except elf.NotUnderstood:
        return LlvmImage(code)


class LlvmImage:
    """Machine code that LLVM has loaded; importing LLVM takes 30 to 40 ms."""

    def __init__(self, code: MachineCode) -> None:
        """Raises :class:`RunnerError` for a name that this process lacks.

        LLVM would still load the code, and the call would jump to address 0.
        """
        import llvmlite.binding as llvm  # type: ignore[import-untyped]

        _tell_llvm(llvm, code.symbols)
        # The engine owns the memory of the machine code.
        self._engine: Any = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code.object_code))
        self._engine.finalize_object()
        _images.append(self)

    def address(self, name: str) -> int:
        """The address of a function. Raises ``KeyError`` for an unknown one."""
        if found := int(self._engine.get_function_address(name)):
            return found
        raise KeyError(name)


_images: list[LlvmImage] = []
"""The code loaded by LLVM: dropping an engine would free its memory."""


def _tell_llvm(llvm: Any, symbols: list[str]) -> None:
    """Give LLVM the addresses of these functions of the C libraries."""
    missing = []
    for name in symbols:
        if llvm.address_of_symbol(name):
            continue
        try:
            llvm.add_symbol(name, address_of(name))
        except KeyError:
            missing.append(name)
    if missing:
        names = ", ".join(missing)
        raise RunnerError(
            f"compiled code needs {names}, which this process does not have", code="native.missing"
        )


def address_of(name: str) -> int:
    """The address of a function of the C libraries. Raises ``KeyError`` for an unknown one."""
    for library in _c_libraries():
        with contextlib.suppress(AttributeError):
            return ctypes.cast(library[name], ctypes.c_void_p).value or 0
    raise KeyError(name)


@functools.cache
def _c_libraries() -> list[ctypes.CDLL]:
    """The process, and the math library, which it may not have loaded."""
    libraries = [ctypes.CDLL(None)]
    with contextlib.suppress(OSError):
        libraries.append(ctypes.CDLL("libm.so.6"))
    return libraries
