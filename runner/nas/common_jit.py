"""Functions that several kernels of one module call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba.extending import register_jitable

F = TypeVar("F", bound=Callable[..., Any])


def inlined(function: F) -> F:
    """Decorator: compiled into each kernel that calls it, as if written there.

    So the compiler sees which arguments are the same array.  Keep such a function in the module of
    its kernels: stored machine code is renewed when that file changes, not when another one does.
    """
    return cast(F, register_jitable(inline="always")(function))
