"""Functions called by several kernels of one module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba.extending import register_jitable

F = TypeVar("F", bound=Callable[..., Any])


def inline(function: F) -> F:
    """Decorator: the function is compiled into each kernel that calls it, as if written there.

    So the compiler sees if arguments are the same array. Such a function must be in the module of
    its kernels: stored machine code is renewed only if that file changes.
    """
    return cast(F, register_jitable(inline="always")(function))
