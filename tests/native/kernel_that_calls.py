"""Kernels that call a function of a C library, and one that exists nowhere."""

from typing import Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic

KERNELS = {"root": ("float64",), "lost": ("float64",)}


@intrinsic
def _nowhere(typing: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from llvmlite import ir

        kind = ir.FunctionType(ir.VoidType(), [])
        function = ir.Function(builder.module, kind, "a_function_that_is_nowhere")
        builder.call(function, ())
        return context.get_dummy_value()

    return types.void(), generate


def root(numbers: Any) -> None:
    n = carray(numbers, (3,))
    for i in range(3):
        n[i] = np.cbrt(n[i]) + np.sqrt(n[i])


def lost(numbers: Any) -> None:
    _nowhere()
