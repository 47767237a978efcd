"""The processor of this machine: the properties that affect compiled code, and LLVM's target for
it.

They are read from ``/proc/cpuinfo``; LLVM is imported only if that is empty, and to generate code.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

_MODEL = (
    *("vendor_id", "cpu family", "model", "model name", "stepping"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision"),
)
_FLAGS = "flags", "Features"
"""The line of instruction sets, on x86 and on Arm."""
_CPUINFO = "/proc/cpuinfo"
_MOST = 1 << 16
"""Maximum bytes to read for the first processor."""


@functools.cache
def _first() -> dict[str, str]:
    """The entry of the first processor, without reading the others; empty if there is none."""
    text = b""
    try:
        file = os.open(_CPUINFO, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        while b"\n\n" not in text and len(text) < _MOST and (part := os.read(file, 4096)):
            text += part
    except OSError:
        return {}
    finally:
        os.close(file)
    lines = text.partition(b"\n\n")[0].decode("ascii", "replace").splitlines()
    pairs = [line.partition(":") for line in lines]
    return {name.strip(): value.strip() for name, _, value in pairs}


def flags() -> frozenset[str]:
    """Names of the processor's properties as the system reports them; empty if unknown."""
    return frozenset(word for name in _FLAGS for word in _first().get(name, "").split())


def description() -> str:
    """System, architecture, model and instruction sets: equal descriptions can share code."""
    words = [sys.platform, os.uname().machine]
    if flags():
        words += [f"{name}={_first().get(name, '')}" for name in (*_MODEL, *_FLAGS)]
    else:
        import llvmlite.binding as llvm  # type: ignore[import-untyped]

        words += [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    return "\n".join(words)


def target_machine() -> Any:
    """Code generation for the processor of this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True
    )
